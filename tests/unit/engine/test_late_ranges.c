/* SPDX-License-Identifier: BSD-2-Clause */
#include "../test.h"

#include "engine/late_ranges.h"

#define LONGEST (32 * ROCI_RANGES_WORDS)

static void expect(const struct roci_late_range *r, uint32_t begin, uint32_t end)
{
	assert_int_equal(r->begin, begin);
	assert_int_equal(r->end, end);
}

static void what_is_near_is_one_range(void **state)
{
	struct roci_late_ranges l = {0};

	roci_late_ranges_add(&l, 5000);
	roci_late_ranges_add(&l, 5100);
	roci_late_ranges_add(&l, 4990);
	roci_late_ranges_add(&l, 5050);
	expect(&l.ranges[0], 4990, 5101);
	expect(&l.ranges[1], 0, 0);
}

/* What was lost twice is older. */
static void what_is_far_from_it_is_another(void **state)
{
	struct roci_late_ranges l = {0};

	roci_late_ranges_add(&l, 50000);
	roci_late_ranges_add(&l, 20000);
	roci_late_ranges_add(&l, 50020);
	roci_late_ranges_add(&l, 20020);
	roci_late_ranges_add(&l, 100);
	expect(&l.ranges[0], 50000, 50021);
	expect(&l.ranges[1], 20000, 20021);
	expect(&l.ranges[2], 100, 101);
}

/* Nor does it push out what is there. */
static void what_fits_in_none_is_not_named(void **state)
{
	struct roci_late_ranges l = {0};

	for (unsigned i = 0; i < 5; i++)
		roci_late_ranges_add(&l, 10000 * i);
	for (unsigned i = 0; i < ROCI_LATE_RANGES; i++)
		expect(&l.ranges[i], 10000 * i, 10000 * i + 1);
}

/* A segment begins at a word. */
static void none_is_longer_than_a_segment(void **state)
{
	struct roci_late_ranges l = {0};

	roci_late_ranges_add(&l, 31);
	roci_late_ranges_add(&l, LONGEST - 1);
	expect(&l.ranges[0], 31, LONGEST);
	roci_late_ranges_add(&l, LONGEST);
	expect(&l.ranges[0], 31, LONGEST);
	expect(&l.ranges[1], LONGEST, LONGEST + 1);
	roci_late_ranges_add(&l, 0);
	expect(&l.ranges[0], 0, LONGEST);
}

static void psns_wrap(void **state)
{
	struct roci_late_ranges l = {0};

	roci_late_ranges_add(&l, 5);
	roci_late_ranges_add(&l, 0xfffff0);
	expect(&l.ranges[0], 0xfffff0, 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_near_is_one_range),
		cmocka_unit_test(what_is_far_from_it_is_another),
		cmocka_unit_test(what_fits_in_none_is_not_named),
		cmocka_unit_test(none_is_longer_than_a_segment),
		cmocka_unit_test(psns_wrap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
