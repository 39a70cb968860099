/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets that came too early (D8): kept, in a bounded store shared by all QPs, until the missing one arrives. What
 * does not fit is dropped, and comes again by go-back-N. Nobody takes more than is left for the others, so that a peer
 * with gaps that it never fills, or as many of them as it can open, does not take it all.
 */
#ifndef ROCI_ENGINE_REORDER_H
#define ROCI_ENGINE_REORDER_H

#include "engine/engine.h"
#include "engine/list.h"

#define ROCI_REORDER_PACKETS 512          /* in the store */
#define ROCI_REORDER_BYTES   ROCI_MAX_MTU /* payload of one */

struct roci_reorder_slot {
	struct roci_list link;
	struct roci_rx rx;
	uint8_t payload[ROCI_REORDER_BYTES];
};

struct roci_reorder_store {
	struct roci_reorder_slot *slots; /* owned, allocated at the first use, ROCI_REORDER_PACKETS of them */
	struct roci_list free;
	unsigned free_count;
};

/* What one direction of a QP has kept, by PSN. */
struct roci_reorder {
	struct roci_list kept;
	unsigned count;
};

void roci_reorder_init(struct roci_reorder *r);
/* Keeps a copy of *rx; drops it where it is kept already, and where *r has kept as many as there are free. */
void roci_reorder_keep(struct roci_reorder_store *store, struct roci_reorder *r, const struct roci_rx *rx);
/* The kept packet `psn`, or NULL; older ones are dropped. Give it back with roci_reorder_release(). */
struct roci_reorder_slot *roci_reorder_take(struct roci_reorder_store *store, struct roci_reorder *r, uint32_t psn);
void roci_reorder_release(struct roci_reorder_store *store, struct roci_reorder_slot *slot);
/* Drops all that is kept. */
void roci_reorder_clear(struct roci_reorder_store *store, struct roci_reorder *r);

#endif
