/* SPDX-License-Identifier: BSD-2-Clause */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "suggest.h"
#include "units.h"

#define OPTIONS_MAX 64 /* per command */

static const struct option_row *find_name(const struct command *command, const char *name, size_t len)
{
	for (size_t i = 0; i < command->option_count; i++) {
		const struct option_row *row = &command->options[i];
		if (strlen(row->name) == len && !memcmp(row->name, name, len))
			return row;
	}
	return NULL;
}

static const struct option_row *find_letter(const struct command *command, char letter)
{
	for (size_t i = 0; i < command->option_count; i++) {
		if (command->options[i].letter && command->options[i].letter == letter)
			return &command->options[i];
	}
	return NULL;
}

static void unknown_option(const struct command *command, const char *name, size_t len)
{
	const char *names[OPTIONS_MAX + 1], *meant;
	char typed[64];
	size_t count = 0;
	for (; count < command->option_count && count < OPTIONS_MAX; count++)
		names[count] = command->options[count].name;
	names[count] = NULL;
	snprintf(typed, sizeof(typed), "%.*s", (int)len, name);
	meant = suggest(typed, names);
	if (meant)
		complain(command, "unknown option '--%s'; did you mean '--%s'?", typed, meant);
	else
		complain(command, "unknown option '--%s'; `roci %s --help` lists the options", typed, command->name);
}

static bool store_choice(const struct command *command, const struct option_row *row, const char *text, unsigned *value)
{
	char list[256] = "";
	for (unsigned i = 0; row->values[i]; i++) {
		if (!strcmp(row->values[i], text)) {
			*value = i;
			return true;
		}
		if (strlen(list) + strlen(row->values[i]) + 3 < sizeof(list))
			strcat(strcat(list, i ? ", " : ""), row->values[i]);
	}
	const char *meant = suggest(text, row->values);
	if (meant)
		complain(command, "--%s '%s' is unknown; did you mean '%s'?", row->name, text, meant);
	else
		complain(command, "--%s '%s' is unknown; use one of: %s", row->name, text, list);
	return false;
}

struct unit {
	uint64_t size;
	const char *name;
};

/* Prints a limit of an option as one types it: "64K", "30s". */
static const char *print_limit(char buf[UNITS_CHARS], enum option_kind kind, uint64_t limit)
{
	static const struct unit times[] = {{3600000, "h"}, {60000, "m"}, {1000, "s"}, {1, "ms"}};
	static const struct unit sizes[] = {{UINT64_C(1) << 40, "T"}, {1 << 30, "G"}, {1 << 20, "M"}, {1 << 10, "K"}};
	const struct unit *units = kind == OPTION_TIME ? times : sizes, *unit = NULL;

	for (unsigned i = 0; kind != OPTION_NUMBER && limit && i < 4 && !unit; i++)
		if (limit % units[i].size == 0)
			unit = &units[i];
	snprintf(buf, UNITS_CHARS, "%llu%s", (unsigned long long)(unit ? limit / unit->size : limit),
		 unit ? unit->name : "");
	return buf;
}

static void out_of_range(const struct command *command, const struct option_row *row, const char *text, bool small)
{
	char low[UNITS_CHARS], high[UNITS_CHARS];
	print_limit(low, row->kind, row->min);
	if (row->max)
		complain(command, "--%s %s is out of range; use %s to %s", row->name, text, low,
			 print_limit(high, row->kind, row->max));
	else if (small)
		complain(command, "--%s %s is too small; use at least %s", row->name, text, low);
	else
		complain(command, "--%s %s is too large", row->name, text);
}

static bool store_number(const struct command *command, const struct option_row *row, const char *text, uint64_t *value)
{
	static const char *const shape[] = {
		[OPTION_NUMBER] = "a whole number",
		[OPTION_SIZE] = "a size (examples: 65536, 64K, 1.5G)",
		[OPTION_RATE] = "a rate (examples: 10M, 500K, 1.5Gbit)",
		[OPTION_TIME] = "a time (examples: 30, 500ms, 2m)",
	};
	int err = -EINVAL;
	char *end;
	switch (row->kind) {
	case OPTION_SIZE: err = units_parse_size(text, value); break;
	case OPTION_RATE: err = units_parse_rate(text, value); break;
	case OPTION_TIME: err = units_parse_time(text, value); break;
	default:
		errno = 0;
		*value = strtoull(text, &end, 10);
		if (*text >= '0' && *text <= '9' && !*end)
			err = -errno;
	}
	if (err == -EINVAL) {
		complain(command, "--%s '%s' is not %s", row->name, text, shape[row->kind]);
		return false;
	}
	if (!err && *value >= row->min && (!row->max || *value <= row->max))
		return true;
	out_of_range(command, row, text, !err && *value < row->min);
	return false;
}

static bool store(const struct command *command, const struct option_row *row, const char *text, void *into)
{
	void *at = (char *)into + row->offset;
	switch (row->kind) {
	case OPTION_FLAG: *(bool *)at = true; return true;
	case OPTION_TEXT:
	case OPTION_FILE:
	case OPTION_FOLDER:
	case OPTION_DEVICE:
		if (!*text) {
			complain(command, "--%s needs %s, but the argument is empty", row->name, row->argument);
			return false;
		}
		*(const char **)at = text;
		return true;
	case OPTION_CHOICE: return store_choice(command, row, text, at);
	default: return store_number(command, row, text, at);
	}
}

/* Whether a word is an option, or begins with one. */
static bool is_option(const struct command *command, const char *word)
{
	return word[0] == '-' && word[1] && !(command->numbers && isdigit((unsigned char)word[1]));
}

/* The place of the parser in argv. */
struct cursor {
	const struct command *command;
	char **argv;
	int argc, i;
	void *into;
	bool help;
};

/* Takes one option. Its argument is `attached`, or the next word where that is NULL. */
static bool take(struct cursor *c, const struct option_row *row, const char *attached)
{
	if (row->kind == OPTION_HELP) {
		c->help = true;
		return true;
	}
	if (!row->argument) {
		if (!attached)
			return store(c->command, row, NULL, c->into);
		complain(c->command, "--%s takes no argument; remove '=%s'", row->name, attached);
		return false;
	}
	if (!attached && c->i + 1 >= c->argc) {
		complain(c->command, "--%s needs %s; `roci %s --help` explains it", row->name, row->argument,
			 c->command->name);
		return false;
	}
	return store(c->command, row, attached ? attached : c->argv[++c->i], c->into);
}

static bool take_long(struct cursor *c, const char *name)
{
	size_t len = strcspn(name, "=");
	const struct option_row *row = find_name(c->command, name, len);
	if (row)
		return take(c, row, name[len] ? name + len + 1 : NULL);
	unknown_option(c->command, name, len);
	return false;
}

/* Takes "-abc", "-nVALUE" or "-n VALUE". */
static bool take_letters(struct cursor *c, const char *letters)
{
	for (; *letters && !c->help; letters++) {
		const struct option_row *row = find_letter(c->command, *letters);
		if (!row) {
			complain(c->command, "unknown option '-%c'; `roci %s --help` lists the options", *letters,
				 c->command->name);
			return false;
		}
		if (row->argument)
			return take(c, row, letters[1] ? letters + 1 : NULL);
		if (!take(c, row, NULL))
			return false;
	}
	return true;
}

/* An empty word is the name of no file and no program: most likely a variable of a script is empty. */
static bool first_is_named(const struct command *command, const struct operands *operands)
{
	bool names = command->operands == OPERANDS_FILE || command->operands == OPERANDS_PROGRAM;

	if (names && operands->count && !*operands->list[0]) {
		complain(command, "an argument is empty: '' names nothing; usage: roci %s %s", command->name,
			 command->usage);
		return false;
	}
	return true;
}

bool options_parse(const struct command *command, int argc, char **argv, void *into, struct operands *operands,
		   int *status)
{
	struct cursor c = {.command = command, .argv = argv, .argc = argc, .i = 1, .into = into};
	bool ended = false, good = true;
	*operands = (struct operands){.list = calloc((size_t)argc + 1, sizeof(char *))};
	*status = EXIT_USAGE;
	if (!operands->list) {
		complain(command, "out of memory");
		return false;
	}
	for (; c.i < argc && good && !c.help; c.i++) {
		char *word = argv[c.i];
		if (ended || !is_option(command, word)) {
			operands->list[operands->count++] = word;
			ended |= command->operands == OPERANDS_PROGRAM;
		} else if (!strcmp(word, "--")) {
			ended = true;
		} else {
			good = word[1] == '-' ? take_long(&c, word + 2) : take_letters(&c, word + 1);
		}
	}
	good = good && (c.help || first_is_named(command, operands));
	if (good && !c.help)
		return true;
	if (good) {
		help_command(command, stdout);
		*status = 0;
	}
	free(operands->list);
	operands->list = NULL;
	return false;
}
