/* SPDX-License-Identifier: BSD-2-Clause */
/* The completer: acknowledgements and responses complete work requests, or make RC send again (IBTA 9.7.5). */
#ifndef ROCI_ENGINE_COMPLETER_H
#define ROCI_ENGINE_COMPLETER_H

#include "engine/qp.h"

/* A packet from the responder: ACK, NAK, READ response or atomic acknowledge. */
void roci_completer_rx(struct roci_qp *qp, const struct roci_rx *rx);

#endif
