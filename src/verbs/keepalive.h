/* SPDX-License-Identifier: BSD-2-Clause */
/* For src/rdmacm: detects connections whose peer is gone. */
#ifndef ROCI_VERBS_KEEPALIVE_H
#define ROCI_VERBS_KEEPALIVE_H

#include <stdint.h>

struct ibv_qp;

/* Makes the QP, one of this device, probe a silent peer at this interval: see roci_qp_keepalive(). */
__attribute__((visibility("default"))) void roci_verbs_keepalive(struct ibv_qp *qp, uint64_t interval_ns);

#endif
