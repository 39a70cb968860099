/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include "wire/mtu.h"

static void five_codes(void **state)
{
	for (unsigned code = 0; code < 10; code++)
		assert_int_equal(roci_mtu_code_is_valid(code), code >= 1 && code <= 5);
	assert_int_equal(roci_mtu_bytes(1), 256);
	assert_int_equal(roci_mtu_bytes(5), 4096);
}

static void the_largest_code_that_fits(void **state)
{
	for (unsigned code = 1; code <= 5; code++)
		assert_int_equal(roci_mtu_code(roci_mtu_bytes(code)), code);
	assert_int_equal(roci_mtu_code(1404), 3); /* an Ethernet frame of 1,500 bytes without its headers */
	assert_int_equal(roci_mtu_code(4095), 4);
	assert_int_equal(roci_mtu_code(65440), 5);
	assert_int_equal(roci_mtu_code(0), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(five_codes),
		cmocka_unit_test(the_largest_code_that_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
