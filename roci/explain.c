/* SPDX-License-Identifier: BSD-2-Clause */
/* roci explain: what an error means, where to look, and how to see it happen. */
#include "explain/explain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "device.h"
#include "explain_show.h"
#include "provoke.h"
#include "suggest.h"

#define EXIT_NOTHING_FOUND 1
#define ROWS_MAX           256

struct explain_choices {
	const char *provoke, *device;
	bool list, json;
};

static const struct option_row options[] = {
	{.name = "list",
	 .group = "options",
	 .help = "list everything that can be explained",
	 .kind = OPTION_FLAG,
	 .offset = offsetof(struct explain_choices, list)},
	{.name = "provoke",
	 .argument = "ERROR",
	 .group = "options",
	 .help = "make ERROR happen, and show what a program sees of it",
	 .kind = OPTION_TEXT,
	 .offset = offsetof(struct explain_choices, provoke)},
	{.name = "device",
	 .argument = "DEVICE",
	 .group = "options",
	 .help = "with --provoke: the RDMA device to use; embedded is roci0",
	 .default_text = "embedded",
	 .kind = OPTION_DEVICE,
	 .offset = offsetof(struct explain_choices, device)},
	{.name = "json",
	 .group = "options",
	 .help = "print JSON",
	 .kind = OPTION_FLAG,
	 .offset = offsetof(struct explain_choices, json)},
	OPTION_HELP_ROW,
};

/* The words or the names of all rows: those that need no quotes. */
static void collect(const char *list[ROWS_MAX + 1], char texts[][EXPLAIN_WORD_CHARS])
{
	size_t count = 0;

	for (unsigned kind = 0; kind < EXPLAIN_KINDS; kind++) {
		size_t rows;
		const struct explanation *row = explain_rows((enum explain_kind)kind, &rows);

		for (; rows-- && count < ROWS_MAX; row++) {
			bool named = !texts || row->kind == EXPLAIN_CM_REJECT;
			const char *word = named ? row->name : explain_word(row, texts[count]);

			if (!strpbrk(word, " :"))
				list[count++] = word;
		}
	}
	list[count] = NULL;
}

/* The words for completion. Made once, and kept. */
static const char *const *words(void)
{
	static char texts[ROWS_MAX][EXPLAIN_WORD_CHARS];
	static const char *list[ROWS_MAX + 1];

	collect(list, texts);
	return list;
}

/* The operands as one text, with spaces between. NULL: no memory. */
static char *join(const struct operands *operands)
{
	size_t len = 1;
	char *text;

	for (size_t i = 0; i < operands->count; i++)
		len += strlen(operands->list[i]) + 1;
	text = calloc(1, len);
	for (size_t i = 0; text && i < operands->count; i++)
		strcat(strcat(text, i ? " " : ""), operands->list[i]);
	return text;
}

#define NOTE_CHARS 512

/* Why nothing was found, and what to try. */
static void say_nothing_found(const char *text, const struct explain_found *found, char note[NOTE_CHARS])
{
	const char *names[ROWS_MAX + 1], *meant = suggest(text, words());
	int least, most;

	if (found->unknown_code) {
		explain_range(found->unknown_kind, &least, &most);
		snprintf(note, NOTE_CHARS,
			 found->unknown_kind == EXPLAIN_NAK ? "0x%02x is no %s (0x%02x to 0x%02x)"
							    : "%d is no %s (%d to %d)",
			 found->code, explain_kind_name(found->unknown_kind), least, most);
		return;
	}
	if (found->vendor) {
		snprintf(note, NOTE_CHARS,
			 "a vendor error is a number of the adapter's maker, and is not explained; name the status "
			 "that the completion has, too");
		return;
	}
	collect(names, NULL);
	if (!meant)
		meant = suggest(text, names);
	if (meant)
		snprintf(note, NOTE_CHARS, "nothing is known about '%s'; did you mean `roci explain %s`?", text, meant);
	else
		snprintf(note, NOTE_CHARS,
			 "nothing is known about '%s'; `roci explain --list` lists what is. Paste the whole line of a "
			 "log: what stands around a number says what it means",
			 text);
}

static int nothing_found(const struct command *self, const char *text, const struct explain_found *found)
{
	char note[NOTE_CHARS];

	say_nothing_found(text, found, note);
	complain(self, "%s", note);
	return EXIT_NOTHING_FOUND;
}

static void show_json(const char *text, const struct explain_found *found)
{
	char note[NOTE_CHARS];

	if (!found->count)
		say_nothing_found(text, found, note);
	explain_show_json(found, found->general ? EXPLAIN_GENERAL : found->count ? NULL : note);
}

static int explain(const struct command *self, const char *text, bool json)
{
	struct explain_found found;

	explain_find(text, &found);
	if (json)
		show_json(text, &found);
	else if (found.count)
		explain_show(&found);
	if (found.count)
		return 0;
	return nothing_found(self, text, &found);
}

static int provoke(const struct command *self, const char *text, const char *wish)
{
	struct explain_found found;
	struct device_choice device;
	enum mover_status status;
	char why[512];

	explain_find(text, &found);
	if (!found.count)
		return nothing_found(self, text, &found);
	if (!found.sure)
		return complain(self, "'%s' may be several errors; `roci explain %s` lists them", text, text);
	if (!provoke_can(found.rows[0])) {
		if (found.rows[0]->see)
			return complain(self, "another command shows it: %s", found.rows[0]->see);
		return complain(self, "there is no way here to make %s happen", found.rows[0]->name);
	}
	status = device_choose(self, wish, &device, why);
	if (status) {
		complain(self, "%s", why);
		return (int)status;
	}
	return provoke_run(found.rows[0], device.embedded ? EMBEDDED_DEVICE : device.name);
}

static int act(const struct command *self, const struct explain_choices *choices, const struct operands *operands)
{
	char *text;
	int status;

	if (choices->provoke) {
		if (operands->count || choices->list || choices->json)
			return complain(self, "--provoke goes with --device only; put the ERROR in quotes");
		return provoke(self, choices->provoke, choices->device);
	}
	if (choices->list) {
		if (operands->count)
			return complain(self, "--list takes no WHAT");
		if (choices->json)
			explain_list_json();
		else
			explain_list();
		return 0;
	}
	if (!operands->count)
		return complain(self, "say what to explain; usage: roci explain %s", self->usage);
	text = join(operands);
	if (!text)
		return complain(self, "out of memory");
	status = explain(self, text, choices->json);
	free(text);
	return status;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct explain_choices choices = {.device = "embedded"};
	struct operands operands;
	int status;

	if (!options_parse(self, argc, argv, &choices, &operands, &status))
		return status;
	status = act(self, &choices, &operands);
	free(operands.list);
	return status;
}

const struct command explain_command = {
	.name = "explain",
	.summary = "explain an error of verbs or rdma_cm, or a line of a log",
	.usage = "[OPTION]... WHAT...",
	.examples = "  roci explain RNR_RETRY_EXC_ERR\n"
		    "  roci explain status 12 vendor err 129\n"
		    "  roci explain 'RDMA_CM_EVENT_REJECTED, error 28'\n"
		    "  roci explain 'Failed to modify QP to RTR: Invalid argument'\n"
		    "  roci explain --provoke REM_ACCESS_ERR         see it happen on roci0\n",
	.about = "WHAT is a completion status, an AETH syndrome or NAK, a CM reject reason, an rdma_cm event, an\n"
		 "asynchronous event, an errno (with or without its call), a QP state, or a line with one of them.\n\n"
		 "exit status: 0 if something was found or happened, 1 if not, 2 if an option is wrong,\n"
		 "3 if the device cannot be used.\n",
	.manual = "roci-explain",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.operands = OPERANDS_CHOICE,
	.numbers = true,
	.operand_words = words,
	.run = run,
};
