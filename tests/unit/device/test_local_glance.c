/* SPDX-License-Identifier: BSD-2-Clause */
/* Which polls read the sockets: local_glance.h. */
#include "../test.h"

#include "device/local/glance.h"

#define POLL_NS 50

static uint64_t now_ns = 1000000;
static unsigned clocks; /* polls that read the clock */

/* Polls that read the sockets, of `polls` that bring nothing. */
static unsigned reads(struct roci_local_glance *g, unsigned polls, uint64_t each_ns)
{
	unsigned n = 0;

	clocks = 0;
	for (unsigned i = 0; i < polls; i++) {
		now_ns += each_ns;
		if (roci_local_glance_peeks(g))
			continue;
		clocks++;
		n += !roci_local_glance_skips(g, now_ns);
	}
	return n;
}

static void without_rings_every_poll_reads_the_sockets(void **state)
{
	struct roci_local_glance g = {0};

	assert_int_equal(reads(&g, 1000, POLL_NS), 1000);
	roci_local_glance_saw(&g, now_ns, 0, 3);
	assert_int_equal(reads(&g, 1000, POLL_NS), 1000);
}

static void the_sockets_are_read_now_and_then(void **state)
{
	const unsigned polls = ROCI_GLANCE_EVERY_NS / POLL_NS;
	struct roci_local_glance g = {0};
	unsigned n = 0;

	for (unsigned i = 0; i < 100; i++) {
		roci_local_glance_saw(&g, now_ns, 1, 0);
		n += reads(&g, polls, POLL_NS);
		assert_in_range(clocks, polls / (ROCI_GLANCE_PEEKS + 1), polls / 3);
	}
	assert_in_range(n, 100 * ROCI_GLANCE_EVERY_NS / ROCI_GLANCE_MOST_NS - 2, 20);
}

/* Soon after packets came by them they are read as often as at first. */
static void sockets_that_bring_something_are_read_more_often(void **state)
{
	const unsigned polls = ROCI_GLANCE_EVERY_NS / POLL_NS;
	struct roci_local_glance g = {0};

	for (unsigned i = 0; i < 100; i++) {
		roci_local_glance_saw(&g, now_ns, 1, 0);
		reads(&g, polls, POLL_NS);
	}
	roci_local_glance_saw(&g, now_ns, 0, 1);
	assert_int_equal(reads(&g, 1, POLL_NS), 1);
	roci_local_glance_saw(&g, now_ns, 0, 1);
	roci_local_glance_saw(&g, now_ns, 1, 0);
	assert_in_range(reads(&g, polls + ROCI_GLANCE_PEEKS + 1, POLL_NS), 1, 2);
}

/* The rings have become silent: soon every poll reads the sockets. */
static void silence_ends_it(void **state)
{
	struct roci_local_glance g = {0};

	roci_local_glance_saw(&g, now_ns, 1, 0);
	reads(&g, ROCI_GLANCE_NS / POLL_NS + ROCI_GLANCE_PEEKS, POLL_NS);
	assert_int_equal(reads(&g, 1000, POLL_NS), 1000);
}

/* A program that polls seldom: each poll reads the clock, or it would not know how late it is. */
static void seldom_polls_all_read_the_clock(void **state)
{
	struct roci_local_glance g = {0};

	for (unsigned i = 0; i < 100; i++) {
		roci_local_glance_saw(&g, now_ns, 1, 0);
		reads(&g, 1, ROCI_GLANCE_FAST_NS);
		assert_int_equal(clocks, 1);
	}
}

/* Two polls in a row may be followed by work that takes long: they allow few. */
static void the_polls_without_a_clock_grow_with_those_that_were_fast(void **state)
{
	static const unsigned expected[] = {2, 6, 14, 30, ROCI_GLANCE_PEEKS};
	struct roci_local_glance g = {0};

	roci_local_glance_saw(&g, now_ns, 1, 0);
	assert_int_equal(reads(&g, 1, 10), 1);
	for (unsigned i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		assert_int_equal(reads(&g, 1, 10), 0);
		assert_int_equal(clocks, 1);
		assert_int_equal(g.peeks, expected[i]);
		reads(&g, expected[i], 10);
		assert_int_equal(clocks, 0);
	}
}

/* A thread without the lock counts down what it has read before. */
static void a_poll_under_way_undoes_no_end(void **state)
{
	struct roci_local_glance g = {0};

	roci_local_glance_allow(&g, ROCI_GLANCE_PEEKS);
	roci_local_glance_allow(&g, 0);
	g.peeks = ROCI_GLANCE_PEEKS - 1;
	assert_false(roci_local_glance_peeks(&g));
}

/* Both ways are busy: a packet at a socket waits for the next time that they are read, and the next poll reads them
 * again. */
static void a_packet_by_a_socket_ends_it_at_once(void **state)
{
	struct roci_local_glance g = {0};

	roci_local_glance_saw(&g, now_ns, 1, 0);
	reads(&g, 3, POLL_NS);
	assert_true(g.peeks);
	roci_local_glance_saw(&g, now_ns, 2, 1);
	assert_int_equal(reads(&g, 1, POLL_NS), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_rings_every_poll_reads_the_sockets),
		cmocka_unit_test(the_sockets_are_read_now_and_then),
		cmocka_unit_test(sockets_that_bring_something_are_read_more_often),
		cmocka_unit_test(silence_ends_it),
		cmocka_unit_test(seldom_polls_all_read_the_clock),
		cmocka_unit_test(a_packet_by_a_socket_ends_it_at_once),
		cmocka_unit_test(the_polls_without_a_clock_grow_with_those_that_were_fast),
		cmocka_unit_test(a_poll_under_way_undoes_no_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
