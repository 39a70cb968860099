/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include <math.h>
#include <stdbool.h>

#include "perf/change.h"

static struct change judge(double before, double after, const double *parts_before, const double *parts_after,
			   size_t count)
{
	struct change_sample b = {before, parts_before, count}, a = {after, parts_after, count};

	return change_judge(&b, &a);
}

static bool near(double a, double b)
{
	return fabs(a - b) < 1e-9;
}

/* Parts that do not vary still leave what differs between runs. */
static void steady(void **state)
{
	static const double one[] = {100, 100, 100, 100, 100, 100}, two[] = {110, 110, 110, 110, 110, 110};
	struct change c = judge(100, 110, one, two, 6);

	assert_true(near(c.part, 0.1) && near(c.noise, CHANGE_FLOOR));
	assert_int_equal(c.verdict, CHANGE_MORE);
	assert_int_equal(judge(110, 100, two, one, 6).verdict, CHANGE_LESS);
	assert_int_equal(judge(100, 101, one, one, 6).verdict, CHANGE_NONE);
	assert_int_equal(judge(100, 99, one, one, 6).verdict, CHANGE_NONE);
}

/* Deviation 10 of 8 parts: a standard error of 10.69/sqrt(8) = 3.78 % each; twice their root sum square is 10.69 %. */
static void noisy(void **state)
{
	static const double parts[] = {90, 110, 90, 110, 90, 110, 90, 110};
	struct change c = judge(100, 110, parts, parts, 8);

	assert_true(fabs(c.noise - 0.10690) < 0.0001);
	assert_int_equal(c.verdict, CHANGE_NONE);
	assert_int_equal(judge(100, 111, parts, parts, 8).verdict, CHANGE_MORE);
}

static void nothing_to_judge_from(void **state)
{
	static const double parts[] = {1, 1, 1, 1};
	struct change c = judge(100, 150, parts, parts, 4);

	assert_true(near(c.noise, 1));
	assert_int_equal(c.verdict, CHANGE_NONE);
	c = judge(0, 150, NULL, NULL, 0);
	assert_true(near(c.part, 0));
	assert_int_equal(c.verdict, CHANGE_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steady),
		cmocka_unit_test(noisy),
		cmocka_unit_test(nothing_to_judge_from),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
