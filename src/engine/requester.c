/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/requester.h"

#include "engine/batch.h"
#include "engine/far_read.h"
#include "engine/packets.h"
#include "engine/service.h"
#include "engine/sgl.h"
#include "engine/trace.h"
#include "engine/why.h"

/* Packets that one READ request asks for: as many as a window has room for a few times. A responder sends each piece in
 * messages of its own, so larger ones are cheaper; Rocinante paces what is longer than the largest (response.c). */
#define PIECE_LEAST       16
#define PIECE_MOST        64
#define PIECES_PER_WINDOW 4
#define RUN_HEADER        16 /* bytes of a packet in the middle of a message: BTH and ICRC */

/* ---- the place in the queue ---- */

void roci_requester_seek(struct roci_qp *qp, uint32_t psn, uint64_t bytes)
{
	struct roci_requester *r = &qp->req;
	struct roci_sq *sq = &qp->sq;

	roci_send_window_seek(&r->window, psn, bytes);
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

struct roci_swqe *roci_requester_find(const struct roci_qp *qp, uint32_t psn)
{
	const struct roci_sq *sq = &qp->sq;
	uint32_t low = 0, high = sq->started - sq->head; /* the last one that begins at psn or before */

	while (low + 1 < high) {
		uint32_t middle = low + (high - low) / 2;

		if (roci_psn_diff(roci_sq_at(sq, sq->head + middle)->first_psn, psn) <= 0)
			low = middle;
		else
			high = middle;
	}
	return roci_sq_at(sq, sq->head + low);
}

/* Nothing is sent until the QP's timer expires. */
static bool waits(const struct roci_requester *r)
{
	return r->rnr.waiting || r->uc.paced;
}

void roci_requester_expire(struct roci_timer *timer)
{
	struct roci_qp *qp = roci_container_of(timer, struct roci_qp, timer);
	struct roci_requester *r = &qp->req;

	if (waits(r)) {
		bool refused = r->rnr.waiting;

		r->rnr.waiting = r->uc.paced = false;
		if (refused) /* what was refused may have been taken meanwhile: then nothing that is sent starts it */
			qp->service->start_timer(qp);
		roci_qp_make_ready(qp);
	} else if (r->window.max != r->window.una) { /* sent, or to be sent again when the path's pace allows */
		qp->service->silence(qp);
	}
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

static void tell(const struct roci_qp *qp, const struct roci_swqe *w, enum roci_wc_status status)
{
	ROCI_WHY_TELL("QP 0x%x: %s of %llu bytes (wr_id 0x%llx) completes with %s", qp->qpn,
		      roci_wr_opcode_name((enum roci_wr_opcode)w->opcode), (unsigned long long)w->length,
		      (unsigned long long)w->wr_id, roci_wc_status_name(status));
}

static void fail_oldest(struct roci_qp *qp, enum roci_wc_status status)
{
	roci_qp_take_back(qp); /* before the program sees the completion */
	complete(qp, roci_swqe_head(qp), status);
	qp->sq.head++;
	qp->service->failed(qp);
}

void roci_requester_fail(struct roci_qp *qp, enum roci_wc_status status)
{
	tell(qp, roci_swqe_head(qp), status);
	fail_oldest(qp, status);
}

void roci_requester_retire(struct roci_qp *qp)
{
	struct roci_sq *sq = &qp->sq;

	while (sq->head != sq->started && roci_swqe_head(qp)->done) {
		struct roci_swqe *w = roci_swqe_head(qp);

		if (w->status != ROCI_WC_SUCCESS) {
			fail_oldest(qp, (enum roci_wc_status)w->status);
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
	if (status == ROCI_WC_SUCCESS)
		return;
	qp->req.stopped = true;
	tell(qp, w, status);
}

static enum roci_wc_status run_local(struct roci_qp *qp, const struct roci_swqe *w)
{
	struct roci_bind bind;
	int err;

	if (w->opcode == ROCI_WR_BIND_MW) {
		bind = roci_swqe_bind(w);
		err = roci_mw_bind(qp->e, qp->pd, qp->qpn, &bind);
	} else {
		err = roci_mw_invalidate(qp->e, qp->pd, qp->qpn, w->imm);
	}
	return err ? ROCI_WC_MW_BIND_ERR : ROCI_WC_SUCCESS;
}

/* The errors that can be found before the first packet is sent. */
static enum roci_wc_status check_request(const struct roci_qp *qp, const struct roci_swqe *w)
{
	struct roci_sgl sgl = {w->sges, w->num_sge};

	if (qp->service->is_datagram && w->length > roci_swqe_mtu(qp, w))
		return ROCI_REFUSE(ROCI_WC_LOC_LEN_ERR, "a datagram is one packet, and the path MTU is %u",
				   roci_swqe_mtu(qp, w)); /* IBTA 10.8.3.3 */
	if (roci_swqe_needs_response(w) && !qp->attr.max_rd_atomic)
		return ROCI_REFUSE(ROCI_WC_LOC_QP_OP_ERR, "max_rd_atomic of the QP is 0");
	if (!roci_sgl_check(qp->e, qp->pd, &sgl, w->length, roci_swqe_fetches(w) ? ROCI_ACCESS_LOCAL_WRITE : 0))
		return ROCI_WC_LOC_PROT_ERR;
	return ROCI_WC_SUCCESS;
}

static uint32_t count_packets(const struct roci_qp *qp, const struct roci_swqe *w)
{
	uint32_t mtu = roci_swqe_mtu(qp, w);
	bool one = w->length == 0 || (roci_swqe_needs_response(w) && w->opcode != ROCI_WR_RDMA_READ);

	return one ? 1 : (uint32_t)((w->length + mtu - 1) / mtu);
}

/* IBTA 10.8.3.3, fence: earlier READs and atomics must have completed. Here that goes for all requests that need a
 * response, and they count until the last packet of their responses has come. */
static bool fenced(const struct roci_qp *qp, const struct roci_swqe *w)
{
	return (w->flags & ROCI_SEND_FENCE) && (qp->req.outstanding.count || roci_far_read_packets(qp->req.far_read));
}

/* The pieces of a READ that begins now; a power of two. */
static uint16_t choose_piece(const struct roci_qp *qp)
{
	uint64_t packet = qp->mtu + ROCI_PATH_PACKET_BYTES;
	unsigned n = PIECE_LEAST;

	if (qp->req.far_read)
		return roci_far_read_piece(qp);
	while (n < PIECE_MOST && 2 * n * PIECES_PER_WINDOW * packet <= roci_path_window(qp->path))
		n *= 2;
	return (uint16_t)n;
}

/* How long its packets are is decided once: their PSNs follow from it. */
static void choose_length(struct roci_qp *qp, struct roci_swqe *w)
{
	if (qp->type != ROCI_QPT_RC || w->length <= qp->mtu || roci_swqe_needs_response(w))
		return;
	roci_selective_probe(qp, w->length);
	w->longer = (uint16_t)roci_plpmtu_payload(&qp->req.plpmtu, qp->mtu, qp->attr.av.max_datagram);
}

/* Starts the request at sq.next; a local operation is executed at once. False where it must wait. */
static bool start_request(struct roci_qp *qp)
{
	struct roci_sq *sq = &qp->sq;
	struct roci_swqe *w = roci_sq_at(sq, sq->next);
	enum roci_wc_status status;

	if (qp->req.stopped || qp->state == ROCI_QPS_SQD || fenced(qp, w))
		return false;
	w->first_psn = qp->req.window.next;
	w->cum_bytes = qp->req.window.next_bytes;
	status = roci_swqe_is_local(w) ? run_local(qp, w) : check_request(qp, w);
	if (roci_swqe_is_local(w) || status != ROCI_WC_SUCCESS) {
		finish_locally(qp, w, status);
	} else {
		choose_length(qp, w);
		w->packets = count_packets(qp, w);
	}
	if (w->opcode == ROCI_WR_RDMA_READ && w->packets) {
		w->read.piece = choose_piece(qp);
		w->read.far_from = qp->req.far_read ? 0 : w->packets;
	}
	sq->started++;
	ROCI_TRACE(qp->e, roci_trace_send_taken(qp, w));
	return true;
}

/* ---- packets ---- */

/* A request's pieces have fixed borders, so a repeated READ request is always the tail of one that the responder knows.
 */
uint32_t roci_requester_step(const struct roci_swqe *w, uint32_t index)
{
	uint32_t left = w->packets - index, n;

	if (w->opcode != ROCI_WR_RDMA_READ)
		return 1;
	n = w->read.piece - index % w->read.piece;
	return n < left ? n : left;
}

bool roci_requester_begins(const struct roci_swqe *w, uint32_t index)
{
	return index % w->read.piece == 0;
}

/* A peer of the host could not fetch the payload, perhaps because the program has taken that away. */
static bool payload_is_gone(const struct roci_qp *qp, const struct roci_packet *pkt, const struct roci_tx_batch *batch,
			    unsigned first_span)
{
	const struct roci_engine *e = qp->e;

	return roci_qp_is_local(qp) && pkt->payload_len > ROCI_LOCAL_INLINE &&
	       !roci_send_window_is_new(&qp->req.window) &&
	       !e->local->may_read(e->driver, batch->spans + first_span, batch->span_count - first_span);
}

/* Adds the packet at (w, next_packet). False where its memory was deregistered, or is gone: the request has failed. */
static bool add_packet(struct roci_qp *qp, struct roci_swqe *w, struct roci_tx_batch *batch, uint32_t step, bool ack)
{
	struct roci_requester *r = &qp->req;
	struct roci_packet pkt = {.pkey = ROCI_PKEY_DEFAULT, .psn = r->window.next, .ack_req = ack};
	unsigned first_span = batch->span_count;
	struct roci_tx_packet *tx;

	if (!roci_packets_request(qp, w, r->next_packet, step, &pkt, batch))
		return false;
	if (payload_is_gone(qp, &pkt, batch, first_span)) {
		batch->span_count = first_span;
		ROCI_WHY("the payload of a request is not mapped any more, or not readable");
		return false;
	}
	tx = roci_tx_batch_add(batch, roci_swqe_av(qp, w), &pkt);
	tx->copy_payload = !roci_send_window_is_new(&r->window);
	qp->e->stats->retransmits += tx->copy_payload;
	tx->soft_roce = w->opcode == ROCI_WR_FLUSH && r->flush_icrc.soft_roce;
	return true;
}

/* The memory of the next packet of *w was deregistered while the request was under way. What was sent of the request is
 * acknowledged first, then it fails. Requests behind it that were sent once are not sent again. */
static void cut_short(struct roci_qp *qp, struct roci_swqe *w)
{
	w->packets = qp->req.next_packet;
	finish_locally(qp, w, ROCI_WC_LOC_PROT_ERR);
	qp->sq.started = ++qp->sq.next;
	qp->req.next_packet = 0;
}

/* One packet of the request at sq.next. False where it may not go now. */
static bool send_one(struct roci_qp *qp, struct roci_tx_batch *batch)
{
	struct roci_requester *r = &qp->req;
	struct roci_swqe *w = roci_sq_at(&qp->sq, qp->sq.next);
	uint32_t step = roci_requester_step(w, r->next_packet);
	uint64_t bytes = roci_swqe_bytes(qp, w, r->next_packet + step) - roci_swqe_bytes(qp, w, r->next_packet);
	bool ack;

	if (roci_far_read_is(w, r->next_packet)) {
		if (!roci_far_read_may_ask(qp, step))
			return false;
		roci_read_copies_fill(qp, batch, step);
	} else {
		if (roci_swqe_needs_response(w) &&
		    r->outstanding.count + (r->far_read ? r->far_read->requests : 0) >= qp->attr.max_rd_atomic)
			return false;
		if (!qp->service->may_send(qp, bytes))
			return false;
	}
	ack = qp->service->wants_ack(qp, w, bytes);
	if (!add_packet(qp, w, batch, step, ack)) {
		cut_short(qp, w);
		return false;
	}
	r->next_packet += step;
	qp->service->sent(qp, w, step, ack);
	if (r->next_packet < w->packets)
		return true;
	r->next_packet = 0;
	qp->sq.next++;
	w->done |= !qp->service->acknowledged;
	return true;
}

/* Packets that a link sends as one message, at most. */
static uint32_t longest_run(const struct roci_qp *qp)
{
	uint32_t n = (uint32_t)(ROCI_TX_RUN_BYTES / (roci_qp_packet_bytes(qp) - ROCI_PATH_PACKET_BYTES + RUN_HEADER));

	return n < ROCI_TX_BATCH ? n : ROCI_TX_BATCH;
}

/* Whether the batch should end here, so that the next one begins where a run does: a run that two batches cut in two
 * goes in two messages. A WRITE's first packet is longer than the others, so its runs begin behind the second. Other
 * QPs that wait would fill the batch. */
static bool is_border(const struct roci_qp *qp, const struct roci_tx_batch *batch)
{
	const struct roci_swqe *w = roci_sq_at(&qp->sq, qp->sq.next);
	uint32_t room = ROCI_TX_BATCH - batch->count, at = qp->req.next_packet, run;
	bool write = w->opcode == ROCI_WR_RDMA_WRITE || w->opcode == ROCI_WR_RDMA_WRITE_WITH_IMM;

	if (batch->count < ROCI_TX_BATCH / 4 || w->packets - at <= room || roci_swqe_fetches(w) ||
	    !roci_list_empty(&qp->e->ready))
		return false;
	run = longest_run(qp);
	if (room >= run)
		return false;
	return at ? (at - 2 * write) % run == 0 : w->packets <= ROCI_TX_BATCH;
}

static bool may_send(const struct roci_qp *qp)
{
	return (qp->state == ROCI_QPS_RTS || qp->state == ROCI_QPS_SQD) && !waits(&qp->req);
}

bool roci_requester_fill(struct roci_qp *qp, struct roci_tx_batch *batch, unsigned quantum)
{
	struct roci_sq *sq = &qp->sq;
	unsigned before = batch->count, room = ROCI_TX_BATCH - batch->count;
	bool more = false;

	if (quantum > room)
		quantum = room;
	if (qp->req.selective.agreed && may_send(qp)) {
		if (roci_selective_fill(qp, batch, before + quantum))
			return batch->count - before == quantum;
		roci_far_read_fill(qp, batch, before + quantum);
	}
	while (sq->next != sq->tail && may_send(qp)) {
		if (sq->next == sq->started && !start_request(qp))
			break;
		if (roci_sq_at(sq, sq->next)->done) {
			sq->next++;
			continue;
		}
		if (batch->count - before >= quantum || batch->span_count + ROCI_MAX_SGE > ROCI_TX_SPANS ||
		    is_border(qp, batch)) {
			more = true;
			break;
		}
		if (!send_one(qp, batch))
			break;
	}
	if (qp->path && qp->path->far && (sq->next == sq->tail || qp->req.rnr.kept)) {
		void (*empty)(struct roci_path *, uint64_t) =
			batch->count != before ? roci_path_idle : roci_path_unawaited;

		empty(qp->path, qp->e->now);
		if (qp->req.far_read)
			empty(qp->req.far_read->path, qp->e->now);
	}
	if (batch->count != before && qp->timer.at == ROCI_TIMER_OFF)
		qp->service->start_timer(qp);
	if (sq->head != sq->started && roci_swqe_head(qp)->done && roci_list_empty(&qp->sent))
		roci_list_append(&qp->e->sent, &qp->sent);
	return more;
}
