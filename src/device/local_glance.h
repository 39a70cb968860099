/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which polls read the sockets. A poll costs a system call there, and next to nothing at the rings of processes of this
 * host (local_ring.h). So while packets come by rings, most polls look at the rings only. Pure: no clock, no socket.
 */
#ifndef ROCI_DEVICE_LOCAL_GLANCE_H
#define ROCI_DEVICE_LOCAL_GLANCE_H

#include <stdbool.h>

#define ROCI_GLANCE_POLLS 256 /* in which the next packet by a ring is waited for: some 20 us */
#define ROCI_GLANCE_EVERY 16  /* one poll of so many reads the sockets all the same */

struct roci_local_glance {
	unsigned left;    /* polls that may leave the sockets out */
	unsigned skipped; /* in a row */
};

/* A poll begins. True: it looks at the rings only. */
static inline bool roci_local_glance_skips(struct roci_local_glance *g)
{
	if (!g->left || g->skipped + 1 == ROCI_GLANCE_EVERY) {
		g->skipped = 0;
		return false;
	}
	g->left--;
	g->skipped++;
	return true;
}

/* So many packets came by rings, and by sockets. */
static inline void roci_local_glance_saw(struct roci_local_glance *g, unsigned by_rings, unsigned by_sockets)
{
	if (by_sockets)
		g->left = 0;
	else if (by_rings)
		g->left = ROCI_GLANCE_POLLS;
}

#endif
