/* SPDX-License-Identifier: BSD-2-Clause */
#include "../test.h"

#include "verbs/wallclock.h"

#define DIFFERENCE UINT64_C(1700000000000000000)

/* Readings that take more and less time, and are late in different places. */
static void times_never_go_back(void **state)
{
	struct vb_wallclock c = {0};
	uint32_t random = 1;
	uint64_t now = 1000, last = 0;

	for (int i = 0; i < 100000; i++) {
		uint64_t before = now += 10, wall, after;
		random = random * 1664525 + 1013904223;
		now += (random >> 8) % 400;
		wall = now + DIFFERENCE;
		now += (random >> 16) % 400;
		after = now;
		vb_wallclock_learn(&c, before, wall, after);
		assert_true(vb_wallclock_at(&c, now) >= last);
		last = vb_wallclock_at(&c, now);
		assert_true(last <= now + DIFFERENCE);
	}
	assert_true(now + DIFFERENCE - last < 20); /* the best readings count */
}

static void a_clock_that_was_set_is_followed(void **state)
{
	struct vb_wallclock c = {0};

	vb_wallclock_learn(&c, 100, 100 + DIFFERENCE, 100);
	assert_in_range(vb_wallclock_at(&c, 200), 199 + DIFFERENCE, 200 + DIFFERENCE);
	vb_wallclock_learn(&c, 300, 5300 + DIFFERENCE, 300);
	assert_in_range(vb_wallclock_at(&c, 400), 5399 + DIFFERENCE, 5400 + DIFFERENCE);
	vb_wallclock_learn(&c, 500, 400, 500); /* back to 1970, before the monotonic clock */
	assert_in_range(vb_wallclock_at(&c, 600), 499, 500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_never_go_back),
		cmocka_unit_test(a_clock_that_was_set_is_followed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
