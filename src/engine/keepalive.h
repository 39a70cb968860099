/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keepalive: detects a peer that is gone without a message, for example because it was killed. When nothing came from
 * the peer for a while, the QP sends probes (probe.h).
 */
#ifndef ROCI_ENGINE_KEEPALIVE_H
#define ROCI_ENGINE_KEEPALIVE_H

#include "engine/engine.h"
#include "engine/timer.h"

struct roci_keepalive {
	uint64_t interval; /* ns; 0: off */
	uint64_t rx_at;    /* when the last packet of the peer came */
	unsigned probes;   /* sent since then */
	bool lost;         /* no probe was answered, and the QP failed for it */
	struct roci_timer timer;
};

void roci_keepalive_init(struct roci_qp *qp);
/* A packet of the peer came. */
void roci_keepalive_rx(struct roci_qp *qp);

#endif
