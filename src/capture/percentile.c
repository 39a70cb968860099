/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture/percentile.h"

#define SUB_BITS 4
#define SUB      (1u << SUB_BITS)

/* Values below 16 have a bucket each; then each power of two has 16. */
static unsigned bucket_of(uint64_t value)
{
	unsigned power, bucket;

	if (value < SUB)
		return (unsigned)value;
	power = 63u - (unsigned)__builtin_clzll(value);
	bucket = (power - SUB_BITS + 1) * SUB + ((unsigned)(value >> (power - SUB_BITS)) & (SUB - 1));
	return bucket < CAPTURE_BUCKETS ? bucket : CAPTURE_BUCKETS - 1;
}

/* The largest value of a bucket. */
static uint64_t top_of(unsigned bucket)
{
	unsigned power;

	if (bucket < SUB)
		return bucket;
	power = bucket / SUB + SUB_BITS - 1;
	return ((uint64_t)(SUB + bucket % SUB + 1) << (power - SUB_BITS)) - 1;
}

void capture_percentiles_add(struct capture_percentiles *p, uint64_t value)
{
	if (!p->count || value < p->least)
		p->least = value;
	if (value > p->most)
		p->most = value;
	p->count++;
	p->buckets[bucket_of(value)]++;
}

uint64_t capture_percentile(const struct capture_percentiles *p, double percent)
{
	double wanted = (double)p->count * percent / 100;
	uint64_t below = 0, top;

	for (unsigned i = 0; i < CAPTURE_BUCKETS; i++) {
		below += p->buckets[i];
		if (!below || (double)below < wanted)
			continue;
		top = top_of(i);
		return top < p->least ? p->least : top > p->most || i == CAPTURE_BUCKETS - 1 ? p->most : top;
	}
	return p->most;
}
