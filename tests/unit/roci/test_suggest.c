/* SPDX-License-Identifier: BSD-2-Clause */
/* Suggestions for mistyped words. */
#include "test.h"

#include "suggest.h"

static const char *const words[] = {"send", "recv", "demo", "dry-run", "ticket-file", "ticket-fd", NULL};

static void near_words(void **state)
{
	assert_string_equal(suggest("sned", words), "send");
	assert_string_equal(suggest("SEND", words), "send");
	assert_string_equal(suggest("recive", words), "recv");
	assert_string_equal(suggest("dryrun", words), "dry-run");
	assert_string_equal(suggest("ticket-fiel", words), "ticket-file");
	assert_string_equal(suggest("tick", words), "ticket-file"); /* the beginning of a word */
}

static void far_words(void **state)
{
	assert_null(suggest("zzzzzz", words));
	assert_null(suggest("", words));
	assert_null(suggest("x", words));
	assert_null(suggest("a-word-that-is-longer-than-any-option-there-will-be", words));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(near_words),
		cmocka_unit_test(far_words),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
