/* SPDX-License-Identifier: BSD-2-Clause */
/* The engine's own view of itself. */
#ifndef ROCI_ENGINE_INTERNAL_H
#define ROCI_ENGINE_INTERNAL_H

#include "engine/engine.h"
#include "engine/idmap.h"
#include "engine/list.h"
#include "engine/reorder.h"
#include "engine/timer.h"

struct roci_engine {
	uint64_t now;              /* of the call that is under way */
	struct roci_idmap qps;     /* QPN -> struct roci_qp */
	struct roci_idmap regions; /* key >> 8 -> struct roci_region */
	unsigned qp_count;
	struct roci_list all_qps, cqs, srqs, paths, mcast_groups;
	unsigned mcast_group_count;
	struct roci_list ready;  /* QPs with packets to send, by qp->ready */
	struct roci_list sent;   /* QPs with unacknowledged-by-nature requests in the last batch, by qp->sent */
	struct roci_list events; /* sources with something to tell */
	struct roci_timers timers;
	struct roci_reorder_store reorder;
	bool cq_overrun; /* some CQ has overrun, and its QPs are not in error yet */
	struct roci_engine_stats stats;
};

/* Time goes forward only: threads of a driver may read the clock in one order and come in in another, and a round trip
 * of less than nothing would be one of centuries. */
static inline void roci_engine_clock(struct roci_engine *e, uint64_t now)
{
	if (now > e->now)
		e->now = now;
}

#endif
