/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Measures what a path between two ends gives: bandwidth, message rate, latency, and the CPU that they cost. `roci
 * perf` is the near end, `roci serve` the far end. On the public verbs interface only, on RC.
 */
#ifndef ROCI_PERF_PERF_H
#define ROCI_PERF_PERF_H

#include <stdbool.h>
#include <stdint.h>

#include "tour/tour.h"

#define PERF_MAX_QPS      256u
#define PERF_MAX_DEPTH    16384u
#define PERF_MAX_REQUESTS (1u << 16)  /* of all queue pairs under way: what a device allocates for them */
#define PERF_MAX_BYTES    (16u << 20) /* of a message */
#define PERF_MAX_MEMORY   (64u << 20) /* that an end registers for messages: see perf_memory() */
#define PERF_MAX_TIME_MS  3600000u
#define PERF_INLINE_BYTES 220u /* what latency wants inline; perftest wants as much */

/* What is measured. */
enum perf_phase {
	PERF_BANDWIDTH,
	PERF_LATENCY,
	PERF_TCP_BANDWIDTH, /* the same through a TCP connection */
	PERF_TCP_LATENCY,
	PERF_PHASES
};

/* What both ends must know before they connect. */
struct perf_plan {
	enum tour_op op;
	bool bidir;  /* of bandwidth: the far end does the operation, too */
	bool events; /* sleep on completion channels */
	unsigned qps, cqs;
	unsigned depth;    /* work requests of a QP under way */
	uint32_t size_max; /* bytes of a message */
};

/* What both ends must know of one phase. */
struct perf_order {
	enum perf_phase phase;
	uint32_t size;    /* bytes of a message */
	uint32_t time_ms; /* how long it is to last */
	uint64_t rate;    /* bytes/s of one direction; 0: as fast as can be. Of bandwidth */
};

/* Whether the operation uses up a receive at the other end. */
static inline bool perf_receives(enum tour_op op)
{
	return op == TOUR_SEND || op == TOUR_SEND_IMM || op == TOUR_WRITE_IMM;
}

/* Whether the data goes to the near end: the other end's CPU may be idle, and TCP is measured in that direction. */
static inline bool perf_fetches(enum tour_op op)
{
	return op == TOUR_READ || op == TOUR_CAS || op == TOUR_FAA;
}

/* Whether latency is half of a round trip: each end sends in turn. Else it is the time until the completion. A WRITE's
 * target notices it by looking at its memory, which it cannot do while it sleeps. */
static inline bool perf_ping_pong(enum tour_op op, bool events)
{
	return perf_receives(op) || (op == TOUR_WRITE && !events);
}

/* Bytes of one of a QP's two buffers: what it sends or fetches, and what the other end touches. */
static inline uint64_t perf_stride(uint32_t size_max)
{
	return (size_max + 4095u) & ~4095u;
}

static inline uint64_t perf_memory(const struct perf_plan *plan)
{
	return 2 * perf_stride(plan->size_max) * plan->qps;
}

/* Names as in options and JSON: "bandwidth". */
extern const char *const perf_phase_names[];

#endif
