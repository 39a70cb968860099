/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which polls read the sockets. A poll costs a system call there, and next to nothing at the rings of processes of this
 * host (ring.h). So while packets come by rings, most polls look at the rings only; and most of those do not even
 * read the clock, or take the lock. Pure: no clock, no socket. Times are nanoseconds of one monotonic clock.
 */
#ifndef ROCI_DEVICE_LOCAL_GLANCE_H
#define ROCI_DEVICE_LOCAL_GLANCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define ROCI_GLANCE_NS       20000 /* in which the next packet by a ring is waited for */
#define ROCI_GLANCE_EVERY_NS 5000  /* the sockets are read all the same ... */
#define ROCI_GLANCE_MOST_NS  40000 /* ... and less often, up to this, while nothing comes by them */
#define ROCI_GLANCE_PEEKS    31    /* polls in a row, at most, that do not read the clock: ... */
#define ROCI_GLANCE_FAST_NS  2000  /* ... twice as many as just took no longer than this */

struct roci_local_glance {
	uint64_t until;           /* until then polls may leave the sockets out */
	uint64_t sockets_at;      /* when they were last read */
	uint64_t every;           /* until they are read again; 0: ROCI_GLANCE_EVERY_NS */
	uint64_t clock_at;        /* when a poll last read the clock */
	unsigned allowed;         /* what `peeks` was when a poll last had the lock */
	_Atomic unsigned peeks;   /* polls that need no clock; threads that have no lock count them down */
	_Atomic unsigned granted; /* what it was set to last, with the lock; 0: none, whatever `peeks` is */
};

/* A poll begins, perhaps without the lock. True: it needs no clock where nothing waits in a ring. */
static inline bool roci_local_glance_peeks(struct roci_local_glance *g)
{
	unsigned left = atomic_load_explicit(&g->peeks, memory_order_relaxed);

	if (!left || !atomic_load_explicit(&g->granted, memory_order_relaxed))
		return false;
	atomic_store_explicit(&g->peeks, left - 1, memory_order_relaxed); /* two threads may count one: no harm */
	return true;
}

static inline void roci_local_glance_allow(struct roci_local_glance *g, unsigned peeks)
{
	g->allowed = peeks;
	atomic_store_explicit(&g->granted, peeks, memory_order_relaxed);
	atomic_store_explicit(&g->peeks, peeks, memory_order_relaxed);
}

/* The polls that peeked since this was asked last, or since they were allowed to. */
static inline unsigned roci_local_glance_peeked(struct roci_local_glance *g)
{
	unsigned left = atomic_load_explicit(&g->peeks, memory_order_relaxed);
	unsigned peeked = g->allowed > left ? g->allowed - left : 0;

	g->allowed = left;
	return peeked;
}

/* The polls since the clock was last read, this one included. */
static inline unsigned roci_local_glance_polls(const struct roci_local_glance *g)
{
	unsigned left = atomic_load_explicit(&g->peeks, memory_order_relaxed);
	unsigned granted = atomic_load_explicit(&g->granted, memory_order_relaxed);

	return granted > left ? granted - left + 1 : 1;
}

/* It has read the clock. True: it looks at the rings only. */
static inline bool roci_local_glance_skips(struct roci_local_glance *g, uint64_t now)
{
	uint64_t every = g->every ? g->every : ROCI_GLANCE_EVERY_NS;
	bool skips = now < g->until && now - g->sockets_at < every, fast = now - g->clock_at < ROCI_GLANCE_FAST_NS;
	unsigned most = 2 * roci_local_glance_polls(g);

	if (!skips) {
		g->sockets_at = now;
		g->every = 2 * every < ROCI_GLANCE_MOST_NS ? 2 * every : ROCI_GLANCE_MOST_NS;
	}
	roci_local_glance_allow(g, !skips || !fast ? 0 : most < ROCI_GLANCE_PEEKS ? most : ROCI_GLANCE_PEEKS);
	g->clock_at = now;
	return skips;
}

/* So many packets came by rings, and by sockets. */
static inline void roci_local_glance_saw(struct roci_local_glance *g, uint64_t now, unsigned by_rings,
					 unsigned by_sockets)
{
	if (by_sockets) {
		g->until = g->every = 0;
		roci_local_glance_allow(g, 0);
	} else if (by_rings) {
		g->until = now + ROCI_GLANCE_NS;
	}
}

#endif
