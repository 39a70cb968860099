/* SPDX-License-Identifier: BSD-2-Clause */
/* Options: each command has one table. The parser, --help and the completions of the shells use it. */
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
	OPTION_RATE,   /* uint64_t, bytes per second: 10M, 1.5Gbit */
	OPTION_TIME,   /* uint64_t, milliseconds: 30, 500ms, 2m */
	OPTION_CHOICE, /* unsigned, index into `values` */
	OPTION_HELP,   /* prints the command's help and ends */
};

struct option_row {
	char letter;              /* 0: none */
	const char *name;         /* without the dashes */
	const char *argument;     /* name of its argument; NULL: it takes none */
	const char *group;        /* heading in --help; rows of a group are adjacent */
	const char *help;         /* one line, or several with '\n' between */
	const char *default_text; /* the default, as --help shows it; NULL: --help shows none */
	enum option_kind kind;
	size_t offset;             /* of its value in the command's struct */
	uint64_t min, max;         /* NUMBER, SIZE, RATE, TIME */
	const char *const *values; /* CHOICE; ends with NULL */
};

#define OPTION_HELP_ROW                                                                                                \
	{                                                                                                              \
		.letter = 'h', .name = "help", .group = "options", .help = "show this help", .kind = OPTION_HELP       \
	}

/* The RDMA device, as commands choose it that work on any; see device.h. `in`: the group; `at`: the offset. */
#define OPTION_DEVICE_ROW(in, at)                                                                                      \
	{                                                                                                              \
		.name = "device", .argument = "NAME", .group = in,                                                     \
		.help = "an RDMA device of this machine, or `embedded` (the\nsoftware device roci0), or `auto` (a "    \
			"device of this\nmachine if one works, else roci0)",                                           \
		.default_text = "auto", .kind = OPTION_DEVICE, .offset = at                                            \
	}

/* The port of `roci serve`, for commands that measure with it. */
#define OPTION_SERVE_PORT_ROW(in, at)                                                                                  \
	{                                                                                                              \
		.letter = 'p', .name = "port", .argument = "PORT", .group = in, .help = "port of `roci serve`",        \
		.default_text = "18517", .kind = OPTION_NUMBER, .offset = at, .min = 1, .max = TOUR_MAX_PORT           \
	}

/* The arguments that are not options. They belong to argv; the caller frees the array with free(). */
struct operands {
	char **list;
	size_t count;
};

/* Parses argv[1] and the rest. `into` holds the defaults; the values go there. Returns true if the command shall run.
 * Returns false with *status set after --help, and after a complaint on stderr. */
bool options_parse(const struct command *command, int argc, char **argv, void *into, struct operands *operands,
		   int *status);

#endif
