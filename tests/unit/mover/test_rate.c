/* SPDX-License-Identifier: BSD-2-Clause */
#include "../test.h"

#include <stdint.h>

#include "mover/rate.h"

#define SECOND 1000000000ull

static void the_first_stretch_is_the_rate(void **state)
{
	struct rate r = {0};

	rate_see(&r, 0, SECOND);
	assert_true(r.bytes_per_s == 0);
	rate_see(&r, 500, SECOND + SECOND / 2);
	assert_true(r.bytes_per_s == 1000);
}

/* Ten times as fast from now on: a tenth of a second later little has changed, a minute later all. */
static void it_follows_in_some_seconds(void **state)
{
	uint64_t now = SECOND, bytes = 0;
	struct rate r = {0};

	for (unsigned i = 0; i < 100; i++, now += SECOND / 10, bytes += 100)
		rate_see(&r, bytes, now);
	assert_in_range((uint64_t)r.bytes_per_s, 999, 1001);
	bytes += 900;
	rate_see(&r, bytes, now);
	assert_in_range((uint64_t)r.bytes_per_s, 1100, 2000);
	for (unsigned i = 0; i < 600; i++) {
		now += SECOND / 10;
		bytes += 1000;
		rate_see(&r, bytes, now);
	}
	assert_in_range((uint64_t)r.bytes_per_s, 9900, 10100);
}

/* A session that continues another begins to count at what that has moved, and never below. */
static void less_than_before_is_no_rate(void **state)
{
	struct rate r = {0};

	rate_see(&r, 5000, SECOND);
	rate_see(&r, 6000, 2 * SECOND);
	rate_see(&r, 10, 3 * SECOND);
	assert_true(r.bytes_per_s == 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_stretch_is_the_rate),
		cmocka_unit_test(it_follows_in_some_seconds),
		cmocka_unit_test(less_than_before_is_no_rate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
