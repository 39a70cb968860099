/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets that came before an older one. They are kept in a bounded store, shared by all QPs, until the missing packet
 * arrives. A packet that does not fit is dropped, and comes again by go-back-N. A QP may keep only as many packets as
 * there is room left for others, so a peer that leaves many gaps open does not fill the store.
 */
#ifndef ROCI_ENGINE_REORDER_H
#define ROCI_ENGINE_REORDER_H

#include "engine/engine.h"
#include "engine/list.h"

#define ROCI_REORDER_PACKETS 512          /* in the store */
#define ROCI_REORDER_BYTES   ROCI_MAX_MTU /* payload of one */

/* How far ahead of the expected PSN a packet is kept. Whoever guesses a PSN must hit this window, 1 of 2^16 of all
 * PSNs, or the packet is dropped. A QP can keep no more, so it costs recovery nothing. */
#define ROCI_REORDER_WINDOW 256

struct roci_reorder_slot {
	struct roci_list node;
	struct roci_rx rx;
	uint8_t payload[ROCI_REORDER_BYTES];
};

struct roci_reorder_store {
	struct roci_reorder_slot *slots; /* owned, allocated at the first use, ROCI_REORDER_PACKETS of them */
	struct roci_list free;
	unsigned free_count;
};

/* The packets that one direction of a QP keeps, oldest PSN first. */
struct roci_reorder {
	struct roci_list kept;
	unsigned count;
};

void roci_reorder_init(struct roci_reorder *r);
/* Keeps a copy of *rx, which is newer than the packet `expected`. Drops it where it lies behind the window, where it is
 * kept already, and where *r keeps as many as are free. */
void roci_reorder_keep(struct roci_reorder_store *store, struct roci_reorder *r, const struct roci_rx *rx,
		       uint32_t expected);
/* The kept packet `psn`, or NULL; older ones are dropped. Give it back with roci_reorder_release(). */
struct roci_reorder_slot *roci_reorder_take(struct roci_reorder_store *store, struct roci_reorder *r, uint32_t psn);
void roci_reorder_release(struct roci_reorder_store *store, struct roci_reorder_slot *slot);
/* Drops all packets of *r. */
void roci_reorder_clear(struct roci_reorder_store *store, struct roci_reorder *r);

#endif
