/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/qpn.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "device/device.h"

static uint32_t bit(uint32_t offset)
{
	return 1u << offset % 32;
}

static uint16_t *at(struct roci_qpn_block *block, unsigned i)
{
	return &block->free[(block->first + i) % ROCI_QPNS_PER_SLOT];
}

void roci_qpn_block_init(struct roci_qpn_block *block, unsigned slot)
{
	memset(block, 0, sizeof(*block));
	block->base = slot << ROCI_SLOT_SHIFT;
	for (uint32_t offset = 0; offset < ROCI_QPNS_PER_SLOT; offset++)
		if (block->base + offset != ROCI_QPN_MULTICAST)
			block->free[block->count++] = (uint16_t)offset;
	block->unused = block->count;
}

/* How many of the ring's first are drawn from: all that were never given, and at least half of the free ones. */
static unsigned choices(const struct roci_qpn_block *block)
{
	unsigned half = (block->count + 1) / 2;

	return block->unused > half ? block->unused : half;
}

int roci_qpn_alloc(struct roci_qpn_block *block, uint32_t *qpn)
{
	uint16_t *oldest, *drawn, offset;

	if (!block->count)
		return -ENOMEM;
	oldest = at(block, 0);
	drawn = at(block, roci_random32() % choices(block));
	offset = *drawn;
	*drawn = *oldest;
	block->first = (block->first + 1) % ROCI_QPNS_PER_SLOT;
	block->count--;
	if (block->unused)
		block->unused--;
	block->taken[offset / 32] |= bit(offset);
	*qpn = block->base + offset;
	return 0;
}

void roci_qpn_free(struct roci_qpn_block *block, uint32_t qpn)
{
	uint32_t offset = qpn - block->base;

	assert(offset < ROCI_QPNS_PER_SLOT && (block->taken[offset / 32] & bit(offset)));
	block->taken[offset / 32] &= ~bit(offset);
	*at(block, block->count++) = (uint16_t)offset;
}
