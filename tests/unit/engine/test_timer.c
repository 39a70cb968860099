/* SPDX-License-Identifier: BSD-2-Clause */
#include "../test.h"

#include <stdlib.h>

#include "engine/timer.h"

#define TIMERS 200

static void fires_in_order_whatever_is_moved(void **state)
{
	struct roci_timers ts = {0};
	struct roci_timer t[TIMERS];
	uint64_t now = 0;

	srand(1);
	assert_int_equal(roci_timers_reserve(&ts, TIMERS), 0);
	for (int i = 0; i < TIMERS; i++) {
		roci_timer_init(&t[i]);
		roci_timer_set(&ts, &t[i], 1 + (uint64_t)(rand() % 1000));
	}
	for (int i = 0; i < 5000; i++) {
		int k = rand() % TIMERS;

		roci_timer_set(&ts, &t[k], rand() % 4 ? 1 + (uint64_t)(rand() % 1000) : ROCI_TIMER_OFF);
	}
	for (; now <= 1000; now++) {
		struct roci_timer *x;

		for (int i = 0; i < TIMERS; i++)
			if (t[i].at != ROCI_TIMER_OFF)
				assert_true(roci_timers_next(&ts) <= t[i].at);
		while ((x = roci_timers_expired(&ts, now)))
			assert_int_equal(x->index, -1);
		for (int i = 0; i < TIMERS; i++)
			assert_true(t[i].at > now);
	}
	assert_true(roci_timers_next(&ts) == ROCI_TIMER_OFF);
	roci_timers_free(&ts);
}

static void later_deadline_is_met_late(void **state)
{
	struct roci_timers ts = {0};
	struct roci_timer t;

	assert_int_equal(roci_timers_reserve(&ts, 1), 0);
	roci_timer_init(&t);
	roci_timer_set(&ts, &t, 10);
	roci_timer_set(&ts, &t, 20);
	assert_null(roci_timers_expired(&ts, 15));
	assert_ptr_equal(roci_timers_expired(&ts, 20), &t);
	roci_timers_free(&ts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fires_in_order_whatever_is_moved),
		cmocka_unit_test(later_deadline_is_met_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
