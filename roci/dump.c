/* SPDX-License-Identifier: BSD-2-Clause */
/* roci dump: says in a line what each packet of a capture means. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dump.h"
#include "wire/plural.h"

#define EXIT_BROKEN 1

#define OFFSET(member) offsetof(struct dump_choices, member)

static const struct option_row options[] = {
	{.name = "run",
	 .group = "where from",
	 .help = "run a program on roci0, and show its packets while it\nruns: roci dump --run -- PROGRAM "
		 "[ARGUMENT]...\n"
		 "What it prints goes to standard error",
	 .kind = OPTION_FLAG,
	 .offset = OFFSET(run)},
	{.name = "pid",
	 .argument = "PID",
	 .group = "where from",
	 .help = "show the packets of a running program of yours that has\nroci0, from now on; `roci stats` lists them",
	 .kind = OPTION_NUMBER,
	 .offset = OFFSET(pid),
	 .min = 1,
	 .max = INT32_MAX},
	{.name = "qp",
	 .argument = "QPN",
	 .group = "which packets",
	 .help = "only those to or from this QP number: 0x11 or 17",
	 .kind = OPTION_TEXT,
	 .offset = OFFSET(qp)},
	{.name = "op",
	 .argument = "OP",
	 .group = "which packets",
	 .help = "send, write, read, atomic, atomic-write, flush, ack, nak,\ncm or cnp. Responses to a READ or atomic "
		 "belong to it",
	 .default_text = "any",
	 .kind = OPTION_CHOICE,
	 .offset = OFFSET(op),
	 .values = dump_op_names},
	{.name = "host",
	 .argument = "ADDRESS",
	 .group = "which packets",
	 .help = "only those to or from this IP address",
	 .kind = OPTION_TEXT,
	 .offset = OFFSET(host)},
	{.letter = 'e',
	 .name = "errors",
	 .group = "which packets",
	 .help = "only what went wrong: NAKs, what was sent again, came\ntwice or out of order, is damaged; rejected "
		 "connections;\ncongestion",
	 .kind = OPTION_FLAG,
	 .offset = OFFSET(errors)},
	{.letter = 'a',
	 .name = "all",
	 .group = "which packets",
	 .help = "also what is no RDMA: ARP, TCP, ...",
	 .kind = OPTION_FLAG,
	 .offset = OFFSET(all)},
	{.letter = 'p',
	 .name = "packets",
	 .group = "which packets",
	 .help = "only packets: not what programs post and complete, nor\nother records of a capture of roci0",
	 .kind = OPTION_FLAG,
	 .offset = OFFSET(packets)},
	{.letter = 'v',
	 .name = "verbose",
	 .group = "how they are shown",
	 .help = "every field of each packet",
	 .kind = OPTION_FLAG,
	 .offset = OFFSET(verbose)},
	{.letter = 's',
	 .name = "stats",
	 .group = "how they are shown",
	 .help = "no packets; at the end a summary of each conversation:\nmessages, bytes, what was sent again, round "
		 "trips",
	 .kind = OPTION_FLAG,
	 .offset = OFFSET(stats)},
	{.name = "json",
	 .group = "how they are shown",
	 .help = "print JSON, an object a line",
	 .kind = OPTION_FLAG,
	 .offset = OFFSET(json)},
	OPTION_HELP_ROW,
};

/* A run of the command. */
struct dump {
	const struct command *self;
	const struct dump_choices *choices;
	struct dump_filter filter;
	struct capture_tracker *tracker;
	struct capture_run records; /* that say the same, and are not shown yet */
	uint64_t begin_ns;          /* of the first packet or record */
	uint64_t hidden;
	bool shown;   /* a packet, or a record */
	bool nothing; /* was recorded of a program */
};

static void show_records(struct dump *d)
{
	if (d->records.count)
		dump_run(&d->records, d->begin_ns, d->choices->verbose);
	d->records.count = 0;
}

static void show_packet(struct dump *d, const struct capture_event *e)
{
	if (d->choices->stats)
		return;
	if (!dump_filter_admits(&d->filter, e)) {
		d->hidden += e->sort == CAPTURE_SORT_OTHER || e->sort == CAPTURE_SORT_FRAGMENT;
		return;
	}
	d->shown = true;
	show_records(d);
	if (d->choices->json)
		dump_json(e);
	else
		dump_line(e, d->begin_ns, d->choices->verbose);
}

static void take_packet(struct dump *d, const struct capture_record *record)
{
	struct capture_frame frame;
	struct capture_event e;

	if (!d->begin_ns)
		d->begin_ns = record->time_ns;
	capture_tracker_take(d->tracker, record, &frame, &e);
	do
		show_packet(d, &e);
	while (capture_tracker_more(d->tracker, &frame, &e));
}

/* A record of the embedded device, or a block of another program. */
static void take_block(struct dump *d, const struct capture_record *record)
{
	struct roci_record ours;

	if (record->kind == CAPTURE_LOCAL && record->local_type == ROCI_RECORD_BLOCK &&
	    roci_record_parse(record->bytes, record->len, record->swapped, &ours)) {
		if (!d->begin_ns)
			d->begin_ns = ours.time_ns;
		capture_tracker_record(d->tracker, &ours);
		if (d->choices->stats || !dump_filter_admits_record(&d->filter, &ours))
			return;
		d->shown = true;
		if (d->choices->json) {
			dump_json_record(&ours);
		} else if (!capture_run_add(&d->records, &ours)) {
			show_records(d);
			capture_run_add(&d->records, &ours);
		}
	} else if (d->choices->all && !d->choices->packets && !d->choices->json && !d->choices->stats) {
		show_records(d);
		dump_block(record, d->begin_ns);
	}
}

static void take_record(struct dump *d, const struct capture_record *record)
{
	if (record->kind == CAPTURE_PACKET)
		take_packet(d, record);
	else if (record->kind == CAPTURE_LOCAL || record->kind == CAPTURE_CUSTOM)
		take_block(d, record);
	else if (record->kind == CAPTURE_DROPPED)
		fprintf(stderr,
			"roci dump: %" PRIu64 " packet%s missing in the capture: it could not be written in time\n",
			record->dropped, record->dropped == 1 ? " is" : "s are");
}

/* Whether the options ask for some packets only. */
static bool is_choosy(const struct dump_filter *filter)
{
	return filter->errors || filter->by_qp || filter->by_host || filter->op;
}

/* What a reader of the output has to know beside it. */
static void print_notes(const struct dump *d, const char *name)
{
	const struct capture_totals *totals = capture_tracker_totals(d->tracker);

	if (!totals->packets)
		fprintf(stderr, "roci dump: there are no packets in %s\n", name);
	else if (!totals->roce && !totals->iwarp)
		fprintf(stderr, "roci dump: no packet of %s is RDMA; `roci dump --all` shows what they are\n", name);
	else if (is_choosy(&d->filter) && !d->shown && !d->choices->json && !d->choices->stats)
		fprintf(stderr, "roci dump: nothing in %s matches the options\n", name);
	else if (d->hidden && !is_choosy(&d->filter) && !d->choices->json)
		fprintf(stderr, "roci dump: --all also shows %" PRIu64 " packet%s of other protocols\n", d->hidden,
			roci_plural(d->hidden));
	if (totals->given_up)
		fprintf(stderr,
			"roci dump: there are more than %d conversations: those that were silent longest are given up "
			"(%" PRIu64 "); what goes on counts as a new one\n",
			CAPTURE_CONVERSATIONS, totals->given_up);
}

static volatile sig_atomic_t stopped;

static void on_stop(int signal)
{
	stopped = 1;
}

/* ^C ends the reading, and what was seen is summed up. A second one kills. Reads do not go on after the signal. */
static void catch_stop(void)
{
	struct sigaction action = {.sa_handler = on_stop, .sa_flags = (int)SA_RESETHAND};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

static int read_all(struct dump *d, FILE *file, const char *name)
{
	struct capture_reader *reader = capture_reader_create(file);
	capture_conversation_fn *show = d->choices->json ? dump_json_conversation : dump_conversation;
	enum capture_result result;
	struct capture_record record;
	uint64_t seen;
	bool live = file == stdin || d->choices->run || d->choices->pid;

	d->tracker = capture_tracker_create();
	if (!reader || !d->tracker) {
		complain(d->self, "out of memory");
		capture_reader_destroy(reader);
		return EXIT_BROKEN;
	}
	if (live && !d->choices->run)
		catch_stop();
	if (d->choices->stats)
		capture_tracker_on_given_up(d->tracker, show, NULL);
	while ((result = capture_reader_next(reader, &record)) == CAPTURE_RECORD) {
		take_record(d, &record);
		if (stopped || ferror(stdout) || (live && fflush(stdout)))
			break;
	}
	show_records(d);
	if (stopped)
		result = CAPTURE_END;
	if (d->choices->stats)
		capture_tracker_each(d->tracker, show, NULL);
	fflush(stdout);
	seen = capture_tracker_totals(d->tracker)->packets;
	if ((result != CAPTURE_BROKEN || seen) && !ferror(stdout)) /* else it was not read to its end */
		print_notes(d, name);
	d->nothing = result == CAPTURE_BROKEN && !seen && d->choices->run;
	if (result == CAPTURE_BROKEN && !d->nothing)
		complain(d->self, "%s: %s", name, capture_reader_why(reader));
	capture_tracker_destroy(d->tracker);
	capture_reader_destroy(reader);
	return result == CAPTURE_BROKEN ? EXIT_BROKEN : 0;
}

static int read_file(struct dump *d, const char *name)
{
	bool from_pipe = !strcmp(name, "-");
	FILE *file;
	int status;

	if (from_pipe && isatty(STDIN_FILENO))
		return complain(d->self,
				"'-' reads a capture from a pipe, and the terminal is none; try `tcpdump -w - | "
				"roci dump -`");
	file = from_pipe ? stdin : fopen(name, "re");
	if (!file)
		return complain(d->self, "%s: %s", name, strerror(errno));
	status = read_all(d, file, from_pipe ? "standard input" : name);
	if (!from_pipe)
		fclose(file);
	return status;
}

/* The exit status is that of the program. */
static int run_program(struct dump *d, struct operands *operands)
{
	struct dump_live live;
	int status;

	if (!operands->count)
		return complain(d->self, "--run: no program is given; usage: roci dump --run -- PROGRAM [ARGUMENT]...");
	status = dump_live_run(d->self, operands->list, &live);
	if (status)
		return status;
	read_all(d, live.file, operands->list[0]);
	status = dump_live_end(&live);
	if (d->nothing && status != EXIT_CANNOT_RUN && status != EXIT_NOT_FOUND)
		complain(d->self, "%s: nothing was recorded; did the program use roci0?", operands->list[0]);
	return status;
}

static int watch(struct dump *d)
{
	char name[32];
	FILE *file;
	int status = dump_watch(d->self, (long)d->choices->pid, &file);

	if (status)
		return status;
	snprintf(name, sizeof(name), "process %" PRIu64, d->choices->pid);
	status = read_all(d, file, name);
	fclose(file);
	return status;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct dump_choices choices = {0};
	struct dump d = {.self = self, .choices = &choices};
	struct operands operands;
	int status;

	if (!options_parse(self, argc, argv, &choices, &operands, &status))
		return status;
	status = dump_filter_parse(self, &choices, &d.filter);
	if (!status && choices.run)
		status = run_program(&d, &operands);
	else if (!status && choices.pid && !operands.count)
		status = watch(&d);
	else if (!status && choices.pid)
		status =
			complain(self, "--pid reads a process, and '%s' is a file: give one of them", operands.list[0]);
	else if (!status && operands.count != 1)
		status = complain(self, "%s; usage: roci dump %s",
				  operands.count ? "give one capture at a time" : "no capture is given", self->usage);
	else if (!status)
		status = read_file(&d, operands.list[0]);
	free(operands.list);
	return status;
}

const struct command dump_command = {
	.name = "dump",
	.summary = "say what each packet of a capture means",
	.usage = "[OPTION]... FILE|-|--pid PID|--run -- PROGRAM [ARGUMENT]...",
	.examples = "  roci run --capture ping.pcapng -- ibv_rc_pingpong -g 0\n"
		    "  roci dump ping.pcapng                     a line for each packet\n"
		    "  roci dump --errors ping.pcapng            only what went wrong\n"
		    "  roci dump --stats ping.pcapng             conversations and their round trips\n"
		    "  roci dump -v --qp 0x11 ping.pcapng        every field of one QP's packets\n"
		    "  roci dump --run -- ibv_rc_pingpong -g 0   the packets of a program, while it runs\n"
		    "  roci dump --pid 4711                      of one that runs already\n"
		    "  tcpdump -i eth0 -w - udp port 4791 | roci dump -\n",
	.about = "FILE is a pcap or pcapng file, of tcpdump, Wireshark or `roci run --capture`: Ethernet, VLAN, Linux\n"
		 "cooked or raw IP. Shown are RoCEv2, RoCEv1 and connection management; iWARP is named.\n"
		 "Where FILE tells the direction, each packet may be there twice: as it left, and as it arrived.\n\n"
		 "exit status: 0; 1 if FILE is damaged or cut off, 2 if an option is wrong or FILE cannot be opened;\n"
		 "with --run, that of PROGRAM.\n",
	.manual = "roci-dump",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.operands = OPERANDS_FILE,
	.run = run,
};
