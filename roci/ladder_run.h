/* SPDX-License-Identifier: BSD-2-Clause */
/* Draws a ladder of a capture: for `roci ladder`, `roci demo --ladder` and `roci ping --ladder`. */
#ifndef ROCI_LADDER_RUN_H
#define ROCI_LADDER_RUN_H

#include <stdbool.h>
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

/* Runs a program, with what it does recorded in a file of its own, and draws that when it has ended. `preload`: it gets
 * our libraries, as by `roci run`. `fault` may be NULL. With the picture on standard output, what the program prints
 * goes to standard error. Returns the program's exit status, or that of drawing. */
int ladder_draw_program(struct ladder_job *job, char **argv, bool preload, const char *fault);

/* `roci NAME --ladder OUT ...`: runs this command line again without --ladder, and with --device embedded where no
 * device is given, as ladder_draw_program() does. Returns the exit status. */
int ladder_draw_self(const struct command *command, const char *out, bool device_given);

/* Says where the picture is. */
void ladder_tell(const struct ladder_job *job);

#endif
