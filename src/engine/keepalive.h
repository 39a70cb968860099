/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Signs of life. A peer that was killed says nothing, and a side that only waits would wait for ever. A QP that asks
 * for it repeats its last PSN as an empty WRITE when nothing came from the peer for a while: to every responder that is
 * a duplicate, which is acknowledged and not executed (IBTA C9-105).
 */
#ifndef ROCI_ENGINE_KEEPALIVE_H
#define ROCI_ENGINE_KEEPALIVE_H

#include "engine/engine.h"
#include "engine/timer.h"

struct roci_keepalive {
	uint64_t interval; /* ns; 0: off */
	uint64_t heard_at; /* when the last packet of the peer came */
	unsigned tries;    /* since then */
	bool due;          /* a packet is to be sent */
	bool lost;         /* the peer never answered, and the QP failed for it */
	struct roci_timer timer;
};

void roci_keepalive_init(struct roci_qp *qp);
/* A packet of the peer came. */
void roci_keepalive_heard(struct roci_qp *qp);
/* Adds the packet that is due, if one is and there is room. */
void roci_keepalive_fill(struct roci_qp *qp, struct roci_tx_batch *batch);

#endif
