/* SPDX-License-Identifier: BSD-2-Clause */
/* The near end: one connection to a far end, and operations on it, one at a time. */
#ifndef ROCI_TOUR_NEAR_H
#define ROCI_TOUR_NEAR_H

#include "tour/dial.h"
#include "tour/record.h"
#include "tour/tour.h"

struct near;

struct near_result {
	bool good;
	bool over;              /* the connection is of no use any more */
	uint64_t ns;            /* from the request to its completion, or to the answer of the far end's program:
				   tour_op_answered() */
	struct failure failure; /* if it is not good */
};

/* When each step of an operation happened: CLOCK_REALTIME, or 0 for "nothing tells". Those of the far end are already
 * moved to the near end's clock. */
struct near_steps {
	uint64_t near_registered_ns, posted_ns, completed_ns, woken_ns, answer_ns;
	uint64_t far_ns[FAR_TIMES];
	bool near_recorded, far_recorded;
	bool far_told;      /* the far end has answered at all */
	bool clocks_differ; /* so that the far end's times are estimates */
	struct record_operation record;
};

/* Connects. In any case *out is for near_close() and for what follows here, unless it is NULL (no memory). 0 or
 * negative, with *f. */
int near_open(struct near **out, const struct dial_target *target, const struct tour_plan *plan, struct failure *f);
void near_close(struct near *n);

/* Does operation number `seq` (from 1 on). */
void near_run(struct near *n, uint32_t seq, struct near_result *result);

/* The steps of the last operation, which was good. Asks the far end. 0 or negative, with *f. */
int near_steps(struct near *n, struct near_steps *steps, struct failure *f);

/* As dial_lost(). Also keeps the session from being given up by the far end. */
bool near_wait(struct near *n, uint64_t deadline_ns);

/* Known as soon as the near device is; empty before. */
const struct dial *near_dial(const struct near *n);

#endif
