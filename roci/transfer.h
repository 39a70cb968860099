/* SPDX-License-Identifier: BSD-2-Clause */
/* The common parts of `roci send` and `roci recv`: options and checks. */
#ifndef ROCI_TRANSFER_H
#define ROCI_TRANSFER_H

#include "command.h"
#include "device.h"
#include "show.h"

/* Names of enum mover_mode, for OPTION_CHOICE. */
extern const char *const transfer_modes[];

/* The common options. It is the first member of either command's struct of options. */
struct transfer_choices {
	const char *device, *bind, *ticket_file;
	uint64_t qps, cqs, memory_bytes, timeout_ms, retry_ms;
	bool open, poll, no_uring, json, quiet, verbose;
};

#define TRANSFER_MODE_HELP                                                                                             \
	"how data moves: write (RDMA WRITE by the sender),\nread (RDMA READ by the receiver), or send (SEND)"

/* Rows of both option tables. */
#define TRANSFER_OFFSET(member) offsetof(struct transfer_choices, member)

#define TRANSFER_DEVICE_ROWS                                                                                           \
	{.name = "device",                                                                                             \
	 .argument = "NAME",                                                                                           \
	 .group = "RDMA",                                                                                              \
	 .help = "an RDMA device of this machine, or `embedded` (the\nsoftware device roci0), or `auto` (a device of " \
		 "this\n"                                                                                              \
		 "machine if one works, else roci0)",                                                                  \
	 .default_text = "auto",                                                                                       \
	 .kind = OPTION_DEVICE,                                                                                        \
	 .offset = TRANSFER_OFFSET(device)},                                                                           \
		{.name = "bind",                                                                                       \
		 .argument = "ADDRESS",                                                                                \
		 .group = "RDMA",                                                                                      \
		 .help = "use only this address of this machine",                                                      \
		 .kind = OPTION_TEXT,                                                                                  \
		 .offset = TRANSFER_OFFSET(bind)},                                                                     \
		{.name = "memory",                                                                                     \
		 .argument = "SIZE",                                                                                   \
		 .group = "RDMA",                                                                                      \
		 .help = "register at most this much memory per transfer",                                             \
		 .default_text = "64M",                                                                                \
		 .kind = OPTION_SIZE,                                                                                  \
		 .offset = TRANSFER_OFFSET(memory_bytes),                                                              \
		 .min = 1 << 20,                                                                                       \
		 .max = 1ull << 40},                                                                                   \
		{.name = "poll",                                                                                       \
		 .group = "RDMA",                                                                                      \
		 .help = "poll for completions instead of sleeping:\nless delay, but one core is always busy",         \
		 .kind = OPTION_FLAG,                                                                                  \
		 .offset = TRANSFER_OFFSET(poll)},                                                                     \
		{.name = "no-uring",                                                                                   \
		 .group = "RDMA",                                                                                      \
		 .help = "read and write files without io_uring",                                                      \
		 .kind = OPTION_FLAG,                                                                                  \
		 .offset = TRANSFER_OFFSET(no_uring)},                                                                 \
	{                                                                                                              \
		.name = "timeout", .argument = "TIME", .group = "RDMA",                                                \
		.help = "take the connection as broken when the other side\nis silent for this long",                  \
		.default_text = "30s", .kind = OPTION_TIME, .offset = TRANSFER_OFFSET(timeout_ms), .min = 1000,        \
		.max = 86400000                                                                                        \
	}

/* Not given: TRANSFER_RETRY_MS. */
#define TRANSFER_NO_RETRY_GIVEN UINT64_MAX
#define TRANSFER_RETRY_MS       300000

#define TRANSFER_RETRY_ROW(retry_group, retry_help)                                                                    \
	{                                                                                                              \
		.name = "retry-for", .argument = "TIME", .group = retry_group, .help = retry_help,                     \
		.default_text = "5m", .kind = OPTION_TIME, .offset = TRANSFER_OFFSET(retry_ms), .max = 86400000        \
	}

#define TRANSFER_QP_ROWS(qps_help, qps_default)                                                                        \
	{.name = "qps",                                                                                                \
	 .argument = "N",                                                                                              \
	 .group = "RDMA",                                                                                              \
	 .help = qps_help,                                                                                             \
	 .default_text = qps_default,                                                                                  \
	 .kind = OPTION_NUMBER,                                                                                        \
	 .offset = TRANSFER_OFFSET(qps),                                                                               \
	 .min = 1,                                                                                                     \
	 .max = MOVER_MAX_QPS},                                                                                        \
	{                                                                                                              \
		.name = "cqs", .argument = "N", .group = "RDMA",                                                       \
		.help = "number of completion queues (CQs) for these QPs", .default_text = "1", .kind = OPTION_NUMBER, \
		.offset = TRANSFER_OFFSET(cqs), .min = 1, .max = MOVER_MAX_QPS                                         \
	}

#define TRANSFER_OUTPUT_ROWS                                                                                           \
	{.name = "json",                                                                                               \
	 .group = "output",                                                                                            \
	 .help = "print events as JSON, one object per line",                                                          \
	 .kind = OPTION_FLAG,                                                                                          \
	 .offset = TRANSFER_OFFSET(json)},                                                                             \
		{.letter = 'q',                                                                                        \
		 .name = "quiet",                                                                                      \
		 .group = "output",                                                                                    \
		 .help = "print errors only",                                                                          \
		 .kind = OPTION_FLAG,                                                                                  \
		 .offset = TRANSFER_OFFSET(quiet)},                                                                    \
		{.letter = 'v',                                                                                        \
		 .name = "verbose",                                                                                    \
		 .group = "output",                                                                                    \
		 .help = "print every entry and the steps of the protocol",                                            \
		 .kind = OPTION_FLAG,                                                                                  \
		 .offset = TRANSFER_OFFSET(verbose)},                                                                  \
	{                                                                                                              \
		.letter = 'h', .name = "help", .group = "output", .help = "show this help", .kind = OPTION_HELP        \
	}

/* Call this before the arguments are parsed. A ticket among them is in the process list and in the shell's history, so
 * it can no longer be used. Overwrites such a ticket and complains. Returns true if there was none. */
bool transfer_no_ticket_in_arguments(const struct command *command, int argc, char **argv);

/* Checks what the option table cannot check, and chooses the device. Fills in `show` and `common`. Call it before
 * anything is opened (device.h). Returns MOVER_OK, or the exit status after showing the failure. */
enum mover_status transfer_begin(const struct command *command, const struct transfer_choices *choices,
				 struct device_choice *device, struct show *show, struct mover_common *common);

#endif
