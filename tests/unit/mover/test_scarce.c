/* SPDX-License-Identifier: BSD-2-Clause */
#include "../test.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(credits_suffice_for_all_windows),
		cmocka_unit_test(a_message_about_all_windows_goes),
		cmocka_unit_test(what_is_waited_for_comes_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
