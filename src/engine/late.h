/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How late a packet may be before it counts as lost: the reordering window of RACK (RFC 8985, 7.2, step 4). It grows,
 * at most once in a round trip, when a packet that was sent again comes twice. It shrinks when none has for a while.
 */
#ifndef ROCI_ENGINE_LATE_H
#define ROCI_ENGINE_LATE_H

#include <stdbool.h>
#include <stdint.h>

#define ROCI_LATE_FIRST 1 /* quarters of the shortest round trip */
#define ROCI_LATE_MAX   8
#define ROCI_LATE_LIFE  16 /* round trips without a duplicate, then it shrinks */

struct roci_late {
	uint64_t changed_at; /* ns */
	uint8_t quarters;    /* of the shortest round trip */
};

static inline void roci_late_init(struct roci_late *l)
{
	l->quarters = ROCI_LATE_FIRST;
}
/* twice: a packet came twice lately, so it was late, not lost. rtt: the smoothed round trip, ns. */
static inline void roci_late_update(struct roci_late *l, uint64_t now, uint64_t rtt, bool twice)
{
	if (twice && now - l->changed_at > rtt) {
		l->quarters += l->quarters < ROCI_LATE_MAX;
		l->changed_at = now;
	} else if (now - l->changed_at > ROCI_LATE_LIFE * rtt && l->quarters > ROCI_LATE_FIRST) {
		l->quarters--;
		l->changed_at = now;
	}
}
/* How much longer than the last round trip a packet may take; at most the smoothed one. */
static inline uint64_t roci_late_ns(const struct roci_late *l, uint64_t shortest_rtt, uint64_t rtt)
{
	uint64_t late = shortest_rtt / 4 * l->quarters;

	return late < rtt ? late : rtt;
}

#endif
