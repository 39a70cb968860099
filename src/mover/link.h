/* SPDX-License-Identifier: BSD-2-Clause */
/* A link: one rdma_cm connection with its RC QP, as the session sees it. */
#ifndef ROCI_MOVER_LINK_H
#define ROCI_MOVER_LINK_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>

#include "mover/proto.h"

enum link_state {
	LINK_NONE,
	LINK_RESOLVING_ADDRESS,
	LINK_RESOLVING_ROUTE,
	LINK_RESOLVED,
	LINK_CONNECTING,
	LINK_UP,
	LINK_FAILED,
	LINK_DOWN,
};

struct link {
	struct rdma_cm_id *id; /* its context is the link */
	enum link_state state;
	uint16_t index; /* of a data connection */
	bool greeted;   /* receiver: its first message, a greeting, has come */
	int err;        /* FAILED: -errno, or the reason of a rejection */
	bool rejected;  /* FAILED: by the peer */
	enum proto_reject reject;
};

/* What a link's QP has to hold. */
struct link_size {
	uint32_t sends, receives;
};

/* Starts to resolve. `source` may be NULL. 0 or -errno. */
int link_resolve(struct link *link, struct rdma_event_channel *channel, struct sockaddr *source,
		 struct sockaddr *destination);
/* Makes the QP. 0 or -errno. */
int link_create_qp(struct link *link, struct ibv_pd *pd, struct ibv_cq *cq, const struct link_size *size);
int link_connect(struct link *link, const struct proto_request *request);
int link_accept(struct link *link);
void link_reject(struct rdma_cm_id *id, enum proto_reject reason);

/* Takes an event of this link in; false where it means nothing to the session. The caller acknowledges it. */
bool link_event(struct link *link, const struct rdma_cm_event *event);

/* A message has come: it may overtake the last message of the connection's making, and stands for it (IBTA 12.9.7). */
static inline void link_heard(struct link *link)
{
	if (link->state == LINK_CONNECTING)
		link->state = LINK_UP;
}

/* Disconnects. link_destroy() also destroys QP and id; the link may be NONE. */
void link_disconnect(struct link *link);
void link_destroy(struct link *link);

bool link_is_iwarp(const struct rdma_cm_id *id);
bool link_is_rxe(const struct ibv_device *device);

/* The way data takes on this device, for people: "rnic", "rxe", "iwarp", "roci0 over udp". */
const char *link_path(const struct ibv_device *device);

#endif
