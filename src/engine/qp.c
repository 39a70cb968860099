/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/qp.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cq.h"
#include "engine/mcast.h"
#include "engine/flight.h"
#include "engine/requester.h"
#include "engine/response.h"
#include "engine/service.h"
#include "engine/sgl.h"
#include "engine/trace.h"
#include "engine/why.h"

/* timer, resp_timer, loss_timer, far_read.timer, alive.timer, nat's, its paths', and one more while the path changes */
#define TIMERS_PER_QP 9

static const struct roci_service *service_of(enum roci_qp_type type)
{
	switch (type) {
	case ROCI_QPT_RC: return &roci_service_rc;
	case ROCI_QPT_UC: return &roci_service_uc;
	case ROCI_QPT_UD: return &roci_service_ud;
	}
	return NULL;
}

static bool cap_ok(const struct roci_qp_init *init)
{
	const struct roci_qp_cap *c = &init->cap;

	return c->max_send_wr <= ROCI_MAX_QP_WR && c->max_recv_wr <= ROCI_MAX_QP_WR &&
	       c->max_send_sge <= ROCI_MAX_SGE && c->max_recv_sge <= ROCI_MAX_SGE && c->max_inline <= ROCI_MAX_INLINE;
}

static int alloc_queues(struct roci_qp *qp)
{
	uint32_t recv_sge = qp->srq ? qp->srq->rq.max_sge : qp->cap.max_recv_sge;
	int err;

	err = roci_sq_init(&qp->sq, qp->service->is_datagram, qp->cap.max_send_wr, qp->cap.max_send_sge,
			   qp->cap.max_inline);
	if (err)
		return err;
	qp->cap.max_inline = qp->sq.max_inline;
	err = roci_rq_init(&qp->rq, qp->srq ? 0 : qp->cap.max_recv_wr, qp->cap.max_recv_sge);
	if (err)
		goto err_sq;
	qp->resp.rwqe = calloc(1, sizeof(*qp->resp.rwqe) + recv_sge * sizeof(struct roci_sge));
	if (!qp->resp.rwqe) {
		err = -ENOMEM;
		goto err_rq;
	}
	return 0;
err_rq:
	roci_rq_fini(&qp->rq);
err_sq:
	roci_sq_fini(&qp->sq);
	return err;
}

static void fill(struct roci_qp *qp, struct roci_engine *e, const struct roci_qp_init *init)
{
	qp->e = e;
	qp->qpn = init->qpn;
	qp->pd = init->pd;
	qp->secret = init->type == ROCI_QPT_RC ? init->secret : 0;
	qp->type = init->type;
	qp->service = service_of(init->type);
	qp->state = ROCI_QPS_RESET;
	qp->sig_all = init->sq_sig_all;
	qp->cap = init->cap;
	qp->send_cq = init->send_cq;
	qp->recv_cq = init->recv_cq;
	qp->srq = init->srq;
	if (qp->srq)
		qp->cap.max_recv_wr = qp->cap.max_recv_sge = 0;
	roci_event_source_init(&qp->event, init->user);
	roci_list_init(&qp->ready);
	roci_list_init(&qp->blocked);
	roci_list_init(&qp->sent);
	roci_timer_init(&qp->timer);
	roci_timer_init(&qp->resp_timer);
	roci_keepalive_init(qp);
	qp->timer.expire = roci_requester_expire;
	qp->resp_timer.expire = roci_response_expire;
	roci_timer_init(&qp->loss_timer);
	qp->loss_timer.expire = roci_selective_expire;
}

int roci_qp_create(struct roci_engine *e, struct roci_qp_init *init, struct roci_qp **out)
{
	struct roci_qp *qp;
	int err;

	if (!cap_ok(init) || !init->send_cq || !init->recv_cq)
		return -EINVAL;
	if (!service_of(init->type))
		return -EINVAL;
	if (e->qp_count >= ROCI_MAX_QP)
		return ROCI_REFUSE(-ENOMEM, "max_qp %u: as many QPs exist", ROCI_MAX_QP);
	if (roci_timers_reserve(&e->timers, TIMERS_PER_QP * (int)(e->qp_count + 1)))
		return -ENOMEM;
	qp = aligned_alloc(ROCI_CACHE_LINE, sizeof(*qp));
	if (!qp)
		return -ENOMEM;
	*qp = (struct roci_qp){0};
	fill(qp, e, init);
	err = alloc_queues(qp);
	if (err)
		goto err_qp;
	err = roci_idmap_insert(&e->qps, qp->qpn, qp);
	if (err)
		goto err_queues;
	e->qp_count++;
	qp->send_cq->users++;
	qp->recv_cq->users++;
	if (qp->srq)
		qp->srq->users++;
	roci_list_append(&e->all_qps, &qp->all);
	init->cap = qp->cap;
	*out = qp;
	return 0;
err_queues:
	free(qp->resp.rwqe);
	roci_rq_fini(&qp->rq);
	roci_sq_fini(&qp->sq);
err_qp:
	free(qp);
	return err;
}

/* Stops everything that is under way: timers, packets to send, packets that came early. */
static void quiesce(struct roci_qp *qp)
{
	roci_flight_forget(qp);
	roci_far_read_stop(qp);
	roci_timer_set(&qp->e->timers, &qp->timer, ROCI_TIMER_OFF);
	roci_timer_set(&qp->e->timers, &qp->resp_timer, ROCI_TIMER_OFF);
	roci_timer_set(&qp->e->timers, &qp->loss_timer, ROCI_TIMER_OFF);
	roci_qp_keepalive(qp, qp->e->now, 0);
	roci_list_remove(&qp->ready);
	roci_list_remove(&qp->blocked);
	roci_list_remove(&qp->sent);
	roci_reorder_clear(&qp->e->reorder, &qp->req.early);
	roci_reorder_clear(&qp->e->reorder, &qp->resp.early);
}

void roci_qp_reset(struct roci_qp *qp)
{
	struct roci_rwqe *rwqe = qp->resp.rwqe;

	qp->state = ROCI_QPS_RESET;
	roci_qp_published(qp);
	roci_qp_take_back(qp);
	quiesce(qp);
	roci_far_read_end(qp);
	if (qp->path)
		roci_path_put(qp->path);
	qp->path = NULL;
	roci_nat_end(qp);
	free(qp->resp.ranges.kept);
	roci_response_ring_fini(&qp->resp.responses);
	roci_sent_log_fini(&qp->req.log);
	roci_scoreboard_fini(&qp->req.selective.board);
	roci_reorder_fini(&qp->e->reorder, &qp->req.early);
	roci_reorder_fini(&qp->e->reorder, &qp->resp.early);
	qp->req = (struct roci_requester){0};
	qp->resp = (struct roci_responder){.rwqe = rwqe};
	roci_sq_restart(&qp->sq);
	qp->rq.head = qp->rq.tail = 0;
	qp->attr = (struct roci_qp_attr){0};
	qp->load_at = 0;
	qp->peer = (struct roci_peer_port){0};
	qp->established = false;
	qp->state = ROCI_QPS_RESET;
	roci_qp_published(qp);
	qp->published = NULL;
}

void roci_qp_destroy(struct roci_qp *qp)
{
	struct roci_engine *e = qp->e;

	roci_mcast_forget(qp);
	roci_qp_reset(qp);
	roci_mw_forget_qp(e, qp->qpn);
	roci_event_source_fini(&qp->event);
	roci_idmap_remove(&e->qps, qp->qpn);
	roci_list_remove(&qp->all);
	qp->send_cq->users--;
	qp->recv_cq->users--;
	if (qp->srq)
		qp->srq->users--;
	e->qp_count--;
	free(qp->resp.rwqe);
	roci_rq_fini(&qp->rq);
	roci_sq_fini(&qp->sq);
	free(qp);
}

void roci_qp_query(const struct roci_qp *qp, struct roci_qp_attr *attr, struct roci_qp_cap *cap)
{
	*attr = qp->attr;
	attr->state = attr->cur_state = qp->state;
	attr->sq_psn = qp->state >= ROCI_QPS_RTS ? qp->req.window.next : qp->attr.sq_psn;
	attr->rq_psn = qp->state >= ROCI_QPS_RTR ? qp->resp.epsn : qp->attr.rq_psn;
	attr->sq_draining = qp->state == ROCI_QPS_SQD && qp->sq.head != qp->sq.started;
	*cap = qp->cap;
}

enum roci_qp_state roci_qp_state(const struct roci_qp *qp)
{
	return qp->state;
}

/* Packets leave from port 4791 from now on. */
static void leave_own_port(struct roci_qp *qp)
{
	struct roci_av *av = &qp->attr.av;

	if (qp->type == ROCI_QPT_RC && av->src_port != av->mad_port && !qp->own_port_again)
		qp->own_port = av->src_port;
	qp->own_port_again = false;
	av->src_port = av->mad_port;
}

void roci_qp_address(struct roci_qp *qp)
{
	struct roci_av *av = &qp->attr.av;

	av->peer_port = qp->peer.shown && !qp->peer.sprays ? qp->peer.port : 0;
	if (av->peer_port == ROCI_UDP_PORT && !qp->own_port_again) {
		leave_own_port(qp);
	} else if (av->peer_port && av->peer_port != ROCI_UDP_PORT && qp->own_port) {
		av->src_port = qp->own_port;
		qp->own_port = 0;
		qp->own_port_again = true;
	}
}

void roci_qp_peer_silent(struct roci_qp *qp, bool long_since)
{
	qp->peer.silent = long_since;
	roci_nat_silent(qp);
	if (!qp->peer.shown || (qp->own_port_again && long_since))
		leave_own_port(qp);
}

void roci_qp_make_ready(struct roci_qp *qp)
{
	if (roci_list_empty(&qp->ready))
		roci_list_append(&qp->e->ready, &qp->ready);
}

uint32_t roci_qp_number(const struct roci_qp *qp)
{
	return qp->qpn;
}

/* ---- peers on the same host ---- */

/* What the responder would let the peer do. */
static uint32_t rights(const struct roci_qp *qp)
{
	return qp->resp.responses.room ? qp->attr.access : qp->attr.access & ~(uint32_t)ROCI_ACCESS_REMOTE_READ;
}

void roci_qp_published(struct roci_qp *qp)
{
	bool fresh = qp->state == ROCI_QPS_RTR && !qp->established;

	if (qp->published)
		atomic_store(qp->published,
			     roci_qp_receives(qp) ? ROCI_PUBLISHED | rights(qp) | (fresh ? ROCI_PUBLISHED_NEW : 0) : 0);
}

void roci_qp_take_back(struct roci_qp *qp)
{
	if (roci_qp_is_local(qp) && qp->e->local)
		qp->e->local->take_back(qp->e->driver, qp->attr.av.local, qp->attr.dest_qpn);
}

void roci_qp_publish(struct roci_qp *qp, _Atomic uint32_t *state)
{
	qp->published = state;
	roci_qp_published(qp);
}

/* ---- completions ---- */

void roci_qp_complete_send(struct roci_qp *qp, struct roci_swqe *w, const struct roci_cqe *cqe)
{
	ROCI_TRACE(qp->e, roci_trace_completion(qp, w, cqe));
	w->cq_place = roci_cq_tail(qp->send_cq);
	roci_cq_push(qp->send_cq, cqe, false);
	w->has_cqe = roci_cq_tail(qp->send_cq) != w->cq_place; /* not where the CQ has overrun */
}

static void flush_send(struct roci_qp *qp, struct roci_swqe *w)
{
	struct roci_cqe cqe = {
		.wr_id = w->wr_id, .status = ROCI_WC_WR_FLUSH_ERR, .opcode = roci_swqe_wc_opcode(w), .qpn = qp->qpn};

	roci_qp_complete_send(qp, w, &cqe);
}

static void flush_sq(struct roci_qp *qp)
{
	while (qp->sq.head != qp->sq.tail)
		flush_send(qp, roci_sq_at(&qp->sq, qp->sq.head++));
	qp->sq.next = qp->sq.started = qp->sq.head;
	qp->req.next_packet = 0;
}

bool roci_qp_take_receive(struct roci_qp *qp)
{
	if (qp->resp.have_rwqe)
		return true;
	qp->resp.have_rwqe = qp->srq ? roci_srq_take(qp->srq, qp->resp.rwqe) : roci_rq_take(&qp->rq, qp->resp.rwqe);
	if (qp->resp.have_rwqe)
		ROCI_TRACE(qp->e, roci_trace_recv_taken(qp));
	return qp->resp.have_rwqe;
}

void roci_qp_complete_receive(struct roci_qp *qp, struct roci_cqe *cqe, bool solicited)
{
	assert(qp->resp.have_rwqe);
	qp->resp.have_rwqe = false;
	cqe->wr_id = qp->resp.rwqe->wr_id;
	cqe->qpn = qp->qpn;
	ROCI_TRACE(qp->e, roci_trace_completion(qp, NULL, cqe));
	roci_cq_push(qp->recv_cq, cqe, solicited);
}

/* The receives of an SRQ belong to the SRQ: only the one that the QP has taken is flushed. */
static void flush_rq(struct roci_qp *qp)
{
	while (qp->resp.have_rwqe || (!qp->srq && roci_rq_take(&qp->rq, qp->resp.rwqe))) {
		struct roci_cqe cqe = {.status = ROCI_WC_WR_FLUSH_ERR, .opcode = ROCI_WC_RECV};

		qp->resp.have_rwqe = true;
		roci_qp_complete_receive(qp, &cqe, false);
	}
}

void roci_qp_error(struct roci_qp *qp, int type)
{
	if (qp->state == ROCI_QPS_ERR || qp->state == ROCI_QPS_RESET)
		return;
	qp->state = ROCI_QPS_ERR;
	ROCI_TRACE(qp->e, roci_trace_state(qp));
	roci_qp_published(qp);
	roci_qp_take_back(qp);
	if (type >= 0)
		roci_event_async(qp->e, &qp->event, (enum roci_async_type)type);
	quiesce(qp);
	flush_sq(qp);
	flush_rq(qp);
	qp->resp.message.kind = 0;
	if (qp->srq)
		roci_event_async(qp->e, &qp->event, ROCI_EVENT_QP_LAST_WQE_REACHED);
	roci_qp_make_ready(qp); /* a NAK may be due */
}

void roci_qp_send_queue_error(struct roci_qp *qp)
{
	qp->state = ROCI_QPS_SQE;
	ROCI_TRACE(qp->e, roci_trace_state(qp));
	qp->req.stopped = false;
	flush_sq(qp);
}

/* ---- posting ---- */

static bool opcode_allowed(const struct roci_qp *qp, enum roci_wr_opcode op)
{
	switch (op) {
	case ROCI_WR_SEND:
	case ROCI_WR_SEND_WITH_IMM: return true;
	case ROCI_WR_RDMA_WRITE:
	case ROCI_WR_RDMA_WRITE_WITH_IMM:
	case ROCI_WR_BIND_MW:
	case ROCI_WR_LOCAL_INV:
	case ROCI_WR_SEND_WITH_INV: return qp->type != ROCI_QPT_UD;
	case ROCI_WR_RDMA_READ:
	case ROCI_WR_ATOMIC_CMP_AND_SWP:
	case ROCI_WR_ATOMIC_FETCH_AND_ADD:
	case ROCI_WR_FLUSH:
	case ROCI_WR_ATOMIC_WRITE: return qp->type == ROCI_QPT_RC;
	}
	return false;
}

/* An atomic, ATOMIC WRITE included: remote address and length (IBTA 9.4.5, A19). */
static int check_atomic(const struct roci_send_wr *wr, uint64_t least, uint64_t most)
{
	struct roci_sgl sgl = {wr->sges, wr->num_sge};
	uint64_t len = roci_sgl_len(&sgl);

	if (wr->remote_addr & 7)
		return ROCI_REFUSE(-EINVAL, "remote_addr 0x%llx: an atomic needs a multiple of 8",
				   (unsigned long long)wr->remote_addr);
	if (len < least || len > most)
		return ROCI_REFUSE(-EINVAL, "the SGEs have %llu bytes: an atomic needs 8", (unsigned long long)len);
	return 0;
}

static int check_not_inline(const struct roci_send_wr *wr)
{
	return wr->flags & ROCI_SEND_INLINE
		       ? ROCI_REFUSE(-EINVAL, "send_flags: a %s cannot be inline", roci_wr_opcode_name(wr->opcode))
		       : 0;
}

static int check_flush(const struct roci_send_wr *wr)
{
	if (wr->num_sge)
		return ROCI_REFUSE(-EINVAL, "num_sge %u: a FLUSH has no data", wr->num_sge);
	if (wr->flush.len > ROCI_MAX_MESSAGE_BYTES)
		return ROCI_REFUSE(-EINVAL, "len %llu: a FLUSH covers at most %u bytes",
				   (unsigned long long)wr->flush.len, ROCI_MAX_MESSAGE_BYTES);
	return check_not_inline(wr);
}

/* What the opcode demands of sizes and addresses (IBTA 9.4.5, A19). */
static int check_by_opcode(const struct roci_qp *qp, const struct roci_send_wr *wr)
{
	int err;

	if (qp->type == ROCI_QPT_UD && !wr->av)
		return ROCI_REFUSE(-EINVAL, "wr.ud.ah: a UD QP needs an address handle");
	switch (wr->opcode) {
	case ROCI_WR_RDMA_READ: return check_not_inline(wr);
	case ROCI_WR_ATOMIC_CMP_AND_SWP:
	case ROCI_WR_ATOMIC_FETCH_AND_ADD:
		err = check_not_inline(wr);
		return err ? err : check_atomic(wr, 8, UINT64_MAX);
	case ROCI_WR_ATOMIC_WRITE: return check_atomic(wr, wr->num_sge ? 8 : 0, 8);
	case ROCI_WR_FLUSH: return check_flush(wr);
	case ROCI_WR_BIND_MW:
		return wr->bind.mw && (wr->bind.mr || !wr->bind.len)
			       ? 0
			       : ROCI_REFUSE(-EINVAL, "bind_mw: window or region is missing");
	case ROCI_WR_SEND_WITH_INV:
		return qp->type == ROCI_QPT_RC ? 0 : ROCI_REFUSE(-EINVAL, "opcode: only RC has SEND with invalidate");
	default: return 0;
	}
}

int roci_qp_check_send(const struct roci_qp *qp, const struct roci_send_wr *wr)
{
	int err;

	if (qp->state < ROCI_QPS_RTS)
		return ROCI_REFUSE(-EINVAL, "the QP is in %s: sends can be posted from RTS on",
				   roci_qp_state_name(qp->state));
	if (!opcode_allowed(qp, wr->opcode))
		return ROCI_REFUSE(-EINVAL, "opcode %d (%s): a QP of type %s does not have it", (int)wr->opcode,
				   roci_wr_opcode_name(wr->opcode), roci_qp_type_name(qp->type));
	err = roci_sq_check(&qp->sq, wr);
	return err ? err : check_by_opcode(qp, wr);
}

int roci_qp_post_send(struct roci_qp *qp, const struct roci_send_wr *wr)
{
	int err = roci_qp_check_send(qp, wr);

	if (!err && !roci_qp_send_room(qp, 1))
		err = ROCI_REFUSE(-ENOMEM,
				  "the send queue is full (max_send_wr %u): poll the CQ, and signal some of the sends",
				  qp->sq.max_wr);
	if (!err)
		err = roci_sq_post(&qp->sq, wr, qp->sig_all);
	if (err)
		return err;
	ROCI_TRACE(qp->e, roci_trace_post_send(qp, wr));
	if (qp->state == ROCI_QPS_ERR || qp->state == ROCI_QPS_SQE)
		flush_sq(qp);
	else
		roci_qp_make_ready(qp);
	return 0;
}

/* Frees the slots of completed requests, in order, up to the first whose completion was not polled. */
static void free_slots(struct roci_qp *qp)
{
	struct roci_sq *sq = &qp->sq;

	for (; sq->freed != sq->head; sq->freed++) {
		const struct roci_swqe *w = roci_sq_at(sq, sq->freed);

		if (w->has_cqe && roci_cq_waits(qp->send_cq, w->cq_place))
			return;
	}
}

bool roci_qp_send_room(struct roci_qp *qp, unsigned count)
{
	struct roci_sq *sq = &qp->sq;

	if (sq->head == sq->tail || count > sq->max_wr - (sq->tail - sq->freed))
		free_slots(qp);
	if (sq->freed == sq->tail)
		roci_sq_restart(sq);
	return count <= sq->max_wr - (sq->tail - sq->freed);
}

int roci_qp_post_recv(struct roci_qp *qp, const struct roci_recv_wr *wr)
{
	int err;

	if (qp->state == ROCI_QPS_RESET)
		return ROCI_REFUSE(-EINVAL, "the QP is in RESET: receives can be posted from INIT on");
	if (qp->srq)
		return ROCI_REFUSE(-EINVAL, "the QP has an SRQ: use ibv_post_srq_recv()");
	err = roci_rq_post(&qp->rq, wr);
	if (!err)
		ROCI_TRACE(qp->e, roci_trace_post_recv(qp, wr));
	if (!err && qp->state == ROCI_QPS_ERR)
		flush_rq(qp);
	return err;
}
