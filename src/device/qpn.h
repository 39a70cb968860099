/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * QPNs of this process's block. They are unpredictable, and not given again soon after they were freed: packets of the
 * old QP may still be on their way (IBTA 12.9.8.4, TimeWait).
 */
#ifndef ROCI_DEVICE_QPN_H
#define ROCI_DEVICE_QPN_H

#include <stdint.h>

#include "device/qpn_slot.h"

struct roci_qpn_block {
	unsigned slot;
	struct roci_slot_key key;
	uint32_t taken[ROCI_QPNS_PER_SLOT / 32];
	uint16_t free[ROCI_QPNS_PER_SLOT]; /* a ring, in the order in which they were freed */
	unsigned first, count;
	unsigned unused; /* the first of the ring, which were never given */
};

void roci_qpn_block_init(struct roci_qpn_block *block, const struct roci_slot_key *key, unsigned slot);
/* Draws one of the QPNs that were never given, or of the half of the free ones that were freed first, whichever are
 * more. -ENOMEM: none is free. */
int roci_qpn_alloc(struct roci_qpn_block *block, uint32_t *qpn);
void roci_qpn_free(struct roci_qpn_block *block, uint32_t qpn);

#endif
