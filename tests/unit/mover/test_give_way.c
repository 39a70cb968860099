/* SPDX-License-Identifier: BSD-2-Clause */
#include "../test.h"

#include <stdint.h>
#include <time.h>

#include "mover/give_way.h"

#define MS 1000000ull

/* Works and sleeps in turns, from *now on, for `count` of them, and asks at the end of each. Returns how often it was
 * due. */
static unsigned turns(struct give_way *g, uint64_t *now, unsigned count, uint64_t works_ns, uint64_t sleeps_ns)
{
	unsigned due = 0;

	for (unsigned i = 0; i < count; i++) {
		*now += works_ns;
		due += give_way_due(g, *now);
		give_way_slept(g, *now, *now + sleeps_ns);
		*now += sleeps_ns;
	}
	return due;
}

static void nothing_is_known_at_first(void **state)
{
	struct give_way g = {0};
	uint64_t now = 1000 * MS;

	assert_int_equal(turns(&g, &now, 2, 1 * MS, 7 * MS), 0);
}

/* A chunk each 8 ms, as on a line of 1 Gbit/s. */
static void who_mostly_sleeps_gives_way(void **state)
{
	struct give_way g = {0};
	uint64_t now = 1000 * MS;

	turns(&g, &now, 4, 2 * MS, 6 * MS);
	assert_int_equal(turns(&g, &now, 100, 2 * MS, 6 * MS), 100);
}

static void who_mostly_works_does_not(void **state)
{
	struct give_way g = {0};
	uint64_t now = 1000 * MS;

	assert_int_equal(turns(&g, &now, 100, 3 * MS, 2 * MS), 0);
	turns(&g, &now, 20, 2 * MS, 6 * MS); /* the line becomes slower, ... */
	assert_int_equal(turns(&g, &now, 10, 2 * MS, 6 * MS), 10);
	turns(&g, &now, 20, 3 * MS, 2 * MS); /* ... and faster */
	assert_int_equal(turns(&g, &now, 10, 3 * MS, 2 * MS), 0);
}

/* A sleep of many periods is one period. */
static void a_long_sleep_is_sleep(void **state)
{
	struct give_way g = {0};
	uint64_t now = 1000 * MS;

	turns(&g, &now, 100, 3 * MS, 2 * MS);
	give_way_slept(&g, now, now + 1000 * MS);
	now += 1000 * MS;
	assert_true(give_way_due(&g, now));
}

/* One that has the processor for 4 ms costs 4 of 68. */
static void a_slice_taken_is_a_pause(void **state)
{
	struct give_way g = {0};
	uint64_t now = 1000 * MS;

	turns(&g, &now, 10, 2 * MS, 6 * MS);
	assert_true(give_way_due(&g, now));
	give_way_gave(&g, now, now + MS / 2);
	assert_true(give_way_due(&g, now + MS / 2));
	give_way_gave(&g, now, now + 4 * MS);
	now += 4 * MS;
	assert_int_equal(turns(&g, &now, 8, 2 * MS, 6 * MS), 0);
	assert_int_equal(turns(&g, &now, 8, 2 * MS, 6 * MS), 8);
}

static uint64_t clock_ns, taken_ns;
static unsigned yields;

int __wrap_clock_gettime(clockid_t id, struct timespec *t);
int __wrap_clock_gettime(clockid_t id, struct timespec *t)
{
	*t = (struct timespec){(time_t)(clock_ns / 1000000000u), (long)(clock_ns % 1000000000u)};
	return 0;
}

int __wrap_sched_yield(void);
int __wrap_sched_yield(void)
{
	yields++;
	clock_ns += taken_ns;
	return 0;
}

static void it_yields_where_it_is_due(void **state)
{
	struct give_way g = {0};

	clock_ns = 1000 * MS;
	give_way(&g);
	assert_int_equal(yields, 0);
	turns(&g, &clock_ns, 10, 2 * MS, 6 * MS);
	give_way(&g);
	assert_int_equal(yields, 1);
	taken_ns = 4 * MS;
	give_way(&g);
	assert_int_equal(yields, 2);
	give_way(&g); /* somebody took a slice */
	assert_int_equal(yields, 2);
	turns(&g, &clock_ns, 8, 2 * MS, 6 * MS);
	give_way(&g);
	assert_int_equal(yields, 3);
}

static void a_process_that_was_stopped_goes_on(void **state)
{
	struct give_way g = {0};
	uint64_t now = 1000 * MS;

	turns(&g, &now, 10, 2 * MS, 6 * MS);
	give_way_gave(&g, now, now + 3600000 * MS);
	now += 3600000 * MS;
	turns(&g, &now, 250, 2 * MS, 6 * MS); /* 2 s */
	assert_true(give_way_due(&g, now));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_known_at_first),          cmocka_unit_test(who_mostly_sleeps_gives_way),
		cmocka_unit_test(who_mostly_works_does_not),          cmocka_unit_test(a_long_sleep_is_sleep),
		cmocka_unit_test(a_slice_taken_is_a_pause),           cmocka_unit_test(it_yields_where_it_is_due),
		cmocka_unit_test(a_process_that_was_stopped_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
