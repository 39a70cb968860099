/* SPDX-License-Identifier: BSD-2-Clause */
/* A progress bar: one line of a terminal, drawn over and over. */
#ifndef ROCI_BAR_H
#define ROCI_BAR_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct bar {
	FILE *out; /* NULL: there is no terminal, nothing is drawn */
	bool color, drawn;
	uint64_t seen_bytes, seen_ns;
	double bytes_per_s; /* smoothed; 0: not known yet */
};

/* Draws on `out` if that is a terminal which can (TERM is not "dumb"); in colour unless NO_COLOR is set. */
void bar_init(struct bar *bar, FILE *out);

/* What is done of `total` (0: nobody knows), `moved` of it over the wire, after elapsed_ns; `where` ends the line. */
void bar_draw(struct bar *bar, uint64_t done, uint64_t total, uint64_t moved, uint64_t elapsed_ns, const char *where);

/* Takes the line away, before something else is written. */
void bar_clear(struct bar *bar);

/* Forgets the rate: another transfer begins. */
void bar_restart(struct bar *bar);

#endif
