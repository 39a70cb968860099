/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Converts times of CLOCK_MONOTONIC to CLOCK_REALTIME. Linux slews both alike, so they differ by a constant, until
 * somebody sets the wall clock. But two clocks cannot be read at once: each reading gives only bounds of the
 * difference. The bounds of all readings are kept together. The lower one is used, which only rises: so later times
 * never convert to earlier ones. A reading outside the bounds says that the wall clock was set; the bounds start anew.
 */
#ifndef ROCI_VERBS_WALLCLOCK_H
#define ROCI_VERBS_WALLCLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct vb_wallclock {
	bool known;
	int64_t low, high; /* bounds of CLOCK_REALTIME minus CLOCK_MONOTONIC, ns */
};

/* The wall clock was read, and the monotonic clock before and after it. All in ns. */
static inline void vb_wallclock_learn(struct vb_wallclock *c, uint64_t before, uint64_t wall, uint64_t after)
{
	/* Each clock drops the fraction of its nanosecond. */
	int64_t low = (int64_t)(wall - after) - 1, high = (int64_t)(wall - before) + 1;
	if (!c->known || low > c->high || high < c->low) {
		*c = (struct vb_wallclock){true, low, high};
		return;
	}
	if (low > c->low)
		c->low = low;
	if (high < c->high)
		c->high = high;
}

/* The wall clock's time at the time `monotonic`. There was a reading before. */
static inline uint64_t vb_wallclock_at(const struct vb_wallclock *c, uint64_t monotonic)
{
	return monotonic + (uint64_t)c->low;
}

#endif
