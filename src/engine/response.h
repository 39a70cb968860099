/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the responder owes its peer: responses to READs, atomics, ATOMIC WRITEs and FLUSHes in PSN order, then one
 * acknowledgement or NAK for all that was executed since (coalesced, IBTA 9.7.5.1.2).
 */
#ifndef ROCI_ENGINE_RESPONSE_H
#define ROCI_ENGINE_RESPONSE_H

#include "engine/qp.h"

/* Makes room for `room` responses, those that a peer may have outstanding, and keeps the latest. -EBUSY where one that
 * would go is still to be sent; -ENOMEM. */
int roci_response_resize(struct roci_qp *qp, unsigned room);
/* A free slot for a new READ, atomic or ATOMIC WRITE; NULL where the peer has more outstanding than it may. */
struct roci_response *roci_response_add(struct roci_qp *qp);
/* The kept response that PSN `psn` belongs to, or NULL. */
struct roci_response *roci_response_find(struct roci_qp *qp, uint32_t psn);
/* Answers the FLUSH with this PSN. Nothing of it is kept: one that comes again is answered like a new one. False where
 * too many wait for their answers. */
bool roci_response_flush(struct roci_qp *qp, uint32_t psn);
/* Adds responses, NAK, ACK, CNP to *batch, at most `quantum` packets. True if more can go at once. */
bool roci_response_fill(struct roci_qp *qp, struct roci_tx_batch *batch, unsigned quantum);
/* The next packet of a long response may go. */
void roci_response_expire(struct roci_timer *timer);

void roci_responder_ack(struct roci_qp *qp);
void roci_responder_nak(struct roci_qp *qp, uint8_t syndrome, uint32_t psn);

#endif
