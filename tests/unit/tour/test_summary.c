/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include "tour/summary.h"

static void percentiles(void **state)
{
	struct summary s;
	struct summary_times t;

	assert_int_equal(summary_init(&s), 0);
	t = summary_times(&s);
	assert_true(!t.min_ns && !t.median_ns && !t.p99_ns && !t.max_ns);
	for (uint64_t i = 200; i > 0; i--)
		summary_add(&s, i);
	summary_add_failure(&s);
	t = summary_times(&s);
	assert_int_equal(t.min_ns, 1);
	assert_int_equal(t.median_ns, 100);
	assert_int_equal(t.p99_ns, 198);
	assert_int_equal(t.max_ns, 200);
	assert_int_equal(s.tried, 201);
	assert_int_equal(s.failed, 1);
	summary_destroy(&s);
}

static void one_is_all(void **state)
{
	struct summary s;
	struct summary_times t;

	assert_int_equal(summary_init(&s), 0);
	summary_add(&s, 7);
	t = summary_times(&s);
	assert_true(t.min_ns == 7 && t.median_ns == 7 && t.p99_ns == 7 && t.max_ns == 7);
	summary_destroy(&s);
}

/* The median of an even number is the mean of the two in the middle. */
static void median_of_two(void **state)
{
	struct summary s;

	assert_int_equal(summary_init(&s), 0);
	summary_add(&s, 300);
	summary_add(&s, 100);
	assert_int_equal(summary_times(&s).median_ns, 200);
	summary_add(&s, 110);
	assert_int_equal(summary_times(&s).median_ns, 110);
	summary_destroy(&s);
}

/* However many there are, memory is bounded, and the share that is kept is even. */
static void many(void **state)
{
	struct summary s;
	struct summary_times t;
	const uint64_t count = 10 * SUMMARY_KEPT;

	assert_int_equal(summary_init(&s), 0);
	for (uint64_t i = 0; i < count; i++)
		summary_add(&s, i);
	assert_true(s.count < SUMMARY_KEPT && s.count >= SUMMARY_KEPT / 2);
	t = summary_times(&s);
	assert_int_equal(t.min_ns, 0);
	assert_int_equal(t.max_ns, count - 1);
	assert_in_range(t.median_ns, count * 49 / 100, count * 51 / 100);
	assert_in_range(t.p99_ns, count * 98 / 100, count);
	summary_destroy(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(percentiles),
		cmocka_unit_test(one_is_all),
		cmocka_unit_test(median_of_two),
		cmocka_unit_test(many),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
