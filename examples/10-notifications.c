/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lesson 10: what a completion channel tells, and what it does not.
 *
 *	10-notifications
 *
 * ibv_req_notify_cq() "arms" a CQ: the next completion that enters it puts one event into the channel. This program
 *counts events in three situations. Whoever does not know the third one has a program that hangs once in a while.
 */
#include "loopback.h"

#include <poll.h>
#include <stdio.h>

/* A sends to B; returns when A's request is complete. Then B's completion is in its CQ, or soon will be. */
static void send_to_b(struct loopback *l)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};

	loopback_post_receive(l);
	loopback_post(l, &wr, 1);
	wait_completion(l->a.cq, "SEND");
}

/* How many events the channel has. Takes and acknowledges them. */
static unsigned events(struct loopback *l)
{
	struct pollfd fd = {.fd = l->channel->fd, .events = POLLIN};
	struct ibv_cq *cq;
	unsigned count = 0;
	void *context;
	int ready;

	while ((ready = poll(&fd, 1, 100)) > 0) { /* 100 ms: long after the completion */
		check(ibv_get_cq_event(l->channel, &cq, &context), "ibv_get_cq_event");
		ibv_ack_cq_events(cq, 1);
		count++;
	}
	check(ready, "poll");
	return count;
}

static unsigned completions(struct loopback *l)
{
	struct ibv_wc wc;
	unsigned count = 0;
	int n;

	while ((n = ibv_poll_cq(l->b.cq, 1, &wc)) > 0) {
		check_completion(&wc, "B's receive");
		count++;
	}
	check(n, "ibv_poll_cq");
	return count;
}

static void show(struct loopback *l, const char *what)
{
	unsigned count = events(l); /* first: then all completions have come, too */

	printf("%-58s events: %u, completions: %u\n", what, count, completions(l));
}

int main(int argc, char **argv)
{
	struct arguments arguments = arguments_read("dg1", argc, argv);
	struct loopback l = loopback_open(&arguments, LOOPBACK_ALL, 7);

	check(ibv_req_notify_cq(l.b.cq, 0), "ibv_req_notify_cq");
	send_to_b(&l);
	send_to_b(&l);
	show(&l, "armed once, two messages");

	send_to_b(&l);
	show(&l, "not armed again, one message");

	/* "Poll until the CQ is empty, then arm" with bad luck: the message comes in between. */
	completions(&l);
	send_to_b(&l);
	events(&l);
	check(ibv_req_notify_cq(l.b.cq, 0), "ibv_req_notify_cq");
	show(&l, "message first, armed after it");

	/* The cure is to poll once more after arming, and to sleep only if that finds nothing: see next() in
	 * endpoint.c. */
	loopback_close(&l);
	printf("done\n");
	return 0;
}
