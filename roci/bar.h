/* SPDX-License-Identifier: BSD-2-Clause */
/* A progress bar: one line of a terminal that is drawn again and again. */
#ifndef ROCI_BAR_H
#define ROCI_BAR_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct bar {
	FILE *out; /* NULL: not a terminal, so nothing is drawn */
	bool color, drawn;
	uint64_t seen_bytes, seen_ns;
	double bytes_per_s; /* smoothed; 0: not known yet */
};

/* Draws on `out` if it is a terminal and TERM is not "dumb". Uses colour unless NO_COLOR is set. */
void bar_init(struct bar *bar, FILE *out);

/* Draws `done` of `total` bytes (total 0: unknown), and the rate and remaining time from the bytes that `moved` over
 * the network within elapsed_ns. `where` is the end of the line. */
void bar_draw(struct bar *bar, uint64_t done, uint64_t total, uint64_t moved, uint64_t elapsed_ns, const char *where);

/* Draws a gauge of `part` (0..1; negative: none) where there is room for it, and the text. */
void bar_draw_text(struct bar *bar, double part, const char *text);

/* Removes the line. Call it before printing something else. */
void bar_clear(struct bar *bar);

/* Forgets the rate. Call it when another transfer begins. */
void bar_restart(struct bar *bar);

#endif
