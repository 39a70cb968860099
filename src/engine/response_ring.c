/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/response_ring.h"

#include <errno.h>
#include <stdlib.h>

#include "engine/psn.h"

#define NEAR 16 /* of the newest are searched one by one: a peer that was told nothing else has no more */

/* i = 0: the oldest that is kept. */
static struct roci_response *at(struct roci_response_ring *ring, unsigned i)
{
	return &ring->slots[(ring->newest_end + ring->room - ring->count + i) % ring->room];
}

int roci_response_ring_resize(struct roci_response_ring *ring, unsigned room)
{
	unsigned kept = ring->count < room ? ring->count : room, gone = ring->count - kept;
	struct roci_response *slots = NULL;

	if (ring->parts && room && room < ring->room)
		return 0; /* the peer relies on what it was told */
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
	ring->room = (uint16_t)room;
	ring->count = (uint16_t)kept;
	ring->newest_end = room ? (uint16_t)(kept % room) : 0;
	if (ring->parts)
		ring->parts->quiet = 0;
	return 0;
}

bool roci_response_ring_extend(struct roci_response_ring *ring)
{
	if (ring->parts)
		return true;
	if (!ring->room || roci_response_ring_resize(ring, ROCI_FAR_READS))
		return false;
	ring->parts = calloc(1, sizeof(*ring->parts));
	return ring->parts;
}

void roci_response_ring_fini(struct roci_response_ring *ring)
{
	free(ring->slots);
	free(ring->flushes);
	free(ring->parts);
	*ring = (struct roci_response_ring){0};
}

/* ---- adding ---- */

static void forget_oldest(struct roci_response_ring *ring)
{
	ring->count--;
	if (ring->parts && ring->parts->quiet)
		ring->parts->quiet--;
}

/* Those that are kept are in the order of PSNs, as seen from `psn`, the next one. What is half of all PSNs older than
 * it, or more, would seem to be newer. */
static void forget_ancient(struct roci_response_ring *ring, uint32_t psn)
{
	bool all = ring->count && roci_psn_diff(psn, at(ring, ring->count - 1u)->psn) <= 0;

	while (ring->count && !roci_response_pending(at(ring, 0)) && (all || roci_psn_diff(psn, at(ring, 0)->psn) <= 0))
		forget_oldest(ring);
}

struct roci_response *roci_response_ring_add(struct roci_response_ring *ring, const struct roci_packet *p,
					     uint32_t packets, uint32_t msn)
{
	struct roci_response *x;

	if (!ring->room)
		return NULL;
	forget_ancient(ring, p->psn);
	x = &ring->slots[ring->newest_end];
	/* A peer asks for no more than it has places for: a response that was asked for again has arrived by now. */
	if (ring->count == ring->room && roci_response_pending(x) && !x->repeated)
		return NULL;
	if (ring->count == ring->room)
		forget_oldest(ring);
	ring->count++;
	ring->newest_end = (uint16_t)((ring->newest_end + 1) % ring->room);
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
	struct roci_flushes *f = ring->flushes;

	if (!f)
		f = ring->flushes = calloc(1, sizeof(*f));
	if (!f || f->count == ROCI_MAX_FLUSHES)
		return false;
	f->psns[(f->first + f->count++) % ROCI_MAX_FLUSHES] = psn;
	return true;
}

/* ---- asked for again ---- */

static bool has(const struct roci_response *x, uint32_t psn)
{
	int32_t into = roci_psn_diff(psn, x->psn);

	return into >= 0 && (uint32_t)into < x->packets;
}

/* The place of the response that has `psn`, counted from the oldest; ring->count: there is none. */
static unsigned find(struct roci_response_ring *ring, uint32_t psn)
{
	unsigned low = 0, high = ring->count; /* then among these, which are in the order of PSNs */

	for (; high && high + NEAR > ring->count; high--)
		if (has(at(ring, high - 1), psn))
			return high - 1;
	while (low + 1 < high) {
		unsigned middle = low + (high - low) / 2;

		if (roci_psn_diff(at(ring, middle)->psn, psn) <= 0)
			low = middle;
		else
			high = middle;
	}
	return high && has(at(ring, low), psn) ? low : ring->count;
}

/* Whether *p asks for a part of *x, which has `packets` packets. */
static bool is_part(const struct roci_response *x, const struct roci_packet *p, uint32_t packets, uint32_t mtu)
{
	uint32_t into = (uint32_t)roci_psn_diff(p->psn, x->psn);
	uint64_t offset = (uint64_t)into * mtu;

	return p->rkey == x->rkey && p->va == x->va + offset && offset + p->dma_len <= x->len &&
	       into + packets <= x->packets;
}

static void read_again(struct roci_response *x, uint32_t into, uint32_t end)
{
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
}

/* What is still to be sent anyway needs no second time. */
static bool add_part(struct roci_parts *parts, const struct roci_response *x, uint32_t into, uint32_t packets)
{
	unsigned i = (parts->first + parts->count) % ROCI_FAR_READS;

	if (roci_response_pending(x) && into >= x->next)
		return true;
	if (parts->count == ROCI_FAR_READS)
		return false;
	parts->ring[i].psn = roci_psn_add(x->psn, into);
	parts->ring[i].packets = packets;
	parts->count++;
	return true;
}

bool roci_response_ring_again(struct roci_response_ring *ring, const struct roci_packet *p, uint32_t packets,
			      uint32_t mtu)
{
	unsigned i = find(ring, p->psn);
	struct roci_response *x = i < ring->count ? at(ring, i) : NULL;
	uint32_t into;

	if (!x || x->kind != p->op->kind)
		return false;
	into = (uint32_t)roci_psn_diff(p->psn, x->psn);
	if (x->kind == ROCI_KIND_READ_REQUEST) {
		if (!is_part(x, p, packets, mtu))
			return false;
		if (ring->parts)
			return add_part(ring->parts, x, into, packets);
		read_again(x, into, into + packets);
	} else {
		x->repeated = true;
		x->next = 0;
	}
	if (ring->parts && ring->parts->quiet > i)
		ring->parts->quiet = (uint16_t)i;
	return true;
}

bool roci_response_ring_waits(struct roci_response_ring *ring, uint32_t psn)
{
	unsigned i = find(ring, psn);

	if (ring->parts && (ring->parts->count || roci_response_pending(&ring->parts->answer)))
		return true;
	return i < ring->count && roci_response_pending(at(ring, i));
}

/* ---- sending ---- */

/* The part that is sent next, or NULL. Kept apart, because few QPs have any. */
static __attribute__((noinline)) struct roci_response *next_part(struct roci_response_ring *ring)
{
	struct roci_parts *parts = ring->parts;
	struct roci_response *x = &parts->answer;

	while (!roci_response_pending(x) && parts->count) {
		uint32_t psn = parts->ring[parts->first].psn, packets = parts->ring[parts->first].packets;
		unsigned i = find(ring, psn);

		parts->first = (uint16_t)((parts->first + 1) % ROCI_FAR_READS);
		parts->count--;
		if (i == ring->count)
			continue; /* its place was needed */
		*x = *at(ring, i);
		x->next = (uint32_t)roci_psn_diff(psn, x->psn);
		x->end = x->next + packets;
		x->starts = x->repeated = x->copy_payload = true;
	}
	return roci_response_pending(x) ? x : NULL;
}

/* The oldest response of which something is to be sent, or NULL. */
static struct roci_response *next_kept(struct roci_response_ring *ring)
{
	unsigned i = ring->parts ? ring->parts->quiet : 0;

	while (i < ring->count && !roci_response_pending(at(ring, i)))
		i++;
	if (ring->parts)
		ring->parts->quiet = (uint16_t)i;
	return i < ring->count ? at(ring, i) : NULL;
}

struct roci_response *roci_response_ring_search(struct roci_response_ring *ring)
{
	struct roci_response *x = ring->parts ? next_part(ring) : NULL;
	struct roci_flushes *f = ring->flushes;

	if (x)
		return x;
	x = next_kept(ring);
	if (!f || !f->count || (x && roci_psn_diff(f->psns[f->first], x->psn) >= 0))
		return x;
	f->answer = (struct roci_response){.kind = ROCI_KIND_FLUSH, .psn = f->psns[f->first], .packets = 1, .end = 1};
	return &f->answer;
}

void roci_response_ring_sent(struct roci_response_ring *ring, struct roci_response *x)
{
	x->next++;
	x->starts = false;
	if (!ring->flushes || x != &ring->flushes->answer)
		return;
	ring->flushes->first = (uint8_t)((ring->flushes->first + 1) % ROCI_MAX_FLUSHES);
	ring->flushes->count--;
}
