/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lesson 1: a message and its reply, with rdma_cm.
 *
 *	01-send-receive         the server: waits for one client, and answers it
 *	01-send-receive HOST    the client
 *
 * Two threads work in each process. main() handles the events of the connection manager. A second thread sleeps on the
 * completion channel, and takes completions from the CQ. Real programs are built like this.
 */
#include "common.h"

#include <netdb.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RECEIVE = 1, SEND = 2 }; /* our wr_ids: the completion gives them back */
enum { MESSAGE_BYTES = 64, RECEIVES = 2, RESOLVE_MS = 5000 };

struct side {
	bool server;
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	char memory[RECEIVES + 1][MESSAGE_BYTES]; /* one per receive; the last one to send from */
	unsigned posted;                          /* requests that have not completed: the poller returns at 0 */
	bool exchanged;                           /* the client has its reply; the server has sent one */
	pthread_t poller;
};

/* Waits for the next event, which must be `wanted`. Returns its id: for CONNECT_REQUEST that is a new one. */
static struct rdma_cm_id *expect(struct rdma_event_channel *channel, enum rdma_cm_event_type wanted)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	check(rdma_get_cm_event(channel, &event), "rdma_get_cm_event");
	printf("event: %s\n", rdma_event_str(event->event));
	if (event->event != wanted)
		die("expected %s instead (status %d)%s", rdma_event_str(wanted), event->status,
		    event->event == RDMA_CM_EVENT_REJECTED ? ": does a server run there, on this port?" : "");
	id = event->id;
	/* Gives the event's memory back. Sends nothing: the peer never knows. But rdma_destroy_id() waits for it. */
	check(rdma_ack_cm_event(event), "rdma_ack_cm_event");
	return id;
}

static void post_receive(struct side *s, unsigned slot)
{
	struct ibv_sge sge = {(uintptr_t)s->memory[slot], MESSAGE_BYTES, s->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = RECEIVE, .sg_list = &sge, .num_sge = 1}, *bad;

	check(ibv_post_recv(s->id->qp, &wr, &bad), "ibv_post_recv");
	s->posted++;
}

static void post_send(struct side *s, const char *text)
{
	char *memory = s->memory[RECEIVES];
	struct ibv_sge sge = {(uintptr_t)memory, (uint32_t)strlen(text) + 1, s->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = SEND, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;

	wr.send_flags = IBV_SEND_SIGNALED; /* without it there is no completion */
	strcpy(memory, text);
	printf("send: \"%s\"\n", text);
	check(ibv_post_send(s->id->qp, &wr, &bad), "ibv_post_send");
	s->posted++;
}

static void on_completion(struct side *s, const struct ibv_wc *wc)
{
	const char *text = s->memory[0]; /* receives are used in the order in which they were posted */

	s->posted--;
	/* After a disconnect, requests that were not used come back "flushed". That is how they end, not a failure. */
	if (wc->status == IBV_WC_WR_FLUSH_ERR) {
		printf("a %s came back unused\n", wc->wr_id == RECEIVE ? "receive" : "send");
		return;
	}
	check_completion(wc, wc->wr_id == RECEIVE ? "receive" : "send");
	if (wc->wr_id == SEND) {
		printf("the send has completed: the peer's device has the message\n");
		return;
	}
	if (!wc->byte_len || wc->byte_len > MESSAGE_BYTES || text[wc->byte_len - 1])
		die("the message is not a string");
	printf("received: \"%s\"\n", text);
	s->exchanged = true;
	if (s->server)
		post_send(s, "hello, client");
	else
		check(rdma_disconnect(s->id), "rdma_disconnect"); /* the client has what it wanted */
}

/* The poller: sleep, arm again, and only then take everything. A completion that comes after the last poll finds the CQ
 * armed and wakes us. In the order poll, then arm, one that comes between the two would wake nobody. */
static void *poll_completions(void *argument)
{
	struct side *s = argument;
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;
	int n;

	while (s->posted) {
		check(ibv_get_cq_event(s->channel, &cq, &context), "ibv_get_cq_event");
		ibv_ack_cq_events(cq, 1); /* ibv_destroy_cq() waits until every event is acknowledged */
		check(ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq"); /* for one event: it must be asked for again */
		while ((n = ibv_poll_cq(cq, 1, &wc)) > 0)
			on_completion(s, &wc);
		if (n < 0)
			die("ibv_poll_cq failed");
	}
	return NULL;
}

/* Everything that the connection needs. The receives are posted before the peer can send: it may do so at once. */
static void prepare(struct side *s)
{
	struct ibv_qp_cap cap = {.max_send_wr = 1, .max_recv_wr = RECEIVES, .max_send_sge = 1, .max_recv_sge = 1};
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = cap};

	s->pd = made(ibv_alloc_pd(s->id->verbs), "ibv_alloc_pd");
	s->mr = made(ibv_reg_mr(s->pd, s->memory, sizeof(s->memory), IBV_ACCESS_LOCAL_WRITE), "ibv_reg_mr");
	s->channel = made(ibv_create_comp_channel(s->id->verbs), "ibv_create_comp_channel");
	s->cq = made(ibv_create_cq(s->id->verbs, RECEIVES + 1, NULL, s->channel, 0), "ibv_create_cq");
	check(ibv_req_notify_cq(s->cq, 0), "ibv_req_notify_cq");
	init.send_cq = init.recv_cq = s->cq;
	check(rdma_create_qp(s->id, s->pd, &init), "rdma_create_qp");
	for (unsigned i = 0; i < RECEIVES; i++)
		post_receive(s, i);
}

static void connect_to(struct side *s, const struct arguments *a, struct rdma_event_channel *events)
{
	struct addrinfo *found = resolve(a);

	check(rdma_create_id(events, &s->id, NULL, RDMA_PS_TCP), "rdma_create_id");
	check(rdma_resolve_addr(s->id, NULL, found->ai_addr, RESOLVE_MS), "rdma_resolve_addr"); /* which device? */
	freeaddrinfo(found);
	expect(events, RDMA_CM_EVENT_ADDR_RESOLVED);
	check(rdma_resolve_route(s->id, RESOLVE_MS), "rdma_resolve_route"); /* which way? */
	expect(events, RDMA_CM_EVENT_ROUTE_RESOLVED);
	prepare(s);
	check(rdma_connect(s->id, &(struct rdma_conn_param){.retry_count = 6, .rnr_retry_count = 7}), "rdma_connect");
}

static void accept_one(struct side *s, const struct arguments *a, struct rdma_event_channel *events)
{
	/* Every address, also the ones of IPv4. */
	struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)atoi(a->port))};
	struct rdma_cm_id *listener;

	check(rdma_create_id(events, &listener, NULL, RDMA_PS_TCP), "rdma_create_id");
	check(rdma_bind_addr(listener, (struct sockaddr *)&any), "rdma_bind_addr");
	check(rdma_listen(listener, 1), "rdma_listen");
	printf("waiting for a client on port %s\n", a->port);
	s->id = expect(events, RDMA_CM_EVENT_CONNECT_REQUEST);
	check(rdma_destroy_id(listener), "rdma_destroy_id"); /* one client is enough */
	prepare(s);
	check(rdma_accept(s->id, &(struct rdma_conn_param){.rnr_retry_count = 7}), "rdma_accept");
}

int main(int argc, char **argv)
{
	struct arguments a = arguments_read("pk", argc, argv);
	struct side s = {.server = !a.host};
	struct rdma_event_channel *events = made(rdma_create_event_channel(), "rdma_create_event_channel");
	if (s.server)
		accept_one(&s, &a, events);
	else
		connect_to(&s, &a, events);
	/* At the client: the server accepted. At the server: the client got to know that. Only now may it send. */
	expect(events, RDMA_CM_EVENT_ESTABLISHED);
	die_if_asked(&a);
	if (!s.server)
		post_send(&s, "hello, server");
	check(pthread_create(&s.poller, NULL, poll_completions, &s), "pthread_create");

	expect(events, RDMA_CM_EVENT_DISCONNECTED);
	rdma_disconnect(s.id); /* puts our QP in the error state, too: what is still posted comes back */
	check(pthread_join(s.poller, NULL), "pthread_join");
	rdma_destroy_qp(s.id);
	check(ibv_destroy_cq(s.cq), "ibv_destroy_cq");
	check(ibv_destroy_comp_channel(s.channel), "ibv_destroy_comp_channel");
	check(ibv_dereg_mr(s.mr), "ibv_dereg_mr");
	check(ibv_dealloc_pd(s.pd), "ibv_dealloc_pd");
	check(rdma_destroy_id(s.id), "rdma_destroy_id");
	rdma_destroy_event_channel(events);
	if (!s.exchanged)
		die("the peer has gone before it %s", s.server ? "sent a message" : "answered");
	printf("done\n");
	return 0;
}
