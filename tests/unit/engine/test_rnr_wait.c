/* SPDX-License-Identifier: BSD-2-Clause */
#include "../test.h"

#include "engine/rnr_wait.h"

static void a_repeated_nak_is_recognised(void **state)
{
	struct roci_rnr_wait w = {0};

	assert_false(roci_rnr_wait_is_for(&w, 0));
	roci_rnr_wait_begin(&w, 7);
	assert_true(w.waiting);
	assert_true(roci_rnr_wait_is_for(&w, 7));
	assert_false(roci_rnr_wait_is_for(&w, 8));
	w.waiting = false; /* the time is over: the next NAK is a new refusal */
	assert_false(roci_rnr_wait_is_for(&w, 7));
}

static void retries_are_counted(void **state)
{
	struct roci_rnr_wait w = {.retries_left = 2};

	assert_true(roci_rnr_wait_retry(&w, 2));
	assert_true(roci_rnr_wait_retry(&w, 2));
	assert_false(roci_rnr_wait_retry(&w, 2));
}

/* IBTA 9.7.5.2.8 */
static void seven_is_for_ever(void **state)
{
	struct roci_rnr_wait w = {.retries_left = 7};

	for (int i = 0; i < 100; i++)
		assert_true(roci_rnr_wait_retry(&w, 7));
	w.retries_left = 0;
	assert_true(roci_rnr_wait_retry(&w, ROCI_RNR_RETRY_FOREVER));
}

static void a_kept_window_waits_for_the_refused_packet(void **state)
{
	struct roci_rnr_wait w = {0};

	roci_rnr_wait_again(&w);
	assert_false(w.due); /* nothing was refused */
	roci_rnr_wait_keep(&w);
	assert_true(w.kept && w.due);
	w.due = false; /* it was sent */
	roci_rnr_wait_again(&w);
	assert_true(w.kept && w.due);
	roci_rnr_wait_passed(&w, 3);
	assert_false(w.kept || w.due);
	assert_int_equal(w.retries_left, 3);
	roci_rnr_wait_keep(&w);
	roci_rnr_wait_resend(&w);
	assert_false(w.kept || w.due);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_repeated_nak_is_recognised),
		cmocka_unit_test(retries_are_counted),
		cmocka_unit_test(seven_is_for_ever),
		cmocka_unit_test(a_kept_window_waits_for_the_refused_packet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
