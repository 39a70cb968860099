/* SPDX-License-Identifier: BSD-2-Clause */
/* roci ping: does any RDMA operation, again and again, with a machine where `roci serve` runs. */
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "ladder_run.h"
#include "own_address.h"
#include "ping.h"
#include "signals.h"
#include "target.h"
#include "tour/clock.h"
#include "tour/endpoint.h"
#include "tour/far.h"
#include "tour/record.h"
#include "tour/stop.h"

#define DEFAULT_BYTES 64

#define PING_OFFSET(member) offsetof(struct ping_choices, member)

static const struct option_row options[] = {
	{.name = "op",
	 .argument = "OP",
	 .group = "operation",
	 .help = "send, send-imm, send-inv, write, write-imm, read,\ncas (COMPARE & SWAP), faa (FETCH & ADD),\n"
		 "atomic-write, flush; or all: what both devices can do",
	 .default_text = "send",
	 .kind = OPTION_CHOICE,
	 .offset = PING_OFFSET(op),
	 .values = tour_op_names},
	{.name = "qp",
	 .argument = "TYPE",
	 .group = "operation",
	 .help = "type of the queue pair: rc, uc or ud",
	 .default_text = "rc",
	 .kind = OPTION_CHOICE,
	 .offset = PING_OFFSET(qp),
	 .values = tour_qp_names},
	{.name = "connect",
	 .argument = "WAY",
	 .group = "operation",
	 .help = "cm: by rdma_cm; socket: by bare verbs and a TCP socket",
	 .default_text = "cm",
	 .kind = OPTION_CHOICE,
	 .offset = PING_OFFSET(connect),
	 .values = tour_way_names},
	{.name = "wait",
	 .argument = "HOW",
	 .group = "operation",
	 .help = "poll: poll the CQ in a loop; event: a thread sleeps\nuntil a completion channel wakes it",
	 .default_text = "poll",
	 .kind = OPTION_CHOICE,
	 .offset = PING_OFFSET(wait),
	 .values = tour_wait_names},
	{.letter = 's',
	 .name = "size",
	 .argument = "SIZE",
	 .group = "operation",
	 .help = "bytes of an operation; atomic operations have 8",
	 .default_text = "64",
	 .kind = OPTION_SIZE,
	 .offset = PING_OFFSET(size),
	 .max = TOUR_MAX_BYTES},
	{.name = "sge",
	 .argument = "N",
	 .group = "operation",
	 .help = "gather the bytes from N pieces of memory, or scatter\nthem there",
	 .default_text = "1",
	 .kind = OPTION_NUMBER,
	 .offset = PING_OFFSET(sge),
	 .min = 1,
	 .max = ENDPOINT_MAX_SGES},
	{.name = "inline",
	 .group = "operation",
	 .help = "put the bytes into the work request",
	 .kind = OPTION_FLAG,
	 .offset = PING_OFFSET(inline_data)},
	{.name = "verify",
	 .group = "operation",
	 .help = "check that the right bytes arrived (default)",
	 .kind = OPTION_FLAG,
	 .offset = PING_OFFSET(verify)},
	{.name = "no-verify",
	 .group = "operation",
	 .help = "do not check it",
	 .kind = OPTION_FLAG,
	 .offset = PING_OFFSET(no_verify)},
	{.letter = 'c',
	 .name = "count",
	 .argument = "N",
	 .group = "how often",
	 .help = "end after N operations; with --op all: N of each",
	 .default_text = "until ^C",
	 .kind = OPTION_NUMBER,
	 .offset = PING_OFFSET(count),
	 .min = 1,
	 .max = 1000000000},
	{.letter = 'i',
	 .name = "interval",
	 .argument = "TIME",
	 .group = "how often",
	 .help = "time between two operations; 0: none",
	 .default_text = "1s",
	 .kind = OPTION_TIME,
	 .offset = PING_OFFSET(interval_ms),
	 .max = 30000},
	{.letter = 'W',
	 .name = "timeout",
	 .argument = "TIME",
	 .group = "how often",
	 .help = "on UC and UD, where nobody repeats what is lost: how\nlong an answer may take",
	 .default_text = "1s",
	 .kind = OPTION_TIME,
	 .offset = PING_OFFSET(timeout_ms),
	 .min = 1,
	 .max = 60000},
	{.name = "loopback",
	 .group = "RDMA",
	 .help = "be both ends: two QPs in one process. No HOST, no\n`roci serve`",
	 .kind = OPTION_FLAG,
	 .offset = PING_OFFSET(loopback)},
	OPTION_SERVE_PORT_ROW("RDMA", PING_OFFSET(port)),
	OPTION_DEVICE_ROW("RDMA", PING_OFFSET(device)),
	{.name = "steps",
	 .group = "output",
	 .help = "tell the steps of each operation at both ends",
	 .kind = OPTION_FLAG,
	 .offset = PING_OFFSET(steps)},
	{.name = "ladder",
	 .argument = "FILE",
	 .group = "output",
	 .help = "at the end draw what this end did as a page: packets,\nposts, completions; both ends with "
		 "--loopback. See\n`roci "
		 "ladder`",
	 .kind = OPTION_FILE,
	 .offset = PING_OFFSET(ladder)},
	{.name = "json",
	 .group = "output",
	 .help = "print events as JSON, one object per line",
	 .kind = OPTION_FLAG,
	 .offset = PING_OFFSET(json)},
	{.letter = 'q',
	 .name = "quiet",
	 .group = "output",
	 .help = "print only the summary, and errors",
	 .kind = OPTION_FLAG,
	 .offset = PING_OFFSET(quiet)},
	{.letter = 'h', .name = "help", .group = "output", .help = "show this help", .kind = OPTION_HELP},
};

struct tour_plan ping_plan(const struct ping_choices *choices, enum tour_op op, enum tour_qp qp, enum tour_way way,
			   enum tour_wait wait)
{
	bool atomic = tour_op_atomic(op);

	return (struct tour_plan){
		.op = op,
		.qp = qp,
		.way = way,
		.wait = wait,
		.inline_data = choices->inline_data && tour_op_carries(op),
		.verify = !choices->no_verify,
		.steps = choices->steps,
		.answer_ms = (uint32_t)choices->timeout_ms,
		.sges = atomic ? 1 : (unsigned)choices->sge,
		.size = atomic                            ? TOUR_ATOMIC_BYTES
			: choices->size == PING_NOT_GIVEN ? DEFAULT_BYTES
							  : (uint32_t)choices->size,
	};
}

/* ---- one kind of operation, again and again ---- */

/* Does one. Returns whether the connection is good for another. */
static bool once(const struct ping *ping, struct near *near, const struct tour_plan *plan, uint32_t seq,
		 struct summary *summary)
{
	struct near_result result;
	struct near_steps steps;
	struct failure failure;

	near_run(near, seq, &result);
	if (!result.good && tour_stopped())
		return false; /* it was interrupted, and has not failed */
	if (result.good)
		summary_add(summary, result.ns);
	else
		summary_add_failure(summary);
	ping_show_operation(ping, plan, seq, &result);
	if (!result.good || !plan->steps)
		return !result.over;
	if (!near_steps(near, &steps, &failure)) {
		ping_show_steps(ping, plan, near_dial(near), seq, &steps);
		return true;
	}
	ping_show_failure(ping, &failure);
	return false;
}

static int repeat(const struct ping *ping, struct near *near, const struct tour_plan *plan)
{
	const struct ping_choices *choices = ping->choices;
	uint64_t count = choices->count ? choices->count : UINT32_MAX - 1, next_ns = tour_now_ns();
	struct summary summary;
	bool lost = false;

	if (summary_init(&summary)) {
		complain(ping->command, "out of memory");
		return PING_CANNOT;
	}
	ping_show_start(ping, plan, near_dial(near));
	for (uint32_t seq = 1; seq <= count && !tour_stopped(); seq++) {
		if (!once(ping, near, plan, seq, &summary))
			break;
		next_ns += choices->interval_ms * 1000000;
		lost = seq < count && near_wait(near, next_ns);
		if (lost)
			break;
	}
	if (lost) {
		struct failure gone;
		fail(&gone, -ECONNRESET, "%s has closed the connection", near_dial(near)->address);
		ping_show_failure(ping, &gone);
	}
	ping_show_summary(ping, &summary);
	lost = lost || summary.failed || !summary.tried;
	summary_destroy(&summary);
	return lost ? PING_FAILED : PING_GOOD;
}

static int ping_one(const struct ping *ping)
{
	const struct ping_choices *c = ping->choices;
	struct tour_plan plan = ping_plan(c, c->op == PING_NOT_GIVEN ? TOUR_SEND : (enum tour_op)c->op,
					  c->qp == PING_NOT_GIVEN ? TOUR_RC : (enum tour_qp)c->qp,
					  c->connect == PING_NOT_GIVEN ? TOUR_CM : (enum tour_way)c->connect,
					  c->wait == PING_NOT_GIVEN ? TOUR_POLL : (enum tour_wait)c->wait);
	struct failure failure;
	struct near *near;
	int status = PING_CANNOT;

	if (!near_open(&near, &ping->target, &plan, &failure))
		status = repeat(ping, near, &plan);
	else if (!tour_stopped())
		ping_show_failure(ping, &failure);
	near_close(near);
	return status;
}

/* ---- both ends in one process ---- */

static void *serve(void *far)
{
	far_run(far);
	return NULL;
}

static int ping_target(struct ping *ping)
{
	return ping->choices->op == TOUR_OPS ? ping_all(ping) : ping_one(ping);
}

static int ping_loopback(struct ping *ping)
{
	char address[INET6_ADDRSTRLEN];
	struct far_options far_options = {
		.bind_address = address, .device = ping->device.name, .embedded = ping->device.embedded};
	struct failure failure;
	struct far *far;
	pthread_t thread;
	int status = PING_CANNOT;

	own_address(&ping->device, address);
	if (target_lacks_interface(address))
		strcpy(address, "127.0.0.1");
	if (far_open(&far, &far_options, &failure)) {
		ping_show_failure(ping, &failure);
		return status;
	}
	ping->target.host = address;
	ping->target.port = far_port(far);
	if (!pthread_create(&thread, NULL, serve, far)) {
		status = ping_target(ping);
		far_end(far);
		pthread_join(thread, NULL);
	}
	far_close(far);
	return status;
}

/* ---- the command ---- */

/* What the option table cannot check. */
static int check(const struct command *self, const struct ping_choices *c, const struct operands *operands)
{
	bool given = c->size != PING_NOT_GIVEN;
	struct tour_refusal refusal = {0};

	if (operands->count > 1 || operands->count == c->loopback)
		return complain(
			self,
			c->loopback
				? "with --loopback there is no HOST"
				: "name one machine where `roci serve` runs, or give --loopback; usage: roci ping %s",
			self->usage);
	if (c->verify && c->no_verify)
		return complain(self, "--verify and --no-verify contradict each other; leave one of them out");
	if (c->op == TOUR_OPS && c->steps)
		return complain(self, "--steps needs one operation; use --op send, for instance");
	if (c->sge > 1 && c->sge > (given ? c->size : DEFAULT_BYTES))
		return complain(self, "--sge %llu needs at least as many bytes; use a larger --size",
				(unsigned long long)c->sge);
	if (c->op >= TOUR_OPS)
		return 0;
	if (tour_op_atomic((enum tour_op)c->op) && ((given && c->size != TOUR_ATOMIC_BYTES) || c->sge > 1))
		return complain(self, "--op %s is on 8 bytes in one piece; leave --size and --sge out",
				tour_op_names[c->op]);
	if (c->inline_data && !tour_op_carries((enum tour_op)c->op))
		return complain(self, "--inline does nothing for --op %s: its request carries no data of this end",
				tour_op_names[c->op]);
	refusal = tour_refuse((enum tour_op)c->op, c->qp == PING_NOT_GIVEN ? TOUR_RC : (enum tour_qp)c->qp, TOUR_CM,
			      TOUR_CAPS_ALL, TOUR_CAPS_ALL);
	if (refusal.reason)
		return complain(self, "--op %s on --qp %s cannot be: %s", tour_op_names[c->op], tour_qp_names[c->qp],
				refusal.reason);
	return 0;
}

/* Opens what both kinds of target need, and goes on. */
static int begin(struct ping *ping, const char *host)
{
	const struct ping_choices *c = ping->choices;
	struct target target = {0};
	const char *why_not;
	char why[512];

	if (host && (target_parse(host, &target, &why_not) || target.ticket_file))
		return complain(ping->command, "'%s': %s", host,
				target.ticket_file ? "this names a ticket, not a host" : why_not);
	if (target.port > TOUR_MAX_PORT)
		return complain(ping->command, "'%s': the port must be a number from 1 to %u", host, TOUR_MAX_PORT);
	if (device_choose(ping->command, c->device, &ping->device, why)) {
		complain(ping->command, "%s", why);
		return PING_CANNOT;
	}
	if (tour_stop_init() || (c->steps && ping->device.embedded && record_open())) {
		complain(ping->command, "%s", strerror(errno));
		return PING_CANNOT;
	}
	signals_catch(tour_stop);
	ping->target = (struct dial_target){.host = target.host,
					    .port = target.port ? target.port : (uint16_t)c->port,
					    .device = ping->device.name};
	return host ? ping_target(ping) : ping_loopback(ping);
}

static int run(const struct command *self, int argc, char **argv)
{
	struct ping_choices choices = {.op = PING_NOT_GIVEN,
				       .qp = PING_NOT_GIVEN,
				       .connect = PING_NOT_GIVEN,
				       .wait = PING_NOT_GIVEN,
				       .size = PING_NOT_GIVEN,
				       .sge = 1,
				       .interval_ms = 1000,
				       .timeout_ms = 1000,
				       .port = TOUR_DEFAULT_PORT};
	struct ping ping = {.command = self, .choices = &choices};
	struct operands operands;
	int status;

	if (!options_parse(self, argc, argv, &choices, &operands, &status))
		return status;
	status = check(self, &choices, &operands);
	if (!status && choices.ladder)
		status = ladder_draw_self(self, choices.ladder, choices.device != NULL);
	else if (!status)
		status = begin(&ping, operands.count ? operands.list[0] : NULL);
	free(operands.list);
	return status;
}

const struct command ping_command = {
	.name = "ping",
	.summary = "do any RDMA operation with another machine, and time it",
	.usage = "[OPTION]... HOST[:PORT] | --loopback",
	.examples = "  roci ping 10.0.0.7                      SENDs, one a second, to `roci serve` there\n"
		    "  roci ping --op write --size 4096 10.0.0.7\n"
		    "  roci ping --op all 10.0.0.7             every operation, on each type of QP, in each way\n"
		    "  roci ping --loopback --steps -c 1       the ten steps of a SEND, with both ends here\n"
		    "  roci ping --loopback --ladder ping.html -c 3\n"
		    "  roci ping --op read --connect socket --wait event 10.0.0.7\n",
	.about =
		"HOST is a machine where `roci serve` runs. The time of a SEND, and of a WRITE with immediate data, "
		"ends\n"
		"when the answer of the program there has come. That of a WRITE, READ, FLUSH or atomic operation ends\n"
		"with its completion: there, only the device works for it.\n\n"
		"exit status: 0 if each operation succeeded, 1 if one failed, 2 if none could be tried.\n",
	.manual = "roci-ping",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.operands = OPERANDS_HOST,
	.run = run,
};
