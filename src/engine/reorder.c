/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/reorder.h"

#include <stdlib.h>
#include <string.h>

#include "engine/psn.h"

static struct roci_reorder_slot *slot_of(struct roci_list *l)
{
	return roci_container_of(l, struct roci_reorder_slot, node);
}

void roci_reorder_init(struct roci_reorder *r)
{
	roci_list_init(&r->kept);
	r->count = 0;
}

/* The store is allocated when the first packet is lost. Without memory nothing is kept: go-back-N. */
static bool ready(struct roci_reorder_store *store)
{
	if (store->slots)
		return true;
	store->slots = malloc(ROCI_REORDER_PACKETS * sizeof(*store->slots));
	if (!store->slots)
		return false;
	roci_list_init(&store->free);
	for (int i = 0; i < ROCI_REORDER_PACKETS; i++)
		roci_list_append(&store->free, &store->slots[i].node);
	store->free_count = ROCI_REORDER_PACKETS;
	return true;
}

/* Takes out the packet with the oldest PSN. */
static struct roci_reorder_slot *pop(struct roci_reorder *r)
{
	struct roci_reorder_slot *s = slot_of(r->kept.next);

	roci_list_remove(&s->node);
	r->count--;
	return s;
}

void roci_reorder_keep(struct roci_reorder_store *store, struct roci_reorder *r, const struct roci_rx *rx,
		       uint32_t expected)
{
	struct roci_list *after = r->kept.prev;
	struct roci_reorder_slot *s;

	if (roci_psn_diff(rx->pkt.psn, expected) >= ROCI_REORDER_WINDOW || rx->pkt.far)
		return;
	if (!ready(store) || r->count >= store->free_count || rx->pkt.payload_len > ROCI_REORDER_BYTES)
		return;
	for (; after != &r->kept; after = after->prev) {
		int32_t d = roci_psn_diff(rx->pkt.psn, slot_of(after)->rx.pkt.psn);

		if (d == 0)
			return;
		if (d > 0)
			break;
	}
	s = slot_of(store->free.next);
	roci_list_remove(&s->node);
	store->free_count--;
	s->rx = *rx;
	memcpy(s->payload, rx->pkt.payload, rx->pkt.payload_len);
	s->rx.pkt.payload = s->payload;
	roci_list_append(after->next, &s->node); /* before the first newer one */
	r->count++;
}

struct roci_reorder_slot *roci_reorder_take(struct roci_reorder_store *store, struct roci_reorder *r, uint32_t psn)
{
	while (!roci_list_empty(&r->kept)) {
		int32_t d = roci_psn_diff(slot_of(r->kept.next)->rx.pkt.psn, psn);

		if (d > 0)
			return NULL;
		if (d == 0)
			return pop(r);
		roci_reorder_release(store, pop(r));
	}
	return NULL;
}

void roci_reorder_release(struct roci_reorder_store *store, struct roci_reorder_slot *slot)
{
	roci_list_append(&store->free, &slot->node);
	store->free_count++;
}

void roci_reorder_clear(struct roci_reorder_store *store, struct roci_reorder *r)
{
	while (!roci_list_empty(&r->kept))
		roci_reorder_release(store, pop(r));
}
