/* SPDX-License-Identifier: BSD-2-Clause */
/* A text as words: what divides them, what stays, and what is found as a whole word only. */
#include "test.h"

#include <string.h>

#include "explain/words.h"

static const char *normal(const char *text)
{
	static char words[WORDS_CHARS];

	words_normalise(text, words);
	return words;
}

static void normalising(void **state)
{
	assert_string_equal(normal("IBV_WC_RNR_RETRY_EXC_ERR"), " ibv wc rnr retry exc err ");
	assert_string_equal(normal("  Couldn't\tcreate\nQP: [22]  "), " couldn t create qp 22 ");
	assert_string_equal(normal(""), " ");
	assert_string_equal(normal("\xff\xfe!"), " ");
	assert_string_equal(normal("0x62"), " 0x62 ");
}

/* A minus sign belongs to a number that begins there, and divides elsewhere. */
static void minus(void **state)
{
	assert_string_equal(normal("error -22"), " error -22 ");
	assert_string_equal(normal("(-110)"), " -110 ");
	assert_string_equal(normal("node-1"), " node 1 ");
	assert_string_equal(normal("x - 5"), " x 5 ");
	assert_string_equal(normal("- -5-6"), " -5 6 ");
}

static void a_long_text_is_cut(void **state)
{
	char text[2 * WORDS_CHARS];

	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(strlen(normal(text)), WORDS_CHARS - 2);
	assert_true(normal(text)[WORDS_CHARS - 3] == ' ');
}

static void whole_words(void **state)
{
	const char *words = normal("Failed to modify QP to RTR");

	assert_ptr_equal(words_find(words, "to rtr", 6), strstr(words, "to rtr"));
	assert_null(words_find(words, "to rt", 5));
	assert_null(words_find(words, "odify", 5));
	assert_null(words_find(words, "", 0));
	assert_true(words_have(words, "create qp|modify qp"));
	assert_false(words_have(words, "create qp|modify"
				       "ing qp"));
	assert_false(words_have(words, ""));
	assert_false(words_have(words, NULL));
}

static void numbers(void **state)
{
	long number = 0;

	assert_true(words_number("12 ", &number) && number == 12);
	assert_true(words_number("-110 ", &number) && number == -110);
	assert_true(words_number("0x62 ", &number) && number == 0x62);
	assert_true(words_number("010 ", &number) && number == 10);
	assert_false(words_number("12a ", &number));
	assert_false(words_number("a12 ", &number));
	assert_false(words_number("- ", &number));
	assert_false(words_number(" ", &number));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(normalising), cmocka_unit_test(minus),   cmocka_unit_test(a_long_text_is_cut),
		cmocka_unit_test(whole_words), cmocka_unit_test(numbers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
