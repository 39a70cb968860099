/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets that came before an older one. They are kept in a bounded store, shared by all QPs, until the missing packet
 * arrives. A packet that does not fit is dropped, and is sent again. A QP may keep only as many packets as there is
 * room left for others, so a peer that leaves many gaps open does not fill the store. Finding, keeping and taking a
 * packet costs the same however many are kept.
 */
#ifndef ROCI_ENGINE_REORDER_H
#define ROCI_ENGINE_REORDER_H

#include "engine/engine.h"

#define ROCI_REORDER_ROOM 2048       /* units of a new store */
#define ROCI_REORDER_UNIT 1664       /* bytes of memory that a unit takes, about */
#define ROCI_REORDER_SPAN (1u << 20) /* PSNs from the oldest kept packet to the newest, at most */

/* How far ahead of the expected PSN a packet is kept. Whoever guesses a PSN must hit this window, 1 of 2^16 of all
 * PSNs, or the packet is dropped. A QP can keep no more, so it costs recovery nothing. */
#define ROCI_REORDER_WINDOW 256
/* The same for a peer that is told what it has to send again (ranges.h), counted from the newest packet that came: the
 * missing ones before that are expected. 1 of 2^12, and its UDP port is a secret. Where that is none, a packet is kept
 * that misses less than ROCI_REORDER_WINDOW before it. */
#define ROCI_REORDER_AHEAD 4096

#define ROCI_REORDER_SIZES 3 /* of slots */

struct roci_reorder_slot {
	struct roci_reorder_slot *next_free;
	uint8_t size; /* which of them */
	struct roci_rx rx;
	uint8_t payload[];
};

struct roci_reorder_block; /* slots that were allocated together */

struct roci_reorder_store {
	struct roci_reorder_block *blocks; /* owned */
	struct roci_reorder_slot *free[ROCI_REORDER_SIZES];
	uint32_t room, used; /* units; room 0: ROCI_REORDER_ROOM */
};

/* The packets that one direction of a QP keeps. */
struct roci_reorder {
	uint32_t count;
	uint32_t mask;
	uint32_t low;                    /* nothing before it is kept */
	uint32_t newest;                 /* 1 beyond the newest that is kept, or was since `count` was 0 */
	struct roci_reorder_slot **ring; /* owned, by PSN; NULL until the first packet */
	uint32_t *bits;                  /* owned, by PSN: which of them are there */
};

/* Units that a packet with so many bytes of payload takes. More than ROCI_MAX_PAYLOAD: as many as that takes. */
uint32_t roci_reorder_units(uint32_t payload_len);
/* Units that nobody uses. */
static inline uint32_t roci_reorder_room(const struct roci_reorder_store *store)
{
	return (store->room ? store->room : ROCI_REORDER_ROOM) - store->used;
}
/* Keeps a copy of *rx, which is newer than the packet `expected` and by less than `window`. Drops it where it lies
 * behind the window, where it is kept already, and where *r keeps as many as are free. True where it is kept now. */
bool roci_reorder_keep(struct roci_reorder_store *store, struct roci_reorder *r, const struct roci_rx *rx,
		       uint32_t expected, uint32_t window);
/* The window for a peer that is told what is missing: `ahead` packets beyond the newest one. */
uint32_t roci_reorder_far_window(const struct roci_reorder *r, uint32_t expected, uint32_t ahead);
/* How many packets of [expected, psn) are not kept, or `limit`, where it is at least that. */
uint32_t roci_reorder_missing(const struct roci_reorder *r, uint32_t expected, uint32_t psn, uint32_t limit);
/* The kept packet `psn`, or NULL; older ones are dropped. Give it back with roci_reorder_release(). */
struct roci_reorder_slot *roci_reorder_take(struct roci_reorder_store *store, struct roci_reorder *r, uint32_t psn);
void roci_reorder_release(struct roci_reorder_store *store, struct roci_reorder_slot *slot);
/* Which of the 32 packets from `psn` on, a multiple of 32, are kept; the lowest bit is the first. */
uint32_t roci_reorder_bits(const struct roci_reorder *r, uint32_t psn);
/* Drops all packets of *r. */
void roci_reorder_clear(struct roci_reorder_store *store, struct roci_reorder *r);
void roci_reorder_fini(struct roci_reorder_store *store, struct roci_reorder *r);
void roci_reorder_store_fini(struct roci_reorder_store *store);

#endif
