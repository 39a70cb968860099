/* SPDX-License-Identifier: BSD-2-Clause */
/* Percentiles of many durations in little memory: counts in buckets that are 1/16 of a power of two wide. */
#ifndef CAPTURE_PERCENTILE_H
#define CAPTURE_PERCENTILE_H

#include <stdint.h>

#define CAPTURE_BUCKETS 640 /* up to 2^43: more than two hours in nanoseconds. Longer ones count as that */

struct capture_percentiles {
	uint64_t count;
	uint64_t least, most;
	uint32_t buckets[CAPTURE_BUCKETS];
};

void capture_percentiles_add(struct capture_percentiles *p, uint64_t value);

/* A value that `percent` (0 to 100) of the values do not exceed, at most 1/16 too large; 0 without values. */
uint64_t capture_percentile(const struct capture_percentiles *p, double percent);

#endif
