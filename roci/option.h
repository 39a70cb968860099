/* SPDX-License-Identifier: BSD-2-Clause */
/* Options: one table per command, from which parsing, --help and the shells' completion are made. */
#ifndef ROCI_OPTION_H
#define ROCI_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct command;

enum option_kind {
	OPTION_FLAG,   /* bool */
	OPTION_TEXT,   /* const char * */
	OPTION_FILE,   /* const char *, a file */
	OPTION_FOLDER, /* const char *, a folder */
	OPTION_DEVICE, /* const char *, an RDMA device */
	OPTION_NUMBER, /* uint64_t */
	OPTION_SIZE,   /* uint64_t, bytes: 64M */
	OPTION_RATE,   /* uint64_t, bytes a second: 10M, 1.5Gbit */
	OPTION_TIME,   /* uint64_t, milliseconds: 30, 500ms, 2m */
	OPTION_CHOICE, /* unsigned, index into `values` */
	OPTION_HELP,   /* prints the command's help and ends */
};

struct option_row {
	char letter;          /* 0: has none */
	const char *name;     /* without the dashes */
	const char *argument; /* what its argument is called; NULL: takes none */
	const char *group;    /* heading in --help; rows of a group stand together */
	const char *help;     /* one line, or several that '\n' divides */
	const char *standard; /* the default, as --help shows it; NULL: nothing to show */
	enum option_kind kind;
	size_t offset;             /* where its value goes, in the command's struct */
	uint64_t min, max;         /* NUMBER, SIZE, RATE, TIME */
	const char *const *values; /* CHOICE; ends with NULL */
};

#define OPTION_HELP_ROW                                                                                                \
	{                                                                                                              \
		.letter = 'h', .name = "help", .group = "options", .help = "show this help", .kind = OPTION_HELP       \
	}

/* What is left of the arguments: argv entries, not owned; the array is the caller's to free(). */
struct operands {
	char **list;
	size_t count;
	bool after_dashes; /* "--" stood before the first one */
};

/* Reads argv[1] and on. Values go into `into`, which holds the defaults. Returns true to go on; false with *status set:
 * after --help, or after a complaint on stderr that says what to do. */
bool options_parse(const struct command *command, int argc, char **argv, void *into, struct operands *operands,
		   int *status);

#endif
