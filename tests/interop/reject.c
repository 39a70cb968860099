/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A listener that rejects the first connection and accepts the second, each with its own private data, and its client.
 * The client must get RDMA_CM_EVENT_REJECTED with reason 28 (consumer reject) or STATUS, then
 * RDMA_CM_EVENT_ESTABLISHED, each with that private data. The client disconnects. Exit status 0: both saw everything.
 *
 *     reject -b ADDRESS -p PORT                server
 *     reject -s ADDRESS -p PORT [-r STATUS]    client
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h> /* IWYU pragma: keep (getopt) */

#include <rdma/rdma_cma.h>

#define CONSUMER_REJECT 28 /* IBTA 12.6.7.2 */
#define PRIVATE_BYTES   32 /* of private data; the rest is zero, as the CM pads it */

static const char REQUEST[PRIVATE_BYTES] = "a request", REJECTION[PRIVATE_BYTES] = "a rejection",
		  ACCEPTANCE[PRIVATE_BYTES] = "an acceptance";

static const char *address, *port;
static bool server;
static int status = CONSUMER_REJECT;

_Noreturn static void fail(const char *what)
{
	fprintf(stderr, "reject (%s): %s: %s\n", server ? "server" : "client", what, strerror(errno));
	exit(1);
}

#define MUST(call)                                                                                                     \
	do {                                                                                                           \
		if (call)                                                                                              \
			fail(#call);                                                                                   \
	} while (0)

/* An endpoint without a channel: its calls block, and their event is in id->event. */
static struct rdma_cm_id *endpoint(void)
{
	struct rdma_addrinfo hints = {.ai_flags = server ? RAI_PASSIVE : 0, .ai_port_space = RDMA_PS_TCP}, *info;
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct rdma_cm_id *id;

	MUST(rdma_getaddrinfo(address, port, &hints, &info));
	MUST(rdma_create_ep(&id, info, NULL, &attr));
	rdma_freeaddrinfo(info);
	return id;
}

static struct rdma_conn_param conn_param(const char *text)
{
	return (struct rdma_conn_param){
		.private_data = text, .private_data_len = PRIVATE_BYTES, .retry_count = 3, .rnr_retry_count = 3};
}

/* Checks the event of the last call, its status and its private data. */
static void expect(const struct rdma_cm_id *id, enum rdma_cm_event_type type, int wanted, const char *text)
{
	const struct rdma_cm_event *event = id->event;

	if (!event) {
		errno = 0;
		fail("no event");
	}
	if (event->event != type || event->status != wanted || event->param.conn.private_data_len < PRIVATE_BYTES ||
	    memcmp(event->param.conn.private_data, text, PRIVATE_BYTES)) {
		fprintf(stderr, "%s, status %d, %u bytes of private data: %.*s\n", rdma_event_str(event->event),
			event->status, event->param.conn.private_data_len,
			event->param.conn.private_data ? PRIVATE_BYTES : 0,
			(const char *)event->param.conn.private_data);
		errno = 0;
		fail(text);
	}
}

/* rdma_accept() has waited for one event. That may have been the disconnect: the kernel's DREQ may overtake its RTU. */
static void await_disconnect(struct rdma_cm_id *id)
{
	struct rdma_cm_event *event;

	if (id->event && id->event->event == RDMA_CM_EVENT_DISCONNECTED)
		return;
	MUST(rdma_get_cm_event(id->channel, &event));
	if (event->event != RDMA_CM_EVENT_DISCONNECTED)
		fail(rdma_event_str(event->event));
	rdma_ack_cm_event(event);
}

static void serve(void)
{
	struct rdma_conn_param param = conn_param(ACCEPTANCE);
	struct rdma_cm_id *listener = endpoint(), *id;

	MUST(rdma_listen(listener, 1));
	MUST(rdma_get_request(listener, &id));
	expect(id, RDMA_CM_EVENT_CONNECT_REQUEST, 0, REQUEST);
	MUST(rdma_reject(id, REJECTION, PRIVATE_BYTES));
	rdma_destroy_ep(id);
	MUST(rdma_get_request(listener, &id));
	expect(id, RDMA_CM_EVENT_CONNECT_REQUEST, 0, REQUEST);
	MUST(rdma_accept(id, &param));
	await_disconnect(id);
	if (id->verbs->device->transport_type !=
	    IBV_TRANSPORT_IWARP) /* iWARP has no answer to it, and no event after it */
		MUST(rdma_disconnect(id));
	rdma_destroy_ep(id);
	rdma_destroy_ep(listener);
}

static void connect_twice(void)
{
	struct rdma_conn_param param = conn_param(REQUEST);
	struct rdma_cm_id *id = endpoint();

	if (!rdma_connect(id, &param) || errno != ECONNREFUSED)
		fail("the first request was not rejected");
	expect(id, RDMA_CM_EVENT_REJECTED, status, REJECTION);
	rdma_destroy_ep(id);
	id = endpoint();
	MUST(rdma_connect(id, &param));
	expect(id, RDMA_CM_EVENT_ESTABLISHED, 0, ACCEPTANCE);
	MUST(rdma_disconnect(id));
	rdma_destroy_ep(id);
}

int main(int argc, char **argv)
{
	for (int opt; (opt = getopt(argc, argv, "b:s:p:r:")) != -1;) {
		switch (opt) {
		case 'b': server = true; /* fall through */
		case 's': address = optarg; break;
		case 'p': port = optarg; break;
		case 'r': status = atoi(optarg); break;
		default: return 2;
		}
	}
	if (!address || !port) {
		fprintf(stderr, "reject: -b or -s ADDRESS, and -p PORT\n");
		return 2;
	}
	if (server)
		serve();
	else
		connect_twice();
	printf("rejected with reason %d, then accepted\n", status);
	return 0;
}
