/* SPDX-License-Identifier: BSD-2-Clause */
/* Draws figures: as a page that needs no network, with pictures that can be zoomed; or as a still picture. */
#ifndef ROCI_PLOT_PLOT_H
#define ROCI_PLOT_PLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define PLOT_LABEL_CHARS 32

/* Writes the page; `json` is its data (page/plot.js says what that has). Nothing in it can become markup. */
void plot_page(FILE *out, const char *json);

struct plot_line {
	const char *name;
	unsigned color; /* a number; lines of one number look alike */
	bool dashed;
	size_t count;
	double (*points)[2]; /* x, y */
};

struct plot_axis {
	const char *label;
	bool log;
	double low, high;    /* of y without `ticks`: what the lines need is found out */
	const double *ticks; /* NULL: round numbers */
	size_t tick_count;
	void (*format)(char label[PLOT_LABEL_CHARS], double value);
};

struct plot_chart {
	const char *title, *text;
	struct plot_axis x, y;
	const struct plot_line *lines;
	size_t line_count;
	bool dots; /* mark each point */
};

/* Writes the charts, one below the other, as one SVG picture. */
void plot_svg(FILE *out, const char *title, const char *subtitle, const struct plot_chart *charts, size_t count);

#endif
