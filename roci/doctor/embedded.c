/* SPDX-License-Identifier: BSD-2-Clause */
#include "doctor/embedded.h"

#include <stdlib.h>
#include <string.h>

#include "doctor/child.h"
#include "doctor/finding.h"

#define VARIABLE "ROCI_DOCTOR_EMBEDDED"

bool doctor_is_embedded(char source[INET6_ADDRSTRLEN])
{
	const char *value = getenv(VARIABLE);

	source[0] = '\0';
	if (!value)
		return false;
	strncat(source, value, INET6_ADDRSTRLEN - 1);
	unsetenv(VARIABLE);
	return true;
}

void doctor_embedded(struct findings *findings, const struct command *command, const char *source)
{
	static const char *const argv[] = {"roci", "doctor", NULL};
	size_t before = findings->count;
	struct finding *finding;
	struct child child;
	char end[32];

	setenv(VARIABLE, source, 1);
	child = child_run(argv, command);
	unsetenv(VARIABLE);
	if (!child_succeeded(&child) || findings_parse_json(findings, child.out) || findings->count == before) {
		finding = finding_add(findings, FINDING_PROBLEM, "roci0", "roci0 does not work here");
		finding_proof(finding, "a process with Rocinante's libraries: %s: %s", child_end(&child, end),
			      child.err ? child.err : "");
		finding_fix(finding, "`roci run -- ibv_devinfo` shows its messages");
	}
	child_free(&child);
}
