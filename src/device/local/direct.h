/* SPDX-License-Identifier: BSD-2-Clause */
/* The short cuts: a WRITE or READ that its initiator executes on the memory of a peer of the host, and a short SEND
 * that goes into the ring when it is posted. */
#ifndef ROCI_DEVICE_LOCAL_DIRECT_H
#define ROCI_DEVICE_LOCAL_DIRECT_H

#include "device/local/local.h"

/* Executes and completes *wr. False where it has to go by the engine; nothing that the peer must not see has happened
 * then. */
bool roci_local_direct(struct roci_local *l, struct roci_qp *qp, const struct roci_send_wr *wr);

/* Posts *wr, which roci_qp_check_send() accepts, and puts its packet into the ring. False where it has to go by the
 * engine's queues. *batch is scratch memory. */
bool roci_local_prompt(struct roci_local *l, uint64_t now, struct roci_qp *qp, const struct roci_send_wr *wr,
		       struct roci_tx_batch *batch);

/* Copies the payload of a received packet: a roci_fetch_fn. `driver` is the struct roci_local. */
int roci_local_fetch(void *driver, const struct roci_far *far, const struct roci_span *to, unsigned count, bool last);

/* A roci_may_read_fn. */
bool roci_local_may_read(void *driver, const struct roci_span *spans, unsigned count);

/* The payload of a received packet in its sender's memory. */
struct roci_far {
	struct roci_local_peer *peer;
	const struct roci_local_packet *packet;
};

#endif
