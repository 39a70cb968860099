/* SPDX-License-Identifier: BSD-2-Clause */
/* A token bucket for --limit. A window may overdraw it; the next one then waits. Pure: the caller gives the time. */
#ifndef ROCI_MOVER_RATE_LIMIT_H
#define ROCI_MOVER_RATE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

struct rate_limit {
	double bytes_per_s; /* 0: no limit */
	double tokens;      /* in bytes; negative when overdrawn */
	uint64_t updated_ns;
};

/* `bytes_per_s` 0: no limit. */
void rate_limit_init(struct rate_limit *limit, uint64_t bytes_per_s, uint64_t now_ns);
/* Whether something may be sent now. */
bool rate_limit_allows(struct rate_limit *limit, uint64_t now_ns);
/* After `bytes` have been sent. */
void rate_limit_spend(struct rate_limit *limit, uint64_t bytes);

#endif
