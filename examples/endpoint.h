/* SPDX-License-Identifier: BSD-2-Clause */
/* Lesson 1 in a few calls, for the lessons that follow: one connection by rdma_cm, with the shorter functions of
 * librdmacm. rdma_create_ep() makes the id, the PD's users, the CQs and the QP at once, and calls such as
 * rdma_connect() wait by themselves until their event is here. */
#ifndef EXAMPLES_ENDPOINT_H
#define EXAMPLES_ENDPOINT_H

#include "common.h"

#include <rdma/rdma_verbs.h>

struct endpoint {
	struct rdma_cm_id *listener; /* NULL at the client */
	struct rdma_cm_id *id;       /* has the QP, its PD and two CQs */
};

/* Without a host it waits until a client asks for a connection. Then the QP is there and takes receives, but nothing is
 * connected. `requests` is the number of sends and of receives that may be posted at a time. */
struct endpoint endpoint_open(const struct arguments *arguments, unsigned requests);

/* Accepts or connects, and returns when the connection is established. */
void endpoint_connect(const struct endpoint *ep);

/* Waits for the next completion of a receive or a send, and checks it. Sleeps until there is one, or the peer
 * disconnects, which ends the program. `what` names the request. */
struct ibv_wc endpoint_receive(const struct endpoint *ep, const char *what);
struct ibv_wc endpoint_sent(const struct endpoint *ep, const char *what);

/* The same for the last message of a conversation. The peer disconnects when it has that message, and the news of this
 * may be faster than the acknowledgement, so both are good. */
void endpoint_sent_last(const struct endpoint *ep, const char *what);

/* Disconnects, waits until the peer has done the same, and destroys everything. */
void endpoint_close(struct endpoint *ep);

#endif
