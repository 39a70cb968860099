/* SPDX-License-Identifier: BSD-2-Clause */
/* The engine's state. */
#ifndef ROCI_ENGINE_INTERNAL_H
#define ROCI_ENGINE_INTERNAL_H

#include "engine/engine.h"
#include "engine/idmap.h"
#include "engine/list.h"
#include "engine/reorder.h"
#include "engine/timer.h"
#include "engine/why.h"

struct roci_engine {
	uint64_t now;              /* the time of the current call */
	struct roci_idmap qps;     /* QPN -> struct roci_qp */
	struct roci_idmap regions; /* key >> 8 -> struct roci_region */
	struct roci_list windows;  /* of type 2 that are bound */
	unsigned qp_count;
	struct roci_list all_qps, cqs, srqs, paths, mcast_groups;
	unsigned mcast_group_count;
	struct roci_list ready;  /* QPs with packets to send, by qp->ready */
	struct roci_list sent;   /* QPs with requests that are done when the last batch is sent, by qp->sent */
	struct roci_list events; /* sources with pending events */
	struct roci_timers timers;
	struct roci_reorder_store reorder;
	uint64_t receive_room;                /* bytes; 0: nobody knows */
	struct roci_why_pace why;             /* of datagrams for QPs that do not exist */
	struct roci_trace *trace;             /* NULL: nobody records */
	unsigned cq_number, srq_number;       /* of the last one that was created, for captures */
	const struct roci_local_calls *local; /* NULL: no peer is local */
	void *driver;                         /* their first argument */
	unsigned nat_count;                   /* QPs that cross a NAT */
	struct roci_nat_key nat_key;
	bool cq_overrun;                            /* a CQ has overrun, and its QPs are not in error yet */
	struct roci_engine_stats *stats, own_stats; /* stats: own_stats, or the driver's */
};

/* Sets the time, which only goes forward. Two threads of a driver may read the clock in one order and call the engine
 * in the other; a round trip of less than nothing would then be one of centuries. */
static inline void roci_engine_clock(struct roci_engine *e, uint64_t now)
{
	if (now > e->now)
		e->now = now;
}

#endif
