/* SPDX-License-Identifier: BSD-2-Clause */
#include "../test.h"

#include "engine/first_window.h"
#include "engine/path.h"
#include "mover/opening.h"

#define MS 1000000ull

static void only_where_a_round_trip_is_worth_it(void **state)
{
	assert_int_equal(opening_bytes(100 * MS, 1 << 20, true), OPENING_BYTES);
	assert_int_equal(opening_bytes(100 * MS, UINT64_MAX, true), OPENING_BYTES);
	assert_int_equal(opening_bytes(0, 1 << 20, true), 0);
	assert_int_equal(opening_bytes(MS, 1 << 20, true), 0);
	assert_int_equal(opening_bytes(100 * MS, 16 << 10, true), 0);
	assert_int_equal(opening_bytes(100 * MS, 1 << 20, false), 0);
}

/* HELLO and TERMS, a packet each, go before it. What does not fit into the first window would go a round trip later. */
static void it_goes_in_the_first_round_trip_and_tells_enough(void **state)
{
	const uint64_t packet = 1024 + ROCI_PATH_PACKET_BYTES, header = 64;
	uint64_t packets = (OPENING_BYTES + header + 1023) / 1024;

	assert_true((packets + 2) * packet <= ROCI_FIRST_WINDOW + packet);
	assert_true(OPENING_BYTES + header + 300 + 200 + (packets + 2) * ROCI_PATH_PACKET_BYTES <= ROCI_FIRST_WINDOW);
	assert_true(packets * packet >= ROCI_FIRST_WINDOW / 2 + ROCI_FIRST_WINDOW_LEAST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_where_a_round_trip_is_worth_it),
		cmocka_unit_test(it_goes_in_the_first_round_trip_and_tells_enough),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
