/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * QPNs of this process's block: unpredictable (D9), and not given again soon after they were freed, as packets of the
 * QP may still be on their way and peers may still connect it with the QPN (IBTA 12.9.8.4, TIMEWAIT).
 */
#ifndef ROCI_DEVICE_QPN_H
#define ROCI_DEVICE_QPN_H

#include <stdint.h>

#include "device/registry.h"

struct roci_qpn_block {
	uint32_t base;
	uint32_t taken[ROCI_QPNS_PER_SLOT / 32];
	uint16_t free[ROCI_QPNS_PER_SLOT]; /* a ring, in the order in which they were freed */
	unsigned first, count;
};

void roci_qpn_block_init(struct roci_qpn_block *block, unsigned slot);
/* One of the older half of the free ones, so that a freed QPN rests while half as many as are free are given. -ENOMEM
 */
int roci_qpn_alloc(struct roci_qpn_block *block, uint32_t *qpn);
void roci_qpn_free(struct roci_qpn_block *block, uint32_t qpn);

#endif
