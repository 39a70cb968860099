/* SPDX-License-Identifier: BSD-2-Clause */
/* roci serve: the far end of `roci ping` and `roci perf`. */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "device.h"
#include "explain_say.h"
#include "json_line.h"
#include "own_address.h"
#include "perf/far.h"
#include "perf_counters.h"
#include "signals.h"
#include "target.h"
#include "tour/far.h"
#include "tour/record.h"
#include "tour/stop.h"
#include "perf/perf.h"
#include "wire/plural.h"

struct serve_choices {
	const char *device, *bind;
	uint64_t port;
	bool record, json, quiet;
};

#define SERVE_OFFSET(member) offsetof(struct serve_choices, member)

static const struct option_row options[] = {
	{.letter = 'p',
	 .name = "port",
	 .argument = "PORT",
	 .group = "options",
	 .help = "port of rdma_cm; TCP has the next one",
	 .default_text = "18517",
	 .kind = OPTION_NUMBER,
	 .offset = SERVE_OFFSET(port),
	 .min = 1,
	 .max = TOUR_MAX_PORT},
	{.name = "bind",
	 .argument = "ADDRESS",
	 .group = "options",
	 .help = "use only this address of this machine",
	 .kind = OPTION_TEXT,
	 .offset = SERVE_OFFSET(bind)},
	OPTION_DEVICE_ROW("options", SERVE_OFFSET(device)),
	{.name = "record",
	 .group = "options",
	 .help = "let roci0 record packets and what it does for them,\nin memory, so that `roci ping --steps` can tell "
		 "when",
	 .kind = OPTION_FLAG,
	 .offset = SERVE_OFFSET(record)},
	{.name = "json",
	 .group = "options",
	 .help = "print events as JSON, one object per line",
	 .kind = OPTION_FLAG,
	 .offset = SERVE_OFFSET(json)},
	{.letter = 'q',
	 .name = "quiet",
	 .group = "options",
	 .help = "print errors only",
	 .kind = OPTION_FLAG,
	 .offset = SERVE_OFFSET(quiet)},
	OPTION_HELP_ROW,
};

struct server {
	const struct command *command;
	const struct serve_choices *choices;
	struct device_choice device;
	struct perf_far *perf; /* the far end of `roci perf` */
};

static const char *event_name(enum far_event_type type)
{
	static const char *const names[] = {"connected", "disconnected", "refused", "problem"};
	return names[type];
}

static void report_json(const struct far_event *event)
{
	json_t *object = json_line(event_name(event->type));

	json_object_set_new(object, "client", json_integer(event->client));
	json_object_set_new(object, "address", json_string(event->address));
	json_object_set_new(object, "connect", json_string(tour_way_names[event->way]));
	if (event->request) {
		json_object_set_new(object, "op", json_string(tour_op_names[event->request->op]));
		json_object_set_new(object, "qp", json_string(tour_qp_names[event->request->qp]));
		json_object_set_new(object, "bytes", json_integer(event->request->size));
	}
	if (event->type == FAR_DISCONNECTED)
		json_object_set_new(object, "answers", json_integer((json_int_t)event->messages));
	if (event->text) {
		json_object_set_new(object, "text", json_string(event->text));
		explain_say_json(object, explain_of_text(event->text));
	}
	json_line_print(object, stdout);
}

/* Called for each event of the far end. */
static void report(void *context, const struct far_event *event)
{
	const struct server *server = context;

	if (server->choices->json) {
		report_json(event);
		return;
	}
	if (event->type == FAR_PROBLEM || event->type == FAR_REFUSED) {
		complain(server->command, "[%u] %s: %s%s", event->client, event->address,
			 event->type == FAR_REFUSED ? "refused: " : "", event->text);
		explain_say(stderr, explain_of_text(event->text));
		return;
	}
	if (server->choices->quiet)
		return;
	if (event->type == FAR_CONNECTED)
		printf("[%u] %s: connected by %s, %s of %u byte%s on %s\n", event->client, event->address,
		       event->way == TOUR_CM ? "rdma_cm" : "socket", tour_op_title(event->request->op),
		       event->request->size, roci_plural(event->request->size), tour_qp_names[event->request->qp]);
	else if (event->messages)
		printf("[%u] %s: disconnected; this program has answered %llu time%s\n", event->client, event->address,
		       (unsigned long long)event->messages, roci_plural(event->messages));
	else /* one-sided operations: this program sees nothing of them */
		printf("[%u] %s: disconnected\n", event->client, event->address);
	fflush(stdout);
}

/* ---- clients of `roci perf` ---- */

static void report_perf_json(enum perf_far_event event, unsigned client, const char *address,
			     const struct perf_plan *plan, const char *text)
{
	json_t *object = json_line(event_name((enum far_event_type)event));

	json_object_set_new(object, "client", json_integer(client));
	json_object_set_new(object, "address", json_string(address));
	json_object_set_new(object, "measures", json_true());
	if (plan) {
		json_object_set_new(object, "op", json_string(tour_op_names[plan->op]));
		json_object_set_new(object, "qps", json_integer(plan->qps));
		json_object_set_new(object, "bytes", json_integer(plan->size_max));
	}
	if (text) {
		json_object_set_new(object, "text", json_string(text));
		explain_say_json(object, explain_of_text(text));
	}
	json_line_print(object, stdout);
}

/* Called by the threads that measure. */
static void report_perf(void *context, enum perf_far_event event, unsigned client, const char *address,
			const struct perf_plan *plan, const char *text)
{
	const struct server *server = context;

	if (server->choices->json)
		report_perf_json(event, client, address, plan, text);
	else if (event == PERF_FAR_PROBLEM || event == PERF_FAR_REFUSED)
		complain(server->command, "[%u] %s: %s%s", client, address,
			 event == PERF_FAR_REFUSED ? "refused: " : "", text);
	else if (!server->choices->quiet && event == PERF_FAR_CONNECTED)
		printf("[%u] %s: measures %s of up to %u byte%s, %u queue pair%s\n", client, address,
		       tour_op_title(plan->op), plan->size_max, roci_plural(plan->size_max), plan->qps,
		       roci_plural(plan->qps));
	else if (!server->choices->quiet)
		printf("[%u] %s: disconnected\n", client, address);
	fflush(stdout);
}

static void adopt_perf(void *context, int fd, unsigned client, const char *address, const void *bytes, size_t len)
{
	const struct server *server = context;

	perf_far_adopt(server->perf, fd, client, address, bytes, len);
}

/* ---- the command ---- */

static void introduce(const struct server *server, const struct far *far)
{
	const struct serve_choices *c = server->choices;
	char address[INET6_ADDRSTRLEN], peer[256];
	const char *host = c->bind ? c->bind : address, *device = server->device.name, *means;

	own_address(&server->device, address);
	if (server->device.embedded)
		device = EMBEDDED_DEVICE;
	if (c->json) {
		json_t *object = json_line("listening");
		json_object_set_new(object, "address", json_string(host));
		json_object_set_new(object, "port", json_integer(far_port(far)));
		json_object_set_new(object, "tcp_port", json_integer(tour_tcp_port(far_port(far))));
		json_object_set_new(object, "device", device ? json_string(device) : json_null());
		json_object_set_new(object, "embedded", json_boolean(server->device.embedded));
		json_object_set_new(object, "lacks", json_string(far_lacks(far)));
		json_line_print(object, stdout);
		return;
	}
	if (*far_lacks(far))
		complain(server->command, "does not listen for %s", far_lacks(far));
	if (c->quiet)
		return;
	printf("listening on %s, port %u of rdma_cm and %u of TCP", c->bind ? c->bind : "all addresses", far_port(far),
	       tour_tcp_port(far_port(far)));
	if (device)
		printf(", device %s", device);
	if (server->device.embedded)
		printf(" (embedded: %s)", server->device.reason);
	means = target_of_peer(host, peer, sizeof(peer));
	printf("\non %s machine, run:\n  roci ping %s", target_is_loopback(host) ? "this" : "another", peer);
	if (far_port(far) != TOUR_DEFAULT_PORT)
		printf(" --port %u", far_port(far));
	putchar('\n');
	if (means)
		printf("(%s)\n", means);
	fflush(stdout);
}

/* It does not listen, and ends. */
static int cannot(const struct server *server, const char *text, const struct explanation *why)
{
	if (server->choices->json) {
		json_t *object = json_line("failure");
		json_object_set_new(object, "text", json_string(text));
		explain_say_json(object, why);
		json_line_print(object, stdout);
	}
	complain(server->command, "%s", text);
	explain_say(stderr, why);
	return EXIT_USAGE;
}

static int serve(struct server *server)
{
	const struct serve_choices *c = server->choices;
	struct far_options far_options = {
		.bind_address = c->bind,
		.port = (uint16_t)c->port,
		.device = server->device.name,
		.embedded = server->device.embedded,
		.report = report,
		.wants = perf_far_wants,
		.adopt = adopt_perf,
		.context = server,
	};
	struct perf_far_options perf_options = {.counters = perf_counters, .report = report_perf, .context = server};
	struct failure failure;
	struct far *far;
	char why[512];

	if (device_choose(server->command, c->device, &server->device, why))
		return cannot(server, why, NULL);
	far_options.device = server->device.name;
	far_options.embedded = server->device.embedded;
	perf_options.device = server->device.name;
	perf_options.embedded = server->device.embedded;
	if (c->record && !server->device.embedded)
		return cannot(server,
			      "only the embedded device has a record; use --device embedded, or leave --record out",
			      NULL);
	if (tour_stop_init() || (c->record && record_open()))
		return cannot(server, strerror(errno), NULL);
	signals_catch(tour_stop);
	if (far_open(&far, &far_options, &failure))
		return cannot(server, failure.text, explain_of_failure(&failure));
	server->perf = perf_far_create(&perf_options);
	if (!server->perf) {
		far_close(far);
		return cannot(server, "out of memory", NULL);
	}
	introduce(server, far);
	far_run(far);
	perf_far_destroy(server->perf);
	far_close(far);
	return 0;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct serve_choices choices = {.port = TOUR_DEFAULT_PORT};
	struct server server = {.command = self, .choices = &choices};
	struct operands operands;
	int status;

	if (!options_parse(self, argc, argv, &choices, &operands, &status))
		return status;
	if (operands.count)
		status =
			complain(self, "'%s' is no option; to choose an address, use --bind ADDRESS", operands.list[0]);
	else if (choices.bind && target_interface_wrong(choices.bind))
		status = complain(self, "--bind %s: %s", choices.bind, target_interface_wrong(choices.bind));
	else
		status = serve(&server);
	free(operands.list);
	return status;
}

const struct command serve_command = {
	.name = "serve",
	.summary = "wait for `roci ping` and `roci perf` of other machines",
	.usage = "[OPTION]...",
	.examples = "  roci serve\n"
		    "  roci serve --bind 10.0.0.7 --port 4000\n"
		    "  roci serve --record                     for `roci ping --steps`\n",
	.about = "It answers many clients at once, until ^C. Whoever reaches the port may use it: a client gets memory "
		 "of\n"
		 "its own, 8 MiB at most (64 MiB for `roci perf`; 8 of these at once), and no other.\n\n"
		 "exit status: 0 after ^C, 2 if it cannot listen.\n",
	.manual = "roci-serve",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.operands = OPERANDS_NONE,
	.run = run,
};
