/* SPDX-License-Identifier: BSD-2-Clause */
#include "explain_show.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH       100
#define NAME_COLUMN 38

/* ---- for people ---- */

/* Prints `text` behind `head`, and breaks lines; the next ones begin below the text. */
static void print_wrapped(const char *head, const char *text)
{
	int indent = (int)strlen(head), column = indent;

	fputs(head, stdout);
	while (*text) {
		int len = (int)strcspn(text, " ");

		if (column > indent && column + 1 + len > WIDTH) {
			printf("\n%*s", indent, "");
			column = indent;
		}
		column += printf("%s%.*s", column > indent ? " " : "", len, text);
		text += len + (text[len] == ' ');
	}
	putchar('\n');
}

static void print_list(const char *title, const char *const *lines, bool numbered)
{
	char head[16];

	if (!*lines)
		return;
	printf("\n%s:\n", title);
	for (unsigned i = 0; lines[i]; i++) {
		snprintf(head, sizeof(head), numbered ? "  %u. " : "  - ", i + 1);
		print_wrapped(head, lines[i]);
	}
}

/* A code that programs can get, as a table of the standard lists it, but never from roci0. */
static bool is_never_here(const struct explanation *e)
{
	return !e->see && (e->kind == EXPLAIN_WC_STATUS || e->kind == EXPLAIN_CM_REJECT ||
			   e->kind == EXPLAIN_CM_EVENT || e->kind == EXPLAIN_ASYNC);
}

static void print_row(const struct explanation *e)
{
	char number[EXPLAIN_WORD_CHARS];

	printf("%s (%s)\n", e->name, explain_number(e, number));
	print_wrapped("  ", e->title);
	putchar('\n');
	print_wrapped("", e->meaning);
	putchar('\n');
	print_wrapped("Where to look: ", e->look);
	print_list("Usual causes, the most likely first", e->causes, true);
	print_list("What to try", e->steps, false);
	if (e->see && e->foreign)
		printf("\nroci0 can meet it, but never causes it. See it with a peer that this command plays:\n  %s\n",
		       e->see);
	else if (e->see)
		printf("\nSee it happen on roci0:\n  %s\n", e->see);
	else if (is_never_here(e))
		puts("\nroci0 never reports it.");
}

void explain_show(const struct explain_found *found)
{
	if (found->general)
		printf("%s. What the errno means in general:\n\n", EXPLAIN_GENERAL);
	for (size_t i = 0; i < found->sure; i++) {
		if (i)
			puts("\n----\n");
		print_row(found->rows[i]);
	}
	if (found->count && !found->sure)
		puts(found->rows[0]->kind == EXPLAIN_CALL ? "Nothing says which error it was. Of this call, these are "
							    "known; ask for one by its name:"
							  : "There are several; ask for one by its name, by its "
							    "syndrome, or by `NAK code N` (0 to 4 "
							    "are 0x60 to 0x64):");
	else if (found->count > found->sure)
		puts("\nThe same number could also be:");
	for (size_t i = found->sure; i < found->count; i++) {
		const struct explanation *e = found->rows[i];
		char number[EXPLAIN_WORD_CHARS];

		printf("  %s: %s: %s\n", explain_number(e, number), e->name, e->title);
	}
}

void explain_list(void)
{
	for (unsigned kind = 0; kind < EXPLAIN_KINDS; kind++) {
		size_t count;
		const struct explanation *row = explain_rows((enum explain_kind)kind, &count);

		printf("%s%s:\n", kind ? "\n" : "", explain_kind_name((enum explain_kind)kind));
		for (; count--; row++)
			printf("  %-*s %s\n", NAME_COLUMN, row->name, row->title);
	}
}

/* ---- for programs ---- */

static json_t *to_array(const char *const *lines)
{
	json_t *array = json_array();

	for (; *lines; lines++)
		json_array_append_new(array, json_string(*lines));
	return array;
}

static json_t *to_object(const struct explanation *e)
{
	char word[EXPLAIN_WORD_CHARS];
	json_t *object =
		json_pack("{s:s, s:i, s:s, s:s, s:s, s:s, s:s, s:o, s:o}", "kind", explain_kind_name(e->kind), "code",
			  e->code, "name", e->name, "word", explain_word(e, word), "title", e->title, "meaning",
			  e->meaning, "look", e->look, "causes", to_array(e->causes), "try", to_array(e->steps));

	if (object && e->see)
		json_object_set_new(object, "see", json_string(e->see));
	if (object && e->foreign)
		json_object_set_new(object, "foreign", json_true());
	return object;
}

static void print_json(json_t *object)
{
	if (!object || json_dumpf(object, stdout, JSON_INDENT(2)))
		fputs("{}", stdout);
	putchar('\n');
	json_decref(object);
}

void explain_show_json(const struct explain_found *found, const char *note)
{
	json_t *sure = json_array(), *also = json_array(), *object;

	for (size_t i = 0; i < found->count; i++)
		json_array_append_new(i < found->sure ? sure : also, to_object(found->rows[i]));
	object = json_pack("{s:o, s:o}", "found", sure, "also", also);
	if (object && note)
		json_object_set_new(object, "note", json_string(note));
	print_json(object);
}

void explain_list_json(void)
{
	json_t *all = json_array();

	for (unsigned kind = 0; kind < EXPLAIN_KINDS; kind++) {
		size_t count;
		const struct explanation *row = explain_rows((enum explain_kind)kind, &count);

		for (; count--; row++)
			json_array_append_new(all, to_object(row));
	}
	print_json(json_pack("{s:o}", "found", all));
}
