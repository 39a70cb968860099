/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where packets came that others had overtaken, since the last RANGES (ranges.h). What is sent again lies near one
 * place, except for what was lost again: that is older by a round trip or two. So there are three ranges, each as long
 * as a segment of RANGES can be. What fits in none is not named, and may be sent once more without need.
 */
#ifndef ROCI_ENGINE_LATE_RANGES_H
#define ROCI_ENGINE_LATE_RANGES_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/psn.h"
#include "engine/ranges.h"

#define ROCI_LATE_RANGES (ROCI_RANGES_SEGMENTS - 1)

struct roci_late_range {
	uint32_t begin, end; /* PSNs; equal: it is empty */
};
struct roci_late_ranges {
	struct roci_late_range ranges[ROCI_LATE_RANGES];
};
/* What a responder keeps for its RANGES, from the peer's first offer on. */
struct roci_ranges_kept {
	struct roci_late_ranges late;
	uint8_t payload[ROCI_RANGES_MAX_BYTES]; /* of the one that is being sent */
};

/* Whether a segment can name *r and `psn`. */
static inline bool roci_late_range_fits(const struct roci_late_range *r, uint32_t psn)
{
	uint32_t begin = roci_psn_diff(psn, r->begin) < 0 ? psn : r->begin;
	int32_t end = roci_psn_diff(psn, r->end) >= 0 ? roci_psn_diff(psn, begin) + 1 : roci_psn_diff(r->end, begin);

	return end + (begin & 31) <= 32 * ROCI_RANGES_WORDS;
}
/* The packet `psn` came. */
static inline void roci_late_ranges_add(struct roci_late_ranges *l, uint32_t psn)
{
	for (unsigned i = 0; i < ROCI_LATE_RANGES; i++) {
		struct roci_late_range *r = &l->ranges[i];

		if (r->begin == r->end)
			*r = (struct roci_late_range){psn, roci_psn_add(psn, 1)};
		if (!roci_late_range_fits(r, psn))
			continue;
		if (roci_psn_diff(psn, r->begin) < 0)
			r->begin = psn;
		if (roci_psn_diff(psn, r->end) >= 0)
			r->end = roci_psn_add(psn, 1);
		return;
	}
}

#endif
