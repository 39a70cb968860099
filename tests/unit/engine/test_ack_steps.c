/* SPDX-License-Identifier: BSD-2-Clause */
#include "../test.h"

#include "engine/ack_steps.h"

/* The steps that go before an answer that names `psn`; then it goes. Returns how many. */
static unsigned steps(struct roci_ack_steps *s, uint32_t psn, uint32_t first)
{
	unsigned count = 0;
	uint32_t step;

	for (; roci_ack_steps_next(s, psn, &step); count++)
		assert_int_equal(step, roci_psn_add(first, count * ROCI_ACK_STEP));
	roci_ack_steps_sent(s, psn);
	assert_int_equal(s->named, roci_psn_add(psn, 1));
	return count;
}

static void what_is_near_needs_no_step(void **state)
{
	struct roci_ack_steps s = {.named = 0xffffff};

	for (uint32_t i = 1; i < 1000; i++)
		assert_int_equal(steps(&s, roci_psn_add(0xfffffe, i * ROCI_ACK_STEP), 0), 0);
}

static void a_long_way_goes_in_steps(void **state)
{
	struct roci_ack_steps s = {.named = 0xfffff0};

	assert_int_equal(steps(&s, 0xfffff0 + ROCI_ACK_STEP - 1, 0), 0);
	s.named = 0xfffff0;
	assert_int_equal(steps(&s, roci_psn_add(0xfffff0, 3 * ROCI_ACK_STEP), 0xfffff0 + ROCI_ACK_STEP - 1), 3);
}

/* An answer that was asked for again names an old PSN. */
static void an_old_answer_changes_nothing(void **state)
{
	struct roci_ack_steps s = {.named = 5000};
	uint32_t step;

	assert_false(roci_ack_steps_next(&s, 3000, &step));
	roci_ack_steps_sent(&s, 3000);
	assert_int_equal(s.named, 5000);
}

static void after_a_duplicate_they_go_again(void **state)
{
	struct roci_ack_steps s = {.named = 5000};

	roci_ack_steps_repeat(&s, 4400, 5000);
	assert_int_equal(steps(&s, 4999, 4400 + ROCI_ACK_STEP), 598 / ROCI_ACK_STEP);
	roci_ack_steps_repeat(&s, 4999, 5000); /* it was the newest: nothing to repeat */
	assert_int_equal(steps(&s, 4999, 0), 0);
	roci_ack_steps_repeat(&s, roci_psn_add(5000, ROCI_PSN_MASK - ROCI_ACK_STEPS), 5000); /* too old */
	assert_int_equal(steps(&s, 4999, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_near_needs_no_step),
		cmocka_unit_test(a_long_way_goes_in_steps),
		cmocka_unit_test(an_old_answer_changes_nothing),
		cmocka_unit_test(after_a_duplicate_they_go_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
