/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include <string.h>

#include "tour/content.h"

#define MOST 100u

/* Each changed byte is found, and only the content of the same operation passes. */
static void finds_what_is_wrong(void **state)
{
	uint8_t bytes[MOST + 1];

	for (uint32_t len = 0; len <= MOST; len++) {
		memset(bytes, 0xee, sizeof(bytes));
		content_fill(bytes, len, 5, 9);
		assert_int_equal(bytes[len], 0xee);
		assert_int_equal(content_check(bytes, len, 5, 9), len);
		for (uint32_t i = 0; i < len; i++) {
			bytes[i] ^= 1;
			assert_int_equal(content_check(bytes, len, 5, 9), i);
			bytes[i] ^= 1;
		}
		if (len >= CONTENT_NUMBERED_BYTES)
			assert_true(content_check(bytes, len, 5, 10) < len);
		if (len >= 4)
			assert_true(content_check(bytes, len, 6, 9) < len);
	}
}

static void long_content_has_its_number(void **state)
{
	uint8_t bytes[MOST];

	content_fill(bytes, 8, 1, 0x01020304);
	assert_int_equal(content_seq(bytes, 8, 99), 0x01020304);
	assert_int_equal(bytes[0], 1); /* in network byte order */
	content_fill(bytes, 7, 1, 0x01020304);
	assert_int_equal(content_seq(bytes, 7, 99), 99);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_what_is_wrong),
		cmocka_unit_test(long_content_has_its_number),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
