/* SPDX-License-Identifier: BSD-2-Clause */
/* What becomes of a one-time ticket that a transfer has used up. */
#include "../test.h"

#include <string.h>

#include "mover/listener.h"
#include "mover/receiver.h"
#include "mover/ticket.h"

static bool give_another(void *context, struct mover_ticket *ticket)
{
	return !mover_ticket_create(ticket, "host", 1);
}

/* As where getrandom(2) fails. */
static bool give_none(void *context, struct mover_ticket *ticket)
{
	return false;
}

/* The receiver of a transfer that has ended, and whose sender knows it. */
static void use_up(struct listener *l)
{
	static struct receiver r;

	memset(&r, 0, sizeof(r));
	r.reg.listener = l;
	r.s.control.secure = mover_secure_receiver(l->ticket.secret);
	assert_non_null(r.s.control.secure);
	r.end.sent = r.end.bye_came = true;
	listener_use_up_ticket(&r);
	mover_secure_destroy(r.s.control.secure);
}

static void the_next_one_counts(void **state)
{
	struct mover_recv_options options = {.next_ticket = give_another};
	static struct listener l = {.lock = PTHREAD_MUTEX_INITIALIZER, .events.lock = PTHREAD_MUTEX_INITIALIZER};
	struct mover_ticket first;

	l.options = &options;
	assert_int_equal(mover_ticket_create(&first, "host", 1), 0);
	listener_set_ticket(&l, &first);
	use_up(&l);
	assert_true(l.ticket_valid);
	assert_memory_not_equal(l.ticket.secret, first.secret, sizeof(first.secret));
}

/* Nobody comes in by a ticket of zeroes. */
static void without_a_next_one_nobody_comes_in(void **state)
{
	struct mover_recv_options options = {.next_ticket = give_none};
	static struct listener l = {.lock = PTHREAD_MUTEX_INITIALIZER, .events.lock = PTHREAD_MUTEX_INITIALIZER};
	struct mover_ticket first;

	l.options = &options;
	assert_int_equal(mover_ticket_create(&first, "host", 1), 0);
	listener_set_ticket(&l, &first);
	use_up(&l);
	assert_false(l.ticket_valid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_next_one_counts),
		cmocka_unit_test(without_a_next_one_nobody_comes_in),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
