/* SPDX-License-Identifier: BSD-2-Clause */
#include "doctor/finding.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include <jansson.h>

#include "text.h"

static const char *const level_names[] = {
	[FINDING_OK] = "ok",
	[FINDING_NOTE] = "note",
	[FINDING_WARNING] = "warning",
	[FINDING_PROBLEM] = "problem",
};

struct finding *finding_add(struct findings *findings, enum finding_level level, const char *id, const char *text, ...)
{
	struct finding *finding = &findings->list[findings->count];
	va_list arguments;

	if (findings->count == FINDINGS_MAX)
		finding--;
	else
		findings->count++;
	*finding = (struct finding){.level = level};
	snprintf(finding->id, sizeof(finding->id), "%s", id);
	va_start(arguments, text);
	vsnprintf(finding->text, sizeof(finding->text), text, arguments);
	va_end(arguments);
	return finding;
}

void finding_proof(struct finding *finding, const char *text, ...)
{
	va_list arguments;

	va_start(arguments, text);
	vsnprintf(finding->proof, sizeof(finding->proof), text, arguments);
	va_end(arguments);
}

void finding_fix(struct finding *finding, const char *text, ...)
{
	va_list arguments;

	va_start(arguments, text);
	vsnprintf(finding->fix, sizeof(finding->fix), text, arguments);
	va_end(arguments);
}

const struct finding *finding_find(const struct findings *findings, const char *id)
{
	for (size_t i = 0; i < findings->count; i++) {
		if (!strcmp(findings->list[i].id, id))
			return &findings->list[i];
	}
	return NULL;
}

enum finding_level findings_worst(const struct findings *findings)
{
	enum finding_level worst = FINDING_OK;

	for (size_t i = 0; i < findings->count; i++) {
		if (findings->list[i].level > worst)
			worst = findings->list[i].level;
	}
	return worst;
}

static void print_part(FILE *out, const char *name, const char *text)
{
	if (!*text)
		return;
	fprintf(out, "           %-6s ", name);
	text_print(out, text, strlen(text));
	fputc('\n', out);
}

void findings_print(const struct findings *findings, FILE *out)
{
	for (size_t i = 0; i < findings->count; i++) {
		const struct finding *finding = &findings->list[i];

		fprintf(out, "%-9s  ", level_names[finding->level]);
		text_print(out, finding->text, strlen(finding->text));
		fputc('\n', out);
		print_part(out, "proof:", finding->proof);
		print_part(out, "try:", finding->fix);
	}
}

static void put_text(json_t *object, const char *member, const char *text)
{
	size_t len;
	char *repaired = text_repair(text, strlen(text), &len);

	if (repaired && len)
		json_object_set_new(object, member, json_stringn(repaired, len));
	free(repaired);
}

void findings_print_json(const struct findings *findings, FILE *out)
{
	json_t *root = json_object(), *list = json_array();

	for (size_t i = 0; i < findings->count; i++) {
		const struct finding *finding = &findings->list[i];
		json_t *object = json_object();

		put_text(object, "level", level_names[finding->level]);
		put_text(object, "id", finding->id);
		put_text(object, "text", finding->text);
		put_text(object, "proof", finding->proof);
		put_text(object, "fix", finding->fix);
		json_array_append_new(list, object);
	}
	json_object_set_new(root, "findings", list);
	json_object_set_new(root, "worst", json_string(level_names[findings_worst(findings)]));
	json_dumpf(root, out, JSON_INDENT(2));
	fputc('\n', out);
	json_decref(root);
}

static int parse_level(const char *name)
{
	for (int i = 0; name && i <= FINDING_PROBLEM; i++) {
		if (!strcmp(name, level_names[i]))
			return i;
	}
	return -1;
}

static const char *member(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

int findings_parse_json(struct findings *findings, const char *text)
{
	json_t *root = json_loads(text, 0, NULL);
	const json_t *list = json_object_get(root, "findings");
	const json_t *object;
	size_t i;
	int err = json_is_array(list) ? 0 : -EINVAL;

	json_array_foreach(list, i, object)
	{
		if (parse_level(member(object, "level")) < 0)
			err = -EINVAL;
	}
	for (i = 0; !err && (object = json_array_get(list, i)); i++) {
		struct finding *finding =
			finding_add(findings, (enum finding_level)parse_level(member(object, "level")),
				    member(object, "id"), "%s", member(object, "text"));
		finding_proof(finding, "%s", member(object, "proof"));
		finding_fix(finding, "%s", member(object, "fix"));
	}
	json_decref(root);
	return err;
}
