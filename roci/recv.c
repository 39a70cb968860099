/* SPDX-License-Identifier: BSD-2-Clause */
/* roci recv: takes what `roci send` sends. */
#include <stdlib.h>
#include <string.h>

#include "own_address.h"
#include "ticket_file.h"
#include "transfer.h"

struct recv_choices {
	struct transfer_choices common;
	const char *dir;
	uint64_t port, max_sessions;
	bool once, keep_ticket;
};

#define WHOLE(name) offsetof(struct recv_choices, name)

static const struct option_row options[] = {
	{.letter = 'd',
	 .name = "dir",
	 .argument = "DIR",
	 .group = "where to",
	 .help = "put files into this folder",
	 .standard = ".",
	 .kind = OPTION_FOLDER,
	 .offset = WHOLE(dir)},
	{.letter = 'p',
	 .name = "port",
	 .argument = "N",
	 .group = "where to",
	 .help = "listen on this port; 0 takes a free one",
	 .standard = "22222",
	 .kind = OPTION_NUMBER,
	 .offset = WHOLE(port),
	 .max = 65535},
	{.letter = '1',
	 .name = "once",
	 .group = "where to",
	 .help = "end after one transfer, with its exit status",
	 .kind = OPTION_FLAG,
	 .offset = WHOLE(once)},
	{.name = "max-sessions",
	 .argument = "N",
	 .group = "where to",
	 .help = "so many transfers at a time",
	 .standard = "16",
	 .kind = OPTION_NUMBER,
	 .offset = WHOLE(max_sessions),
	 .min = 1,
	 .max = 4096},
	{.letter = 't',
	 .name = "ticket-file",
	 .argument = "FILE",
	 .group = "trust",
	 .help = "write the ticket to FILE (mode 600) when ready,\ninstead of showing it",
	 .kind = OPTION_FILE,
	 .offset = TRANSFER_OFFSET(ticket_file)},
	{.name = "keep-ticket",
	 .group = "trust",
	 .help = "one ticket for any number of transfers",
	 .kind = OPTION_FLAG,
	 .offset = WHOLE(keep_ticket)},
	{.name = "open",
	 .group = "trust",
	 .help = "let in who has no ticket: anybody who reaches the port",
	 .kind = OPTION_FLAG,
	 .offset = TRANSFER_OFFSET(open)},
	TRANSFER_QP_ROWS("grant a sender no more queue pairs than this", NULL),
	TRANSFER_DEVICE_ROWS,
	TRANSFER_OUTPUT_ROWS,
};

/* The context of the events. */
struct receiving {
	struct show show; /* first */
	struct mover_ticket ticket;
	struct ticket_file file;
	bool open;
	enum mover_status failed; /* what the command line itself failed at */
};

static void hand_out(struct receiving *r)
{
	int err = r->file.path ? ticket_file_write(&r->file, &r->ticket) : 0;
	if (err) {
		r->failed = show_failure(&r->show, MOVER_LOCAL_IO, "the ticket cannot be written to %s: %s",
					 r->file.path, strerror(-err));
		mover_stop();
		return;
	}
	show_ticket(&r->show, &r->ticket, r->file.path);
}

static void on_event(void *context, const struct mover_event *event)
{
	struct receiving *r = context;
	bool listening = event->type == MOVER_LISTENING;

	if (listening && r->open)
		show_warning(&r->show, "--open: whoever reaches port %u can put files here", event->port);
	show_event(&r->show, event);
	if (!listening)
		return;
	r->ticket.port = event->port;
	if (!r->open)
		hand_out(r);
}

static void next_ticket(void *context, struct mover_ticket *ticket)
{
	struct receiving *r = context;
	struct mover_ticket fresh;
	int err = mover_ticket_create(&fresh, r->ticket.host, r->ticket.port);

	if (err) {
		r->failed = show_failure(&r->show, MOVER_FAILED, "no fresh ticket: %s", strerror(-err));
		mover_stop();
		return;
	}
	r->ticket = *ticket = fresh;
	mover_ticket_forget(&fresh);
	hand_out(r);
}

static enum mover_status receive(const struct recv_choices *choices, struct receiving *r, struct mover_common *common,
				 bool to_stdout)
{
	char host[INET6_ADDRSTRLEN];
	struct mover_recv_options recv = {
		.common = *common,
		.dir = to_stdout ? NULL : choices->dir,
		.to_stdout = to_stdout,
		.once = choices->once || to_stdout,
		.open = choices->common.open,
		.port = (uint16_t)choices->port,
		.max_sessions = (unsigned)choices->max_sessions,
		.ticket = choices->common.open ? NULL : &r->ticket,
		.keep_ticket = choices->keep_ticket,
		.next_ticket = next_ticket,
	};

	own_address(r->show.device, host);
	int err = mover_ticket_create(&r->ticket, common->bind_address ? common->bind_address : host, 1);
	if (err)
		return show_failure(&r->show, MOVER_FAILED, "no ticket: %s", strerror(-err));
	transfer_catch_signals();
	enum mover_status status = mover_recv(&recv, on_event, r);
	mover_ticket_forget(&r->ticket);
	ticket_file_remove(&r->file);
	return r->failed != MOVER_OK ? r->failed : status;
}

static int check(const struct command *self, const struct recv_choices *choices, const struct operands *operands)
{
	bool to_stdout = operands->count;
	if (operands->count > 1 || (to_stdout && strcmp(operands->list[0], "-")))
		return complain(self, "'%s': only - (standard output) can stand here; a folder is given by --dir",
				operands->list[0]);
	if (to_stdout && choices->dir)
		return complain(self, "either --dir or -, not both");
	if (choices->common.open && (choices->common.ticket_file || choices->keep_ticket))
		return complain(self, "--open does without tickets; leave out --ticket-file and --keep-ticket");
	return 0;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct recv_choices choices = {.port = MOVER_DEFAULT_PORT};
	struct receiving r = {.show = {.receiving = true}};
	struct device_choice device;
	struct mover_common common;
	struct operands operands;
	int status;

	if (!transfer_no_ticket_in_arguments(self, argc, argv))
		return EXIT_USAGE;
	if (!options_parse(self, argc, argv, &choices, &operands, &status))
		return status;
	bool to_stdout = operands.count;
	status = check(self, &choices, &operands);
	if (!status) {
		r.show.list = to_stdout ? stderr : stdout;
		r.show.many = !choices.once && !to_stdout;
		r.open = choices.common.open;
		r.file.path = choices.common.ticket_file;
		choices.dir = choices.dir ? choices.dir : ".";
		status = (int)transfer_begin(self, &choices.common, &device, &r.show, &common);
	}
	if (!status)
		status = (int)receive(&choices, &r, &common, to_stdout);
	free(operands.list);
	return status;
}

static const char *const operand_values[] = {"-", NULL};

const struct command recv_command = {
	.name = "recv",
	.summary = "receive what roci send sends",
	.usage = "[OPTION]... [-]",
	.examples = "  roci recv                                     into this folder; shows a ticket for the sender\n"
		    "  roci recv --dir incoming --once               one transfer\n"
		    "  roci recv - | tar x                           one file or stream, to standard output\n"
		    "  roci recv --port 0 --ticket-file ticket       a free port; the ticket in a file\n",
	.about = "Who sends has to have the ticket that is shown: good for one transfer, also if that is cut off and "
		 "goes\n"
		 "on. A file gets its name only when all of it has come, was checked, and is on the disk.\n",
	.manual = "roci-recv",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.operands = OPERANDS_CHOICE,
	.operand_values = operand_values,
	.run = run,
};
