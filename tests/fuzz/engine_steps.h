/* SPDX-License-Identifier: BSD-2-Clause */
/* What targets do with an engine, led by the script. */
#ifndef ROCI_TESTS_ENGINE_STEPS_H
#define ROCI_TESTS_ENGINE_STEPS_H

#include "engine/qp.h"
#include "script.h"

/* An RC QP from RESET to INIT. */
static inline void init_rc(struct roci_qp *qp, uint64_t now, struct roci_qp_attr *a)
{
	a->state = ROCI_QPS_INIT;
	CHECK(!roci_qp_modify(qp, now, a, ROCI_QP_STATE | ROCI_QP_PKEY_INDEX | ROCI_QP_PORT | ROCI_QP_ACCESS_FLAGS));
}

/* ... and to RTS. */
static inline void connect_rc(struct roci_qp *qp, uint64_t now, struct roci_qp_attr *a)
{
	if (roci_qp_state(qp) == ROCI_QPS_RESET)
		init_rc(qp, now, a);
	a->state = ROCI_QPS_RTR;
	CHECK(!roci_qp_modify(qp, now, a,
			      ROCI_QP_STATE | ROCI_QP_AV | ROCI_QP_PATH_MTU | ROCI_QP_DEST_QPN | ROCI_QP_RQ_PSN |
				      ROCI_QP_MAX_DEST_RD_ATOMIC | ROCI_QP_MIN_RNR_TIMER));
	a->state = ROCI_QPS_RTS;
	CHECK(!roci_qp_modify(qp, now, a,
			      ROCI_QP_STATE | ROCI_QP_SQ_PSN | ROCI_QP_TIMEOUT | ROCI_QP_RETRY_CNT | ROCI_QP_RNR_RETRY |
				      ROCI_QP_MAX_QP_RD_ATOMIC));
}

/* Up to two milliseconds, or until the engine wants to be called. */
static inline void pass_time(struct roci_engine *e, uint64_t *now)
{
	uint64_t deadline = roci_engine_deadline(e);

	*now += below(2000000);
	if (deadline != ROCI_NEVER && deadline > *now && one_in(2))
		*now = deadline;
	roci_engine_timers(e, *now);
}

static inline void drop_events(struct roci_engine *e)
{
	struct roci_event event;

	while (roci_engine_next_event(e, &event))
		;
}

#endif
