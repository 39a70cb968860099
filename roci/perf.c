/* SPDX-License-Identifier: BSD-2-Clause */
/* roci perf: measures what the path to a machine gives where `roci serve` runs. */
#include "perf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "out_file.h"
#include "perf_counters.h"
#include "signals.h"
#include "target.h"
#include "tour/stop.h"
#include "units.h"

#define DEFAULT_SIZES "64,4K,64K,1M"
#define DEFAULT_DEPTH 128
#define DEFAULT_MS    1000

#define PERF_OFFSET(member) offsetof(struct perf_choices, member)

static const char *const op_names[] = {"send", "send-imm", "write", "write-imm", "read", "cas", "faa", NULL};
static const enum tour_op ops[] = {TOUR_SEND, TOUR_SEND_IMM, TOUR_WRITE, TOUR_WRITE_IMM, TOUR_READ, TOUR_CAS, TOUR_FAA};
static const char *const only_names[] = {"bandwidth", "latency", NULL};

static const struct option_row options[] = {
	{.name = "op",
	 .argument = "OP",
	 .group = "operation",
	 .help = "send, send-imm, write, write-imm, read, cas, faa",
	 .default_text = "write",
	 .kind = OPTION_CHOICE,
	 .offset = PERF_OFFSET(op),
	 .values = op_names},
	{.letter = 's',
	 .name = "size",
	 .argument = "SIZE",
	 .group = "operation",
	 .help = "bytes of a message: 4K; or A..B: all powers of two\nfrom A to B; or a list: 64,4K,1M. cas and faa "
		 "have 8",
	 .default_text = DEFAULT_SIZES,
	 .kind = OPTION_TEXT,
	 .offset = PERF_OFFSET(size)},
	{.name = "qps",
	 .argument = "N",
	 .group = "operation",
	 .help = "queue pairs that are used at the same time",
	 .default_text = "1",
	 .kind = OPTION_NUMBER,
	 .offset = PERF_OFFSET(qps),
	 .min = 1,
	 .max = PERF_MAX_QPS},
	{.name = "cqs",
	 .argument = "N",
	 .group = "operation",
	 .help = "completion queues that they share",
	 .default_text = "1",
	 .kind = OPTION_NUMBER,
	 .offset = PERF_OFFSET(cqs),
	 .min = 1,
	 .max = PERF_MAX_QPS},
	{.name = "depth",
	 .argument = "N",
	 .group = "operation",
	 .help = "messages of a queue pair that are under way",
	 .default_text = "128",
	 .kind = OPTION_NUMBER,
	 .offset = PERF_OFFSET(depth),
	 .min = 1,
	 .max = PERF_MAX_DEPTH},
	{.name = "bidir",
	 .group = "operation",
	 .help = "bandwidth in both directions at once",
	 .kind = OPTION_FLAG,
	 .offset = PERF_OFFSET(bidir)},
	{.name = "events",
	 .group = "operation",
	 .help = "sleep until a completion channel wakes the program;\nelse it polls",
	 .kind = OPTION_FLAG,
	 .offset = PERF_OFFSET(events)},
	{.name = "rate",
	 .argument = "RATE",
	 .group = "operation",
	 .help = "send no more than this: 500M, 2Gbit (each direction)",
	 .default_text = "no limit",
	 .kind = OPTION_RATE,
	 .offset = PERF_OFFSET(rate),
	 .min = 1},
	{.letter = 't',
	 .name = "time",
	 .argument = "TIME",
	 .group = "measurement",
	 .help = "how long each figure is measured; a tenth more is\nwarm-up",
	 .default_text = "1s",
	 .kind = OPTION_TIME,
	 .offset = PERF_OFFSET(time_ms),
	 .min = 10,
	 .max = PERF_MAX_TIME_MS},
	{.name = "only",
	 .argument = "WHAT",
	 .group = "measurement",
	 .help = "bandwidth, or latency; else both",
	 .kind = OPTION_CHOICE,
	 .offset = PERF_OFFSET(only),
	 .values = only_names},
	{.name = "tcp",
	 .group = "measurement",
	 .help = "measure TCP to the same address, too, and compare",
	 .kind = OPTION_FLAG,
	 .offset = PERF_OFFSET(tcp)},
	OPTION_SERVE_PORT_ROW("RDMA", PERF_OFFSET(port)),
	OPTION_DEVICE_ROW("RDMA", PERF_OFFSET(device)),
	{.name = "histogram",
	 .argument = "FILE",
	 .group = "output",
	 .help = "write latencies as an HdrHistogram log, for its\nviewers",
	 .kind = OPTION_FILE,
	 .offset = PERF_OFFSET(histogram)},
	{.name = "plot",
	 .argument = "FILE",
	 .group = "output",
	 .help = "draw the figures: FILE.html, a page to zoom in;\nFILE.svg, a picture",
	 .kind = OPTION_FILE,
	 .offset = PERF_OFFSET(plot)},
	{.name = "compare",
	 .group = "output",
	 .help = "measure nothing: say what changed between two files\nof --json",
	 .kind = OPTION_FLAG,
	 .offset = PERF_OFFSET(compare)},
	{.name = "json",
	 .group = "output",
	 .help = "print JSON, one object per line",
	 .kind = OPTION_FLAG,
	 .offset = PERF_OFFSET(json)},
	{.letter = 'q',
	 .name = "quiet",
	 .group = "output",
	 .help = "print figures only: no heading, no warnings",
	 .kind = OPTION_FLAG,
	 .offset = PERF_OFFSET(quiet)},
	{.letter = 'h', .name = "help", .group = "output", .help = "show this help", .kind = OPTION_HELP},
};

/* ---- sizes ---- */

static int one_size(const char *text, size_t len, uint32_t *size)
{
	char copy[24];
	uint64_t bytes;

	if (!len || len >= sizeof(copy))
		return -EINVAL;
	memcpy(copy, text, len);
	copy[len] = '\0';
	if (units_parse_size(copy, &bytes) || bytes < 1 || bytes > PERF_MAX_BYTES)
		return -EINVAL;
	*size = (uint32_t)bytes;
	return 0;
}

static int range(const char *text, const char *dots, uint32_t sizes[PERF_MAX_SIZES], unsigned *count)
{
	uint32_t from, to, size = 1;

	if (one_size(text, (size_t)(dots - text), &from) || one_size(dots + 2, strlen(dots + 2), &to) || from > to)
		return -EINVAL;
	while (size < from)
		size <<= 1;
	for (; size <= to; size <<= 1)
		sizes[(*count)++] = size;
	return *count ? 0 : -EINVAL;
}

/* Sizes as "4K", "64..1M" (powers of two) or "64,4K,1M". 0, or -EINVAL with *why. */
static int parse_sizes(const char *text, uint32_t sizes[PERF_MAX_SIZES], unsigned *count, const char **why)
{
	const char *dots = strstr(text, "..");

	*count = 0;
	*why = "a size is a number of bytes from 1 to 16M, as in 4K; 64..1M; or 64,4K,1M";
	if (dots)
		return range(text, dots, sizes, count);
	for (const char *at = text;; at++) {
		size_t len = strcspn(at, ",");
		if (*count == PERF_MAX_SIZES) {
			*why = "that are more sizes than 32";
			return -EINVAL;
		}
		if (one_size(at, len, &sizes[*count]))
			return -EINVAL;
		(*count)++;
		at += len;
		if (!*at)
			return 0;
	}
}

/* ---- figures ---- */

double perf_bandwidth(const struct perf *perf, const struct perf_row *row)
{
	const struct run_result *r = &row->result;
	double size = row->order.size, there;

	if (!r->ns)
		return 0;
	there = r->far_ns && perf->plan.bidir ? (double)r->far_messages * size / ((double)r->far_ns / 1e9) : 0;
	return (double)r->messages * size / ((double)r->ns / 1e9) + there;
}

double perf_cpu_per_gb(const struct perf_row *row, const struct perf_facts *facts)
{
	double bytes = (double)row->result.all_messages * row->order.size;

	return bytes > 0 ? (double)facts->spent.cpu_ns / bytes : 0;
}

const struct perf_row *perf_other(const struct perf *perf, const struct perf_row *row, enum perf_phase phase)
{
	for (unsigned i = 0; i < perf->row_count; i++) {
		if (perf->rows[i].order.phase == phase && perf->rows[i].order.size == row->order.size)
			return &perf->rows[i];
	}
	return NULL;
}

const char *perf_latency_text(const struct perf *perf)
{
	return perf_ping_pong(perf->plan.op, perf->plan.events) ? "half of a round trip" : "until the completion";
}

uint32_t perf_mtu(const struct perf *perf)
{
	const struct perf_near *n = &perf->near;

	return device_mtu_bytes(n->offer.mtu < n->end.port.mtu ? n->offer.mtu : n->end.port.mtu);
}

/* ---- measuring ---- */

static void progress(void *context, const struct run_result *so_far, uint64_t elapsed_ns)
{
	perf_show_progress(context, so_far, elapsed_ns);
}

/* Measures one figure. Returns whether to go on. */
static bool measure(struct perf *perf, enum perf_phase phase, uint32_t size, struct failure *f)
{
	const struct perf_choices *c = perf->choices;
	struct perf_row *row = &perf->rows[perf->row_count];
	struct run run = {.end = &perf->near.end,
			  .control = &perf->near.control,
			  .order = {.phase = phase,
				    .size = size,
				    .time_ms = (uint32_t)c->time_ms,
				    .rate = phase == PERF_BANDWIDTH ? c->rate : 0},
			  .device = perf->near.end.port.verbs->device->name,
			  .counters = perf_counters,
			  .progress = progress,
			  .context = perf};
	struct warnings warnings;
	int err;

	perf->order = row->order = run.order;
	err = run_near(&run, &row->result, f);
	bar_clear(&perf->bar);
	if (err || !row->result.messages) { /* ^C before anything counted is no figure */
		run_result_destroy(&row->result);
		return false;
	}
	perf->row_count++;
	warnings_judge(&warnings, &row->order, &row->result.near, &row->result.far, perf->near.same_host);
	perf_show_row(perf, row);
	perf_show_warnings(perf, &warnings);
	return !row->result.interrupted;
}

/* Bandwidth of all sizes, then latency of all: each is a table. */
static bool measure_all(struct perf *perf, struct failure *f)
{
	static const enum perf_phase phases[][2] = {{PERF_BANDWIDTH, PERF_TCP_BANDWIDTH},
						    {PERF_LATENCY, PERF_TCP_LATENCY}};
	const struct perf_choices *c = perf->choices;

	for (unsigned what = 0; what < 2; what++) {
		if (c->only != PERF_NOT_GIVEN && c->only != what)
			continue;
		for (unsigned i = 0; i < perf->size_count; i++) {
			/* TCP first, so that a row can tell the ratio */
			if (c->tcp && !measure(perf, phases[what][1], perf->sizes[i], f))
				return false;
			if (!measure(perf, phases[what][0], perf->sizes[i], f))
				return false;
		}
	}
	return true;
}

static int perf_connected(struct perf *perf, struct failure *f)
{
	unsigned each = (perf->choices->only == PERF_NOT_GIVEN ? 2 : 1) * (perf->choices->tcp ? 2 : 1);
	bool all;

	*f = (struct failure){.text = ""};
	perf->rows_planned = perf->size_count * each;
	perf->rows = calloc(perf->rows_planned, sizeof(*perf->rows));
	if (!perf->rows) {
		complain(perf->command, "out of memory");
		return PERF_CANNOT;
	}
	perf_show_start(perf);
	all = measure_all(perf, f);
	if (!all && *f->text)
		perf_show_failure(perf, f);
	if (perf->choices->json)
		perf_json_end(all);
	if (perf->choices->histogram && perf_write_histogram(perf))
		all = false;
	if (perf->choices->plot && perf->row_count && perf_write_plot(perf))
		all = false;
	for (unsigned i = 0; i < perf->row_count; i++)
		run_result_destroy(&perf->rows[i].result);
	free(perf->rows);
	return all ? PERF_GOOD : PERF_FAILED;
}

/* ---- the command ---- */

/* What files of before begin with. Any other file is left alone. */
static const char *const pictures[] = {
	"<!doctype html>\n<!-- SPDX-License-Identifier: BSD-2-Clause -->\n<!-- This file contains the D3 library",
	"<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"roci-perf\""};
static const char *const logs[] = {"#[Logged with roci perf "};

static int check_out(const struct perf *perf, const char *option, const char *path, const char *const beginnings[],
		     size_t count)
{
	int err = out_file_check(path, false);

	if (!err)
		err = out_file_ours(path, beginnings, count);
	if (err == -EEXIST)
		return complain(perf->command,
				"%s %s: the file is not one of `roci perf`, and is left as it is; choose another name",
				option, path);
	return err ? complain(perf->command, "%s %s: %s", option, path, strerror(-err)) : 0;
}

/* What the option table cannot check. Fills the plan. */
static int check(struct perf *perf, const struct operands *operands)
{
	const struct perf_choices *c = perf->choices;
	enum tour_op op = c->op == PERF_NOT_GIVEN ? TOUR_WRITE : ops[c->op];
	bool atomic = tour_op_atomic(op);
	const char *why;
	int err;

	if (c->plot && !perf_plot_can(c->plot))
		return complain(perf->command, "--plot %s: call it FILE.html, or FILE.svg", c->plot);
	if (c->plot && (err = check_out(perf, "--plot", c->plot, pictures, sizeof(pictures) / sizeof(pictures[0]))))
		return err;
	if (c->histogram && (err = check_out(perf, "--histogram", c->histogram, logs, sizeof(logs) / sizeof(logs[0]))))
		return err;
	if (operands->count != 1)
		return complain(perf->command, "name one machine where `roci serve` runs; usage: roci perf %s",
				perf->command->usage);
	if (parse_sizes(c->size ? c->size : atomic ? "8" : DEFAULT_SIZES, perf->sizes, &perf->size_count, &why))
		return complain(perf->command, "--size %s: %s", c->size, why);
	perf->plan = (struct perf_plan){.op = op,
					.bidir = c->bidir,
					.events = c->events,
					.qps = (unsigned)c->qps,
					.cqs = (unsigned)c->cqs,
					.depth = (unsigned)c->depth};
	for (unsigned i = 0; i < perf->size_count; i++)
		perf->plan.size_max = perf->sizes[i] > perf->plan.size_max ? perf->sizes[i] : perf->plan.size_max;
	if (atomic && (perf->size_count > 1 || perf->plan.size_max != TOUR_ATOMIC_BYTES))
		return complain(perf->command, "--op %s is on 8 bytes; leave --size out", tour_op_names[op]);
	if (c->cqs > c->qps)
		return complain(perf->command, "--cqs %u: more completion queues than queue pairs; use --qps %u, too",
				perf->plan.cqs, perf->plan.cqs);
	if (perf->plan.qps * perf->plan.depth > PERF_MAX_REQUESTS)
		return complain(
			perf->command, "--qps %u with --depth %u: at most %u messages can be under way; use --depth %u",
			perf->plan.qps, perf->plan.depth, PERF_MAX_REQUESTS, PERF_MAX_REQUESTS / perf->plan.qps);
	if (perf_memory(&perf->plan) > PERF_MAX_MEMORY)
		return complain(
			perf->command,
			"--qps %u with messages of %u bytes needs %llu MiB at each end, and the limit is %u MiB; "
			"use fewer or a smaller --size",
			perf->plan.qps, perf->plan.size_max, (unsigned long long)perf_memory(&perf->plan) >> 20,
			PERF_MAX_MEMORY >> 20);
	return 0;
}

static int begin(struct perf *perf, const char *host)
{
	const struct perf_choices *c = perf->choices;
	struct target target = {0};
	struct failure failure;
	const char *why_not;
	char why[512];
	int status = PERF_CANNOT;

	if (target_parse(host, &target, &why_not) || target.ticket_file)
		return complain(perf->command, "'%s': %s", host,
				target.ticket_file ? "this names a ticket, not a host" : why_not);
	if (target.port > TOUR_MAX_PORT)
		return complain(perf->command, "'%s': the port must be a number from 1 to %u", host, TOUR_MAX_PORT);
	if (device_choose(perf->command, c->device, &perf->device, why))
		return complain(perf->command, "%s", why);
	if (tour_stop_init())
		return complain(perf->command, "%s", strerror(errno));
	signals_catch(tour_stop);
	perf->target = (struct dial_target){.host = target.host,
					    .port = target.port ? target.port : (uint16_t)c->port,
					    .device = perf->device.name};
	bar_init(&perf->bar, stderr);
	if (!perf_near_open(&perf->near, &perf->target, &perf->plan, &failure))
		status = perf_connected(perf, &failure);
	else if (!tour_stopped())
		perf_show_failure(perf, &failure);
	perf_near_close(&perf->near);
	return status;
}

static int compare(const struct command *self, const struct perf_choices *choices, const struct operands *operands)
{
	if (operands->count == 2)
		return perf_compare(self, choices, operands->list);
	return complain(self, "--compare needs two files of `roci perf --json`: the one before, and the one after");
}

static int run(const struct command *self, int argc, char **argv)
{
	struct perf_choices choices = {.op = PERF_NOT_GIVEN,
				       .only = PERF_NOT_GIVEN,
				       .qps = 1,
				       .cqs = 1,
				       .depth = DEFAULT_DEPTH,
				       .time_ms = DEFAULT_MS,
				       .port = TOUR_DEFAULT_PORT};
	struct perf *perf = calloc(1, sizeof(*perf));
	struct operands operands;
	int status;

	if (!perf)
		return complain(self, "out of memory");
	perf->command = self;
	perf->choices = &choices;
	if (options_parse(self, argc, argv, &choices, &operands, &status)) {
		if (choices.compare)
			status = compare(self, &choices, &operands);
		else if (!(status = check(perf, &operands)))
			status = begin(perf, operands.list[0]);
		free(operands.list);
	}
	free(perf);
	return status;
}

const struct command perf_command = {
	.name = "perf",
	.summary = "measure bandwidth and latency to another machine",
	.usage = "[OPTION]... HOST[:PORT] | --compare BEFORE.json AFTER.json",
	.examples = "  roci perf 10.0.0.7                      to `roci serve` there: WRITEs of four sizes\n"
		    "  roci perf --tcp 10.0.0.7                and TCP beside, with the ratio\n"
		    "  roci perf --op send --size 8..1M 10.0.0.7\n"
		    "  roci perf --op read --qps 4 --cqs 2 --only bandwidth --time 5s 10.0.0.7\n"
		    "  roci perf --tcp --size 8..1M --plot perf.html 10.0.0.7\n"
		    "  roci perf --json 10.0.0.7 >before.json  and later again, >after.json; then:\n"
		    "  roci perf --compare before.json after.json\n",
	.about = "HOST is a machine where `roci serve` runs. The latency of SENDs and WRITEs is half of a round trip, "
		 "in\n"
		 "which the other end answers with the same; that of READ, CAS, FAA, and of WRITE with --events, is "
		 "the\n"
		 "time until the completion. ^C ends it, and prints what was measured so far.\n\n"
		 "exit status: 0 if all was measured, 1 if not all (or if --compare finds a figure that is worse),\n"
		 "2 if nothing could be tried.\n",
	.manual = "roci-perf",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.operands = OPERANDS_HOST,
	.run = run,
};
