/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The responder: requests of the peer are executed in the order of their PSNs (IBTA 9.7.4 for RC, 9.8.2 for UC). Here
 * it is decided which packet is next, which one is a duplicate, and what an error means for the peer, the receive and
 * the QP.
 */
#ifndef ROCI_ENGINE_RESPONDER_H
#define ROCI_ENGINE_RESPONDER_H

#include "engine/qp.h"

/* The peer sent *pkt if it is the next request, or one of the last few again, because its sender may not know that they
 * came; or one of the next few where the peer has not shown its port yet. Other duplicates are answered, no more. */
enum roci_proof roci_responder_proof(const struct roci_qp *qp, const struct roci_packet *pkt);
/* The peer sent *pkt if it is near the next one: UC sends nothing again, and some may be lost. */
enum roci_proof roci_responder_uc_proof(const struct roci_qp *qp, const struct roci_packet *pkt);
/* A request for an RC QP. */
void roci_responder_rx(struct roci_qp *qp, const struct roci_rx *rx);
/* A request for a UC QP. */
void roci_responder_uc_rx(struct roci_qp *qp, const struct roci_rx *rx);
/* An OFFER came (ranges.h). */
void roci_responder_offered(struct roci_qp *qp, const struct roci_rx *rx);
/* Adds responses, NAK, ACK and CNP to *batch, at most `quantum` packets. True if more can go at once. */
bool roci_responder_fill(struct roci_qp *qp, struct roci_tx_batch *batch, unsigned quantum);

#endif
