/* SPDX-License-Identifier: BSD-2-Clause */
/* Draws a ladder of a capture: for `roci ladder`, `roci demo --ladder` and `roci ping --ladder`. */
#ifndef ROCI_LADDER_RUN_H
#define ROCI_LADDER_RUN_H

#include <stdint.h>
#include <stdio.h>

struct command;

enum ladder_format { LADDER_HTML, LADDER_SVG, LADDER_TEXT };

struct ladder_job {
	const struct command *command; /* for complaints */
	const char *title;             /* of the picture */
	const char *name;              /* of the capture, for complaints */
	const char *out;               /* NULL or "-": standard output */
	enum ladder_format format;
	uint64_t max_packets;
};

/* The default of --max-packets: the page of so many is some 60 MB. */
#define LADDER_MAX_PACKETS 200000

/* Whether the picture can be written to `path`: a new file, or a picture of before. 0, or the exit status after a
 * complaint. */
int ladder_check_out(const struct command *command, const char *path);

/* Reads a capture to its end and writes the picture. Returns the exit status, after a complaint where that is not 0. Of
 * a damaged capture, what comes before the damage is drawn. */
int ladder_draw(const struct ladder_job *job, FILE *capture);

/* The same of a file that this process has made, at `path`. */
int ladder_draw_file(const struct ladder_job *job, const char *path);

#endif
