/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many connections: a server, and a client that opens them in batches. All connections of a batch are open at once.
 * Then each sends a message and gets it back; then all are closed and freed. Both sides have one thread, print a line
 * with figures, and end with exit status 0.
 *
 *     connect_many -b ADDRESS [-p PORT] [-n COUNT] [-o OPEN]     server
 *     connect_many -s ADDRESS [-p PORT] [-n COUNT] [-o OPEN]     client
 *
 * -l leaks memory on purpose, to test the leak checker.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include "many.h"

#define RESOLVE_MS 2000

/* One end of a connection: the context of its id. */
struct end {
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	char message[MESSAGE_LEN];
};

static struct rdma_event_channel *channel;
static struct ibv_comp_channel *completions;
static struct ibv_cq *cq;
static struct end **ends; /* the client's, of one batch */
static unsigned established, echoed, closed;
static unsigned long resident; /* KiB after the first batch */

_Noreturn static void fail(const char *what)
{
	fprintf(stderr, "connect_many (%s): %s: %s, after %u established, %u echoed, %u closed\n",
		options.server ? "server" : "client", what, strerror(errno), established, echoed, closed);
	exit(1);
}

_Noreturn static void unexpected(enum rdma_cm_event_type type)
{
	errno = 0;
	fail(rdma_event_str(type));
}

/* ---- an end ---- */

/* The first id makes a completion queue, which all share. */
static void open_cq(struct ibv_context *verbs)
{
	if (cq)
		return;
	completions = ibv_create_comp_channel(verbs);
	if (!completions)
		fail("ibv_create_comp_channel");
	cq = ibv_create_cq(verbs, (int)(4 * options.open), NULL, completions, 0);
	if (!cq)
		fail("ibv_create_cq");
	MUST(ibv_req_notify_cq(cq, 0));
}

/* The id is bound to a device. */
static struct end *new_end(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 1,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = MESSAGE_LEN},
		.qp_type = IBV_QPT_RC,
	};
	struct end *end = calloc(1, sizeof(*end));

	if (!end)
		fail("calloc");
	open_cq(id->verbs);
	attr.send_cq = attr.recv_cq = cq;
	end->id = id;
	id->context = end;
	MUST(rdma_create_qp(id, NULL, &attr));
	end->mr = rdma_reg_msgs(id, end->message, MESSAGE_LEN);
	if (!end->mr)
		fail("rdma_reg_msgs");
	return end;
}

static void free_end(struct end *end)
{
	rdma_destroy_qp(end->id);
	MUST(rdma_dereg_mr(end->mr));
	MUST(rdma_destroy_id(end->id));
	free(end);
}

static void post_recv(struct end *end)
{
	MUST(rdma_post_recv(end->id, end, end->message, MESSAGE_LEN, end->mr));
}

static void post_send(struct end *end)
{
	MUST(rdma_post_send(end->id, end, end->message, MESSAGE_LEN, end->mr, IBV_SEND_INLINE));
}

/* ---- the server ---- */

static void server_event(struct rdma_cm_id *id, enum rdma_cm_event_type type)
{
	struct end *end = id->context;

	switch (type) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		post_recv(new_end(id));
		MUST(rdma_accept(id, NULL));
		break;
	case RDMA_CM_EVENT_ESTABLISHED: established++; break;
	case RDMA_CM_EVENT_DISCONNECTED:
		MUST(rdma_disconnect(id));
		free_end(end);
		closed++;
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT: break;
	default: unexpected(type);
	}
}

/* ---- the client ---- */

static void client_event(struct rdma_cm_id *id, enum rdma_cm_event_type type)
{
	struct rdma_conn_param param = {.retry_count = 7, .rnr_retry_count = 7};

	switch (type) {
	case RDMA_CM_EVENT_ADDR_RESOLVED: MUST(rdma_resolve_route(id, RESOLVE_MS)); break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		post_recv(new_end(id));
		MUST(rdma_connect(id, &param));
		break;
	case RDMA_CM_EVENT_ESTABLISHED: ends[established++ % options.open] = id->context; break;
	case RDMA_CM_EVENT_DISCONNECTED: closed++; break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT: break;
	default: unexpected(type);
	}
}

/* The connection must get its own message back. */
static void check_echo(struct end *end)
{
	if (memcmp(end->message, &end, sizeof(end)))
		fail("another message came back");
	echoed++;
}

/* ---- both ---- */

static void completed(const struct ibv_wc *wc)
{
	struct end *end = (struct end *)(uintptr_t)wc->wr_id;

	if (wc->status == IBV_WC_WR_FLUSH_ERR)
		return;
	if (wc->status)
		fail(ibv_wc_status_str(wc->status));
	if (wc->opcode != IBV_WC_RECV)
		return;
	if (options.server)
		post_send(end);
	else
		check_echo(end);
}

static void handle_event(void)
{
	struct rdma_cm_event *event;
	enum rdma_cm_event_type type;
	struct rdma_cm_id *id;

	MUST(rdma_get_cm_event(channel, &event));
	type = event->event;
	id = event->id;
	MUST(rdma_ack_cm_event(event));
	if (options.server)
		server_event(id, type);
	else
		client_event(id, type);
}

static void handle_completions(void)
{
	struct ibv_wc wc;
	struct ibv_cq *from;
	void *context;
	int n;

	MUST(ibv_get_cq_event(completions, &from, &context));
	ibv_ack_cq_events(from, 1);
	MUST(ibv_req_notify_cq(cq, 0));
	while ((n = ibv_poll_cq(cq, 1, &wc)) > 0)
		completed(&wc);
	MUST(n);
}

/* Handles events and completions until *counter is `goal`. */
static void run_until(const unsigned *counter, unsigned goal)
{
	while (*counter < goal) {
		struct pollfd ready[] = {{.fd = channel->fd, .events = POLLIN},
					 {.fd = completions ? completions->fd : -1, .events = POLLIN}};

		if (poll(ready, 2, TIMEOUT_MS) < 1)
			fail("timeout");
		if (ready[0].revents)
			handle_event();
		if (ready[1].revents)
			handle_completions();
	}
}

static struct rdma_cm_id *new_id(void)
{
	struct rdma_cm_id *id;

	MUST(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	return id;
}

/* Resident memory of this process. */
static unsigned long resident_kib(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	unsigned long kib = 0;
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmRSS: %lu", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib;
}

static void serve(struct sockaddr *address)
{
	struct rdma_cm_id *listener = new_id();

	MUST(rdma_bind_addr(listener, address));
	MUST(rdma_listen(listener, (int)options.open));
	run_until(&closed, options.open);
	resident = resident_kib();
	run_until(&closed, options.count);
	MUST(rdma_destroy_id(listener));
}

static void batch(struct sockaddr *address)
{
	for (unsigned i = 0; i < options.open; i++)
		MUST(rdma_resolve_addr(new_id(), NULL, address, RESOLVE_MS));
	run_until(&established, established + options.open);
	for (unsigned i = 0; i < options.open; i++) {
		memcpy(ends[i]->message, &ends[i], sizeof(ends[i]));
		post_send(ends[i]);
	}
	run_until(&echoed, echoed + options.open);
	for (unsigned i = 0; i < options.open; i++)
		MUST(rdma_disconnect(ends[i]->id));
	run_until(&closed, closed + options.open);
	for (unsigned i = 0; i < options.open; i++)
		free_end(ends[i]);
}

static __attribute__((noinline)) void forget(void)
{
	volatile char *lost = malloc(1000);

	if (lost)
		*lost = 1;
}

int main(int argc, char **argv)
{
	struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP}, *info;
	double start, seconds;

	parse("connect_many", "b:s:p:n:o:l", argc, argv);
	if (options.server)
		hints.ai_flags = RAI_PASSIVE;
	MUST(rdma_getaddrinfo(options.address, options.port, &hints, &info));
	channel = rdma_create_event_channel();
	ends = calloc(options.open, sizeof(struct end *));
	if (!channel || !ends)
		fail("rdma_create_event_channel");
	start = now_seconds();
	if (options.server)
		serve(info->ai_src_addr);
	while (closed < options.count) {
		batch(info->ai_dst_addr);
		if (!resident)
			resident = resident_kib();
	}
	seconds = now_seconds() - start;
	printf("%u connections, %u at once, %.0f connections/s, %lu KiB resident, %lu after the first batch\n", closed,
	       options.open, closed / seconds, resident_kib(), resident);
	MUST(ibv_destroy_cq(cq));
	MUST(ibv_destroy_comp_channel(completions));
	rdma_destroy_event_channel(channel);
	rdma_freeaddrinfo(info);
	free(ends);
	if (options.leak)
		forget();
	return 0;
}
