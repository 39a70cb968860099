/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A listener that rejects the first connection and accepts the second, each with words of its own in the private data,
 * and its client, which has to be told: RDMA_CM_EVENT_REJECTED with reason 28, consumer reject, or STATUS, then
 * RDMA_CM_EVENT_ESTABLISHED, each with the words. The client disconnects. Exit status 0 when both saw all of it.
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
#define WORDS           32 /* private data: what is behind the words is zero, as CM pads it */

static const char ASKING[WORDS] = "may I?", REFUSING[WORDS] = "not you", ACCEPTING[WORDS] = "well, come in";

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

/* An endpoint without a channel: its calls block, and what they waited for is in id->event. */
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

static struct rdma_conn_param saying(const char *words)
{
	return (struct rdma_conn_param){
		.private_data = words, .private_data_len = WORDS, .retry_count = 3, .rnr_retry_count = 3};
}

/* The event that the last call waited for is this one, with this status and these words. */
static void expect(const struct rdma_cm_id *id, enum rdma_cm_event_type type, int wanted, const char *words)
{
	const struct rdma_cm_event *event = id->event;

	if (!event) {
		errno = 0;
		fail("no event");
	}
	if (event->event != type || event->status != wanted || event->param.conn.private_data_len < WORDS ||
	    memcmp(event->param.conn.private_data, words, WORDS)) {
		fprintf(stderr, "%s, status %d, %u bytes of private data: %.*s\n", rdma_event_str(event->event),
			event->status, event->param.conn.private_data_len, event->param.conn.private_data ? WORDS : 0,
			(const char *)event->param.conn.private_data);
		errno = 0;
		fail(words);
	}
}

/* rdma_accept() has waited for one event, which need not have been RDMA_CM_EVENT_ESTABLISHED: the kernel's DREQ may
 * overtake its RTU. */
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
	struct rdma_conn_param accepting = saying(ACCEPTING);
	struct rdma_cm_id *listener = endpoint(), *id;

	MUST(rdma_listen(listener, 1));
	MUST(rdma_get_request(listener, &id));
	expect(id, RDMA_CM_EVENT_CONNECT_REQUEST, 0, ASKING);
	MUST(rdma_reject(id, REFUSING, WORDS));
	rdma_destroy_ep(id);
	MUST(rdma_get_request(listener, &id));
	expect(id, RDMA_CM_EVENT_CONNECT_REQUEST, 0, ASKING);
	MUST(rdma_accept(id, &accepting));
	await_disconnect(id);
	if (id->verbs->device->transport_type != IBV_TRANSPORT_IWARP) /* which has no answer, nor an event after it */
		MUST(rdma_disconnect(id));
	rdma_destroy_ep(id);
	rdma_destroy_ep(listener);
}

static void ask(void)
{
	struct rdma_conn_param asking = saying(ASKING);
	struct rdma_cm_id *id = endpoint();

	if (!rdma_connect(id, &asking) || errno != ECONNREFUSED)
		fail("the first request was not rejected");
	expect(id, RDMA_CM_EVENT_REJECTED, status, REFUSING);
	rdma_destroy_ep(id);
	id = endpoint();
	MUST(rdma_connect(id, &asking));
	expect(id, RDMA_CM_EVENT_ESTABLISHED, 0, ACCEPTING);
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
		ask();
	printf("rejected with reason %d, then accepted\n", status);
	return 0;
}
