/* SPDX-License-Identifier: BSD-2-Clause */
#include "../test.h"

#include <limits.h>

#include "mover/control.h"
#include "mover/scarce.h"

/* How many messages it takes to speak of all windows, each as soon as it may go. */
static unsigned messages(unsigned windows, unsigned share)
{
	unsigned count = 0, sent = 0;

	for (unsigned i = 0; i < windows; i++)
		if (scarce_enough(++count, windows, share)) {
			count = 0;
			sent++;
		}
	return sent;
}

static unsigned usable(struct control *c)
{
	unsigned count = 0;

	c->free_sends = 1;
	c->conn.state = CONNECTION_UP;
	while (control_is_roomy(c))
		c->credits--;
	for (; control_can_send(c, PROTO_FIN); c->credits--)
		count++;
	return count;
}

/* Of every number of windows, each side can speak in a round trip without running out of credits. */
static void credits_suffice_for_all_windows(void **state)
{
	struct control c = {.credits = PROTO_CREDITS};
	unsigned most = usable(&c);

	assert_true(most > 0);
	assert_int_equal(messages(most, SCARCE_DESCRIPTORS), most); /* the more messages, the sooner each goes */
	for (unsigned windows = 1; windows <= PROTO_MAX_WINDOWS; windows++) {
		assert_true(messages(windows, SCARCE_DESCRIPTORS) <= most);
		assert_true(messages(windows, SCARCE_GRANTS) + messages(windows, SCARCE_ACKS) <= most);
	}
}

/* ... and waits for no more windows than there are. */
static void a_message_about_all_windows_goes(void **state)
{
	for (unsigned windows = 1; windows <= PROTO_MAX_WINDOWS; windows++)
		assert_true(scarce_enough(windows, windows, 1));
	assert_true(scarce_enough(3, 21, 7));
	assert_false(scarce_enough(3, 22, 7));
}

/* What is used beyond half of the credits comes back by itself: the peer owes so many that it says so in a PING. */
static void what_is_waited_for_comes_back(void **state)
{
	struct control c = {.credits = PROTO_CREDITS}, peer = {.sealed = true};

	while (control_is_roomy(&c)) {
		assert_false(control_credits_due(&peer));
		c.credits--;
		peer.credits_due++;
	}
	assert_true(control_credits_due(&peer));
}

/* What is on its way to the other side. */
struct under_way {
	unsigned messages, credits;
};

/* Says it `times` times, or as often as it may. */
static void says(struct control *c, enum proto_type type, unsigned times, struct under_way *to)
{
	for (; times-- && control_can_send(c, type); c->credits--) {
		to->messages++;
		to->credits += c->credits_due;
		c->credits_due = 0;
	}
}

static void arrives(struct control *c, struct under_way *from)
{
	c->credits += from->credits;
	c->credits_due += from->messages;
	*from = (struct under_way){0};
}

/* The network is away for so long that both sides say all that they may, and then PING, before anything arrives. After
 * that they can go on, whatever one of them owed as that began. */
static void nobody_falls_silent_for_good(void **state)
{
	for (unsigned due = 0; due < PROTO_CREDITS; due++) {
		struct control a = {.free_sends = 1, .conn.state = CONNECTION_UP}, b = a;
		struct under_way to_a = {0}, to_b = {0};

		a.credits = PROTO_CREDITS - due;
		b.credits = PROTO_CREDITS;
		b.credits_due = due;
		says(&a, PROTO_FIN, UINT_MAX, &to_b);
		says(&b, PROTO_FIN, UINT_MAX, &to_a);
		for (unsigned round = 0; round < 3; round++) {
			says(&a, PROTO_PING, round ? 1 : UINT_MAX, &to_b);
			says(&b, PROTO_PING, round ? 1 : UINT_MAX, &to_a);
			arrives(&a, &to_a);
			arrives(&b, &to_b);
		}
		assert_true(control_can_send(&a, PROTO_FIN) && control_can_send(&b, PROTO_FIN));
	}
}

/* A message reports credits only where it is sealed. */
static void nothing_is_returned_during_the_handshake(void **state)
{
	struct control c = {.credits_due = PROTO_CREDITS};

	assert_false(control_credits_due(&c));
}

/* Each side can always return credits that are due, and say why it ends. */
static void the_last_credit_is_kept(void **state)
{
	const enum proto_type urgent[] = {PROTO_PING, PROTO_ERROR, PROTO_BYE};
	struct control c = {.credits = 1, .credits_due = 1, .free_sends = 1, .conn.state = CONNECTION_UP};

	for (unsigned i = 0; i < sizeof(urgent) / sizeof(*urgent); i++) {
		c.credits = 1;
		assert_true(control_can_send(&c, urgent[i]));
		c.credits = 0;
		assert_false(control_can_send(&c, urgent[i]));
	}
	c.credits = 1;
	assert_false(control_can_send(&c, PROTO_FIN));
	assert_false(control_can_send(&c, PROTO_GRANT));
	c.credits_due = 0;
	assert_false(control_can_send(&c, PROTO_PING)); /* it would return none */
	c.credits = 2;
	assert_true(control_can_send(&c, PROTO_FIN));
	assert_true(control_can_send(&c, PROTO_PING));
	c.free_sends = 0; /* no buffer */
	assert_false(control_can_send(&c, PROTO_FIN));
	c.free_sends = 1;
	c.conn.state = CONNECTION_CONNECTING;
	assert_false(control_can_send(&c, PROTO_PING));
	c.conn.state = CONNECTION_FAILED;
	assert_false(control_can_send(&c, PROTO_PING));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(credits_suffice_for_all_windows),
		cmocka_unit_test(a_message_about_all_windows_goes),
		cmocka_unit_test(what_is_waited_for_comes_back),
		cmocka_unit_test(nobody_falls_silent_for_good),
		cmocka_unit_test(nothing_is_returned_during_the_handshake),
		cmocka_unit_test(the_last_credit_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
