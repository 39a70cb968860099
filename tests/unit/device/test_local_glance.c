/* SPDX-License-Identifier: BSD-2-Clause */
/* Which polls read the sockets: local_glance.h. */
#include "../test.h"

#include "device/local_glance.h"

/* Polls that read the sockets, of `polls` that bring nothing. */
static unsigned reads(struct roci_local_glance *g, unsigned polls)
{
	unsigned n = 0;

	for (unsigned i = 0; i < polls; i++)
		n += !roci_local_glance_skips(g);
	return n;
}

static void without_rings_every_poll_reads_the_sockets(void **state)
{
	struct roci_local_glance g = {0};

	assert_int_equal(reads(&g, 1000), 1000);
	roci_local_glance_saw(&g, 0, 3);
	assert_int_equal(reads(&g, 1000), 1000);
}

static void the_sockets_are_read_now_and_then(void **state)
{
	struct roci_local_glance g = {0};

	for (unsigned i = 0; i < 100; i++) {
		roci_local_glance_saw(&g, 1, 0);
		assert_int_equal(reads(&g, ROCI_GLANCE_EVERY), 1);
	}
}

/* The rings have become silent: soon every poll reads the sockets. */
static void silence_ends_it(void **state)
{
	struct roci_local_glance g = {0};

	roci_local_glance_saw(&g, 1, 0);
	reads(&g, 2 * ROCI_GLANCE_POLLS);
	assert_int_equal(reads(&g, 1000), 1000);
}

/* Both ways are busy: a packet at a socket waits for 15 polls at most, and the next poll reads the sockets again. */
static void a_packet_by_a_socket_ends_it_at_once(void **state)
{
	struct roci_local_glance g = {0};

	roci_local_glance_saw(&g, 1, 0);
	assert_true(roci_local_glance_skips(&g));
	roci_local_glance_saw(&g, 2, 1);
	assert_false(roci_local_glance_skips(&g));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_rings_every_poll_reads_the_sockets),
		cmocka_unit_test(the_sockets_are_read_now_and_then),
		cmocka_unit_test(silence_ends_it),
		cmocka_unit_test(a_packet_by_a_socket_ends_it_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
