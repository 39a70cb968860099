/* SPDX-License-Identifier: BSD-2-Clause */
/* What spoils a figure, judged from what both ends observed, and what to do about it. */
#ifndef ROCI_PERF_WARNINGS_H
#define ROCI_PERF_WARNINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "perf/facts.h"
#include "perf/perf.h"

#define WARNING_CHARS 240
#define WARNINGS_MAX  12u

struct warnings {
	size_t count;
	struct warning {
		const char *kind;         /* a word for programs: "busy", "mtu" */
		char text[WARNING_CHARS]; /* what is, and what to do */
	} list[WARNINGS_MAX];
};

/* `same_host`: both ends share a machine, so that its CPUs work for both. The text tells which end by "here" and
 * "there". */
void warnings_judge(struct warnings *w, const struct perf_order *order, const struct perf_facts *near,
		    const struct perf_facts *far, bool same_host);

#endif
