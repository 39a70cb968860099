/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/fault_plan.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is(const char *name, const char *part, size_t len)
{
	return strlen(name) == len && !memcmp(name, part, len);
}

static double *probability(struct roci_fault_plan *plan, const char *name, size_t len)
{
	const struct {
		const char *name;
		double *field;
	} fields[] = {
		{"loss", &plan->loss},
		{"dup", &plan->dup},
		{"reorder", &plan->reorder},
		{"corrupt", &plan->corrupt},
	};

	for (unsigned i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (is(fields[i].name, name, len))
			return fields[i].field;
	return NULL;
}

/* Each reads a value, and returns where it ends; NULL: it is none. */
static const char *read_probability(const char *value, double *field)
{
	char *end;

	*field = strtod(value, &end);
	return end > value && *field >= 0 && *field <= 1 ? end : NULL;
}

static const char *read_time(const char *value, uint64_t *ns)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {{"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
	char *end;
	double number = strtod(value, &end);
	size_t len = strcspn(end, ",");

	for (unsigned i = 0; end > value && i < sizeof(units) / sizeof(units[0]); i++) {
		if (!is(units[i].name, end, len) || !(number >= 0 && number * units[i].ns <= ROCI_FAULT_MAX_NS))
			continue;
		*ns = (uint64_t)(number * units[i].ns);
		return end + len;
	}
	return NULL;
}

static const char *read_seed(const char *value, uint64_t *seed)
{
	char *end;

	if (*value < '0' || *value > '9') /* strtoull() takes blanks and a sign */
		return NULL;
	errno = 0;
	*seed = strtoull(value, &end, 0);
	return errno ? NULL : end;
}

/* Reads one part, which ends with a comma or the text. Returns where it ends; NULL: *wrong says what is wrong with it.
 */
static const char *read_part(const char *part, struct roci_fault_plan *plan, const char **wrong)
{
	size_t len = strcspn(part, "=,");
	double *field = probability(plan, part, len);
	bool delay = is("delay", part, len), jitter = is("jitter", part, len);
	const char *value = part + len + 1, *end;

	if (!field && !delay && !jitter && !is("seed", part, len)) {
		*wrong = "its name is not one of loss, dup, reorder, corrupt, delay, jitter, seed";
		return NULL;
	}
	*wrong = field             ? "a probability is a number from 0 to 1, like loss=0.01"
		 : delay || jitter ? "a time is a number with us, ms or s, at most 10s, like delay=20ms"
				   : "a seed is a whole number from 0 to 18446744073709551615, like seed=7";
	if (part[len] != '=')
		return NULL;
	end = field             ? read_probability(value, field)
	      : delay || jitter ? read_time(value, delay ? &plan->delay_ns : &plan->jitter_ns)
				: read_seed(value, &plan->seed);
	return end && (!*end || *end == ',') ? end : NULL;
}

/* splitmix64 */
uint64_t roci_fault_draw(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

int roci_fault_parse(const char *text, struct roci_fault_plan *plan, char *why, size_t size)
{
	*plan = (struct roci_fault_plan){.seed = 1};
	while (*text) {
		const char *wrong, *end = read_part(text, plan, &wrong);

		if (!end) {
			snprintf(why, size, "\"%.*s\": %s", (int)strcspn(text, ","), text, wrong);
			return -EINVAL;
		}
		text = *end ? end + 1 : end;
	}
	return 0;
}
