/* SPDX-License-Identifier: BSD-2-Clause */
/* roci send: sends files and folders to `roci recv`. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "mover/entry.h"
#include "sender_number.h"
#include "signals.h"
#include "target.h"
#include "ticket_input.h"
#include "transfer.h"

struct send_choices {
	struct transfer_choices common;
	uint64_t ticket_fd, chunk_bytes, limit;
	unsigned mode;
	bool no_encrypt, checksum, dry_run;
	const char *name;
};

#define NO_FD             UINT64_MAX
#define MIN_CHUNK         (64 << 10)
#define MAX_CHUNK         (16 << 20)
#define SEND_OFFSET(name) offsetof(struct send_choices, name)

static const struct option_row options[] = {
	{.letter = 't',
	 .name = "ticket-file",
	 .argument = "FILE",
	 .group = "trust",
	 .help = "read the receiver's ticket from FILE;\nwithout this option, roci asks for the ticket",
	 .kind = OPTION_FILE,
	 .offset = TRANSFER_OFFSET(ticket_file)},
	{.name = "ticket-fd",
	 .argument = "N",
	 .group = "trust",
	 .help = "read the ticket from file descriptor N",
	 .kind = OPTION_NUMBER,
	 .offset = SEND_OFFSET(ticket_fd),
	 .max = INT_MAX},
	{.name = "open",
	 .group = "trust",
	 .help = "send without a ticket to a receiver that has --open;\nneither side checks who the other is",
	 .kind = OPTION_FLAG,
	 .offset = TRANSFER_OFFSET(open)},
	{.name = "no-encrypt",
	 .group = "trust",
	 .help = "send file contents in the clear, which takes less work;\nnobody can change them, but everybody can "
		 "read them",
	 .kind = OPTION_FLAG,
	 .offset = SEND_OFFSET(no_encrypt)},
	{.letter = 'c',
	 .name = "checksum",
	 .group = "sending",
	 .help = "also compare the contents of files whose size and time\nare unchanged; the receiver needs --compare",
	 .kind = OPTION_FLAG,
	 .offset = SEND_OFFSET(checksum)},
	{.letter = 'n',
	 .name = "dry-run",
	 .group = "sending",
	 .help = "list what would be sent, but send nothing",
	 .kind = OPTION_FLAG,
	 .offset = SEND_OFFSET(dry_run)},
	{.name = "name",
	 .argument = "NAME",
	 .group = "sending",
	 .help = "file name at the receiver for standard input (-)",
	 .default_text = "stdin",
	 .kind = OPTION_TEXT,
	 .offset = SEND_OFFSET(name)},
	TRANSFER_RETRY_ROW("sending",
			   "when the connection breaks, try this long to connect again\nand go on; 0: stop at once"),
	{.name = "limit",
	 .argument = "RATE",
	 .group = "sending",
	 .help = "send at most this many bytes per second;\nexamples: 10M, 1.5Gbit",
	 .kind = OPTION_RATE,
	 .offset = SEND_OFFSET(limit),
	 .min = 1024},
	{.name = "limit-rate",
	 .argument = "RATE",
	 .group = "sending",
	 .help = "the same as --limit",
	 .kind = OPTION_RATE,
	 .offset = SEND_OFFSET(limit),
	 .min = 1024},
	{.name = "mode",
	 .argument = "MODE",
	 .group = "RDMA",
	 .help = TRANSFER_MODE_HELP,
	 .default_text = "write",
	 .kind = OPTION_CHOICE,
	 .offset = SEND_OFFSET(mode),
	 .values = transfer_modes},
	TRANSFER_QP_ROWS("number of queue pairs (QPs) for data", "4, on roci0 1, or one per chunk if that is fewer"),
	{.name = "chunk",
	 .argument = "SIZE",
	 .group = "RDMA",
	 .help = "size of one transfer buffer: a power of two from\n64K to 16M",
	 .default_text = "1M",
	 .kind = OPTION_SIZE,
	 .offset = SEND_OFFSET(chunk_bytes),
	 .min = MIN_CHUNK,
	 .max = MAX_CHUNK},
	TRANSFER_DEVICE_ROWS,
	TRANSFER_OUTPUT_ROWS,
};

/* Finds the host, the port and the ticket from the last argument and the options. */
static enum mover_status find_target(struct show *show, const struct send_choices *choices, const char *argument,
				     struct target *target, struct mover_ticket *ticket)
{
	const struct transfer_choices *common = &choices->common;
	const char *why, *file = common->ticket_file;

	if (target_parse(argument, target, &why))
		return show_failure(show, MOVER_USAGE, "'%s': %s", argument, why);
	if ((file != NULL) + (target->ticket_file != NULL) + (choices->ticket_fd != NO_FD) + common->open > 1)
		return show_failure(
			show, MOVER_USAGE,
			"--ticket-file, --ticket-fd, @FILE and --open exclude each other; give one of them");
	if (common->open) {
		show_warning(show, "--open: any program that answers at this address gets the files");
		return MOVER_OK;
	}
	file = target->ticket_file ? target->ticket_file : file;
	enum mover_status status =
		ticket_input(show, file, choices->ticket_fd == NO_FD ? -1 : (int)choices->ticket_fd, ticket);
	if (status != MOVER_OK)
		return status;
	if (target->ticket_file) {
		if (!*ticket->host)
			return show_failure(show, MOVER_USAGE,
					    "the ticket in %s names no host; give the host and --ticket-file", file);
		if (target_lacks_interface(ticket->host))
			return show_failure(show, MOVER_USAGE,
					    "the ticket in %s names the link-local address %s; add the interface of "
					    "this machine that leads there: instead of @%s give --ticket-file %s and "
					    "the host, as in %s%%eth0",
					    file, ticket->host, file, file, ticket->host);
		snprintf(target->host, sizeof(target->host), "%s", ticket->host);
	}
	if (!target->port)
		target->port = ticket->port;
	return MOVER_OK;
}

/* What is wrong with the name for standard input. NULL: nothing. */
static const char *stdin_name_wrong(const char *name)
{
	if (strchr(name, '/'))
		return "it is a path, and the receiver chooses the folder";
	return mover_name_wrong((const uint8_t *)name, strlen(name));
}

static enum mover_status send_all(const struct send_choices *choices, struct show *show, struct mover_common *common,
				  const struct operands *operands)
{
	size_t paths = operands->count - 1;
	struct sender_number number = {.fd = -1};
	struct mover_ticket ticket = {0};
	struct target target;
	enum mover_status status = find_target(show, choices, operands->list[paths], &target, &ticket);

	if (status != MOVER_OK) {
		mover_ticket_forget(&ticket);
		return status;
	}
	common->chunk_bytes = (uint32_t)choices->chunk_bytes;
	struct mover_send_options send = {
		.common = *common,
		.paths = (const char *const *)operands->list,
		.path_count = paths,
		.stdin_name = choices->name,
		.host = target.host,
		.port = target.port ? target.port : MOVER_DEFAULT_PORT,
		.ticket = choices->common.open ? NULL : &ticket,
		.mode = (enum mover_mode)choices->mode,
		.encrypt = !choices->no_encrypt,
		.checksum = choices->checksum,
		.dry_run = choices->dry_run,
		.limit_bytes_per_s = choices->limit,
		.retry_first = choices->common.retry_ms != TRANSFER_NO_RETRY_GIVEN,
	};
	if (!choices->dry_run && sender_number_take(&number, send.ticket, target.host, send.port))
		send.transfer = number.bytes;
	signals_catch(mover_stop);
	status = mover_send(&send, show_event, show);
	sender_number_end(&number, status);
	mover_ticket_forget(&ticket);
	return status;
}

static bool has_empty(const struct operands *paths)
{
	for (size_t i = 0; i < paths->count; i++)
		if (!*paths->list[i])
			return true;
	return false;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct send_choices choices = {.common.retry_ms = TRANSFER_NO_RETRY_GIVEN, .ticket_fd = NO_FD};
	struct show show = {.list = stdout};
	struct device_choice device;
	struct mover_common common;
	struct operands operands;
	int status;

	if (!transfer_no_ticket_in_arguments(self, argc, argv))
		return EXIT_USAGE;
	if (!options_parse(self, argc, argv, &choices, &operands, &status))
		return status;
	show.dry_run = choices.dry_run;
	if (operands.count < 2)
		status = complain(self, "name what to send and the receiver's host; usage: roci send %s", self->usage);
	else if (has_empty(&operands))
		status = complain(self, "an argument is empty: '' is no PATH and no HOST");
	else if (choices.chunk_bytes & (choices.chunk_bytes - 1))
		status = complain(self, "--chunk must be a power of two, for example 256K or 1M");
	else if (choices.name && !mover_sends_stdin((const char *const *)operands.list, operands.count - 1))
		status = complain(self, "--name names standard input, and no PATH is -; other files keep their names");
	else if (choices.name && stdin_name_wrong(choices.name))
		status = complain(self, "--name '%s' cannot be a file's name: %s; choose another, such as src.tar",
				  choices.name, stdin_name_wrong(choices.name));
	else
		status = (int)transfer_begin(self, &choices.common, &device, &show, &common);
	if (!status)
		status = (int)send_all(&choices, &show, &common, &operands);
	free(operands.list);
	return status;
}

const struct command send_command = {
	.name = "send",
	.summary = "send files and folders to a machine that runs `roci recv`",
	.usage = "[OPTION]... PATH... HOST[:PORT]|@TICKETFILE",
	.examples = "  roci send film.mkv 10.0.0.7                   asks for the ticket that `roci recv` shows\n"
		    "  roci send photos notes.txt @ticket            takes host, port and secret from the file ticket\n"
		    "  roci send --qps 8 --no-encrypt disk.img '[fe80::1%eth0]:4000'\n"
		    "  tar c src | roci send --name src.tar - @ticket\n"
		    "  roci send --dry-run photos @ticket            lists what would be sent\n",
	.about = "Files, folders and links keep their modes and times. roci skips what the receiver already has. If a\n"
		 "transfer is cut off, run the same command again to resume it. `-` is standard input. If a file name\n"
		 "starts with a dash, write ./-NAME.\n",
	.manual = "roci-send",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.operands = OPERANDS_FILE_HOST,
	.run = run,
};
