/* SPDX-License-Identifier: BSD-2-Clause */
/* For src/rdmacm: connections whose peer may vanish without a word. */
#ifndef ROCI_VERBS_KEEPALIVE_H
#define ROCI_VERBS_KEEPALIVE_H

#include <stdint.h>

struct ibv_qp;

/* Lets the QP, one of ours, ask a silent peer for a sign of life, see roci_qp_keepalive(). */
__attribute__((visibility("default"))) void roci_verbs_keepalive(struct ibv_qp *qp, uint64_t interval_ns);

#endif
