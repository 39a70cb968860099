#include "device/qpn.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "device/device.h"

static uint32_t bit(uint32_t offset)
{
	return 1u << offset % 32;
}

void roci_qpn_block_init(struct roci_qpn_block *block, unsigned slot)
{
	memset(block, 0, sizeof *block);
	block->base = slot << ROCI_SLOT_SHIFT;
	if (slot == ROCI_SLOTS - 1) { /* the last QPN of all means multicast */
		uint32_t offset = ROCI_QPN_MULTICAST - block->base;

		block->taken[offset / 32] |= bit(offset);
	}
}

int roci_qpn_alloc(struct roci_qpn_block *block, uint32_t *qpn)
{
	uint32_t start = roci_random32();

	for (uint32_t i = 0; i < 64 + ROCI_QPNS_PER_SLOT; i++) {
		/* A few throws of the dice, then one after the other: the block is nearly full. */
		uint32_t offset = (i < 64 ? roci_random32() : start + i) % ROCI_QPNS_PER_SLOT;

		if (block->taken[offset / 32] & bit(offset))
			continue;
		block->taken[offset / 32] |= bit(offset);
		*qpn = block->base + offset;
		return 0;
	}
	return -ENOMEM;
}

void roci_qpn_free(struct roci_qpn_block *block, uint32_t qpn)
{
	uint32_t offset = qpn - block->base, oldest;

	assert(offset < ROCI_QPNS_PER_SLOT && (block->taken[offset / 32] & bit(offset)));
	if (block->resting_count == ROCI_QPN_QUARANTINE) {
		oldest = block->resting[block->next];
		block->taken[oldest / 32] &= ~bit(oldest);
	} else {
		block->resting_count++;
	}
	block->resting[block->next] = (uint16_t)offset;
	block->next = (block->next + 1) % ROCI_QPN_QUARANTINE;
}
