/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests for a service that nobody listens to at the moment. A server that closes one listener and opens the next
 * (perftest -R -c UD), or a client that was started in the same breath as its server, meets nobody for some
 * milliseconds; with the kernel's work queues between them nobody would notice, here nothing takes that long. So such a
 * request is held for hold_ns before it is refused (REJ 8, SIDR status 1), and if a listener for it appears meanwhile,
 * that is told of it as if it came only now.
 *
 * The table is bounded: a request that finds no place in it is refused at once.
 */
#ifndef ROCI_CM_HOLD_H
#define ROCI_CM_HOLD_H

#include "cm/exchange.h"

#define ROCI_CM_MAX_HELD 512

struct roci_held {
	bool waiting; /* false: it has left, and its place will be free when it is the oldest */
	uint64_t until;
	uint8_t sgid[16], dgid[16]; /* the peer's, ours */
	uint32_t ifindex;
	struct roci_cm_msg msg; /* REQ or SIDR_REQ */
};

struct roci_hold {
	struct roci_held *ring; /* of ROCI_CM_MAX_HELD, the oldest at `first`; NULL until it is needed; owned */
	unsigned first, count, waiting;
	bool look; /* somebody began to listen */
};

void roci_hold_fini(struct roci_hold *hold);
/* True: it is held, or was already. */
bool roci_hold_request(struct roci_cm *cm, uint64_t now, const struct roci_cm_source *from,
		       const struct roci_cm_msg *req);
/* A REJ: the peer does not want it any longer. False: it is not held. */
bool roci_hold_withdraw(struct roci_cm *cm, const struct roci_cm_source *from, const struct roci_cm_msg *rej);
/* Refuses them all. */
void roci_hold_refuse(struct roci_cm *cm);

void roci_hold_timers(struct roci_cm *cm, uint64_t now);
uint64_t roci_hold_deadline(const struct roci_cm *cm);

#endif
