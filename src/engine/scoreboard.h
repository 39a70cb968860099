/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the peer of a send queue has beyond the oldest packet that it misses, and what was lost: a bit for each PSN, and
 * a queue of lost packets in the order in which they are, or were, sent again. Each packet is judged once for each time
 * that it was sent, so the cost per packet does not depend on how many are in flight.
 */
#ifndef ROCI_ENGINE_SCOREBOARD_H
#define ROCI_ENGINE_SCOREBOARD_H

#include <stdbool.h>
#include <stdint.h>

struct roci_loss {
	uint32_t psn;
	uint64_t sent_at; /* again */
};

struct roci_scoreboard {
	uint32_t have;             /* marks */
	uint32_t first, next, end; /* of losses; [first, next) were sent again, [next, end) will be */
	uint32_t una;              /* nothing before it is marked */
	uint32_t done;             /* nothing before it is missing, though it may not be marked; una or newer */
	uint32_t high;             /* 1 beyond the newest packet that the peer has */
	uint32_t scan;             /* every packet before it was judged: it came, or is or was in the queue */
	uint32_t mask, loss_mask;
	uint32_t *bits;           /* owned, by PSN; NULL until something is marked */
	struct roci_loss *losses; /* owned; NULL until something is lost */
	uint64_t came_at;         /* the newest sent_at of packets that were sent again and came; 0: none */
};

/* Forgets everything; the oldest packet is `una`. Keeps its memory. */
void roci_scoreboard_reset(struct roci_scoreboard *b, uint32_t una);
void roci_scoreboard_fini(struct roci_scoreboard *b);
/* Whether the peer has said that it has `psn`, which is not older than una. */
bool roci_scoreboard_has(const struct roci_scoreboard *b, uint32_t psn);
/* The peer has those of the 32 packets from `begin` on, a multiple of 32, whose bits are set. Only those before `max`
 * and not before una count. Returns how many are new; *newest is the newest of them. */
unsigned roci_scoreboard_mark(struct roci_scoreboard *b, uint32_t begin, uint32_t bits, uint32_t max, uint32_t *newest);
/* How many packets before `psn` the peer does not have; `limit` where it is that or more. */
uint32_t roci_scoreboard_missing(const struct roci_scoreboard *b, uint32_t psn, uint32_t limit);
/* Everything before `una` has arrived. Returns how many of these were marked. */
unsigned roci_scoreboard_advance(struct roci_scoreboard *b, uint32_t una);
/* The peer has everything before `done`, though una waits for something else. */
void roci_scoreboard_done(struct roci_scoreboard *b, uint32_t done);
/* Moves scan to the next packet before `limit` that the peer does not have. False where there is none. */
bool roci_scoreboard_scan(struct roci_scoreboard *b, uint32_t limit);
/* The packet `psn` is lost. False where there is no memory for it. */
bool roci_scoreboard_lose(struct roci_scoreboard *b, uint32_t psn);
/* The packet to send again now; false where there is none. */
bool roci_scoreboard_next(struct roci_scoreboard *b, uint32_t *psn);
/* It was sent. */
void roci_scoreboard_resent(struct roci_scoreboard *b, uint64_t now);
/* The oldest of the packets that were sent again and did not come; NULL where there is none. */
const struct roci_loss *roci_scoreboard_oldest(struct roci_scoreboard *b);
/* It was lost again. */
void roci_scoreboard_lose_again(struct roci_scoreboard *b);

/* Packets that are neither acknowledged nor in flight. */
static inline uint32_t roci_scoreboard_out(const struct roci_scoreboard *b)
{
	return b->have + (b->end - b->next);
}

#endif
