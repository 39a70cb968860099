/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * HdrHistogram: counts values so that each percentile is known to `digits` decimal digits, in a fixed amount of memory
 * and without sorting. A value's bucket has its upper bits: twice the value, twice the width.
 * The layout of the buckets is that of http://hdrhistogram.org, so that hdr_text.h can write what its viewers read.
 */
#ifndef ROCI_PERF_HDR_H
#define ROCI_PERF_HDR_H

#include <stdint.h>

#define HDR_MAX_BUCKETS (1u << 20) /* what one from a stranger may have: 8 MiB */

struct hdr {
	uint64_t lowest, highest; /* what can be told apart, from 1 on; above `highest` counts as `highest` */
	unsigned digits;          /* 1..5 */
	unsigned unit_magnitude, half_magnitude;
	uint64_t mask; /* values up to this have buckets of one unit */
	uint32_t count;
	uint64_t *counts;
	uint64_t total;
	uint64_t min, max; /* exact; of no value: UINT64_MAX and 0 */
};

/* -EINVAL: `digits` is not 1..5, `lowest` is 0, `highest` is less than twice `lowest`, or it takes more than
 * HDR_MAX_BUCKETS; -ENOMEM. Call hdr_destroy() after success only. */
int hdr_init(struct hdr *h, uint64_t lowest, uint64_t highest, unsigned digits);
void hdr_destroy(struct hdr *h);
/* Forgets all values. */
void hdr_reset(struct hdr *h);

/* The bucket of a value. */
static inline uint32_t hdr_index(const struct hdr *h, uint64_t value)
{
	unsigned bits = 64 - (unsigned)__builtin_clzll(value | h->mask);
	unsigned bucket = bits - h->unit_magnitude - (h->half_magnitude + 1);
	uint64_t sub = value >> (bucket + h->unit_magnitude);

	return (uint32_t)(((bucket + 1) << h->half_magnitude) + (sub - (UINT64_C(1) << h->half_magnitude)));
}

static inline void hdr_add(struct hdr *h, uint64_t value)
{
	if (value > h->highest)
		value = h->highest;
	h->counts[hdr_index(h, value)]++;
	h->total++;
	if (value < h->min)
		h->min = value;
	if (value > h->max)
		h->max = value;
}

/* Adds all of `from`, which must have the same lowest, highest and digits. */
void hdr_merge(struct hdr *h, const struct hdr *from);

/* The smallest and the largest value of a bucket. */
uint64_t hdr_bucket_low(const struct hdr *h, uint32_t index);
uint64_t hdr_bucket_high(const struct hdr *h, uint32_t index);

/* The largest value of the bucket at or below which `percent` of the values are, and never above `max`. 0: no values.
 */
uint64_t hdr_percentile(const struct hdr *h, double percent);
/* Counts the middle of each bucket. 0: no values. */
double hdr_mean(const struct hdr *h);

#endif
