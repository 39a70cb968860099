/* SPDX-License-Identifier: BSD-2-Clause */
#include "../test.h"

#include "engine/far_window.h"

#define MS     UINT64_C(1000000)
#define SECOND (1000 * MS)
#define NOW    (1000 * SECOND)
#define WINDOW (UINT64_C(2) << 20)
#define RTT    (20 * MS)

static void it_grows_by_a_twelfth_in_a_round_trip(void **state)
{
	uint64_t window = WINDOW;

	for (unsigned i = 0; i < 64; i++)
		window = roci_far_window_acked(window, NOW, WINDOW / 64, 0, RTT, RTT);
	assert_in_range(window, WINDOW + WINDOW / 12 - 64, WINDOW + WINDOW / 12);
}

static void it_stops_at_a_queue(void **state)
{
	assert_int_equal(roci_far_window_acked(WINDOW, NOW, 12000, 0, RTT, RTT + RTT / 8), WINDOW + 1000);
	assert_int_equal(roci_far_window_acked(WINDOW, NOW, 12000, 0, RTT, RTT + RTT / 8 + 1), WINDOW);
}

static void it_does_not_grow_soon_after_a_cut(void **state)
{
	assert_int_equal(roci_far_window_acked(WINDOW, NOW, 12000, NOW - 9 * SECOND, RTT, RTT), WINDOW);
	assert_int_equal(roci_far_window_acked(WINDOW, NOW, 12000, NOW - 10 * SECOND, RTT, RTT), WINDOW + 1000);
}

static void it_has_a_bound(void **state)
{
	assert_int_equal(roci_far_window_acked(ROCI_FAR_WINDOW_MOST - 1, NOW, 65536, 0, RTT, RTT),
			 ROCI_FAR_WINDOW_MOST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_grows_by_a_twelfth_in_a_round_trip),
		cmocka_unit_test(it_stops_at_a_queue),
		cmocka_unit_test(it_does_not_grow_soon_after_a_cut),
		cmocka_unit_test(it_has_a_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
