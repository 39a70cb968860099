/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/reorder.h"

#include <stdlib.h>
#include <string.h>

#include "engine/psn.h"

#define BLOCK_SLOTS 32
#define FIRST_RING  512

struct roci_reorder_block {
	struct roci_reorder_block *next;
	/* BLOCK_SLOTS slots follow */
};

/* ---- the store ---- */

static const struct {
	uint16_t payload, units;
} sizes[ROCI_REORDER_SIZES] = {{1408, 1}, {ROCI_MAX_MTU, 3}, {ROCI_MAX_PAYLOAD, 6}};

/* The smallest size of slot that takes it, else the largest: on the local path a packet may have any length. */
static uint8_t size_for(uint32_t payload_len)
{
	uint8_t size = 0;

	while (size + 1 < ROCI_REORDER_SIZES && payload_len > sizes[size].payload)
		size++;
	return size;
}

uint32_t roci_reorder_units(uint32_t payload_len)
{
	return sizes[size_for(payload_len)].units;
}

static size_t slot_bytes(uint8_t size)
{
	size_t bytes = sizeof(struct roci_reorder_slot) + sizes[size].payload;

	return (bytes + 63) & ~(size_t)63;
}

/* Without memory nothing is kept. */
static bool add_block(struct roci_reorder_store *store, uint8_t size)
{
	struct roci_reorder_block *b = malloc(64 + BLOCK_SLOTS * slot_bytes(size));

	if (!b)
		return false;
	b->next = store->blocks;
	store->blocks = b;
	for (unsigned i = 0; i < BLOCK_SLOTS; i++) {
		struct roci_reorder_slot *s = (void *)((char *)b + 64 + i * slot_bytes(size));

		s->size = size;
		s->next_free = store->free[size];
		store->free[size] = s;
	}
	return true;
}

static struct roci_reorder_slot *take_slot(struct roci_reorder_store *store, uint8_t size)
{
	struct roci_reorder_slot *s;

	if (roci_reorder_room(store) < sizes[size].units || (!store->free[size] && !add_block(store, size)))
		return NULL;
	s = store->free[size];
	store->free[size] = s->next_free;
	store->used += sizes[size].units;
	return s;
}

void roci_reorder_release(struct roci_reorder_store *store, struct roci_reorder_slot *slot)
{
	slot->next_free = store->free[slot->size];
	store->free[slot->size] = slot;
	store->used -= sizes[slot->size].units;
}

void roci_reorder_store_fini(struct roci_reorder_store *store)
{
	while (store->blocks) {
		struct roci_reorder_block *b = store->blocks;

		store->blocks = b->next;
		free(b);
	}
	*store = (struct roci_reorder_store){.room = store->room};
}

/* ---- the packets of a QP ---- */

static struct roci_reorder_slot **at(const struct roci_reorder *r, uint32_t psn)
{
	return &r->ring[psn & r->mask];
}

static uint32_t *word(const struct roci_reorder *r, uint32_t psn)
{
	return &r->bits[(psn & r->mask) / 32];
}

/* Makes the ring as large as `span` PSNs. */
static bool reserve(struct roci_reorder *r, uint32_t span)
{
	struct roci_reorder old = *r;
	uint32_t room = r->ring ? r->mask + 1 : FIRST_RING;

	span += 31; /* no word has the bits of two ends */
	if (r->ring && span <= room)
		return true;
	if (span > ROCI_REORDER_SPAN)
		return false;
	while (room < span)
		room *= 2;
	r->ring = calloc(room, sizeof(*r->ring));
	r->bits = calloc(room / 32, sizeof(*r->bits));
	if (!r->ring || !r->bits) {
		free(r->ring);
		free(r->bits);
		*r = old;
		return false;
	}
	r->mask = room - 1;
	for (uint32_t psn = r->low; old.count && psn != r->newest; psn = roci_psn_add(psn, 1)) {
		if (!*at(&old, psn))
			continue;
		*at(r, psn) = *at(&old, psn);
		*word(r, psn) |= 1u << (psn & 31);
	}
	free(old.ring);
	free(old.bits);
	return true;
}

static struct roci_reorder_slot *remove_at(struct roci_reorder *r, uint32_t psn)
{
	struct roci_reorder_slot *s = *at(r, psn);

	if (!s)
		return NULL;
	*at(r, psn) = NULL;
	*word(r, psn) &= ~(1u << (psn & 31));
	r->count--;
	return s;
}

uint32_t roci_reorder_far_window(const struct roci_reorder *r, uint32_t expected, uint32_t ahead)
{
	int32_t newest = r->count ? roci_psn_diff(r->newest, expected) : 0;

	return (newest > 0 ? (uint32_t)newest : 0) + ahead;
}

uint32_t roci_reorder_missing(const struct roci_reorder *r, uint32_t expected, uint32_t psn, uint32_t limit)
{
	uint32_t missing = 0, i = expected;

	while (roci_psn_diff(i, psn) < 0 && missing < limit) {
		uint32_t count = 32 - (i & 31), left = (uint32_t)roci_psn_diff(psn, i), bits = 0;

		if (count > left)
			count = left;
		if (r->count && roci_psn_diff(i, r->newest) < 0)
			bits = roci_reorder_bits(r, i & ~31u) >> (i & 31);
		if (count < 32)
			bits &= (UINT32_C(1) << count) - 1;
		missing += count - (uint32_t)__builtin_popcount(bits);
		i = roci_psn_add(i, count);
	}
	return missing < limit ? missing : limit;
}

bool roci_reorder_keep(struct roci_reorder_store *store, struct roci_reorder *r, const struct roci_rx *rx,
		       uint32_t expected, uint32_t window)
{
	uint32_t psn = rx->pkt.psn, ahead = (uint32_t)roci_psn_diff(psn, expected);
	uint8_t size = size_for(rx->pkt.payload_len);
	struct roci_reorder_slot *s;

	if (ahead >= window || rx->pkt.far || rx->pkt.payload_len > ROCI_MAX_PAYLOAD)
		return false;
	if (!r->count) {
		r->low = expected;
		r->newest = expected;
	}
	if (!reserve(r, (uint32_t)roci_psn_diff(psn, r->low) + 1) || *at(r, psn))
		return false;
	if (r->count * sizes[size].units >= roci_reorder_room(store))
		return false;
	s = take_slot(store, size);
	if (!s)
		return false;
	s->rx = *rx;
	memcpy(s->payload, rx->pkt.payload, rx->pkt.payload_len);
	s->rx.pkt.payload = s->payload;
	*at(r, psn) = s;
	*word(r, psn) |= 1u << (psn & 31);
	r->count++;
	if (roci_psn_diff(psn, r->newest) >= 0)
		r->newest = roci_psn_add(psn, 1);
	return true;
}

struct roci_reorder_slot *roci_reorder_take(struct roci_reorder_store *store, struct roci_reorder *r, uint32_t psn)
{
	if (!r->count)
		return NULL;
	for (; r->count && r->low != r->newest && roci_psn_diff(r->low, psn) < 0; r->low = roci_psn_add(r->low, 1)) {
		struct roci_reorder_slot *s = remove_at(r, r->low);

		if (s)
			roci_reorder_release(store, s);
	}
	return r->count && roci_psn_diff(psn, r->newest) < 0 && roci_psn_diff(psn, r->low) >= 0 ? remove_at(r, psn)
												: NULL;
}

uint32_t roci_reorder_bits(const struct roci_reorder *r, uint32_t psn)
{
	return r->count ? *word(r, psn) : 0;
}

void roci_reorder_clear(struct roci_reorder_store *store, struct roci_reorder *r)
{
	for (; r->count; r->low = roci_psn_add(r->low, 1)) {
		struct roci_reorder_slot *s = remove_at(r, r->low);

		if (s)
			roci_reorder_release(store, s);
	}
}

void roci_reorder_fini(struct roci_reorder_store *store, struct roci_reorder *r)
{
	roci_reorder_clear(store, r);
	free(r->ring);
	free(r->bits);
	*r = (struct roci_reorder){0};
}
