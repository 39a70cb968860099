/* SPDX-License-Identifier: BSD-2-Clause */
#include "../test.h"

#include "engine/first_window.h"

#define MS 1000000ull

/* Twelve packets, and the first answer is about eight of them. The others are answered one by one, `gap_ns` apart. */
static uint64_t train(struct roci_first_window *f, uint64_t gap_ns, uint64_t rtt_ns)
{
	uint64_t now = 1000 * MS, window = roci_first_window_acked(f, now, 8 * 1280, false, rtt_ns);

	for (unsigned i = 0; i < 4 && !window; i++) {
		now += gap_ns;
		window = roci_first_window_acked(f, now, 1280, i == 3, rtt_ns);
	}
	return window;
}

/* 1 Mbit/s: a packet takes 10 ms, and little more than five are on their way in 50 ms. */
static void a_narrow_line_gets_no_more_than_at_first(void **state)
{
	struct roci_first_window f = {0};

	assert_int_equal(train(&f, 10 * MS, 50 * MS), ROCI_FIRST_WINDOW);
}

static void a_fast_line_gets_the_most(void **state)
{
	struct roci_first_window f = {0};

	assert_int_equal(train(&f, 10000, 20 * MS), ROCI_FIRST_WINDOW_MOST);
}

/* What the line carries in a round trip: 50 Mbit/s for 10 ms. */
static void others_get_what_fits(void **state)
{
	struct roci_first_window f = {0};
	uint64_t window = train(&f, 1280 * 8 * MS / 50000, 10 * MS);

	assert_in_range(window, 50000, 150000);
}

/* All answers come in one, as where a receiver takes the packets from its socket in one go. */
static void one_answer_for_all_came_at_once(void **state)
{
	struct roci_first_window f = {0};

	assert_int_equal(roci_first_window_acked(&f, 1000 * MS, 12 * 1280, true, 20 * MS), ROCI_FIRST_WINDOW_MOST);
}

/* A short message tells nothing, and the pause behind it is not the line's. */
static void a_pause_does_not_count(void **state)
{
	struct roci_first_window f = {0};

	assert_int_equal(roci_first_window_acked(&f, 10 * MS, 1280, true, 20 * MS), 0);
	assert_int_equal(train(&f, 10000, 20 * MS), ROCI_FIRST_WINDOW_MOST);
}

/* A greeting is still on its way when the content follows it, and is answered earlier by as much as it went earlier. */
static void a_short_message_before_the_others_does_not_count(void **state)
{
	struct roci_first_window f = {0};

	assert_int_equal(roci_first_window_acked(&f, 970 * MS, 272, false, 100 * MS), 0);
	assert_int_equal(train(&f, 10000, 100 * MS), ROCI_FIRST_WINDOW_MOST);
}

/* The window is bounded, what was seen is not, but by how well answers tell the time. */
static void more_than_the_window_may_be_shown(void **state)
{
	struct roci_first_window spread = {0}, together = {0};

	assert_int_equal(train(&spread, 200000, 600 * MS), ROCI_FIRST_WINDOW_MOST);
	assert_in_range(spread.shown, 3 << 20, 8 << 20);
	assert_int_equal(train(&together, 0, 20 * MS), ROCI_FIRST_WINDOW_MOST);
	assert_true(together.shown < 4 << 20);
}

static void it_is_told_once(void **state)
{
	struct roci_first_window f = {0};

	assert_int_not_equal(train(&f, 10000, 20 * MS), 0);
	assert_int_equal(train(&f, 10000, 20 * MS), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_narrow_line_gets_no_more_than_at_first),
		cmocka_unit_test(a_fast_line_gets_the_most),
		cmocka_unit_test(others_get_what_fits),
		cmocka_unit_test(one_answer_for_all_came_at_once),
		cmocka_unit_test(a_pause_does_not_count),
		cmocka_unit_test(a_short_message_before_the_others_does_not_count),
		cmocka_unit_test(more_than_the_window_may_be_shown),
		cmocka_unit_test(it_is_told_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
