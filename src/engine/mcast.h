/* SPDX-License-Identifier: BSD-2-Clause */
/* Multicast groups of UD QPs (IBTA 10.5). */
#ifndef ROCI_ENGINE_MCAST_H
#define ROCI_ENGINE_MCAST_H

#include "engine/engine.h"

/* Gives a packet that came to rx->dgid to each attached QP. */
void roci_mcast_rx(struct roci_engine *e, const struct roci_rx *rx);
/* Detaches a QP from all its groups. */
void roci_mcast_forget(struct roci_qp *qp);
void roci_mcast_free(struct roci_engine *e);

#endif
