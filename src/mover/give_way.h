/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When a session's thread lets others have its processor, between two pieces of a chunk. A chunk of 1 MiB takes
 * it up to a millisecond (with instructions for AES), and for so long the device's thread may wait for the same
 * processor: a line then runs dry, since a queue on the way holds less. So a thread that mostly sleeps, because the
 * line is what it waits for, gives way (sched_yield(2)). One that hardly sleeps bounds the transfer itself, or polls,
 * and does not. Nor does one beside a program that takes whole slices of the processor for it. All but give_way() is
 * pure.
 */
#ifndef ROCI_MOVER_GIVE_WAY_H
#define ROCI_MOVER_GIVE_WAY_H

#include <stdbool.h>
#include <stdint.h>

#define GIVE_WAY_PERIOD_NS 20000000u  /* after which it is judged again how much of it the thread slept */
#define GIVE_WAY_LONG_NS   1000000u   /* whoever keeps the processor for longer has taken a slice of it, ... */
#define GIVE_WAY_PAUSE     16         /* ... and this many times as long there is no way given, ... */
#define GIVE_WAY_MOST_NS   100000000u /* ... as if it had taken this at most: the process may have been stopped */

/* Zeros: nothing is known, so it gives no way. */
struct give_way {
	uint64_t since_ns; /* when the period began */
	uint64_t slept_ns; /* of it */
	uint64_t not_before_ns;
	bool willing; /* it slept for half of the last period or more */
};

/* The thread slept. */
static inline void give_way_slept(struct give_way *g, uint64_t from_ns, uint64_t to_ns)
{
	g->slept_ns += to_ns - from_ns;
}

/* Whether it gives way now. */
static inline bool give_way_due(struct give_way *g, uint64_t now_ns)
{
	uint64_t period_ns = now_ns - g->since_ns;

	if (period_ns >= GIVE_WAY_PERIOD_NS) {
		g->willing = g->since_ns && g->slept_ns >= period_ns / 2;
		g->since_ns = now_ns;
		g->slept_ns = 0;
	}
	return g->willing && now_ns >= g->not_before_ns;
}

/* It did, and has the processor again. */
static inline void give_way_gave(struct give_way *g, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t took_ns = to_ns - from_ns < GIVE_WAY_MOST_NS ? to_ns - from_ns : GIVE_WAY_MOST_NS;

	if (took_ns > GIVE_WAY_LONG_NS)
		g->not_before_ns = to_ns + GIVE_WAY_PAUSE * took_ns;
}

/* Gives way, if it is due. */
void give_way(struct give_way *g);

#endif
