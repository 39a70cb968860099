/* SPDX-License-Identifier: BSD-2-Clause */
#include "../test.h"

#include "engine/read_copies.h"

#define RTT  UINT64_C(20000000)
#define MANY 64
#define FEW  2

static struct roci_read_copies asked(unsigned requests)
{
	struct roci_read_copies c = {0};

	for (unsigned i = 0; i < requests; i++)
		roci_read_copies_asked(&c, 100 * i);
	return c;
}

static void nothing_is_copied_where_nothing_is_lost(void **state)
{
	struct roci_read_copies c = asked(10);

	assert_int_equal(roci_read_copies_due(&c, RTT, MANY), 0);
}

static void each_goes_with_the_next_three(void **state)
{
	struct roci_read_copies c = asked(10);

	roci_read_copies_lost(&c, 0, RTT, RTT);
	assert_int_equal(roci_read_copies_due(&c, RTT, MANY), 3);
	assert_int_equal(c.psns[0], 900);
	assert_int_equal(c.psns[1], 800);
	assert_int_equal(c.psns[2], 700);
}

static void only_what_was_asked_is_copied(void **state)
{
	struct roci_read_copies c = asked(0);

	roci_read_copies_lost(&c, 0, RTT, RTT);
	assert_int_equal(roci_read_copies_due(&c, RTT, MANY), 0);
	roci_read_copies_asked(&c, 5);
	roci_read_copies_asked(&c, 6);
	assert_int_equal(roci_read_copies_due(&c, RTT, MANY), 2);
	assert_int_equal(c.psns[0], 6);
	assert_int_equal(c.psns[1], 5);
}

/* The way back may be narrow: copies of small requests would take a good part of it. */
static void small_requests_have_one_copy(void **state)
{
	struct roci_read_copies c = asked(10);

	roci_read_copies_lost(&c, 0, RTT, RTT);
	assert_int_equal(roci_read_copies_due(&c, RTT, FEW), 1);
	assert_int_equal(roci_read_copies_due(&c, RTT, ROCI_READ_COPIES_FROM - 1), 1);
	assert_int_equal(roci_read_copies_due(&c, RTT, ROCI_READ_COPIES_FROM), 3);
}

/* What was lost before the first copy was sent does not count. */
static void two_where_one_is_not_enough(void **state)
{
	struct roci_read_copies c = asked(10);

	roci_read_copies_lost(&c, 300, RTT, RTT);
	roci_read_copies_lost(&c, 800, RTT, RTT);
	assert_int_equal(roci_read_copies_due(&c, RTT, 8), 1);
	roci_read_copies_lost(&c, 900, 2 * RTT, RTT);
	assert_int_equal(roci_read_copies_due(&c, 2 * RTT, 8), 2);
	assert_int_equal(roci_read_copies_due(&c, 2 * RTT, FEW), 1);
	roci_read_copies_lost(&c, 0, 3 * RTT, RTT);
	assert_int_equal(roci_read_copies_due(&c, 3 * RTT, 8), 2);
	roci_read_copies_lost(&c, 900, 1000 * RTT, RTT); /* long after that */
	assert_int_equal(roci_read_copies_due(&c, 1000 * RTT, 8), 1);
}

static void it_ends_when_no_request_was_lost_for_long(void **state)
{
	struct roci_read_copies c = asked(10);

	roci_read_copies_lost(&c, 0, RTT, RTT);
	assert_int_equal(roci_read_copies_due(&c, RTT + ROCI_READ_COPIES_LIFE * RTT - 1, MANY), 3);
	assert_int_equal(roci_read_copies_due(&c, RTT + ROCI_READ_COPIES_LIFE * RTT, MANY), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_copied_where_nothing_is_lost),
		cmocka_unit_test(each_goes_with_the_next_three),
		cmocka_unit_test(only_what_was_asked_is_copied),
		cmocka_unit_test(small_requests_have_one_copy),
		cmocka_unit_test(two_where_one_is_not_enough),
		cmocka_unit_test(it_ends_when_no_request_was_lost_for_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
