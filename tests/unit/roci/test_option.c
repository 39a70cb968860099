/* SPDX-License-Identifier: BSD-2-Clause */
/* The parser of options: values, operands and mistakes. Mistakes print a message to stderr; tests/clients/test_cli.py
 * reads it. */
#include "test.h"

#include <stdlib.h>

#include "command.h"

const struct command *const commands[] = {NULL};

struct choices {
	bool all, loud;
	const char *name;
	uint64_t count, bytes, ms;
	unsigned mode;
};

#define CHOICE(member) .offset = offsetof(struct choices, member)

static const char *const modes[] = {"write", "read", NULL};

static const struct option_row rows[] = {
	{.letter = 'a', .name = "all", .kind = OPTION_FLAG, CHOICE(all)},
	{.letter = 'l', .name = "loud", .kind = OPTION_FLAG, CHOICE(loud)},
	{.letter = 'n', .name = "name", .argument = "NAME", .kind = OPTION_TEXT, CHOICE(name)},
	{.letter = 'c', .name = "count", .argument = "N", .kind = OPTION_NUMBER, .min = 1, .max = 64, CHOICE(count)},
	{.name = "size", .argument = "SIZE", .kind = OPTION_SIZE, .min = 1024, CHOICE(bytes)},
	{.name = "timeout", .argument = "TIME", .kind = OPTION_TIME, .min = 1000, .max = 60000, CHOICE(ms)},
	{.name = "mode", .argument = "MODE", .kind = OPTION_CHOICE, .values = modes, CHOICE(mode)},
};

static const struct command command = {
	.name = "test",
	.options = rows,
	.option_count = sizeof(rows) / sizeof(rows[0]),
	.operands = OPERANDS_FILE,
};

#define MAX_WORDS 8

/* Parses "test" and the words. The caller frees operands->list. */
static bool parse(const struct command *self, const char *const words[MAX_WORDS], struct choices *choices,
		  struct operands *operands, int *status)
{
	char *argv[MAX_WORDS + 2] = {"test"};
	int argc = 1;

	for (; argc <= MAX_WORDS && words[argc - 1]; argc++)
		argv[argc] = (char *)words[argc - 1];
	*choices = (struct choices){.count = 7};
	return options_parse(self, argc, argv, choices, operands, status);
}

#define WORDS(...) ((const char *const[MAX_WORDS]){__VA_ARGS__})

static void values_go_into_the_struct(void **state)
{
	struct choices c;
	struct operands operands;
	int status;

	assert_true(parse(&command, WORDS("-al", "--name=x=y", "--size", "2K", "--timeout=1500ms", "--mode", "read"),
			  &c, &operands, &status));
	assert_true(c.all && c.loud);
	assert_string_equal(c.name, "x=y");
	assert_int_equal(c.bytes, 2048);
	assert_int_equal(c.ms, 1500);
	assert_int_equal(c.mode, 1);
	assert_int_equal(c.count, 7); /* the default stays */
	assert_int_equal(operands.count, 0);
	free(operands.list);
}

static void a_letter_takes_an_attached_argument(void **state)
{
	struct choices c;
	struct operands operands;
	int status;

	assert_true(parse(&command, WORDS("-ac64", "-n", "-l"), &c, &operands, &status));
	assert_true(c.all && !c.loud);
	assert_int_equal(c.count, 64);
	assert_string_equal(c.name, "-l");
	free(operands.list);
}

static void options_may_follow_operands(void **state)
{
	struct choices c;
	struct operands operands;
	int status;

	assert_true(parse(&command, WORDS("one", "-a", "-", "--", "-l"), &c, &operands, &status));
	assert_true(c.all && !c.loud);
	assert_int_equal(operands.count, 3);
	assert_string_equal(operands.list[0], "one");
	assert_string_equal(operands.list[1], "-");
	assert_string_equal(operands.list[2], "-l");
	free(operands.list);
}

static void a_program_ends_the_options(void **state)
{
	struct command runs_program = command;
	struct choices c;
	struct operands operands;
	int status;

	runs_program.operands = OPERANDS_PROGRAM;
	assert_true(parse(&runs_program, WORDS("-a", "program", "-l", "--", "x"), &c, &operands, &status));
	assert_true(c.all && !c.loud);
	assert_int_equal(operands.count, 4);
	assert_string_equal(operands.list[2], "--");
	free(operands.list);
}

static void mistakes_end_with_a_usage_error(void **state)
{
	static const char *const mistakes[][MAX_WORDS] = {
		{"--al"},
		{"-x"},
		{"--name"},
		{"--name="},
		{"-n"},
		{"--all=yes"},
		{"--count", "0"},
		{"--count=65"},
		{"--count", "-1"},
		{"--count", "2x"},
		{"--size", "1"},
		{"--size", "large"},
		{"--timeout=2m"},
		{"--timeout", "1ms"},
		{"--mode", "wirte"},
		{"--size=9E"},
	};
	struct choices c;
	struct operands operands;

	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
		int status = 0;
		assert_false(parse(&command, mistakes[i], &c, &operands, &status));
		assert_int_equal(status, EXIT_USAGE);
		assert_null(operands.list);
	}
}

static void a_negative_number_may_be_an_operand(void **state)
{
	struct command numbers = command;
	struct choices c;
	struct operands operands;
	int status;

	assert_false(parse(&command, WORDS("-110"), &c, &operands, &status));
	numbers.numbers = true;
	assert_true(parse(&numbers, WORDS("-a", "-110"), &c, &operands, &status));
	assert_true(c.all);
	assert_int_equal(operands.count, 1);
	assert_string_equal(operands.list[0], "-110");
	free(operands.list);
	assert_false(parse(&numbers, WORDS("-x"), &c, &operands, &status));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_go_into_the_struct),
		cmocka_unit_test(a_letter_takes_an_attached_argument),
		cmocka_unit_test(options_may_follow_operands),
		cmocka_unit_test(a_program_ends_the_options),
		cmocka_unit_test(mistakes_end_with_a_usage_error),
		cmocka_unit_test(a_negative_number_may_be_an_operand),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
