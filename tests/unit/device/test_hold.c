/* SPDX-License-Identifier: BSD-2-Clause */
/* How long MADs wait that calls of the program made: hold.h. */
#include "../test.h"

#include "device/hold.h"

#define NOW 1000000

static void nothing_waits_without_events(void **state)
{
	struct roci_hold h = {0};

	assert_false(roci_hold_waits(&h, NOW));
	roci_hold_called(&h, NOW, false);
	assert_false(roci_hold_waits(&h, NOW));
	assert_true(roci_hold_deadline(&h) == UINT64_MAX);
}

static void answers_wait_while_there_are_events(void **state)
{
	struct roci_hold h = {0};

	roci_hold_called(&h, NOW, true);
	roci_hold_called(&h, NOW + 10, true);
	assert_true(roci_hold_waits(&h, NOW + 10));
	roci_hold_called(&h, NOW + 20, false); /* the last event's */
	assert_false(roci_hold_waits(&h, NOW + 20));
}

static void a_program_that_stops_is_not_waited_for(void **state)
{
	struct roci_hold h = {0};

	roci_hold_called(&h, NOW, true);
	roci_hold_called(&h, NOW + ROCI_HOLD_NS / 2, true);
	assert_true(roci_hold_deadline(&h) == NOW + ROCI_HOLD_NS); /* the first one's */
	assert_true(roci_hold_waits(&h, NOW + ROCI_HOLD_NS - 1));
	assert_false(roci_hold_waits(&h, NOW + ROCI_HOLD_NS));
}

static void so_many_wait_at_most(void **state)
{
	struct roci_hold h = {0};

	for (unsigned i = 1; i < ROCI_HOLD_CALLS; i++) {
		roci_hold_called(&h, NOW, true);
		assert_true(roci_hold_waits(&h, NOW));
	}
	roci_hold_called(&h, NOW, true);
	assert_false(roci_hold_waits(&h, NOW));
	roci_hold_end(&h);
	roci_hold_called(&h, NOW, true);
	assert_true(roci_hold_waits(&h, NOW));
}

static void disconnects_in_a_row_wait_for_each_other(void **state)
{
	struct roci_hold h = {0};
	uint64_t now = NOW;

	for (unsigned i = 0; i < ROCI_HOLD_ROW; i++, now += ROCI_HOLD_ROW_NS) {
		roci_hold_disconnected(&h, now);
		assert_false(roci_hold_waits(&h, now));
	}
	roci_hold_disconnected(&h, now);
	assert_true(roci_hold_waits(&h, now));
	assert_true(roci_hold_deadline(&h) == now + ROCI_HOLD_NS);
	roci_hold_disconnected(&h, now + ROCI_HOLD_ROW_NS + 1); /* the row has ended */
	assert_false(roci_hold_waits(&h, now + ROCI_HOLD_ROW_NS + 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_waits_without_events),
		cmocka_unit_test(answers_wait_while_there_are_events),
		cmocka_unit_test(a_program_that_stops_is_not_waited_for),
		cmocka_unit_test(so_many_wait_at_most),
		cmocka_unit_test(disconnects_in_a_row_wait_for_each_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
