/* SPDX-License-Identifier: BSD-2-Clause */
/* How long bursts are, where their ends are lost and where packets are lost by chance. */
#include "../test.h"

#include "engine/burst.h"

#define MS   UINT64_C(1000000)
#define RTT  (2 * MS)
#define HALF UINT64_C(512) /* of 1024 packets */

static struct roci_burst begin(void)
{
	struct roci_burst b = {0};

	roci_burst_set(&b, MS, ROCI_BURST_MOST);
	return b;
}

/* `n` packets of the last half of their bursts are lost. Returns how many of these were the bursts' fault. */
static unsigned lose_ends(struct roci_burst *b, uint64_t now, unsigned n)
{
	unsigned excused = 0;

	for (unsigned i = 0; i < n; i++)
		excused += roci_burst_lost(b, now, now - RTT, ROCI_PLACES / 2 + i * ROCI_PLACES / 2 / n, HALF);
	return excused;
}

static void bursts_whose_ends_are_lost_become_shorter(void **state)
{
	struct roci_burst b = begin();

	assert_in_range(lose_ends(&b, 10 * MS, 100), 40, 60);
	assert_int_equal(b.ns,
			 ROCI_BURST_MOST / 2); /* by the half that was lost; those sent before say it no second time */
	lose_ends(&b, 20 * MS, 100);
	assert_int_equal(b.ns, ROCI_BURST_MOST / 4);
}

static void what_is_lost_by_chance_changes_nothing(void **state)
{
	struct roci_burst b = begin();

	for (uint32_t i = 0; i < 100000; i++)
		assert_false(roci_burst_lost(&b, 20 * MS, 18 * MS, i * 97 % ROCI_PLACES, HALF));
	assert_int_equal(b.ns, ROCI_BURST_MOST);
	for (uint32_t i = 0; i < 100; i++) /* nor where the beginnings are lost */
		assert_false(roci_burst_lost(&b, 20 * MS, 18 * MS, 0, HALF));
	assert_int_equal(b.ns, ROCI_BURST_MOST);
}

/* A queue that becomes short later is found as well. */
static void what_was_lost_long_ago_is_forgotten(void **state)
{
	struct roci_burst b = begin();

	for (uint32_t i = 0; i < 1000000; i++)
		roci_burst_lost(&b, 20 * MS, 18 * MS, i * 97 % ROCI_PLACES, HALF);
	lose_ends(&b, 20 * MS, 300);
	assert_int_equal(b.ns, ROCI_BURST_MOST / 2);
}

/* Shorter bursts lose as much: then it is the rate. */
static void it_is_no_excuse_for_ever(void **state)
{
	struct roci_burst b = begin();
	uint64_t now = 10 * MS;

	for (unsigned i = 0; i < ROCI_BURST_TRIES; i++, now += 10 * MS)
		assert_true(lose_ends(&b, now, 100));
	for (unsigned i = 0; i < 100; i++, now += 1000 * MS) {
		roci_burst_round(&b, now, RTT);
		assert_false(lose_ends(&b, now + 10 * MS, 100));
	}
	for (unsigned i = 0; i < 2; i++) /* for long nothing of the kind was lost: it may be the bursts again */
		roci_burst_round(&b, now += 1000 * MS, RTT);
	assert_true(lose_ends(&b, now + 10 * MS, 100));
}

static void they_grow_again_with_time(void **state)
{
	struct roci_burst b = begin();
	uint64_t now = 10 * MS, least;

	lose_ends(&b, now, 100);
	least = b.ns;
	roci_burst_round(&b, now + 200 * MS, RTT);
	assert_int_equal(b.ns, least);
	for (unsigned i = 0; i < 40; i++)
		roci_burst_round(&b, now += 300 * MS, RTT);
	assert_int_equal(b.ns, ROCI_BURST_MOST);
	assert_true(lose_ends(&b, now + 10 * MS, 100)); /* and nothing was lost meanwhile */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bursts_whose_ends_are_lost_become_shorter),
		cmocka_unit_test(what_is_lost_by_chance_changes_nothing),
		cmocka_unit_test(what_was_lost_long_ago_is_forgotten),
		cmocka_unit_test(it_is_no_excuse_for_ever),
		cmocka_unit_test(they_grow_again_with_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
