/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/response_ring.h"

#include <errno.h>
#include <stdlib.h>

#include "engine/psn.h"

/* i = 0: the oldest that is kept. */
static struct roci_response *at(struct roci_response_ring *ring, unsigned i)
{
	return &ring->slots[(ring->newest_end + ring->room - ring->count + i) % ring->room];
}

int roci_response_ring_resize(struct roci_response_ring *ring, unsigned room)
{
	unsigned kept = ring->count < room ? ring->count : room, gone = ring->count - kept;
	struct roci_response *slots = NULL;

	for (unsigned i = 0; i < gone; i++)
		if (roci_response_pending(at(ring, i)))
			return -EBUSY;
	if (room) {
		slots = calloc(room, sizeof(*slots));
		if (!slots)
			return -ENOMEM;
	}
	for (unsigned i = 0; i < kept; i++)
		slots[i] = *at(ring, gone + i);
	free(ring->slots);
	ring->slots = slots;
	ring->room = (uint8_t)room;
	ring->count = (uint8_t)kept;
	ring->newest_end = room ? (uint8_t)(kept % room) : 0;
	return 0;
}

void roci_response_ring_fini(struct roci_response_ring *ring)
{
	free(ring->slots);
	free(ring->flushes);
	*ring = (struct roci_response_ring){0};
}

/* ---- adding ---- */

struct roci_response *roci_response_ring_add(struct roci_response_ring *ring, const struct roci_packet *p,
					     uint32_t packets, uint32_t msn)
{
	struct roci_response *x;

	if (!ring->room)
		return NULL;
	x = &ring->slots[ring->newest_end];
	/* A peer asks for no more than it has places for: a response that was asked for again has arrived by now. */
	if (ring->count == ring->room && roci_response_pending(x) && !x->repeated)
		return NULL;
	if (ring->count < ring->room)
		ring->count++;
	ring->newest_end = (uint8_t)((ring->newest_end + 1) % ring->room);
	*x = (struct roci_response){.kind = (uint8_t)p->op->kind,
				    .psn = p->psn,
				    .packets = packets,
				    .end = packets,
				    .starts = true,
				    .copy_payload = packets == 1, /* only a timeout would tell of its loss */
				    .va = p->va,
				    .rkey = p->rkey,
				    .len = p->dma_len,
				    .msn = msn};
	return x;
}

bool roci_response_ring_add_flush(struct roci_response_ring *ring, uint32_t psn)
{
	if (ring->flush_count == ROCI_MAX_FLUSHES)
		return false;
	if (!ring->flushes)
		ring->flushes = malloc(ROCI_MAX_FLUSHES * sizeof(*ring->flushes));
	if (!ring->flushes)
		return false;
	ring->flushes[(ring->flush_first + ring->flush_count++) % ROCI_MAX_FLUSHES] = psn;
	return true;
}

/* ---- asked for again ---- */

static struct roci_response *find(struct roci_response_ring *ring, const struct roci_packet *p)
{
	for (unsigned i = ring->count; i-- > 0;) {
		struct roci_response *x = at(ring, i);
		int32_t into = roci_psn_diff(p->psn, x->psn);

		if (into >= 0 && (uint32_t)into < x->packets)
			return x->kind == p->op->kind ? x : NULL;
	}
	return NULL;
}

static bool read_again(struct roci_response *x, const struct roci_packet *p, uint32_t packets, uint32_t mtu)
{
	uint32_t into = (uint32_t)roci_psn_diff(p->psn, x->psn), end = into + packets;
	uint64_t offset = (uint64_t)into * mtu;

	if (p->rkey != x->rkey || p->va != x->va + offset || offset + p->dma_len > x->len || end > x->packets)
		return false;
	x->copy_payload = true;
	if (!roci_response_pending(x)) {
		x->next = x->end = into;
		x->repeated = x->starts = true;
	} else if (into < x->next) {
		x->next = into;
		x->starts = true;
	}
	if (x->end < end)
		x->end = end;
	return true;
}

bool roci_response_ring_again(struct roci_response_ring *ring, const struct roci_packet *p, uint32_t packets,
			      uint32_t mtu)
{
	struct roci_response *x = find(ring, p);

	if (!x)
		return false;
	if (x->kind == ROCI_KIND_READ_REQUEST)
		return read_again(x, p, packets, mtu);
	x->repeated = true;
	x->next = 0;
	return true;
}

/* ---- sending ---- */

struct roci_response *roci_response_ring_next(struct roci_response_ring *ring)
{
	struct roci_response *x = NULL;
	uint32_t flush_psn;

	for (unsigned i = 0; i < ring->count && !x; i++)
		if (roci_response_pending(at(ring, i)))
			x = at(ring, i);
	if (!ring->flush_count)
		return x;
	flush_psn = ring->flushes[ring->flush_first];
	if (x && roci_psn_diff(flush_psn, x->psn) >= 0)
		return x;
	ring->flush = (struct roci_response){.kind = ROCI_KIND_FLUSH, .psn = flush_psn, .packets = 1, .end = 1};
	return &ring->flush;
}

void roci_response_ring_sent(struct roci_response_ring *ring, struct roci_response *x)
{
	x->next++;
	x->starts = false;
	if (x != &ring->flush)
		return;
	ring->flush_first = (uint8_t)((ring->flush_first + 1) % ROCI_MAX_FLUSHES);
	ring->flush_count--;
}
