/* SPDX-License-Identifier: BSD-2-Clause */
#include "../test.h"

#include "engine/burst.h"
#include "engine/psn.h"
#include "engine/sent_log.h"

static void add(struct roci_sent_log *log, uint32_t begin, uint32_t end, uint64_t at)
{
	struct roci_sent_state s = {.sent_at = at};

	roci_sent_log_add(log, begin & 0xffffff, end & 0xffffff, false, &s);
}

static void finds_the_time_of_each_packet_across_the_wrap(void **state)
{
	struct roci_sent_log log = {0};
	uint32_t base = 0xffffe0;

	for (uint32_t i = 0; i < 5000; i++)
		add(&log, base + 3 * i, base + 3 * i + 3, i + 1);
	for (uint32_t i = 0; i < 15000; i++)
		assert_int_equal(roci_sent_log_find(&log, roci_psn_add(base, i))->state.sent_at, i / 3 + 1);
	assert_null(roci_sent_log_find(&log, roci_psn_add(base, 15000)));
	roci_sent_log_advance(&log, roci_psn_add(base, 1500));
	assert_null(roci_sent_log_find(&log, roci_psn_add(base, 1499)));
	assert_int_equal(roci_sent_log_find(&log, roci_psn_add(base, 1500))->state.sent_at, 501);
	roci_sent_log_fini(&log);
}

static void knows_the_place_of_a_packet_in_its_burst(void **state)
{
	struct roci_sent burst = {.begin = 0xfffff8, .end = 8}, few = {.begin = 5, .end = 8};

	assert_int_equal(roci_sent_place(&burst, 0xfffff8), ROCI_PLACES / 32);
	assert_int_equal(roci_sent_place(&burst, 7), ROCI_PLACES - ROCI_PLACES / 32);
	for (uint32_t i = 5; i < 8; i++)
		assert_int_equal(roci_sent_place(&few, i), ROCI_PLACES / 2);
}

static void packets_of_one_time_share_an_entry(void **state)
{
	struct roci_sent_log log = {0};

	for (uint32_t i = 0; i < 100; i++)
		add(&log, i, i + 1, 7);
	assert_int_equal(log.tail - log.head, 1);
	assert_int_equal(roci_sent_log_find(&log, 99)->end, 100);
	roci_sent_log_fini(&log);
}

static void forgets_what_is_sent_again(void **state)
{
	struct roci_sent_log log = {0};

	for (uint32_t i = 0; i < 10; i++)
		add(&log, 10 * i, 10 * i + 10, i + 1);
	roci_sent_log_rewind(&log, 50);
	assert_null(roci_sent_log_find(&log, 50));
	assert_int_equal(roci_sent_log_find(&log, 49)->state.sent_at, 5);
	add(&log, 50, 60, 77);
	assert_int_equal(roci_sent_log_find(&log, 55)->state.sent_at, 77);
	roci_sent_log_fini(&log);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_time_of_each_packet_across_the_wrap),
		cmocka_unit_test(knows_the_place_of_a_packet_in_its_burst),
		cmocka_unit_test(packets_of_one_time_share_an_entry),
		cmocka_unit_test(forgets_what_is_sent_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
