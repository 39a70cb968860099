/* SPDX-License-Identifier: BSD-2-Clause */
/* A subcommand: a struct in its own file, listed in main.c. */
#ifndef ROCI_COMMAND_H
#define ROCI_COMMAND_H

#include <stdio.h>

#include "option.h"

/* The arguments after the options, as the completions know them. */
enum operand_kind {
	OPERANDS_NONE,
	OPERANDS_PROGRAM,   /* a program and its arguments: options end where it begins */
	OPERANDS_FILE_HOST, /* files, and at the end a host */
	OPERANDS_FILE,
	OPERANDS_HOST,
	OPERANDS_CHOICE, /* one of operand_values or operand_words() */
};

struct command {
	const char *name;
	const char *summary;  /* one line */
	const char *usage;    /* the text after "roci NAME " */
	const char *examples; /* indented lines */
	const char *about;    /* lines that follow the options */
	const char *manual;   /* name of its manual page */
	const struct option_row *options;
	size_t option_count;
	enum operand_kind operands;
	bool numbers;                              /* "-110" is an operand, not an option */
	const char *const *operand_values;         /* ends with NULL */
	const char *const *(*operand_words)(void); /* likewise, where they are not known before */
	/* argv[0] is the subcommand's name. Returns the exit status. */
	int (*run)(const struct command *self, int argc, char **argv);
};

/* Exit statuses of all commands. 126 and 127 mean the same in a shell. */
enum { EXIT_OUTPUT = 1, EXIT_USAGE = 2, EXIT_CANNOT_RUN = 126, EXIT_NOT_FOUND = 127 };

/* All commands, in the order of `roci --help`. Ends with NULL. */
extern const struct command *const commands[];

/* argv of the process. device.c and machine.c may execute it again. */
extern char **command_line;

/* Prints "roci NAME: ", the message and a line break to stderr. Returns EXIT_USAGE. */
__attribute__((format(printf, 2, 3))) int complain(const struct command *command, const char *format, ...);

void help_command(const struct command *command, FILE *out);
void help_all(FILE *out);

extern const struct command demo_command, send_command, recv_command, ping_command, perf_command, serve_command,
	run_command, dump_command, ladder_command, stats_command, explain_command, doctor_command, setup_command,
	completion_command;

#endif
