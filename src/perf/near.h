/* SPDX-License-Identifier: BSD-2-Clause */
/* The near end: connects to a `roci serve`, and measures. */
#ifndef ROCI_PERF_NEAR_H
#define ROCI_PERF_NEAR_H

#include "perf/control.h"
#include "perf/end.h"
#include "perf/talk.h"
#include "tour/dial.h"

struct perf_near {
	struct perf_control control; /* its descriptor is of this end; -1: none */
	char address[64];            /* numeric, of the far end */
	struct perf_end end;
	struct talk_offer offer;
	bool same_host;
};

/* Connects. Call perf_near_close() after a failure, too. 0 or negative, with *f. */
int perf_near_open(struct perf_near *n, const struct dial_target *target, const struct perf_plan *plan,
		   struct failure *f);
void perf_near_close(struct perf_near *n);

#endif
