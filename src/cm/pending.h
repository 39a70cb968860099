/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests for a service that has no listener yet. A server that closes one listener and opens the next (perftest
 * -R -c UD), or a client that starts together with its server, finds no listener for some milliseconds. On a kernel
 * device, work queues take longer than that. Here nothing does, so a REQ or SIDR_REQ waits for pending_ns before it is
 * rejected (REJ 8, IBTA 12.6.7.2; SIDR status 1, 12.11.2). If a listener for it appears meanwhile, the request is
 * handled as if it had just arrived.
 *
 * The table is bounded: a request that finds it full is rejected at once.
 */
#ifndef ROCI_CM_PENDING_H
#define ROCI_CM_PENDING_H

#include "cm/exchange.h"

#define ROCI_CM_MAX_PENDING 512

struct roci_pending_request {
	bool waiting; /* false: it has left; its place is free once it is the oldest */
	uint64_t until;
	uint8_t sgid[16], dgid[16]; /* the peer's, ours */
	uint32_t ifindex;
	struct roci_nat_terms nat;
	struct roci_cm_msg msg; /* REQ or SIDR_REQ */
};

struct roci_pending {
	struct roci_pending_request *ring; /* ROCI_CM_MAX_PENDING places; NULL until one is needed; owned */
	unsigned first, count;             /* the oldest, and the places in use behind it */
	unsigned waiting;                  /* requests that have not left */
	bool listener_added;               /* since the last roci_pending_timers() */
};

/* Frees the table. */
void roci_pending_fini(struct roci_pending *pending);
/* Keeps the request; true also for a duplicate of one that is kept. False: the table is full, or out of memory. */
bool roci_pending_add(struct roci_cm *cm, uint64_t now, const struct roci_cm_source *from,
		      const struct roci_cm_msg *req);
/* The peer withdraws its REQ with this REJ. False: that REQ is not pending. */
bool roci_pending_withdraw(struct roci_cm *cm, const struct roci_cm_source *from, const struct roci_cm_msg *rej);
/* Rejects them all. */
void roci_pending_reject_all(struct roci_cm *cm);

/* Hands requests to new listeners, and rejects those whose time is over. */
void roci_pending_timers(struct roci_cm *cm, uint64_t now);
/* When roci_pending_timers() has work; ROCI_CM_NEVER: there is none. */
uint64_t roci_pending_deadline(const struct roci_cm *cm);

#endif
