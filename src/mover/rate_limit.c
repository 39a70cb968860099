/* SPDX-License-Identifier: BSD-2-Clause */
#include "mover/rate_limit.h"

#define BURST_S 0.1 /* after a pause at most this much of a second's bytes goes at once */

void rate_limit_init(struct rate_limit *limit, uint64_t bytes_per_s, uint64_t now_ns)
{
	*limit = (struct rate_limit){.bytes_per_s = (double)bytes_per_s, .updated_ns = now_ns};
}

bool rate_limit_allows(struct rate_limit *limit, uint64_t now_ns)
{
	double most = limit->bytes_per_s * BURST_S;

	if (limit->bytes_per_s == 0)
		return true;
	limit->tokens += limit->bytes_per_s * (double)(now_ns - limit->updated_ns) / 1e9;
	if (limit->tokens > most)
		limit->tokens = most;
	limit->updated_ns = now_ns;
	return limit->tokens >= 0;
}

void rate_limit_spend(struct rate_limit *limit, uint64_t bytes)
{
	limit->tokens -= (double)bytes;
}
