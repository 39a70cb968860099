/* SPDX-License-Identifier: BSD-2-Clause */
/* How long a round trip to the peer takes, as the control connection sees it: from posting a SEND until its completion,
 * which an acknowledgement makes. Queues on the way are part of it. A thread that comes late to a completion is not, so
 * the shortest of the last samples counts. Pure. */
#ifndef ROCI_MOVER_ROUND_TRIP_H
#define ROCI_MOVER_ROUND_TRIP_H

#include <stdint.h>

#define ROUND_TRIP_SAMPLES 8

struct round_trip {
	uint64_t samples_ns[ROUND_TRIP_SAMPLES]; /* a ring */
	unsigned count;                          /* so far */
};

void round_trip_add(struct round_trip *r, uint64_t sample_ns);
/* 0: not measured yet. */
uint64_t round_trip_ns(const struct round_trip *r);

#endif
