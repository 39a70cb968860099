/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A probe asks a silent peer what has arrived, and carries no data: it is an empty WRITE with the last PSN that was
 * acknowledged. To every responder that is a duplicate, which it does not execute, and which it answers with an
 * acknowledgement of the newest PSN that it has executed (IBTA C9-105).
 */
#ifndef ROCI_ENGINE_PROBE_H
#define ROCI_ENGINE_PROBE_H

#include "engine/engine.h"

struct roci_probe {
	unsigned due;  /* so many are to be sent */
	bool awaiting; /* an acknowledgement of the same PSN again says that what follows it is lost */
};

struct roci_tx_batch;

/* Sends `count` equal probes at the next opportunity, and no more than the most of those that are due. */
void roci_probe_send(struct roci_qp *qp, unsigned count);
/* Adds the probes that are due to *batch, as many as there is room for. True where some are left. */
bool roci_probe_fill(struct roci_qp *qp, struct roci_tx_batch *batch);

#endif
