/* SPDX-License-Identifier: BSD-2-Clause */
/* One rdma_cm connection with its RC QP. A session has a control connection and several data connections. */
#ifndef ROCI_MOVER_CONNECTION_H
#define ROCI_MOVER_CONNECTION_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>

#include "mover/proto.h"

enum connection_state {
	CONNECTION_NONE,
	CONNECTION_RESOLVING_ADDRESS,
	CONNECTION_RESOLVING_ROUTE,
	CONNECTION_RESOLVED, /* address and route */
	CONNECTION_CONNECTING,
	CONNECTION_UP,
	CONNECTION_FAILED,
	CONNECTION_DOWN,
};

struct connection {
	struct rdma_cm_id *id; /* its context is this connection */
	enum connection_state state;
	bool greeted;       /* a lane: its first message, the greeting, has been sent, or has come */
	int err;            /* FAILED: -errno, or rdma_cm's status of the event */
	uint64_t failed_ns; /* FAILED: when */
	bool rejected;      /* FAILED: by the peer */
	enum proto_reject reject;
	uint64_t asked_ns, answer_ns;       /* at the side that connects: when, and how long the answer took */
	uint8_t answer[PROTO_ANSWER_BYTES]; /* ... and what came with it */
	uint8_t answer_len;
};

/* How many work requests the QP has room for. */
struct connection_size {
	uint32_t sends, receives;
};

/* Starts to resolve the address; connection_event() continues. `source` may be NULL. 0 or -errno. */
int connection_resolve(struct connection *conn, struct rdma_event_channel *channel, struct sockaddr *source,
		       struct sockaddr *destination);
/* Makes the QP. 0 or -errno. */
int connection_create_qp(struct connection *conn, struct ibv_pd *pd, struct ibv_cq *cq,
			 const struct connection_size *size);
/* Sends the connect request, or accepts one; the answer takes at most PROTO_ANSWER_BYTES along. 0 or -errno. */
int connection_connect(struct connection *conn, const struct proto_request *request);
int connection_accept(struct connection *conn, const void *answer, size_t len);
void connection_reject(struct rdma_cm_id *id, enum proto_reject reason);

/* Updates the state from an event of this connection. False if the event does not change it. The caller acknowledges
 * the event. */
bool connection_event(struct connection *conn, const struct rdma_cm_event *event);

/* FAILED because too many requests are waiting at the receiver (REJ 3): another may get through. */
bool connection_is_crowded(const struct connection *conn);
/* ... and it is time for another. */
bool connection_may_retry(const struct connection *conn);

/* A message has come. It may overtake the RTU, and then replaces it (IBTA 12.9.7). */
static inline void connection_received(struct connection *conn)
{
	if (conn->state == CONNECTION_CONNECTING)
		conn->state = CONNECTION_UP;
}

/* connection_destroy() also destroys the QP and the id. Both may be called in any state. */
void connection_disconnect(struct connection *conn);
void connection_destroy(struct connection *conn);

bool connection_is_iwarp(const struct rdma_cm_id *id);
bool connection_is_rxe(const struct ibv_device *device);
bool connection_is_roci(const struct ibv_device *device);

/* What carries the data on this device, for people: "rnic", "rxe", "iwarp", "roci0 over udp". */
const char *connection_path(const struct ibv_device *device);

#endif
