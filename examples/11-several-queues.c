/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lesson 11: several QPs and several CQs.
 *
 *	11-several-queues
 *
 * Three connections, both ends in this process. First all receivers complete into one CQ: one poll finds everything,
 *and each completion names its QP. Then each receiver has a CQ of its own, and all three share one completion channel:
 *each event names its CQ.
 */
#include "bare.h"

#include <stdio.h>

enum { CONNECTIONS = 3, MESSAGES = 6 };

/* One connection: A sends, B receives. */
struct connection {
	struct ibv_qp *a, *b;
};

static struct ibv_qp *create_qp(const struct bare *bare, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = MESSAGES, .max_recv_wr = MESSAGES, .max_send_sge = 1, .max_recv_sge = 1}};
	struct ibv_qp *qp = made(ibv_create_qp(bare->pd, &init), "ibv_create_qp");

	bare_to_init(qp, 0);
	return qp;
}

static struct connection connection_open(const struct bare *bare, struct ibv_cq *senders, struct ibv_cq *receivers)
{
	struct connection c = {create_qp(bare, senders), create_qp(bare, receivers)};
	struct bare_address a = bare_address_of(bare, c.a, NULL), b = bare_address_of(bare, c.b, NULL);

	bare_to_rtr(bare, c.a, &b);
	bare_to_rtr(bare, c.b, &a);
	bare_to_rts(c.a, &a, 7);
	bare_to_rts(c.b, &b, 7);
	return c;
}

static void connection_close(struct connection *c)
{
	check(ibv_destroy_qp(c->a), "ibv_destroy_qp");
	check(ibv_destroy_qp(c->b), "ibv_destroy_qp");
}

/* An empty message: the completions are what matters here. Returns when the request is complete. */
static void send_one(const struct connection *c)
{
	struct ibv_send_wr send = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad_send;
	struct ibv_recv_wr receive = {0}, *bad_receive;

	check(ibv_post_recv(c->b, &receive, &bad_receive), "ibv_post_recv");
	check(ibv_post_send(c->a, &send, &bad_send), "ibv_post_send");
	wait_completion(c->a->send_cq, "SEND");
}

/* One message on the first connection, two on the second, three on the third. */
static void one_cq(const struct bare *bare, struct ibv_cq *senders)
{
	struct ibv_cq *cq = made(ibv_create_cq(bare->context, MESSAGES, NULL, NULL, 0), "ibv_create_cq");
	struct connection connections[CONNECTIONS];
	unsigned counts[CONNECTIONS] = {0};

	for (unsigned i = 0; i < CONNECTIONS; i++)
		connections[i] = connection_open(bare, senders, cq);
	for (unsigned i = 0; i < CONNECTIONS; i++) {
		for (unsigned n = 0; n <= i; n++)
			send_one(&connections[i]);
	}
	for (unsigned n = 0; n < MESSAGES; n++) {
		struct ibv_wc wc = wait_completion(cq, "a receive");

		for (unsigned i = 0; i < CONNECTIONS; i++)
			counts[i] += wc.qp_num == connections[i].b->qp_num;
	}
	printf("three QPs, one CQ: of %d completions %u came from the first QP, %u from the second, %u from the "
	       "third\n",
	       MESSAGES, counts[0], counts[1], counts[2]);
	for (unsigned i = 0; i < CONNECTIONS; i++)
		connection_close(&connections[i]);
	check(ibv_destroy_cq(cq), "ibv_destroy_cq");
}

/* Sleeps until a CQ of the channel has something, and takes it. Returns the CQ's number. */
static int next_event(struct ibv_comp_channel *channel)
{
	struct ibv_cq *cq;
	void *context;

	check(ibv_get_cq_event(channel, &cq, &context), "ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
	wait_completion(cq, "a receive");
	return *(int *)context;
}

static void several_cqs(const struct bare *bare, struct ibv_cq *senders)
{
	struct ibv_comp_channel *channel = made(ibv_create_comp_channel(bare->context), "ibv_create_comp_channel");
	struct connection connections[CONNECTIONS];
	int numbers[CONNECTIONS] = {1, 2, 3}; /* the contexts of the CQs: an event brings its own back */
	struct ibv_cq *cqs[CONNECTIONS];

	for (unsigned i = 0; i < CONNECTIONS; i++) {
		cqs[i] = made(ibv_create_cq(bare->context, MESSAGES, &numbers[i], channel, 0), "ibv_create_cq");
		connections[i] = connection_open(bare, senders, cqs[i]);
		check(ibv_req_notify_cq(cqs[i], 0), "ibv_req_notify_cq");
	}
	send_one(&connections[2]);
	printf("three QPs, three CQs, one channel: a message on the third QP; the event is of CQ %d\n",
	       next_event(channel));
	send_one(&connections[0]);
	printf("a message on the first QP; the event is of CQ %d\n", next_event(channel));
	for (unsigned i = 0; i < CONNECTIONS; i++) {
		connection_close(&connections[i]);
		check(ibv_destroy_cq(cqs[i]), "ibv_destroy_cq");
	}
	check(ibv_destroy_comp_channel(channel), "ibv_destroy_comp_channel");
}

int main(int argc, char **argv)
{
	struct arguments arguments = arguments_read("dg1", argc, argv);
	struct bare bare = bare_open(&arguments);
	struct ibv_cq *senders = made(ibv_create_cq(bare.context, MESSAGES, NULL, NULL, 0), "ibv_create_cq");

	one_cq(&bare, senders);
	several_cqs(&bare, senders);
	check(ibv_destroy_cq(senders), "ibv_destroy_cq");
	bare_close(&bare);
	printf("done\n");
	return 0;
}
