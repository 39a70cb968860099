/* SPDX-License-Identifier: BSD-2-Clause */
#include "../test.h"

#include "engine/pace.h"

#define MS     UINT64_C(1000000)
#define RATE   UINT64_C(10000000) /* 10 bytes per us */
#define PACKET 1000u

/* Sends what is due, and returns how much that was. */
static unsigned burst(struct roci_pace *p, uint64_t now, uint64_t quantum)
{
	unsigned n = 0;

	while (roci_pace_is_due(p, now, quantum, RATE)) {
		roci_pace_sent(p, now, PACKET, quantum, RATE);
		assert_true(++n < 1000);
	}
	return n;
}

/* Whoever asks at the times that it is told sends at the rate, in bursts of a quantum. */
static void sends_at_the_rate_in_bursts(void **state)
{
	struct roci_pace p = {.at = 100 * MS};
	uint64_t now = 100 * MS, sent = 0;

	while (now < 200 * MS) {
		unsigned n = burst(&p, now, 10 * PACKET);

		assert_int_equal(n, 10);
		sent += n * PACKET;
		assert_true(p.at > now);
		now = p.at;
	}
	assert_int_equal(sent, RATE / 10);
}

/* A late caller catches up by a quantum, and no more. */
static void a_late_caller_catches_up_a_little(void **state)
{
	struct roci_pace p = {.at = 100 * MS};

	assert_int_equal(burst(&p, 100 * MS, 10 * PACKET), 10);
	assert_int_equal(burst(&p, 101 * MS + MS / 2, 10 * PACKET), 15);
	assert_int_equal(burst(&p, 900 * MS, 10 * PACKET), 20);
}

/* Nothing goes between two bursts. */
static void waits_for_the_next_burst(void **state)
{
	struct roci_pace p = {.at = 100 * MS};

	burst(&p, 100 * MS, 10 * PACKET);
	assert_int_equal(burst(&p, 101 * MS - 1, 10 * PACKET), 0);
	assert_int_equal(burst(&p, 101 * MS, 10 * PACKET), 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sends_at_the_rate_in_bursts),
		cmocka_unit_test(a_late_caller_catches_up_a_little),
		cmocka_unit_test(waits_for_the_next_burst),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
