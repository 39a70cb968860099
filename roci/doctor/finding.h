/* SPDX-License-Identifier: BSD-2-Clause */
/* What `roci doctor` found. A finding states what was read or tried, the proof, and a command that helps. */
#ifndef ROCI_DOCTOR_FINDING_H
#define ROCI_DOCTOR_FINDING_H

#include <stddef.h>
#include <stdio.h>

#define FINDINGS_MAX 96

enum finding_level {
	FINDING_OK,      /* it works */
	FINDING_NOTE,    /* good to know; nothing is wrong */
	FINDING_WARNING, /* it works, but slowly or not for all */
	FINDING_PROBLEM, /* something that people want does not work */
};

struct finding {
	enum finding_level level;
	char id[24]; /* a word for scripts and tests: "port-4791" */
	char text[320];
	char proof[320]; /* what was read or tried; may be empty */
	char fix[320];   /* a command to paste, or what to do; may be empty */
};

struct findings {
	size_t count;
	struct finding list[FINDINGS_MAX];
};

/* Adds a finding without proof and fix. After FINDINGS_MAX findings the last one is overwritten. */
__attribute__((format(printf, 4, 5))) struct finding *finding_add(struct findings *findings, enum finding_level level,
								  const char *id, const char *text, ...);
__attribute__((format(printf, 2, 3))) void finding_proof(struct finding *finding, const char *text, ...);
__attribute__((format(printf, 2, 3))) void finding_fix(struct finding *finding, const char *text, ...);

/* The finding `id`, or NULL. */
const struct finding *finding_find(const struct findings *findings, const char *id);

enum finding_level findings_worst(const struct findings *findings);

/* For people: one paragraph for each finding. */
void findings_print(const struct findings *findings, FILE *out);

/* As JSON: {"findings": [{"level", "id", "text", "proof", "fix"}], "worst": LEVEL}. */
void findings_print_json(const struct findings *findings, FILE *out);

/* Adds what findings_print_json() printed. Returns 0, or -EINVAL: `text` is something else, and nothing was added. */
int findings_parse_json(struct findings *findings, const char *text);

#endif
