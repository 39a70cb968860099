/* SPDX-License-Identifier: BSD-2-Clause */
#include "perf/hdr.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static unsigned log2_floor(uint64_t value)
{
	return 63 - (unsigned)__builtin_clzll(value);
}

/* How many times the range doubles until `highest` is within it. */
static unsigned doublings(const struct hdr *h)
{
	uint64_t beyond = UINT64_C(2) << (h->half_magnitude + h->unit_magnitude);
	unsigned buckets = 1;

	for (; beyond <= h->highest; buckets++) {
		if (beyond > INT64_MAX / 2)
			return buckets + 1;
		beyond <<= 1;
	}
	return buckets;
}

int hdr_init(struct hdr *h, uint64_t lowest, uint64_t highest, unsigned digits)
{
	uint64_t single = 2, count; /* up to here each value has a bucket of its own */

	*h = (struct hdr){.lowest = lowest, .highest = highest, .digits = digits};
	if (digits < 1 || digits > 5 || !lowest || lowest > INT64_MAX / 4 || highest / 2 < lowest ||
	    highest > INT64_MAX)
		return -EINVAL;
	for (unsigned i = 0; i < digits; i++)
		single *= 10;
	h->half_magnitude = log2_floor(single - 1);
	h->unit_magnitude = log2_floor(lowest);
	if (h->unit_magnitude + h->half_magnitude > 60)
		return -EINVAL;
	h->mask = ((UINT64_C(2) << h->half_magnitude) - 1) << h->unit_magnitude;
	count = (uint64_t)(doublings(h) + 1) << h->half_magnitude;
	if (count > HDR_MAX_BUCKETS)
		return -EINVAL;
	h->count = (uint32_t)count;
	h->counts = calloc(h->count, sizeof(*h->counts));
	h->min = UINT64_MAX;
	return h->counts ? 0 : -ENOMEM;
}

void hdr_destroy(struct hdr *h)
{
	free(h->counts);
	*h = (struct hdr){0};
}

void hdr_reset(struct hdr *h)
{
	memset(h->counts, 0, h->count * sizeof(*h->counts));
	h->total = h->max = 0;
	h->min = UINT64_MAX;
}

void hdr_merge(struct hdr *h, const struct hdr *from)
{
	for (uint32_t i = 0; i < h->count; i++)
		h->counts[i] += from->counts[i];
	h->total += from->total;
	h->min = from->min < h->min ? from->min : h->min;
	h->max = from->max > h->max ? from->max : h->max;
}

/* By how many bits the values of a bucket are shifted. */
static unsigned shift_of(const struct hdr *h, uint32_t index)
{
	uint32_t bucket = index >> h->half_magnitude;

	return h->unit_magnitude + (bucket ? bucket - 1 : 0);
}

uint64_t hdr_bucket_low(const struct hdr *h, uint32_t index)
{
	uint64_t half = UINT64_C(1) << h->half_magnitude;
	uint64_t sub = index < half ? index : (index & (half - 1)) + half;

	return sub << shift_of(h, index);
}

uint64_t hdr_bucket_high(const struct hdr *h, uint32_t index)
{
	return hdr_bucket_low(h, index) + (UINT64_C(1) << shift_of(h, index)) - 1;
}

uint64_t hdr_percentile(const struct hdr *h, double percent)
{
	double exact = ceil(percent / 100 * (double)h->total);
	uint64_t wanted = exact < 1 ? 1 : (uint64_t)exact, seen = 0;

	for (uint32_t i = 0; i < h->count; i++) {
		seen += h->counts[i];
		if (seen >= wanted && seen)
			return hdr_bucket_high(h, i) < h->max ? hdr_bucket_high(h, i) : h->max;
	}
	return h->max;
}

double hdr_mean(const struct hdr *h)
{
	double sum = 0;

	for (uint32_t i = 0; i < h->count; i++) {
		if (h->counts[i])
			sum += (double)h->counts[i] *
			       ((double)hdr_bucket_low(h, i) + (double)(UINT64_C(1) << shift_of(h, i)) / 2);
	}
	return h->total ? sum / (double)h->total : 0;
}
