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
};

/* Draws on `out` if it is a terminal and TERM is not "dumb". Uses colour unless NO_COLOR is set. */
void bar_init(struct bar *bar, FILE *out);

/* Draws `done` of `total` bytes (total 0: unknown), and the rate (0: not known yet) with the remaining time. `where` is
 * the end of the line. */
void bar_draw(struct bar *bar, uint64_t done, uint64_t total, double bytes_per_s, const char *where);

/* Draws a gauge of `part` (0..1; negative: none) where there is room for it, and the text. */
void bar_draw_text(struct bar *bar, double part, const char *text);

/* Removes the line. Call it before printing something else. */
void bar_clear(struct bar *bar);

#endif
