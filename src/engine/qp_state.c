/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The QP state machine: which transition takes which attributes (IBTA 10.3.1, 11.2.5.2 table 91).
 */
#include <errno.h>

#include "engine/qp.h"
#include "engine/flight.h"
#include "engine/requester.h"
#include "engine/trace.h"
#include "engine/why.h"
#include "wire/mtu.h"

#define TYPES 3 /* RC, UC, UD */

struct transition {
	bool valid;
	unsigned required[TYPES], optional[TYPES];
};

#define RTR_AV       (ROCI_QP_AV | ROCI_QP_PATH_MTU | ROCI_QP_DEST_QPN | ROCI_QP_RQ_PSN)
#define RTR_RC       (RTR_AV | ROCI_QP_MAX_DEST_RD_ATOMIC | ROCI_QP_MIN_RNR_TIMER)
#define RTS_RC       (ROCI_QP_TIMEOUT | ROCI_QP_RETRY_CNT | ROCI_QP_RNR_RETRY | ROCI_QP_SQ_PSN | ROCI_QP_MAX_QP_RD_ATOMIC)
#define INIT_CONN    (ROCI_QP_PKEY_INDEX | ROCI_QP_PORT | ROCI_QP_ACCESS_FLAGS)
#define INIT_UD      (ROCI_QP_PKEY_INDEX | ROCI_QP_PORT | ROCI_QP_QKEY)
#define OPT_RTR_CONN (ROCI_QP_ALT_PATH | ROCI_QP_ACCESS_FLAGS | ROCI_QP_PKEY_INDEX)
#define OPT_UD       (ROCI_QP_CUR_STATE | ROCI_QP_QKEY)
#define OPT_UC       (ROCI_QP_CUR_STATE | ROCI_QP_ALT_PATH | ROCI_QP_ACCESS_FLAGS | ROCI_QP_PATH_MIG_STATE)
#define OPT_RC       (OPT_UC | ROCI_QP_MIN_RNR_TIMER)
#define SQD_UC                                                                                                         \
	(ROCI_QP_PORT | ROCI_QP_AV | ROCI_QP_ALT_PATH | ROCI_QP_ACCESS_FLAGS | ROCI_QP_PKEY_INDEX |                    \
	 ROCI_QP_PATH_MIG_STATE)
#define SQD_RC                                                                                                         \
	(SQD_UC | ROCI_QP_TIMEOUT | ROCI_QP_RETRY_CNT | ROCI_QP_RNR_RETRY | ROCI_QP_MAX_QP_RD_ATOMIC |                 \
	 ROCI_QP_MAX_DEST_RD_ATOMIC | ROCI_QP_MIN_RNR_TIMER)

/* Not in the table: to RESET, and to ERR from any state but RESET. They need no attributes. */
static const struct transition table[ROCI_QPS_ERR + 1][ROCI_QPS_ERR + 1] = {
	[ROCI_QPS_RESET][ROCI_QPS_INIT] = {true, {INIT_CONN, INIT_CONN, INIT_UD}, {0}},
	[ROCI_QPS_INIT][ROCI_QPS_INIT] = {true, {0}, {INIT_CONN, INIT_CONN, INIT_UD}},
	[ROCI_QPS_INIT][ROCI_QPS_RTR] = {true,
					 {RTR_RC, RTR_AV, 0},
					 {OPT_RTR_CONN, OPT_RTR_CONN, ROCI_QP_PKEY_INDEX | ROCI_QP_QKEY}},
	[ROCI_QPS_RTR][ROCI_QPS_RTS] = {true, {RTS_RC, ROCI_QP_SQ_PSN, ROCI_QP_SQ_PSN}, {OPT_RC, OPT_UC, OPT_UD}},
	[ROCI_QPS_RTS][ROCI_QPS_RTS] = {true, {0}, {OPT_RC, OPT_UC, OPT_UD}},
	[ROCI_QPS_RTS][ROCI_QPS_SQD] =
		{true, {0}, {ROCI_QP_EN_SQD_ASYNC_NOTIFY, ROCI_QP_EN_SQD_ASYNC_NOTIFY, ROCI_QP_EN_SQD_ASYNC_NOTIFY}},
	[ROCI_QPS_SQD][ROCI_QPS_RTS] = {true, {0}, {OPT_RC, OPT_UC, OPT_UD}},
	[ROCI_QPS_SQD][ROCI_QPS_SQD] = {true, {0}, {SQD_RC, SQD_UC, ROCI_QP_PKEY_INDEX | ROCI_QP_QKEY}},
	[ROCI_QPS_SQE][ROCI_QPS_RTS] = {true, {0}, {0, ROCI_QP_CUR_STATE | ROCI_QP_ACCESS_FLAGS, OPT_UD}},
};

static unsigned type_index(enum roci_qp_type type)
{
	return (unsigned)type - ROCI_QPT_RC;
}

/* The states that a QP can be moved to from `from`, besides RESET and ERR. */
static const char *next_states(enum roci_qp_state from)
{
	static const char *const states[] = {"INIT", "INIT or RTR", "RTS", "RTS or SQD", "RTS or SQD", "RTS", "RESET"};

	return states[from];
}

static int refuse_transition(const struct roci_qp *qp, enum roci_qp_state to)
{
	return ROCI_REFUSE(-EINVAL, "qp_state %s: this %s QP is in %s, and from there it goes to %s",
			   roci_qp_state_name(to), roci_qp_type_name(qp->type), roci_qp_state_name(qp->state),
			   next_states(qp->state));
}

/* `missing`, `extra`: bits of the mask. */
static int refuse_mask(const struct roci_qp *qp, enum roci_qp_state to, unsigned missing, unsigned extra)
{
	char names[ROCI_WHY_NAMES];

	return ROCI_REFUSE(-EINVAL, "attr_mask %s %s, from %s to %s of a QP of type %s", missing ? "lacks" : "has",
			   roci_qp_mask_names(missing ? missing : extra, names), roci_qp_state_name(qp->state),
			   roci_qp_state_name(to), roci_qp_type_name(qp->type));
}

static int check_transition(const struct roci_qp *qp, enum roci_qp_state to, unsigned mask)
{
	const struct transition *t = &table[qp->state][to];
	unsigned i = type_index(qp->type), extra = mask & ~(unsigned)(ROCI_QP_STATE | ROCI_QP_CUR_STATE);

	if (to == ROCI_QPS_RESET || (to == ROCI_QPS_ERR && qp->state != ROCI_QPS_RESET))
		return extra ? refuse_mask(qp, to, 0, extra) : 0;
	if (!t->valid || (qp->type == ROCI_QPT_RC && qp->state == ROCI_QPS_SQE))
		return refuse_transition(qp, to);
	extra &= ~(t->required[i] | t->optional[i]);
	if ((mask & t->required[i]) != t->required[i] || extra)
		return refuse_mask(qp, to, t->required[i] & ~mask, extra);
	return 0;
}

/* What must hold of a value whose bit is in the mask. */
#define IN_RANGE(bit, field, least, most)                                                                              \
	do {                                                                                                           \
		if ((mask & (bit)) && ((long)a->field < (least) || (long)a->field > (most)))                           \
			return ROCI_REFUSE(-EINVAL, #field " %u: %u to %u are allowed", (unsigned)a->field,            \
					   (unsigned)(least), (unsigned)(most));                                       \
	} while (0)

/* Each value must be in its range. Alternate paths and path migration are not offered (device_cap_flags). */
static int check_values(const struct roci_qp *qp, const struct roci_qp_attr *a, unsigned mask)
{
	if ((mask & ROCI_QP_CUR_STATE) && a->cur_state != qp->state)
		return ROCI_REFUSE(-EINVAL, "cur_qp_state %s: the QP is in %s", roci_qp_state_name(a->cur_state),
				   roci_qp_state_name(qp->state));
	IN_RANGE(ROCI_QP_PKEY_INDEX, pkey_index, 0, 0);
	IN_RANGE(ROCI_QP_PORT, port_num, 1, 1);
	if ((mask & ROCI_QP_PATH_MTU) && !roci_mtu_code_is_valid(a->path_mtu))
		return ROCI_REFUSE(-EINVAL, "path_mtu %u: IBV_MTU_256 (1) to IBV_MTU_4096 (5) are allowed",
				   (unsigned)a->path_mtu);
	IN_RANGE(ROCI_QP_DEST_QPN, dest_qpn, 0, ROCI_QPN_MASK);
	IN_RANGE(ROCI_QP_MAX_QP_RD_ATOMIC, max_rd_atomic, 0, ROCI_MAX_RD_ATOMIC);
	IN_RANGE(ROCI_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic, 0, ROCI_MAX_RD_ATOMIC);
	IN_RANGE(ROCI_QP_MIN_RNR_TIMER, min_rnr_timer, 0, 31);
	IN_RANGE(ROCI_QP_TIMEOUT, timeout, 0, 31);
	IN_RANGE(ROCI_QP_RETRY_CNT, retry_cnt, 0, 7);
	IN_RANGE(ROCI_QP_RNR_RETRY, rnr_retry, 0, 7);
	IN_RANGE(ROCI_QP_PATH_MIG_STATE, path_mig_state, 0, 0);
	if (mask & (ROCI_QP_ALT_PATH | ROCI_QP_CAP))
		return ROCI_REFUSE(-EINVAL, "attr_mask: roci0 has no alternate paths, and resizes no queues");
	return 0;
}

#define COPY(bit, field)                                                                                               \
	do {                                                                                                           \
		if (mask & (bit))                                                                                      \
			qp->attr.field = a->field;                                                                     \
	} while (0)

static void take_values(struct roci_qp *qp, const struct roci_qp_attr *a, unsigned mask)
{
	uint16_t local = qp->attr.av.local;

	COPY(ROCI_QP_EN_SQD_ASYNC_NOTIFY, en_sqd_async_notify);
	COPY(ROCI_QP_ACCESS_FLAGS, access);
	COPY(ROCI_QP_PKEY_INDEX, pkey_index);
	COPY(ROCI_QP_PORT, port_num);
	COPY(ROCI_QP_QKEY, qkey);
	COPY(ROCI_QP_AV, av);
	COPY(ROCI_QP_PATH_MTU, path_mtu);
	COPY(ROCI_QP_TIMEOUT, timeout);
	COPY(ROCI_QP_RETRY_CNT, retry_cnt);
	COPY(ROCI_QP_RNR_RETRY, rnr_retry);
	COPY(ROCI_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
	COPY(ROCI_QP_MIN_RNR_TIMER, min_rnr_timer);
	COPY(ROCI_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
	COPY(ROCI_QP_DEST_QPN, dest_qpn);
	if (mask & ROCI_QP_RQ_PSN)
		qp->attr.rq_psn = a->rq_psn & ROCI_PSN_MASK;
	if (mask & ROCI_QP_SQ_PSN)
		qp->attr.sq_psn = a->sq_psn & ROCI_PSN_MASK;
	/* A QP keeps its kind of path from RTR until it is reset. */
	if (qp->state != ROCI_QPS_INIT)
		qp->attr.av.local = local;
	else if (qp->type != ROCI_QPT_RC)
		qp->attr.av.local = 0;
	if (mask & ROCI_QP_AV) {
		qp->own_port = 0;
		qp->own_port_again = false;
		roci_qp_address(qp);
		roci_black_hole_follow(qp);
	}
	qp->req.ack_timer.retries_left = qp->attr.retry_cnt;
	qp->req.rnr.retries_left = qp->attr.rnr_retry;
}

/* RTR also needs the path and room for responses. */
static int enter_rtr(struct roci_qp *qp, const struct roci_qp_attr *a)
{
	bool local;
	int err;

	if (qp->type == ROCI_QPT_UD)
		return 0;
	err = qp->type == ROCI_QPT_RC ? roci_response_ring_resize(&qp->resp.responses, a->max_dest_rd_atomic) : 0;
	if (err)
		return err;
	local = qp->type == ROCI_QPT_RC && a->av.local;
	qp->path = local ? roci_path_get_local(qp->e, a->av.local) : roci_path_get(qp->e, a->av.sgid, a->av.dgid);
	if (!qp->path)
		return -ENOMEM;
	qp->mtu = local ? ROCI_MAX_MESSAGE_BYTES : roci_mtu_bytes(a->path_mtu);
	if (local) /* there are no ports */
		qp->peer = (struct roci_peer_port){.shown = true, .sprays = true};
	qp->resp.epsn = qp->resp.steps.named = a->rq_psn & ROCI_PSN_MASK;
	return 0;
}

static int change_path(struct roci_qp *qp, const struct roci_qp_attr *a)
{
	struct roci_path *path;

	if (roci_qp_is_local(qp))
		return 0; /* the process stays */
	path = roci_path_get(qp->e, a->av.sgid, a->av.dgid);
	if (!path)
		return -ENOMEM;
	roci_flight_forget(qp); /* of UC: nobody will acknowledge it */
	roci_far_read_end(qp);
	/* The peer would name a probe that came by the old path: there are no more longer packets. */
	qp->req.plpmtu = (struct roci_plpmtu){.probes = ROCI_PLPMTU_MOST};
	roci_path_put(qp->path);
	if (path != qp->path)
		qp->peer = (struct roci_peer_port){0};
	qp->path = path;
	return 0;
}

/* IBTA 10.3.1.5: attributes may change in SQD once the queue has drained. */
static int change_drained(struct roci_qp *qp, const struct roci_qp_attr *a, unsigned mask)
{
	int err = 0;

	if ((mask & ~(unsigned)ROCI_QP_STATE) && qp->sq.head != qp->sq.started)
		return ROCI_REFUSE(-EINVAL, "the send queue has not drained: wait for IBV_EVENT_SQ_DRAINED");
	if (mask & ROCI_QP_MAX_DEST_RD_ATOMIC)
		err = roci_response_ring_resize(&qp->resp.responses, a->max_dest_rd_atomic);
	if (!err && (mask & ROCI_QP_AV))
		err = change_path(qp, a);
	return err;
}

static int check_before(struct roci_qp *qp, enum roci_qp_state to, const struct roci_qp_attr *a, unsigned mask)
{
	if (qp->state == ROCI_QPS_INIT && to == ROCI_QPS_RTR)
		return enter_rtr(qp, a);
	if (qp->state == ROCI_QPS_SQD && to == ROCI_QPS_SQD)
		return change_drained(qp, a, mask);
	return 0;
}

/* A request to be notified when the queue has drained counts for one transition only. */
static void enter_sqd(struct roci_qp *qp, unsigned mask)
{
	if (!(mask & ROCI_QP_EN_SQD_ASYNC_NOTIFY))
		qp->attr.en_sqd_async_notify = 0;
	roci_requester_retire(qp); /* it may have drained already */
}

static void enter(struct roci_qp *qp, enum roci_qp_state from, enum roci_qp_state to, unsigned mask)
{
	qp->state = to;
	if (from == ROCI_QPS_RTR && to == ROCI_QPS_RTS) {
		roci_send_window_init(&qp->req.window, qp->attr.sq_psn);
		roci_scoreboard_reset(&qp->req.selective.board, qp->attr.sq_psn);
	}
	if (to == ROCI_QPS_SQD && from != ROCI_QPS_SQD)
		enter_sqd(qp, mask);
	if (to == ROCI_QPS_RTS)
		roci_qp_make_ready(qp);
}

static int modify(struct roci_qp *qp, const struct roci_qp_attr *attr, unsigned mask)
{
	enum roci_qp_state from = qp->state, to = mask & ROCI_QP_STATE ? attr->state : qp->state;
	int err;

	if (to > ROCI_QPS_ERR)
		return ROCI_REFUSE(-EINVAL, "qp_state %d is unknown", (int)to);
	err = check_values(qp, attr, mask);
	if (!err)
		err = check_transition(qp, to, mask);
	if (err)
		return err;
	if (to == ROCI_QPS_RESET) {
		roci_qp_reset(qp);
		ROCI_TRACE(qp->e, roci_trace_state(qp));
		return 0;
	}
	if (to == ROCI_QPS_ERR) {
		roci_qp_error(qp, -1);
		return 0;
	}
	err = check_before(qp, to, attr, mask);
	if (err)
		return err;
	take_values(qp, attr, mask);
	enter(qp, from, to, mask);
	if (qp->nat && from == ROCI_QPS_INIT && to == ROCI_QPS_RTR)
		roci_nat_begin(qp);
	if (to != from)
		ROCI_TRACE(qp->e, roci_trace_state(qp));
	roci_qp_published(qp);
	return 0;
}

int roci_qp_modify(struct roci_qp *qp, uint64_t now, const struct roci_qp_attr *attr, unsigned mask)
{
	bool was_init = qp->state == ROCI_QPS_INIT;
	int err;

	roci_engine_clock(qp->e, now);
	err = modify(qp, attr, mask);
	if (was_init && qp->state != ROCI_QPS_RTR)
		roci_nat_end(qp); /* the terms were for the way to RTR */
	return err;
}
