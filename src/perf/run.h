/* SPDX-License-Identifier: BSD-2-Clause */
/* The loops that measure. Each has two halves: the near end's decides when it is over; the far end's follows. */
#ifndef ROCI_PERF_RUN_H
#define ROCI_PERF_RUN_H

#include "perf/control.h"
#include "perf/end.h"
#include "perf/hdr.h"

#define RUN_INTERVALS  40u
#define RUN_WARM_UP    10u                   /* the first of so many parts of the time does not count */
#define RUN_HIGHEST_NS UINT64_C(60000000000) /* of a latency */

/* A part of the time. */
struct run_interval {
	uint64_t end_ns; /* since the beginning of what counts */
	uint64_t messages;
	uint64_t p50_ns, p99_ns, max_ns; /* of latency */
	char *histogram;                 /* hdr_encode()'s; NULL: of bandwidth */
};

struct run_result {
	uint64_t messages, ns;         /* that count */
	uint64_t began_ms;             /* since 1970, when what counts began */
	uint64_t far_messages, far_ns; /* of bandwidth in both directions: what the far end did */
	uint64_t all_messages; /* in both directions, with those that do not count: to go with `near` and `far` */
	struct perf_facts near, far;
	struct hdr latency; /* of latency; no counts: of bandwidth */
	unsigned interval_count;
	struct run_interval intervals[RUN_INTERVALS + 1];
	bool interrupted;
};

struct run {
	struct perf_end *end;
	struct perf_control *control;
	struct perf_order order;
	const char *device;
	perf_counters_fn *counters;
	uint32_t others; /* clients that the far end serves beside */
	/* Ten times a second at most, with what is known so far. NULL: nobody wants to know. */
	void (*progress)(void *context, const struct run_result *so_far, uint64_t elapsed_ns);
	void *context;
};

/* Frees what a result holds. */
void run_result_destroy(struct run_result *r);

/* The near end's. *r is to be destroyed in any case. 0 or negative, with *f. After tour_stop(): 0, and
 * r->interrupted. */
int run_near(struct run *run, struct run_result *r, struct failure *f);
/* The far end's, after it got the order. Answers that it is ready, measures, reports. */
int run_far(struct run *run, struct failure *f);

#endif
