/* SPDX-License-Identifier: BSD-2-Clause */
/* roci recv: receives what `roci send` sends. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "own_address.h"
#include "ticket_file.h"
#include "signals.h"
#include "transfer.h"

struct recv_choices {
	struct transfer_choices common;
	const char *dir;
	uint64_t port, max_sessions;
	bool once, keep_ticket, compare, links, keep;
};

#define RECV_OFFSET(name) offsetof(struct recv_choices, name)

static const struct option_row options[] = {
	{.letter = 'd',
	 .name = "dir",
	 .argument = "DIR",
	 .group = "receiving",
	 .help = "write files to this folder",
	 .default_text = ".",
	 .kind = OPTION_FOLDER,
	 .offset = RECV_OFFSET(dir)},
	{.letter = 'p',
	 .name = "port",
	 .argument = "N",
	 .group = "receiving",
	 .help = "listen on this port; 0 picks a free port",
	 .default_text = "22222",
	 .kind = OPTION_NUMBER,
	 .offset = RECV_OFFSET(port),
	 .max = 65535},
	{.letter = '1',
	 .name = "once",
	 .group = "receiving",
	 .help = "stop after one transfer and return its exit status",
	 .kind = OPTION_FLAG,
	 .offset = RECV_OFFSET(once)},
	TRANSFER_RETRY_ROW("receiving", "with --once: when the connection breaks, wait this long\nfor the sender to "
					"connect again; 0: stop at once"),
	{.name = "compare",
	 .group = "receiving",
	 .help = "let senders compare contents (--checksum): they learn\ndigests of files in the folder",
	 .kind = OPTION_FLAG,
	 .offset = RECV_OFFSET(compare)},
	{.letter = 'k',
	 .name = "keep",
	 .group = "receiving",
	 .help = "replace no file that exists; refuse the sender's",
	 .kind = OPTION_FLAG,
	 .offset = RECV_OFFSET(keep)},
	{.name = "links",
	 .group = "receiving",
	 .help = "also store symbolic links that point out of the folder",
	 .kind = OPTION_FLAG,
	 .offset = RECV_OFFSET(links)},
	{.name = "max-sessions",
	 .argument = "N",
	 .group = "receiving",
	 .help = "serve at most N transfers at the same time",
	 .default_text = "16",
	 .kind = OPTION_NUMBER,
	 .offset = RECV_OFFSET(max_sessions),
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
	 .help = "accept the same ticket for any number of transfers",
	 .kind = OPTION_FLAG,
	 .offset = RECV_OFFSET(keep_ticket)},
	{.name = "open",
	 .group = "trust",
	 .help = "accept senders without a ticket: anyone who can reach\nthe port can write files",
	 .kind = OPTION_FLAG,
	 .offset = TRANSFER_OFFSET(open)},
	TRANSFER_QP_ROWS("allow a sender at most N queue pairs (QPs) for data", "64"),
	TRANSFER_DEVICE_ROWS,
	TRANSFER_OUTPUT_ROWS,
};

/* The context of on_event() and next_ticket(). */
struct receiving {
	struct show show; /* first, for show_event() */
	struct mover_ticket ticket;
	struct ticket_file file;
	bool open;
	enum mover_status failed; /* a failure outside mover_recv() */
};

static void publish_ticket(struct receiving *r)
{
	int err = r->file.path ? ticket_file_write(&r->file, &r->ticket) : 0;
	if (err) {
		r->failed = show_failure(
			&r->show, MOVER_LOCAL_IO, "cannot write the ticket to %s: %s", r->file.path,
			err == -EEXIST ? "what is there is no ticket, and is left as it is; choose another name"
				       : strerror(-err));
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
		show_warning(&r->show, "--open: anyone who can reach port %u can write files here", event->port);
	show_event(&r->show, event);
	if (!listening)
		return;
	r->ticket.port = event->port;
	if (r->open)
		show_open(&r->show, &r->ticket);
	else
		publish_ticket(r);
}

static bool next_ticket(void *context, struct mover_ticket *ticket)
{
	struct receiving *r = context;
	struct mover_ticket fresh;
	int err = mover_ticket_create(&fresh, r->ticket.host, r->ticket.port);

	if (err) {
		r->failed = show_failure(&r->show, MOVER_FAILED, "cannot create the next ticket: %s", strerror(-err));
		mover_stop();
		return false;
	}
	r->ticket = *ticket = fresh;
	mover_ticket_forget(&fresh);
	publish_ticket(r);
	return true;
}

/* The host in the ticket: `own`, or the address of --bind. The "%eth0" of a link-local one is left out: it names an
 * interface of this machine, and the sender needs one of its own. */
static void ticket_host(const char *bind_address, const char *own, char *host, size_t room)
{
	snprintf(host, room, "%s", bind_address ? bind_address : own);
	if (strchr(host, ':'))
		host[strcspn(host, "%")] = 0;
}

static enum mover_status receive(const struct recv_choices *choices, struct receiving *r, struct mover_common *common,
				 bool to_stdout)
{
	char own[INET6_ADDRSTRLEN], host[sizeof(r->ticket.host)];
	struct mover_recv_options recv = {
		.common = *common,
		.dir = to_stdout ? NULL : choices->dir,
		.to_stdout = to_stdout,
		.once = choices->once || to_stdout,
		.open = choices->common.open,
		.compare = choices->compare,
		.links = choices->links,
		.keep = choices->keep,
		.port = (uint16_t)choices->port,
		.max_sessions = (unsigned)choices->max_sessions,
		.ticket = choices->common.open ? NULL : &r->ticket,
		.keep_ticket = choices->keep_ticket,
		.next_ticket = next_ticket,
	};

	own_address(r->show.device, own);
	ticket_host(common->bind_address, own, host, sizeof(host));
	int err = mover_ticket_create(&r->ticket, host, 1);
	if (err)
		return show_failure(&r->show, MOVER_FAILED, "cannot create a ticket: %s", strerror(-err));
	signals_catch(mover_stop);
	enum mover_status status = mover_recv(&recv, on_event, r);
	mover_ticket_forget(&r->ticket);
	ticket_file_remove(&r->file);
	return r->failed != MOVER_OK ? r->failed : status;
}

static int check(const struct command *self, const struct recv_choices *choices, const struct operands *operands)
{
	bool to_stdout = operands->count;
	if (operands->count > 1 || (to_stdout && strcmp(operands->list[0], "-")))
		return complain(
			self, "unexpected argument '%s'; name the folder with --dir DIR, or give - for standard output",
			operands->list[!strcmp(operands->list[0], "-")]);
	if (to_stdout && choices->dir)
		return complain(self, "--dir and - exclude each other; give one of them");
	if (choices->common.retry_ms != TRANSFER_NO_RETRY_GIVEN && to_stdout)
		return complain(self, "--retry-for and - exclude each other: what went to standard output cannot be "
				      "continued; remove --retry-for");
	if (choices->common.retry_ms != TRANSFER_NO_RETRY_GIVEN && !choices->once)
		return complain(self, "--retry-for goes with --once; without --once, senders may connect again until "
				      "you stop it: remove --retry-for, or add --once");
	if (choices->common.open && (choices->common.ticket_file || choices->keep_ticket))
		return complain(self, "--open uses no ticket; remove --ticket-file and --keep-ticket");
	return 0;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct recv_choices choices = {.common.retry_ms = TRANSFER_NO_RETRY_GIVEN, .port = MOVER_DEFAULT_PORT};
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
	.summary = "receive files and folders from `roci send`",
	.usage = "[OPTION]... [-]",
	.examples = "  roci recv                                     receive into this folder; show a ticket for the "
		    "sender\n"
		    "  roci recv --dir incoming --once               receive one transfer, then stop\n"
		    "  roci recv - | tar x                           write one file or stream to standard output\n"
		    "  roci recv --port 0 --ticket-file ticket       use a free port; write the ticket to a file\n",
	.about = "The sender needs the receiver's one-time ticket. If a transfer is cut off, the same ticket resumes "
		 "it. A\n"
		 "file gets its name only after all of it has arrived, was checked, and is on the disk.\n",
	.manual = "roci-recv",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.operands = OPERANDS_CHOICE,
	.operand_values = operand_values,
	.run = run,
};
