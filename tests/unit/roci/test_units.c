/* SPDX-License-Identifier: BSD-2-Clause */
/* Parsing and printing of sizes, rates and times. */
#include "test.h"

#include <errno.h>

#include "units.h"

typedef int parse_fn(const char *text, uint64_t *value);

static void assert_parsed(parse_fn *parse, const char *text, uint64_t expected)
{
	uint64_t value = 0;
	assert_int_equal(parse(text, &value), 0);
	assert_int_equal(value, expected);
}

static void assert_error(parse_fn *parse, const char *text, int error)
{
	uint64_t value;
	assert_int_equal(parse(text, &value), error);
}

static void sizes(void **state)
{
	assert_parsed(units_parse_size, "0", 0);
	assert_parsed(units_parse_size, "65536", 65536);
	assert_parsed(units_parse_size, "64K", 65536);
	assert_parsed(units_parse_size, "64KiB", 65536);
	assert_parsed(units_parse_size, "64kB", 64000);
	assert_parsed(units_parse_size, "1.5G", 3ull << 29);
	assert_parsed(units_parse_size, "7E", 7ull << 60);
	assert_error(units_parse_size, "8E", -ERANGE);
	assert_error(units_parse_size, "1e999", -ERANGE);
	for (const char *const *text =
		     (const char *const[]){"", "K", "-1", "0x10", "1 K", "1Kbit", "1X", "inf", "nan", NULL};
	     *text; text++)
		assert_error(units_parse_size, *text, -EINVAL);
}

static void rates(void **state)
{
	assert_parsed(units_parse_rate, "10M", 10 << 20);
	assert_parsed(units_parse_rate, "10M/s", 10 << 20);
	assert_parsed(units_parse_rate, "10MB/s", 10000000);
	assert_parsed(units_parse_rate, "100Mbit", 12500000);
	assert_parsed(units_parse_rate, "1.5Gbit/s", 187500000);
	assert_error(units_parse_rate, "fast", -EINVAL);
	assert_error(units_parse_rate, "10M/h", -EINVAL);
}

static void times(void **state)
{
	assert_parsed(units_parse_time, "30", 30000);
	assert_parsed(units_parse_time, "2.5s", 2500);
	assert_parsed(units_parse_time, "500ms", 500);
	assert_parsed(units_parse_time, "2m", 120000);
	assert_parsed(units_parse_time, "1h", 3600000);
	assert_error(units_parse_time, "1d", -EINVAL);
	assert_error(units_parse_time, "s", -EINVAL);
}

/* Three digits, but never "1024 KiB". */
static void printed(void **state)
{
	char buf[UNITS_CHARS];
	assert_string_equal(units_bytes(buf, 0), "0 B");
	assert_string_equal(units_bytes(buf, 1023), "1023 B");
	assert_string_equal(units_bytes(buf, 1024), "1.00 KiB");
	assert_string_equal(units_bytes(buf, (1 << 20) - 1), "1.00 MiB");
	assert_string_equal(units_bytes(buf, 3ull << 29), "1.50 GiB");
	assert_string_equal(units_bytes(buf, UINT64_MAX), "16.0 EiB");
	assert_string_equal(units_rate(buf, 12.3 * 1048576), "12.3 MiB/s");
	assert_string_equal(units_bits(buf, 1.25e9), "10.0 Gbit/s");
	assert_string_equal(units_clock(buf, 12.4), "0:12");
	assert_string_equal(units_clock(buf, 3723), "1:02:03");
	assert_string_equal(units_clock(buf, 1e30), "-:--");
	assert_string_equal(units_clock(buf, 0.0 / 0.0), "-:--");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),
		cmocka_unit_test(rates),
		cmocka_unit_test(times),
		cmocka_unit_test(printed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
