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

/* QPNs with a meaning of their own are in no block: 0 and 1 are for management (IBTA 3.5.10). */
static bool is_reserved(uint32_t qpn)
{
	return qpn <= 1 || qpn == ROCI_QPN_MULTICAST;
}

void roci_qpn_block_init(struct roci_qpn_block *block, const struct roci_slot_key *key, unsigned slot)
{
	memset(block, 0, sizeof(*block));
	block->key = *key;
	block->slot = slot;
	for (uint32_t offset = 0; offset < ROCI_QPNS_PER_SLOT; offset++)
		if (!is_reserved(roci_slot_qpn(key, slot, offset)))
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
	*qpn = roci_slot_qpn(&block->key, block->slot, offset);
	return 0;
}

void roci_qpn_free(struct roci_qpn_block *block, uint32_t qpn)
{
	uint32_t offset = qpn % ROCI_QPNS_PER_SLOT;

	assert(roci_slot_of(&block->key, qpn) == block->slot && (block->taken[offset / 32] & bit(offset)));
	block->taken[offset / 32] &= ~bit(offset);
	*at(block, block->count++) = (uint16_t)offset;
}
