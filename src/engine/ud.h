/* SPDX-License-Identifier: BSD-2-Clause */
/* Datagrams: UD, one packet a message (IBTA 9.8.3). */
#ifndef ROCI_ENGINE_UD_H
#define ROCI_ENGINE_UD_H

#include "engine/engine.h"

/* A datagram for a UD QP: Q_Key and state are checked here. */
void roci_ud_rx(struct roci_qp *qp, const struct roci_rx *rx);

#endif
