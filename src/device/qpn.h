/* QPNs of this process's block: unpredictable, and not given again soon after they were freed (D9). */
#ifndef ROCI_DEVICE_QPN_H
#define ROCI_DEVICE_QPN_H

#include <stdint.h>

#include "device/registry.h"

#define ROCI_QPN_QUARANTINE 256 /* freed QPNs that rest; ROCI_MAX_QP leaves more than that unused */

struct roci_qpn_block {
	uint32_t base;
	uint32_t taken[ROCI_QPNS_PER_SLOT / 32]; /* in use or resting */
	uint16_t resting[ROCI_QPN_QUARANTINE];   /* ring, oldest at `next` once it is full */
	unsigned next, resting_count;
};

void roci_qpn_block_init(struct roci_qpn_block *block, unsigned slot);
int roci_qpn_alloc(struct roci_qpn_block *block, uint32_t *qpn); /* -ENOMEM */
void roci_qpn_free(struct roci_qpn_block *block, uint32_t qpn);

#endif
