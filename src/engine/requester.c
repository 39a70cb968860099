/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/requester.h"

#include <assert.h>
#include <string.h>

#include "engine/batch.h"
#include "engine/cq.h"
#include "engine/packets.h"
#include "engine/uc_flow.h"

#define ACK_EVERY           8  /* packets between requested acknowledgements */
#define READ_PIECE          16 /* packets that one READ request asks for at most */
#define RECOVERY_BURST      4  /* packets that are sent again at once after a loss */
#define TX_SPANS_PER_PACKET ROCI_MAX_SGE
#define PROBE_MIN_NS        UINT64_C(4000000)
#define PROBE_FIRST_NS      UINT64_C(100000000) /* where no round trip was measured yet */
#define GRACE_NS            200000000u          /* more than the least, before silence is a timeout */
#define PROBES_MAX          8                   /* doublings */

/* ---- window ---- */

static void book_flight(struct roci_qp *qp)
{
	uint64_t flight = qp->req.sent_bytes - qp->req.una_bytes;

	if (!qp->path)
		return;
	qp->path->flight += flight - qp->req.flight;
	qp->req.flight = flight;
}

/* Window is free again: whoever waited for it may try, in the order in which they came. */
static void wake_blocked(struct roci_path *path)
{
	while (!roci_list_empty(&path->blocked)) {
		struct roci_qp *qp = roci_container_of(path->blocked.next, struct roci_qp, blocked);

		roci_list_remove(&qp->blocked);
		roci_qp_make_ready(qp);
	}
}

void roci_requester_book_flight(struct roci_qp *qp)
{
	book_flight(qp);
	if (qp->path)
		wake_blocked(qp->path);
}

void roci_requester_forget_flight(struct roci_qp *qp)
{
	qp->req.una_bytes = qp->req.sent_bytes;
	roci_requester_book_flight(qp);
}

/* A QP may always have one packet out, so that none waits for another one's dead peer. */
static bool window_open(struct roci_qp *qp, uint64_t bytes)
{
	struct roci_requester *r = &qp->req;

	if (r->recovering && roci_psn_diff(r->psn, r->una) >= (int32_t)r->burst)
		return false;
	if (!r->flight || roci_path_fits(qp->path, bytes))
		return true;
	if (roci_list_empty(&qp->blocked))
		roci_list_append(&qp->path->blocked, &qp->blocked);
	return false;
}

/* Sets the place of the next packet to send to `psn`, which lies in the part of the queue that was started. */
static void seek(struct roci_qp *qp, uint32_t psn, uint64_t bytes)
{
	struct roci_requester *r = &qp->req;
	struct roci_sq *sq = &qp->sq;

	r->psn = psn;
	r->sent_bytes = bytes;
	r->next_packet = 0;
	for (sq->next = sq->head; sq->next != sq->started; sq->next++) {
		struct roci_swqe *w = roci_sq_at(sq, sq->next);
		int32_t into = roci_psn_diff(psn, w->first_psn);

		if (!w->done && into >= 0 && (uint32_t)into < w->packets) {
			r->next_packet = (uint32_t)into;
			return;
		}
	}
}

void roci_requester_advance(struct roci_qp *qp, uint32_t una, uint64_t bytes)
{
	struct roci_requester *r = &qp->req;
	uint64_t now = qp->e->now, acked = bytes - r->una_bytes;

	assert(roci_psn_diff(una, r->una) > 0);
	r->una = una;
	r->una_bytes = bytes;
	if (roci_psn_diff(r->acked, una) < 0)
		r->acked = una;
	r->rewound = false;
	r->retries_left = qp->attr.retry_cnt;
	r->rnr_left = qp->attr.rnr_retry;
	while (r->read_count && roci_psn_diff(r->read_end[r->read_first], una) <= 0) {
		r->read_first = (uint8_t)((r->read_first + 1) % ROCI_MAX_RD_ATOMIC);
		r->read_count--;
	}
	if (roci_psn_diff(r->psn, una) < 0)
		seek(qp, una, bytes); /* the peer had kept more than was sent again */
	if (r->recovering) {
		r->burst = r->burst < 1u << 20 ? 2 * r->burst : r->burst;
		r->recovering = roci_psn_diff(r->recover_end, una) > 0;
	}
	if (r->sampling && roci_psn_diff(una, r->sample_psn) > 0) {
		r->sampling = false;
		roci_path_rtt(qp->path, now, now - r->sample_at);
	}
	roci_path_acked(qp->path, now, acked);
	book_flight(qp);
	wake_blocked(qp->path);
}

/* ---- timers ---- */

/* IBTA 9.7.6.1.3: silence is a timeout after 4.096 us * 2^timeout at the earliest, and after four times that at the
 * latest. Both ends may be threads that wait for a processor, so a grace is given within that; no loss is repaired
 * later for it, because probes come long before. */
static uint64_t ack_timeout(uint8_t timeout)
{
	uint64_t least = UINT64_C(4096) << timeout, grace = 3 * least;

	return least + (grace < GRACE_NS ? grace : GRACE_NS);
}

/* The time after which silence is odd: some round trips, doubled by every probe. */
static uint64_t probe_at(const struct roci_qp *qp)
{
	uint64_t wait = qp->path->srtt ? 4 * qp->path->srtt : PROBE_FIRST_NS;

	if (wait < PROBE_MIN_NS)
		wait = PROBE_MIN_NS;
	return qp->e->now + (wait << qp->req.probes);
}

static void set_timer(struct roci_qp *qp)
{
	uint64_t probe = probe_at(qp);

	roci_timer_set(&qp->e->timers, &qp->timer, probe < qp->req.rto_at ? probe : qp->req.rto_at);
}

void roci_requester_arm(struct roci_qp *qp)
{
	struct roci_requester *r = &qp->req;

	if (r->rnr_wait || r->paced)
		return;
	r->probes = 0;
	if (r->psn == r->una) {
		roci_timer_set(&qp->e->timers, &qp->timer, ROCI_TIMER_OFF);
		return;
	}
	r->rto_at = qp->attr.timeout ? qp->e->now + ack_timeout(qp->attr.timeout) : ROCI_TIMER_OFF; /* 0: never */
	set_timer(qp);
}

/* The end of what was sent, or what was sent again, may be lost: nobody will NAK it. Sending a little of it again long
 * before the acknowledgement timeout is no retry in the sense of retry_cnt, which only that timeout uses up. */
static void probe(struct roci_qp *qp)
{
	qp->e->stats.probes++;
	if (qp->req.probes < PROBES_MAX)
		qp->req.probes++;
	roci_requester_rewind(qp);
	set_timer(qp);
}

void roci_requester_expire(struct roci_timer *timer)
{
	struct roci_qp *qp = roci_container_of(timer, struct roci_qp, timer);
	struct roci_requester *r = &qp->req;

	if (r->rnr_wait || r->paced) {
		r->rnr_wait = r->paced = false;
		roci_qp_make_ready(qp);
		return;
	}
	if (r->psn == r->una)
		return;
	if (qp->type != ROCI_QPT_RC) {
		roci_uc_silence(qp);
		return;
	}
	if (qp->e->now < r->rto_at) {
		probe(qp);
		return;
	}
	qp->e->stats.timeouts++;
	if (!r->retries_left) {
		roci_requester_fail(qp, ROCI_WC_RETRY_EXC_ERR);
		return;
	}
	r->retries_left--;
	roci_path_congested(qp->path, qp->e->now);
	roci_requester_rewind(qp);
	roci_requester_arm(qp);
}

/* ---- going back ---- */

void roci_requester_rewind(struct roci_qp *qp)
{
	struct roci_requester *r = &qp->req;

	qp->e->stats.retransmits += (uint64_t)roci_psn_diff(r->psn, r->una);
	/* An unanswered FLUSH was lost, or its ICRC was not that of the peer's kind, which only trying tells. */
	if (qp->sq.head != qp->sq.started && roci_swqe_head(qp)->opcode == ROCI_WR_FLUSH)
		r->soft_roce = !r->soft_roce;
	seek(qp, r->una, r->una_bytes);
	r->read_count = 0;
	r->sampling = false;
	r->recovering = true;
	r->recover_end = r->max_psn;
	r->burst = RECOVERY_BURST;
	book_flight(qp);
	wake_blocked(qp->path);
	roci_qp_make_ready(qp);
}

/* ---- completion ---- */

static void complete(struct roci_qp *qp, struct roci_swqe *w, enum roci_wc_status status)
{
	struct roci_cqe cqe = {.wr_id = w->wr_id, .status = status, .opcode = roci_swqe_wc_opcode(w), .qpn = qp->qpn};

	if (status == ROCI_WC_SUCCESS && !(w->flags & ROCI_SEND_SIGNALED))
		return;
	if (roci_swqe_fetches(w))
		cqe.byte_len = (uint32_t)w->length;
	roci_qp_complete_send(qp, w, &cqe);
}

void roci_requester_fail(struct roci_qp *qp, enum roci_wc_status status)
{
	complete(qp, roci_swqe_head(qp), status);
	qp->sq.head++;
	if (qp->type == ROCI_QPT_RC)
		roci_qp_error(qp, -1);
	else
		roci_qp_send_queue_error(qp);
}

void roci_requester_retire(struct roci_qp *qp)
{
	struct roci_sq *sq = &qp->sq;

	while (sq->head != sq->started && roci_swqe_head(qp)->done) {
		struct roci_swqe *w = roci_swqe_head(qp);

		if (w->status != ROCI_WC_SUCCESS) {
			roci_requester_fail(qp, (enum roci_wc_status)w->status);
			return;
		}
		complete(qp, w, ROCI_WC_SUCCESS);
		sq->head++;
	}
	if (qp->state == ROCI_QPS_SQD && sq->head == sq->started && qp->attr.en_sqd_async_notify) {
		qp->attr.en_sqd_async_notify = 0;
		roci_event_async(qp->e, &qp->event, ROCI_EVENT_SQ_DRAINED);
	}
}

/* ---- starting a request ---- */

static void finish_locally(struct roci_qp *qp, struct roci_swqe *w, enum roci_wc_status status)
{
	w->packets = 0;
	w->done = true;
	w->status = (uint8_t)status;
	if (status != ROCI_WC_SUCCESS)
		qp->req.halted = true;
}

static enum roci_wc_status run_local(struct roci_qp *qp, const struct roci_swqe *w)
{
	int err = w->opcode == ROCI_WR_BIND_MW ? roci_mw_bind(qp->e, qp->pd, qp->qpn, &w->bind)
					       : roci_mw_invalidate(qp->e, qp->pd, qp->qpn, w->imm);

	return err ? ROCI_WC_MW_BIND_ERR : ROCI_WC_SUCCESS;
}

/* What can be known to be wrong before the first packet leaves. */
static enum roci_wc_status check_request(const struct roci_qp *qp, const struct roci_swqe *w)
{
	struct roci_sgl sgl = {w->sges, w->num_sge};

	if (qp->type == ROCI_QPT_UD && w->length > w->ud.av.mtu)
		return ROCI_WC_LOC_LEN_ERR; /* IBTA 10.8.3.3: one packet */
	if (roci_swqe_needs_response(w) && !qp->attr.max_rd_atomic)
		return ROCI_WC_LOC_QP_OP_ERR;
	if (!roci_sgl_check(qp->e, qp->pd, &sgl, roci_swqe_fetches(w) ? ROCI_ACCESS_LOCAL_WRITE : 0))
		return ROCI_WC_LOC_PROT_ERR;
	return ROCI_WC_SUCCESS;
}

static uint32_t count_packets(const struct roci_qp *qp, const struct roci_swqe *w)
{
	bool one = qp->type == ROCI_QPT_UD || w->length == 0 ||
		   (roci_swqe_needs_response(w) && w->opcode != ROCI_WR_RDMA_READ);

	return one ? 1 : (uint32_t)((w->length + qp->mtu - 1) / qp->mtu);
}

/* IBTA 10.8.3.3, fence: earlier READs and atomics must have completed; so, here, must all that needs a response. */
static bool fenced(const struct roci_qp *qp, const struct roci_swqe *w)
{
	return (w->flags & ROCI_SEND_FENCE) && qp->req.read_count;
}

/* True where sq.next was started, or done on the spot. */
static bool start_request(struct roci_qp *qp)
{
	struct roci_sq *sq = &qp->sq;
	struct roci_swqe *w = roci_sq_at(sq, sq->next);
	enum roci_wc_status status;

	if (qp->req.halted || qp->state == ROCI_QPS_SQD || fenced(qp, w))
		return false;
	w->first_psn = qp->req.psn;
	w->cum_bytes = qp->req.sent_bytes;
	status = roci_swqe_is_local(w) ? run_local(qp, w) : check_request(qp, w);
	if (roci_swqe_is_local(w) || status != ROCI_WC_SUCCESS)
		finish_locally(qp, w, status);
	else
		w->packets = count_packets(qp, w);
	sq->started++;
	return true;
}

/* ---- packets ---- */

static bool read_slot_free(const struct roci_qp *qp)
{
	return qp->req.read_count < qp->attr.max_rd_atomic;
}

static void note_read(struct roci_qp *qp, uint32_t end)
{
	struct roci_requester *r = &qp->req;

	r->read_end[(r->read_first + r->read_count++) % ROCI_MAX_RD_ATOMIC] = end;
}

/* PSNs that the next packet of *w stands for: 1, or for a READ the rest of its piece. Pieces have fixed borders, so
 * that a request that comes again is always the tail of one that the responder knows. */
static uint32_t next_step(const struct roci_qp *qp, const struct roci_swqe *w)
{
	uint32_t at = qp->req.next_packet, left = w->packets - at, n = READ_PIECE - at % READ_PIECE;

	if (w->opcode != ROCI_WR_RDMA_READ)
		return 1;
	return n < left ? n : left;
}

static bool want_ack(const struct roci_qp *qp, const struct roci_swqe *w, uint64_t bytes)
{
	const struct roci_requester *r = &qp->req;

	if (qp->type == ROCI_QPT_UD)
		return false;
	if (qp->type == ROCI_QPT_RC && (r->next_packet + 1 == w->packets || r->recovering))
		return true;
	if (qp->type == ROCI_QPT_UC && !r->heard && !r->asked)
		return true;
	return (r->psn & (ACK_EVERY - 1)) == 0 || !roci_path_fits(qp->path, bytes + ACK_EVERY * (uint64_t)qp->mtu);
}

/* Adds the packet at (w, next_packet). False where its memory is gone: the request has failed. */
static bool add_packet(struct roci_qp *qp, struct roci_swqe *w, struct roci_tx_batch *batch, uint32_t step, bool ack)
{
	struct roci_tx_packet *tx;
	struct roci_packet pkt = {.pkey = ROCI_PKEY_DEFAULT, .psn = qp->req.psn, .ack_req = ack};

	if (!roci_packets_request(qp, w, qp->req.next_packet, step, &pkt, batch))
		return false;
	tx = roci_tx_batch_add(batch, qp->type == ROCI_QPT_UD ? &w->ud.av : &qp->attr.av, &pkt);
	tx->copy_payload = roci_psn_diff(pkt.psn, qp->req.max_psn) < 0;
	tx->soft_roce = w->opcode == ROCI_WR_FLUSH && qp->req.soft_roce;
	return true;
}

static void sent(struct roci_qp *qp, struct roci_swqe *w, uint32_t step, bool ack)
{
	struct roci_requester *r = &qp->req;
	bool fresh = roci_psn_diff(r->psn, r->max_psn) >= 0;

	if (ack && fresh && !r->sampling && qp->type == ROCI_QPT_RC) {
		r->sampling = true;
		r->sample_psn = r->psn;
		r->sample_at = qp->e->now;
	}
	if (roci_swqe_needs_response(w))
		note_read(qp, roci_psn_add(r->psn, step));
	r->next_packet += step;
	r->psn = roci_psn_add(r->psn, step);
	if (qp->type == ROCI_QPT_RC)
		r->sent_bytes = w->cum_bytes + roci_swqe_bytes(qp, w, r->next_packet);
	else
		r->sent_bytes += roci_uc_bytes(qp, 1);
	r->asked |= ack;
	if (qp->type == ROCI_QPT_UD || (qp->type == ROCI_QPT_UC && r->mute)) { /* nobody will say that it arrived */
		r->una = r->psn;
		r->una_bytes = r->sent_bytes;
	}
	if (roci_psn_diff(r->psn, r->max_psn) > 0)
		r->max_psn = r->psn;
	book_flight(qp);
	if (r->next_packet < w->packets)
		return;
	r->next_packet = 0;
	qp->sq.next++;
	if (qp->type != ROCI_QPT_RC)
		w->done = true;
}

/* UC is paced, unless its peer advises; true where the packet may go now. */
static bool pace(struct roci_qp *qp, uint64_t bytes)
{
	uint64_t at;

	if (qp->type != ROCI_QPT_UC)
		return true;
	if (!qp->req.mute)
		return window_open(qp, roci_uc_bytes(qp, 1));
	at = roci_path_pace(qp->path, qp->e->now, bytes);
	if (!at)
		return true;
	qp->req.paced = true;
	roci_timer_set(&qp->e->timers, &qp->timer, at);
	return false;
}

/* One packet of the request at sq.next. */
static bool send_one(struct roci_qp *qp, struct roci_tx_batch *batch)
{
	struct roci_swqe *w = roci_sq_at(&qp->sq, qp->sq.next);
	bool rc = qp->type == ROCI_QPT_RC, ack;
	uint32_t step = rc ? next_step(qp, w) : 1;
	uint64_t bytes =
		roci_swqe_bytes(qp, w, qp->req.next_packet + step) - roci_swqe_bytes(qp, w, qp->req.next_packet);

	if (roci_swqe_needs_response(w) && !read_slot_free(qp))
		return false;
	if (rc ? !window_open(qp, bytes) : !pace(qp, bytes))
		return false;
	ack = want_ack(qp, w, bytes);
	if (!add_packet(qp, w, batch, step, ack)) {
		/* The region went while the message was under way: what was sent is acknowledged first, then it fails.
		 * What had been sent behind it, before this side went back, does not come again. */
		w->packets = qp->req.next_packet;
		finish_locally(qp, w, ROCI_WC_LOC_PROT_ERR);
		qp->sq.started = ++qp->sq.next;
		qp->req.next_packet = 0;
		return false;
	}
	sent(qp, w, step, ack);
	return true;
}

static bool may_send(const struct roci_qp *qp)
{
	return (qp->state == ROCI_QPS_RTS || qp->state == ROCI_QPS_SQD) && !qp->req.rnr_wait && !qp->req.paced;
}

bool roci_requester_fill(struct roci_qp *qp, struct roci_tx_batch *batch, unsigned quantum)
{
	struct roci_sq *sq = &qp->sq;
	unsigned before = batch->count, room = ROCI_TX_BATCH - batch->count;
	bool more = false;

	if (quantum > room)
		quantum = room;
	while (may_send(qp) && sq->next != sq->tail) {
		if (sq->next == sq->started && !start_request(qp))
			break;
		if (roci_sq_at(sq, sq->next)->done) {
			sq->next++;
			continue;
		}
		if (batch->count - before == quantum || batch->span_count + TX_SPANS_PER_PACKET > ROCI_TX_SPANS) {
			more = true;
			break;
		}
		if (!send_one(qp, batch))
			break;
	}
	if (qp->type == ROCI_QPT_RC && batch->count != before && (qp->timer.at == ROCI_TIMER_OFF))
		roci_requester_arm(qp);
	if (qp->type == ROCI_QPT_UC && batch->count != before && qp->timer.at == ROCI_TIMER_OFF)
		roci_uc_arm(qp);
	if (sq->head != sq->started && roci_swqe_head(qp)->done && roci_list_empty(&qp->sent))
		roci_list_append(&qp->e->sent, &qp->sent);
	return more;
}
