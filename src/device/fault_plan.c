/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/fault_plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double *plan_field(struct roci_fault_plan *plan, const char *name, size_t len)
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
		if (strlen(fields[i].name) == len && !memcmp(fields[i].name, name, len))
			return fields[i].field;
	return NULL;
}

/* Reads one part, which ends with a comma or the text. Returns where it ends; NULL: *wrong says what is wrong with it.
 */
static const char *read_part(const char *part, struct roci_fault_plan *plan, const char **wrong)
{
	size_t len = strcspn(part, "=,");
	double *field = plan_field(plan, part, len);
	const char *value = part + len + 1;
	char *end;

	if (!field && (len != 4 || memcmp(part, "seed", 4))) {
		*wrong = "its name is not one of loss, dup, reorder, corrupt, seed";
		return NULL;
	}
	*wrong = field ? "a probability is a number from 0 to 1, like loss=0.01"
		       : "a seed is a whole number, like seed=7";
	if (part[len] != '=')
		return NULL;
	if (field)
		*field = strtod(value, &end);
	else
		plan->seed = strtoull(value, &end, 0);
	if (end == value || (*end && *end != ',') || (field && !(*field >= 0 && *field <= 1)))
		return NULL;
	return end;
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
