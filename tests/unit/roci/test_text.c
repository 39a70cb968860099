/* SPDX-License-Identifier: BSD-2-Clause */
/* How bytes from others are printed. */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "text.h"

static void assert_printed(const char *bytes, size_t len, const char *expected)
{
	char *printed = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&printed, &size);

	text_print(out, bytes, len);
	fclose(out);
	assert_string_equal(printed, expected);
	free(printed);
}

#define ASSERT_PRINTED(bytes, expected) assert_printed(bytes, sizeof(bytes) - 1, expected)

static void harmless_text_is_unchanged(void **state)
{
	ASSERT_PRINTED("a b~", "a b~");
	ASSERT_PRINTED("gr\u00fcn \u4e2d \U0001f40e", "gr\u00fcn \u4e2d \U0001f40e");
	ASSERT_PRINTED("", "");
	ASSERT_PRINTED("back\\slash", "back\\\\slash");
}

static void control_characters_are_escaped(void **state)
{
	ASSERT_PRINTED("\x1b[2J", "\\x1b[2J");
	ASSERT_PRINTED("a\nb\rc\td\x7f", "a\\nb\\rc\\td\\x7f");
	ASSERT_PRINTED("\xc2\x9b", "\\u{9b}"); /* C1: CSI in one character */
	ASSERT_PRINTED("nul\0", "nul\\x00");
}

static void hidden_characters_are_escaped(void **state)
{
	ASSERT_PRINTED("\u202etxt", "\\u{202e}txt");
	ASSERT_PRINTED("\u2066\u200b\ufeff\u00ad", "\\u{2066}\\u{200b}\\u{feff}\\u{ad}");
	ASSERT_PRINTED("\U000e0041", "\\u{e0041}");
}

/* RFC 3629 s.3 and s.10: invalid bytes, truncated and overlong sequences, surrogates, characters above U+10FFFF. */
static const struct {
	const char *bytes, *printed, *repaired;
} broken[] = {
	{"\xff", "\\xff", "\ufffd"},
	{"\x80", "\\x80", "\ufffd"},
	{"a\xc3", "a\\xc3", "a\ufffd"},
	{"\xc3(", "\\xc3(", "\ufffd("},
	{"\xc0\xaf", "\\xc0\\xaf", "\ufffd\ufffd"},
	{"\xe0\x80\xaf", "\\xe0\\x80\\xaf", "\ufffd\ufffd\ufffd"},
	{"\xed\xa0\x80", "\\xed\\xa0\\x80", "\ufffd\ufffd\ufffd"},
	{"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80", "\ufffd\ufffd\ufffd\ufffd"},
	{"\xf0\x9f\x90", "\\xf0\\x9f\\x90", "\ufffd\ufffd\ufffd"},
};

static void invalid_utf8_is_escaped(void **state)
{
	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		size_t len = strlen(broken[i].bytes), repaired_len;
		char *repaired = text_repair(broken[i].bytes, len, &repaired_len);

		assert_printed(broken[i].bytes, len, broken[i].printed);
		assert_false(text_is_utf8(broken[i].bytes, len));
		assert_string_equal(repaired, broken[i].repaired);
		assert_int_equal(repaired_len, strlen(repaired));
		assert_true(text_is_utf8(repaired, repaired_len));
		free(repaired);
	}
}

static void a_truncated_character_reads_nothing_beyond_the_end(void **state)
{
	assert_false(text_is_utf8("\u00fc", 1));
	assert_true(text_is_utf8("\u00fc", 2));
	assert_true(text_is_utf8("", 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(harmless_text_is_unchanged),
		cmocka_unit_test(control_characters_are_escaped),
		cmocka_unit_test(hidden_characters_are_escaped),
		cmocka_unit_test(invalid_utf8_is_escaped),
		cmocka_unit_test(a_truncated_character_reads_nothing_beyond_the_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
