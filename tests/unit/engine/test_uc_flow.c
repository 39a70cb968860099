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
		assert_false(roci_uc_flow_silence(&f, true));
	}
	assert_false(f.unresponsive);
}

static void three_silences_are_an_unresponsive_peer(void **state)
{
	struct roci_uc_flow f = {0};

	for (int i = 1; i <= 3; i++) {
		assert_false(f.unresponsive);
		roci_uc_flow_sent(&f, true);
		assert_true(roci_uc_flow_silence(&f, true));
		assert_false(f.ack_requested);
	}
	assert_true(f.unresponsive);
}

/* A process that is stopped, or waits for a processor, finds nothing lost in its buffer afterwards. */
static void who_has_answered_before_is_waited_for(void **state)
{
	struct roci_uc_flow f = {0};
	unsigned asked = 0;

	roci_uc_flow_sent(&f, true);
	roci_uc_flow_answer(&f);
	roci_uc_flow_sent(&f, true);
	for (assert_true(roci_uc_flow_silence(&f, true)); !f.unresponsive; asked++) {
		assert_true(f.stopped);
		assert_false(roci_uc_flow_waits(&f));
		assert_true(roci_uc_flow_asks(&f));
		roci_uc_flow_sent(&f, true);
		assert_true(roci_uc_flow_waits(&f));
		assert_true(roci_uc_flow_silence(&f, true));
	}
	assert_int_equal(asked, 19);
	assert_false(f.stopped);
	roci_uc_flow_answer(&f);
	assert_false(f.unresponsive);
}

static void an_answer_ends_the_wait(void **state)
{
	struct roci_uc_flow f = {.answered = true};

	roci_uc_flow_sent(&f, true);
	roci_uc_flow_silence(&f, true);
	roci_uc_flow_sent(&f, true);
	assert_true(roci_uc_flow_waits(&f));
	roci_uc_flow_answer(&f);
	assert_false(roci_uc_flow_waits(&f));
	assert_false(roci_uc_flow_asks(&f));
}

/* The model of a far path says how to go on. */
static void nobody_far_is_waited_for(void **state)
{
	struct roci_uc_flow f = {.answered = true};

	for (int i = 0; i < 3; i++) {
		assert_false(f.stopped | f.unresponsive);
		roci_uc_flow_sent(&f, true);
		roci_uc_flow_silence(&f, false);
	}
	assert_true(f.unresponsive);
}

/* Never more than there is. */
static void credits_tell_the_room(void **state)
{
	for (uint64_t room = 1; room < UINT64_C(1) << 40; room += room / 3 + 1) {
		uint64_t told = roci_uc_flow_room(4096, roci_uc_flow_credits(4096, room));

		assert_true(told <= room);
		if (room >= 8192 && room < UINT64_C(100) << 20)
			assert_true(told >= room / 2);
	}
	assert_int_equal(roci_uc_flow_room(1024, roci_uc_flow_credits(1024, 0)), UINT64_MAX);
}

static void an_answer_starts_the_count_again(void **state)
{
	struct roci_uc_flow f = {0};

	for (int i = 0; i < 10; i++) {
		roci_uc_flow_sent(&f, true);
		assert_true(roci_uc_flow_silence(&f, true));
		roci_uc_flow_sent(&f, true);
		assert_true(roci_uc_flow_silence(&f, true));
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

static void what_did_not_come_is_lost(void **state)
{
	struct roci_uc_flow f = {0};
	uint32_t lost;

	assert_int_equal(roci_uc_flow_count(&f, 10, 7, &lost), 10); /* the first answer: nothing to compare with */
	assert_int_equal(lost, 0);
	assert_int_equal(roci_uc_flow_count(&f, 16, 7 + 12, &lost), 12);
	assert_int_equal(lost, 0); /* perhaps they are only late */
	assert_int_equal(roci_uc_flow_count(&f, 16, 19 + 16, &lost), 16);
	assert_int_equal(lost, 4);
	assert_int_equal(roci_uc_flow_count(&f, 16, 35 + 16, &lost), 16);
	assert_int_equal(lost, 0);
}

static void what_comes_late_is_not_lost(void **state)
{
	struct roci_uc_flow f = {0};
	uint32_t lost;

	roci_uc_flow_count(&f, 1, 0xfffff0, &lost);
	assert_int_equal(roci_uc_flow_count(&f, 16, 0xfffff0 + 12, &lost), 12);
	assert_int_equal(roci_uc_flow_count(&f, 16, 15, &lost), 16); /* all, and three of the four; past 2^24 */
	assert_int_equal(lost, 1);
}

/* After silence nobody knows what was sent before the answer and what behind it. */
static void after_silence_the_count_begins_again(void **state)
{
	struct roci_uc_flow f = {0};
	uint32_t lost;

	roci_uc_flow_count(&f, 10, 10, &lost);
	roci_uc_flow_count(&f, 10, 15, &lost);
	roci_uc_flow_sent(&f, true);
	roci_uc_flow_silence(&f, true);
	assert_int_equal(roci_uc_flow_count(&f, 10, 20, &lost), 10);
	assert_int_equal(lost, 0);
}

static void long_round_trips_are_a_far_path(void **state)
{
	struct roci_uc_flow f = {0}, near = {0};

	for (int i = 1; i < 8; i++) {
		assert_int_equal(roci_uc_flow_may_be_far(&f), i > 1);
		assert_false(roci_uc_flow_is_far(&f, ROCI_PATH_FAR_NS));
		assert_false(roci_uc_flow_is_far(&near, ROCI_PATH_FAR_NS));
	}
	assert_true(roci_uc_flow_is_far(&f, ROCI_PATH_FAR_NS));
	assert_false(roci_uc_flow_is_far(&near, ROCI_PATH_FAR_NS - 1));
	assert_false(roci_uc_flow_may_be_far(&near));
	for (int i = 0; i < 10; i++)
		assert_false(roci_uc_flow_is_far(&near, 2 * ROCI_PATH_FAR_NS));
}

/* Eight of them would cost seconds. */
static void very_long_ones_count_more(void **state)
{
	struct roci_uc_flow f = {0}, near = {0};

	for (int i = 1; i < 4; i++)
		assert_false(roci_uc_flow_is_far(&f, 20000000));
	assert_true(roci_uc_flow_is_far(&f, 20000000));
	f = (struct roci_uc_flow){0};
	assert_false(roci_uc_flow_is_far(&f, 200000000));
	assert_true(roci_uc_flow_is_far(&f, 200000000));
	assert_true(roci_uc_flow_is_far(&f, ROCI_PATH_FAR_NS));
	f = (struct roci_uc_flow){0};
	for (int i = 1; i < 8; i++)
		assert_false(roci_uc_flow_is_far(&f, 20000000 - 1));
	assert_true(roci_uc_flow_is_far(&f, 200000000)); /* past the eight */
	assert_false(roci_uc_flow_is_far(&near, 200000000));
	assert_false(roci_uc_flow_is_far(&near, ROCI_PATH_FAR_NS - 1));
	assert_false(roci_uc_flow_is_far(&near, 200000000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_packet_asks),
		cmocka_unit_test(silence_without_a_question_means_nothing),
		cmocka_unit_test(three_silences_are_an_unresponsive_peer),
		cmocka_unit_test(who_has_answered_before_is_waited_for),
		cmocka_unit_test(an_answer_ends_the_wait),
		cmocka_unit_test(nobody_far_is_waited_for),
		cmocka_unit_test(credits_tell_the_room),
		cmocka_unit_test(an_answer_starts_the_count_again),
		cmocka_unit_test(an_answer_ends_the_pacing),
		cmocka_unit_test(every_packet_counts_as_full),
		cmocka_unit_test(what_did_not_come_is_lost),
		cmocka_unit_test(what_comes_late_is_not_lost),
		cmocka_unit_test(after_silence_the_count_begins_again),
		cmocka_unit_test(long_round_trips_are_a_far_path),
		cmocka_unit_test(very_long_ones_count_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
