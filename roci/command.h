/* SPDX-License-Identifier: BSD-2-Clause */
/* What a subcommand is: a struct in a file of its own, listed in main.c. */
#ifndef ROCI_COMMAND_H
#define ROCI_COMMAND_H

#include <stdio.h>

#include "option.h"

/* What stands after the options; for completion. */
enum operand_kind {
	OPERANDS_NONE,
	OPERANDS_PROGRAM,   /* a program and its arguments: options end where it begins */
	OPERANDS_FILE_HOST, /* files, and a host at the end */
	OPERANDS_FILE,
	OPERANDS_CHOICE, /* one of operand_values */
};

struct command {
	const char *name;
	const char *summary;  /* one line */
	const char *usage;    /* what stands behind "roci NAME " */
	const char *examples; /* lines, indented */
	const char *about;    /* lines after the options */
	const char *manual;   /* its manual page */
	const struct option_row *options;
	size_t option_count;
	enum operand_kind operands;
	const char *const *operand_values; /* ends with NULL */
	/* argv[0] is the subcommand's name. Returns the exit status. */
	int (*run)(const struct command *self, int argc, char **argv);
};

/* Exit statuses that all commands share; 126 and 127 as shells have them. */
enum { EXIT_USAGE = 2, EXIT_CANNOT_RUN = 126, EXIT_NOT_FOUND = 127 };

/* Ends with NULL, in the order of `roci --help`. */
extern const struct command *const commands[];

/* argv of the process: for device.c, which may have to execute it again. */
extern char **command_line;

/* "roci NAME: " and the message and a line break, on stderr. Returns EXIT_USAGE. */
__attribute__((format(printf, 2, 3))) int complain(const struct command *command, const char *format, ...);

void help_command(const struct command *command, FILE *out);
void help_all(FILE *out);

extern const struct command demo_command, send_command, recv_command, run_command, completion_command;

#endif
