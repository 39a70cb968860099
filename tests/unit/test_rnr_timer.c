/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include "wire/rnr_timer.h"

/* IBTA table 45 */
static void codes_are_those_of_the_table(void **state)
{
	assert_int_equal(roci_rnr_timer_ns(0), 655360000);
	assert_int_equal(roci_rnr_timer_ns(1), 10000);
	assert_int_equal(roci_rnr_timer_ns(6), 80000);
	assert_int_equal(roci_rnr_timer_ns(12), 640000);
	assert_int_equal(roci_rnr_timer_ns(14), 1280000);
	assert_int_equal(roci_rnr_timer_ns(20), 10240000);
	assert_int_equal(roci_rnr_timer_ns(31), 491520000);
	assert_int_equal(roci_rnr_timer_ns(32 + 14), 1280000);
	for (unsigned code = 2; code < 32; code++)
		assert_true(roci_rnr_timer_ns(code) > roci_rnr_timer_ns(code - 1));
}

static void the_text_names_the_time(void **state)
{
	assert_string_equal(roci_rnr_nak_str(0), "RNR NAK 655.36 ms");
	assert_string_equal(roci_rnr_nak_str(6), "RNR NAK 0.08 ms");
	assert_string_equal(roci_rnr_nak_str(32 + 12), "RNR NAK 0.64 ms");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(codes_are_those_of_the_table),
		cmocka_unit_test(the_text_names_the_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
