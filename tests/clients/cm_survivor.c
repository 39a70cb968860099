/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two processes with a connection, until one of them is killed. The other must get RDMA_CM_EVENT_DISCONNECTED or, if it
 * is sending, a completion with IBV_WC_RETRY_EXC_ERR. It prints which, destroys everything, and ends with exit status
 * 0. Both print "running" when they are connected.
 *
 *     cm_survivor -b ADDRESS -p PORT [-i | -r]    server
 *     cm_survivor -s ADDRESS -p PORT [-i | -r]    client
 *
 * The client sends without end; with -r the server does; with -i neither does (idle).
 */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h> /* IWYU pragma: keep (getopt) */

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#define TIMEOUT_MS 60000
#define RECEIVES   64

static const char *address, *port;
static bool server, idle, reversed;
static struct rdma_cm_id *id;
static struct ibv_mr *mr;
static char buffer[8];

_Noreturn static void fail(const char *what)
{
	fprintf(stderr, "cm_survivor (%s): %s: %s\n", server ? "server" : "client", what, strerror(errno));
	exit(1);
}

#define MUST(call)                                                                                                     \
	do {                                                                                                           \
		if (call)                                                                                              \
			fail(#call);                                                                                   \
	} while (0)

/* ---- connecting, with blocking calls ---- */

static void prepare(void)
{
	mr = rdma_reg_msgs(id, buffer, sizeof(buffer));
	if (!mr)
		fail("rdma_reg_msgs");
	for (unsigned i = 0; i < RECEIVES; i++)
		MUST(rdma_post_recv(id, NULL, buffer, sizeof(buffer), mr));
}

static void begin(void)
{
	struct rdma_addrinfo hints = {.ai_flags = server ? RAI_PASSIVE : 0, .ai_port_space = RDMA_PS_TCP}, *info;
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 1, .max_recv_wr = RECEIVES, .max_send_sge = 1, .max_recv_sge = 1},
		.sq_sig_all = 1,
	};
	struct rdma_conn_param param = {.retry_count = 3, .rnr_retry_count = 7};
	struct rdma_cm_id *listener;

	MUST(rdma_getaddrinfo(address, port, &hints, &info));
	MUST(rdma_create_ep(server ? &listener : &id, info, NULL, &attr));
	rdma_freeaddrinfo(info);
	if (server) {
		MUST(rdma_listen(listener, 1));
		MUST(rdma_get_request(listener, &id));
		prepare();
		MUST(rdma_accept(id, &param));
		rdma_destroy_ep(listener);
	} else {
		prepare();
		MUST(rdma_connect(id, &param));
	}
}

/* ---- events and completions ---- */

static struct rdma_event_channel *channel;

/* True: the connection is over. */
static bool told(void)
{
	struct rdma_cm_event *event;
	enum rdma_cm_event_type type;

	MUST(rdma_get_cm_event(channel, &event));
	type = event->event;
	rdma_ack_cm_event(event);
	if (type == RDMA_CM_EVENT_ESTABLISHED)
		return false;
	puts(rdma_event_str(type));
	return true;
}

/* Posts the next send if the last one is complete. True: the connection is over. */
static bool send_next(void)
{
	struct ibv_wc wc;
	int n = ibv_poll_cq(id->send_cq, 1, &wc);

	MUST(n < 0);
	if (n && wc.status) {
		puts(ibv_wc_status_str(wc.status));
		return true;
	}
	if (n)
		MUST(rdma_post_send(id, NULL, buffer, sizeof(buffer), mr, 0));
	return false;
}

/* Received messages are discarded. */
static void receive(void)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(id->recv_cq, 1, &wc) == 1 && !wc.status)
		MUST(rdma_post_recv(id, NULL, buffer, sizeof(buffer), mr));
}

static void run(void)
{
	bool sends = !idle && server == reversed, over = false;

	if (sends)
		MUST(rdma_post_send(id, NULL, buffer, sizeof(buffer), mr, 0));
	while (!over) {
		struct pollfd ready = {.fd = channel->fd, .events = POLLIN};
		int n = poll(&ready, 1, idle ? TIMEOUT_MS : 1);

		if (n)
			over = told();
		else if (idle)
			fail("no event or completion after the peer was killed");
		receive();
		if (sends && !over)
			over = send_next();
	}
}

int main(int argc, char **argv)
{
	for (int opt; (opt = getopt(argc, argv, "b:s:p:ir")) != -1;) {
		switch (opt) {
		case 'b': server = true; /* fall through */
		case 's': address = optarg; break;
		case 'p': port = optarg; break;
		case 'i': idle = true; break;
		case 'r': reversed = true; break;
		default: return 2;
		}
	}
	if (!address || !port)
		return 2;
	begin();
	channel = rdma_create_event_channel();
	if (!channel)
		fail("rdma_create_event_channel");
	MUST(rdma_migrate_id(id, channel)); /* asynchronous from now on */
	puts("running");
	fflush(stdout);
	run();
	rdma_disconnect(id);
	MUST(rdma_dereg_mr(mr));
	rdma_destroy_ep(id);
	rdma_destroy_event_channel(channel);
	return 0;
}
