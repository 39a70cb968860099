/* SPDX-License-Identifier: BSD-2-Clause */
#include "../test.h"

#include "engine/rtt_sample.h"

static void an_acknowledgement_ends_it(void **state)
{
	struct roci_rtt_sample s = {0};
	uint64_t rtt = 0;

	assert_false(roci_rtt_sample_end(&s, 5, 1000, &rtt));
	roci_rtt_sample_start(&s, 0xffffff, 1000);
	roci_rtt_sample_start(&s, 0, 1100); /* one at a time */
	assert_false(roci_rtt_sample_end(&s, 0xffffff, 1500, &rtt));
	assert_true(roci_rtt_sample_end(&s, 0, 1700, &rtt));
	assert_int_equal(rtt, 700);
	assert_false(roci_rtt_sample_end(&s, 1, 1800, &rtt));
}

static void what_is_sent_again_measures_nothing(void **state)
{
	struct roci_rtt_sample s = {0};
	uint64_t rtt;

	roci_rtt_sample_start(&s, 3, 1000);
	roci_rtt_sample_again(&s, false);
	assert_false(roci_rtt_sample_end(&s, 4, 1500, &rtt));
	roci_rtt_sample_start(&s, 4, 2000);
	assert_true(roci_rtt_sample_end(&s, 5, 2100, &rtt));
	assert_int_equal(rtt, 100);
}

/* Where nothing else is known: the answer may be about the first time, and no earlier one was sent. */
static void what_is_sent_again_may_be_a_bound(void **state)
{
	struct roci_rtt_sample s = {0};
	uint64_t rtt;

	roci_rtt_sample_again(&s, true);
	assert_false(roci_rtt_sample_end(&s, 4, 900, &rtt)); /* none ran */
	roci_rtt_sample_start(&s, 3, 1000);
	roci_rtt_sample_again(&s, true);
	assert_true(roci_rtt_sample_end(&s, 4, 1500, &rtt));
	assert_true(s.again);
	assert_int_equal(rtt, 500);
	roci_rtt_sample_start(&s, 4, 2000);
	assert_true(roci_rtt_sample_end(&s, 5, 2100, &rtt));
	assert_false(s.again);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_acknowledgement_ends_it),
		cmocka_unit_test(what_is_sent_again_measures_nothing),
		cmocka_unit_test(what_is_sent_again_may_be_a_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
