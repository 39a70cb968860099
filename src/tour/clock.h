/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ROCI_TOUR_CLOCK_H
#define ROCI_TOUR_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t tour_clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* For durations. */
static inline uint64_t tour_now_ns(void)
{
	return tour_clock_ns(CLOCK_MONOTONIC);
}

/* For steps: the device's record has this clock. */
static inline uint64_t tour_wall_ns(void)
{
	return tour_clock_ns(CLOCK_REALTIME);
}

#endif
