/* SPDX-License-Identifier: BSD-2-Clause */
#include "../test.h"

#include <stdint.h>

#include "mover/round_trip.h"

static void none_before_the_first_sample(void **state)
{
	struct round_trip r = {0};

	assert_true(round_trip_ns(&r) == 0);
	round_trip_add(&r, 500);
	assert_true(round_trip_ns(&r) == 500);
}

static void a_late_completion_does_not_count(void **state)
{
	struct round_trip r = {0};

	round_trip_add(&r, 20000);
	round_trip_add(&r, 90000);
	round_trip_add(&r, 21000);
	assert_true(round_trip_ns(&r) == 20000);
}

/* A path that becomes longer, by a queue or another route, shows after as many samples as are kept. */
static void old_samples_are_forgotten(void **state)
{
	struct round_trip r = {0};

	for (unsigned i = 0; i < 3 * ROUND_TRIP_SAMPLES; i++)
		round_trip_add(&r, 1000);
	for (unsigned i = 1; i <= ROUND_TRIP_SAMPLES; i++) {
		assert_true(round_trip_ns(&r) == 1000);
		round_trip_add(&r, 5000);
	}
	assert_true(round_trip_ns(&r) == 5000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(none_before_the_first_sample),
		cmocka_unit_test(a_late_completion_does_not_count),
		cmocka_unit_test(old_samples_are_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
