/* SPDX-License-Identifier: BSD-2-Clause */
#include "mover/round_trip.h"

void round_trip_add(struct round_trip *r, uint64_t sample_ns)
{
	r->samples_ns[r->count++ % ROUND_TRIP_SAMPLES] = sample_ns;
}

uint64_t round_trip_ns(const struct round_trip *r)
{
	unsigned count = r->count < ROUND_TRIP_SAMPLES ? r->count : ROUND_TRIP_SAMPLES;
	uint64_t least = count ? r->samples_ns[0] : 0;

	for (unsigned i = 1; i < count; i++)
		if (r->samples_ns[i] < least)
			least = r->samples_ns[i];
	return least;
}
