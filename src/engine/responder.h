/* SPDX-License-Identifier: BSD-2-Clause */
/* The responder: requests of the peer reach memory and the receive queue (IBTA 9.7.4 for RC, 9.8.2 for UC). */
#ifndef ROCI_ENGINE_RESPONDER_H
#define ROCI_ENGINE_RESPONDER_H

#include "engine/qp.h"

/* A request for an RC QP. */
void roci_responder_rx(struct roci_qp *qp, const struct roci_rx *rx);
/* A request for a UC QP. */
void roci_responder_uc_rx(struct roci_qp *qp, const struct roci_rx *rx);

#endif
