/* SPDX-License-Identifier: BSD-2-Clause */
#include "mover/rate.h"

#define MEMORY_S 3.0

void rate_see(struct rate *rate, uint64_t bytes, uint64_t now_ns)
{
	double seconds = (double)(now_ns - rate->at_ns) / 1e9, now;

	if (rate->at_ns && now_ns > rate->at_ns && bytes >= rate->bytes) {
		now = (double)(bytes - rate->bytes) / seconds;
		rate->bytes_per_s +=
			(now - rate->bytes_per_s) * (rate->bytes_per_s > 0 ? seconds / (seconds + MEMORY_S) : 1);
	}
	rate->bytes = bytes;
	rate->at_ns = now_ns;
}
