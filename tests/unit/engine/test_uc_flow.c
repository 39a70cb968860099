/* SPDX-License-Identifier: BSD-2-Clause */
#include "../test.h"

#include "engine/uc_flow.h"

static void the_first_packet_asks(void **state)
{
	struct roci_uc_flow f = {0};

	assert_true(roci_uc_flow_asks(&f));
	roci_uc_flow_sent(&f, true);
	assert_false(roci_uc_flow_asks(&f)); /* one question at a time */
	roci_uc_flow_sent(&f, false);
	assert_true(f.ack_requested);
	roci_uc_flow_answer(&f);
	assert_false(roci_uc_flow_asks(&f)); /* the peer is known to answer */
}

static void silence_without_a_question_means_nothing(void **state)
{
	struct roci_uc_flow f = {0};

	for (int i = 0; i < 10; i++) {
		roci_uc_flow_sent(&f, false);
		assert_false(roci_uc_flow_silence(&f));
	}
	assert_false(f.unresponsive);
}

static void three_silences_are_an_unresponsive_peer(void **state)
{
	struct roci_uc_flow f = {0};

	for (int i = 1; i <= 3; i++) {
		assert_false(f.unresponsive);
		roci_uc_flow_sent(&f, true);
		assert_true(roci_uc_flow_silence(&f));
		assert_false(f.ack_requested);
	}
	assert_true(f.unresponsive);
}

static void an_answer_starts_the_count_again(void **state)
{
	struct roci_uc_flow f = {0};

	for (int i = 0; i < 10; i++) {
		roci_uc_flow_sent(&f, true);
		assert_true(roci_uc_flow_silence(&f));
		roci_uc_flow_sent(&f, true);
		assert_true(roci_uc_flow_silence(&f));
		roci_uc_flow_answer(&f);
	}
	assert_false(f.unresponsive);
}

static void an_answer_ends_the_pacing(void **state)
{
	struct roci_uc_flow f = {.unresponsive = true, .paced = true, .unanswered = 3};

	roci_uc_flow_answer(&f);
	assert_false(f.unresponsive);
	assert_false(f.paced);
	assert_int_equal(f.unanswered, 0);
}

static void every_packet_counts_as_full(void **state)
{
	assert_int_equal(roci_uc_flow_bytes(4096, 3), 3 * roci_uc_flow_bytes(4096, 1));
	assert_true(roci_uc_flow_bytes(4096, 1) > 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_packet_asks),
		cmocka_unit_test(silence_without_a_question_means_nothing),
		cmocka_unit_test(three_silences_are_an_unresponsive_peer),
		cmocka_unit_test(an_answer_starts_the_count_again),
		cmocka_unit_test(an_answer_ends_the_pacing),
		cmocka_unit_test(every_packet_counts_as_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
