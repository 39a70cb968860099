/* SPDX-License-Identifier: BSD-2-Clause */
#include "../test.h"

#include "engine/psn.h"
#include "engine/scoreboard.h"

#define UNA UINT32_C(0xfffff3) /* in the middle of a word, and before the wrap */

static unsigned mark(struct roci_scoreboard *b, uint32_t psn, uint32_t max)
{
	uint32_t newest = 0;

	return roci_scoreboard_mark(b, psn & ~31u, 1u << (psn & 31), max, &newest);
}

/* What a reference with a byte for each PSN would say, for many marks and advances. */
static void agrees_with_a_simple_one(void **state)
{
	static bool has[200000];
	struct roci_scoreboard b = {0};
	uint32_t una = 0, have = 0, seed = 1;

	roci_scoreboard_reset(&b, UNA);
	for (unsigned step = 0; step < 300000; step++) {
		uint32_t i, n;

		seed = seed * 1664525 + 1013904223;
		i = una + (seed >> 8) % 60000;
		if (i < una + 1 || i >= 200000)
			continue;
		n = mark(&b, roci_psn_add(UNA, i), roci_psn_add(UNA, una + 60000));
		assert_int_equal(n, !has[i]);
		have += n;
		has[i] = true;
		assert_true(roci_scoreboard_has(&b, roci_psn_add(UNA, i)));
		if (step % 1000)
			continue;
		n = 0;
		for (uint32_t to = una + (seed >> 4) % 400; una < to; una++)
			n += has[una];
		assert_int_equal(roci_scoreboard_advance(&b, roci_psn_add(UNA, una)), n);
		have -= n;
		assert_int_equal(b.have, have);
	}
	for (uint32_t i = una; i < 200000; i++)
		assert_int_equal(roci_scoreboard_has(&b, roci_psn_add(UNA, i)), has[i]);
	roci_scoreboard_fini(&b);
}

/* Nothing outside of what is outstanding is believed. */
static void marks_only_what_is_outstanding(void **state)
{
	struct roci_scoreboard b = {0};
	uint32_t newest;

	roci_scoreboard_reset(&b, UNA);
	assert_int_equal(roci_scoreboard_mark(&b, UNA & ~31u, UINT32_MAX, roci_psn_add(UNA, 5), &newest), 5);
	assert_int_equal(newest, roci_psn_add(UNA, 4));
	assert_int_equal(
		roci_scoreboard_mark(&b, roci_psn_add(UNA & ~31u, 32), UINT32_MAX, roci_psn_add(UNA, 5), &newest), 0);
	assert_int_equal(roci_scoreboard_mark(&b, (UNA & ~31u) - 32, UINT32_MAX, roci_psn_add(UNA, 5), &newest), 0);
	roci_scoreboard_fini(&b);
}

/* Each packet is judged once as it was sent, and once for each time that it was sent again. */
static void visits_each_missing_packet_once(void **state)
{
	struct roci_scoreboard b = {0};
	uint32_t missing = 0, psn, max = roci_psn_add(UNA, 100000);

	roci_scoreboard_reset(&b, UNA);
	for (uint32_t i = 0; i < 100000; i++)
		if (i % 20)
			mark(&b, roci_psn_add(UNA, i), max);
	while (roci_scoreboard_scan(&b, b.high)) {
		assert_int_equal(b.scan, roci_psn_add(UNA, 20 * missing++));
		assert_true(roci_scoreboard_lose(&b, b.scan));
		b.scan = roci_psn_add(b.scan, 1);
	}
	assert_int_equal(missing, 5000);
	assert_int_equal(roci_scoreboard_out(&b), 95000 + 5000);
	for (uint32_t i = 0; i < 5000; i++) {
		assert_true(roci_scoreboard_next(&b, &psn));
		assert_int_equal(psn, roci_psn_add(UNA, 20 * i));
		roci_scoreboard_resent(&b, i);
	}
	assert_false(roci_scoreboard_next(&b, &psn));
	mark(&b, UNA, max); /* the first has come, the second is lost again */
	assert_int_equal(roci_scoreboard_oldest(&b)->psn, roci_psn_add(UNA, 20));
	roci_scoreboard_lose_again(&b);
	assert_true(roci_scoreboard_next(&b, &psn));
	assert_int_equal(psn, roci_psn_add(UNA, 20));
	assert_int_equal(roci_scoreboard_oldest(&b)->psn, roci_psn_add(UNA, 40));
	roci_scoreboard_fini(&b);
}

/* A packet that comes before it is sent again is not sent again. */
static void does_not_send_what_came_late(void **state)
{
	struct roci_scoreboard b = {0};
	uint32_t psn;

	roci_scoreboard_reset(&b, 64);
	for (uint32_t i = 64; i < 74; i++)
		roci_scoreboard_lose(&b, i);
	mark(&b, 65, 100);
	roci_scoreboard_advance(&b, 65);
	assert_true(roci_scoreboard_next(&b, &psn));
	assert_int_equal(psn, 66);
	roci_scoreboard_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_a_simple_one),
		cmocka_unit_test(marks_only_what_is_outstanding),
		cmocka_unit_test(visits_each_missing_packet_once),
		cmocka_unit_test(does_not_send_what_came_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
