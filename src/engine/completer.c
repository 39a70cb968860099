/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/completer.h"

#include <assert.h>
#include <errno.h>

#include "engine/far_read.h"
#include "engine/rc.h"
#include "engine/requester.h"
#include "engine/sgl.h"
#include "engine/why.h"
#include "wire/print.h"
#include "wire/rnr_timer.h"

static bool waits_for_peer(const struct roci_qp *qp)
{
	return qp->sq.head != qp->sq.started && !roci_swqe_head(qp)->done;
}

/* The oldest request that still waits for its peer; NULL where none does. Those before it are completed. */
static struct roci_swqe *oldest(struct roci_qp *qp)
{
	if (!waits_for_peer(qp))
		roci_requester_retire(qp);
	return waits_for_peer(qp) ? roci_swqe_head(qp) : NULL;
}

/* Moves una to packet `into` of *w, the oldest request; completes it at its end. */
static void advance(struct roci_qp *qp, struct roci_swqe *w, uint32_t into)
{
	if (qp->req.far_read && w->opcode == ROCI_WR_RDMA_READ)
		roci_far_read_advance(qp, w, (uint32_t)roci_psn_diff(qp->req.window.una, w->first_psn), into);
	if (into == w->packets)
		w->done = true;
	if (!roci_swqe_needs_response(w))
		roci_black_hole_passed(qp, w);
	roci_rc_advance(qp, roci_psn_add(w->first_psn, into), w->cum_bytes + roci_swqe_bytes(qp, w, into));
	roci_requester_retire(qp);
}

/* The last of the requests from *w on, the oldest one, that are acknowledged as a whole and need nothing else. Those
 * before it are done. The path needs not hear of each: the window of a local one does not change. */
static struct roci_swqe *skip_acked(struct roci_qp *qp, struct roci_swqe *w)
{
	const struct roci_sq *sq = &qp->sq;

	for (uint32_t i = sq->head + 1; i != sq->started; i++) {
		struct roci_swqe *next = roci_sq_at(sq, i);
		int32_t into = roci_psn_diff(qp->req.window.acked, next->first_psn);

		if (next->done || roci_swqe_needs_response(next) || into < (int32_t)next->packets)
			break;
		w->done = true;
		roci_black_hole_passed(qp, w);
		w = next;
	}
	return w;
}

/* Everything before the window's `acked` has arrived. Stops at a request whose response is missing. IBTA 9.7.5.1.2. */
static void retire_acked(struct roci_qp *qp)
{
	struct roci_swqe *w;

	while ((w = oldest(qp)) && roci_psn_diff(qp->req.window.acked, qp->req.window.una) > 0) {
		int32_t into = roci_psn_diff(qp->req.window.acked, w->first_psn);

		/* A zero-length READ has no data to wait for: any later acknowledgement completes it. */
		if (roci_swqe_needs_response(w) && !(w->opcode == ROCI_WR_RDMA_READ && !w->length && into > 0))
			return;
		if (roci_qp_is_local(qp) && !roci_swqe_needs_response(w) && (uint32_t)into > w->packets)
			w = skip_acked(qp, w);
		into = roci_psn_diff(qp->req.window.acked, w->first_psn);
		advance(qp, w, (uint32_t)into < w->packets ? (uint32_t)into : w->packets);
	}
}

/* Everything before PSN `limit` has arrived. Behind a missing response, that counts when the response has come. */
static void acknowledge(struct roci_qp *qp, uint32_t limit)
{
	roci_send_window_acknowledge(&qp->req.window, limit);
	retire_acked(qp);
}

/* The peer has answered it, or said that it has, but it did not come. */
static void response_is_missing(struct roci_qp *qp)
{
	if (!roci_far_read_missing(qp, false))
		roci_rc_loss(qp);
}

/* ---- ACK, NAK ---- */

static enum roci_wc_status nak_status(unsigned code)
{
	switch (code) {
	case ROCI_NAK_INVALID_REQUEST: return ROCI_WC_REM_INV_REQ_ERR;
	case ROCI_NAK_REMOTE_ACCESS: return ROCI_WC_REM_ACCESS_ERR;
	case ROCI_NAK_REMOTE_OPERATION: return ROCI_WC_REM_OP_ERR;
	default: return ROCI_WC_BAD_RESP_ERR;
	}
}

static void fail_by_nak(struct roci_qp *qp, unsigned code)
{
	const struct roci_swqe *w = roci_swqe_head(qp);

	const char *nak = roci_syndrome_str((uint8_t)(ROCI_AETH_NAK | code));

	if (w->rkey)
		ROCI_WHY("the peer (QP 0x%x) answered %s; remote_addr 0x%llx, rkey 0x%x", qp->attr.dest_qpn, nak,
			 (unsigned long long)w->remote_addr, w->rkey);
	else
		ROCI_WHY("the peer (QP 0x%x) answered %s", qp->attr.dest_qpn, nak);
	roci_requester_fail(qp, nak_status(code));
}

/* A NAK acknowledges everything before its PSN. True where it is about the oldest packet. */
static bool nak_applies(struct roci_qp *qp, uint32_t psn)
{
	acknowledge(qp, psn);
	if (!oldest(qp))
		return false;
	if (qp->req.window.una == psn)
		return true;
	response_is_missing(qp);
	return false;
}

/* The responder is in ERR now and does not repeat this NAK, so one that came too early is remembered. */
static void on_fatal_nak(struct roci_qp *qp, uint32_t psn, unsigned code)
{
	if (nak_applies(qp, psn)) {
		fail_by_nak(qp, code);
		return;
	}
	qp->req.fatal_nak.pending = roci_psn_diff(psn, qp->req.window.una) > 0;
	qp->req.fatal_nak.psn = psn;
	qp->req.fatal_nak.code = (uint8_t)code;
}

static void on_nak(struct roci_qp *qp, uint32_t psn, unsigned code)
{
	qp->e->stats->naks_received++;
	if (code != ROCI_NAK_PSN_SEQUENCE)
		on_fatal_nak(qp, psn, code);
	else if (nak_applies(qp, psn) && !qp->req.rnr.waiting)
		roci_rc_loss(qp);
}

/* IBTA 9.7.5.2.8 */
static void on_rnr(struct roci_qp *qp, uint32_t psn, unsigned code)
{
	struct roci_requester *r = &qp->req;

	qp->e->stats->rnr_received++;
	acknowledge(qp, psn);
	/* After a rewind `psn` may not have been sent again yet: the peer had kept that packet. */
	if (!oldest(qp) || roci_rnr_wait_is_for(&r->rnr, psn))
		return;
	if (r->window.una == psn) {
		r->ack_timer.retries_left = qp->attr.retry_cnt; /* the peer lives */
		if (!roci_rnr_wait_retry(&r->rnr, qp->attr.rnr_retry)) {
			ROCI_WHY("the peer (QP 0x%x) has no receive posted, also after rnr_retry %u", qp->attr.dest_qpn,
				 qp->attr.rnr_retry);
			roci_requester_fail(qp, ROCI_WC_RNR_RETRY_EXC_ERR);
			return;
		}
	}
	/* Else a response that came before the NAK is missing. It is asked for again after the wait, and so is the
	 * message that was refused behind it: the peer does not repeat the NAK by itself. */
	if (r->window.una != psn || !roci_selective_refused(qp))
		roci_rc_resend(qp);
	roci_rc_wait(qp, psn, roci_rnr_timer_ns(code));
}

static void on_ack(struct roci_qp *qp, const struct roci_packet *p)
{
	unsigned value = p->syndrome & ROCI_AETH_VALUE_MASK;
	uint32_t limit = roci_psn_add(p->psn, 1);

	switch (p->syndrome & ROCI_AETH_TYPE_MASK) {
	case ROCI_AETH_ACK:
		acknowledge(qp, limit);
		if (oldest(qp) && roci_psn_diff(limit, qp->req.window.una) > 0)
			response_is_missing(qp);
		break;
	case ROCI_AETH_RNR_NAK: on_rnr(qp, p->psn, value); break;
	case ROCI_AETH_NAK: on_nak(qp, p->psn, value); break;
	default: qp->e->stats->rx_malformed++; break;
	}
}

/* ---- responses with data ---- */

/* Everything before the response's PSN is acknowledged. Returns its request, or NULL where the response is old, early
 * or not asked for. */
static struct roci_swqe *match_response(struct roci_qp *qp, const struct roci_rx *rx)
{
	uint32_t psn = rx->pkt.psn;
	struct roci_swqe *w;

	acknowledge(qp, psn);
	w = oldest(qp);
	if (!w)
		return NULL;
	if (qp->req.window.una != psn) {
		roci_reorder_keep(&qp->e->reorder, &qp->req.early, rx, qp->req.window.una, ROCI_REORDER_WINDOW);
		response_is_missing(qp);
		return NULL;
	}
	if (!roci_swqe_needs_response(w)) {
		qp->e->stats->rx_malformed++;
		return NULL;
	}
	return w;
}

/* Payload bytes that the response to packet `into` of *w has. */
static uint32_t expected_bytes(const struct roci_qp *qp, const struct roci_swqe *w, uint32_t into)
{
	uint64_t left = w->length - (uint64_t)into * qp->mtu;

	if (!roci_swqe_fetches(w))
		return 0; /* IBTA A19: an empty READ response */
	return w->opcode != ROCI_WR_RDMA_READ ? UINT32_MAX : left < qp->mtu ? (uint32_t)left : qp->mtu;
}

static int place_response(struct roci_qp *qp, const struct roci_rx *rx, const struct roci_swqe *w, uint32_t into)
{
	struct roci_sgl sgl = {w->sges, w->num_sge};
	uint64_t offset = (uint64_t)into * qp->mtu;

	return rx->pkt.payload_len ? roci_sgl_place(qp->e, qp->pd, &sgl, offset, &rx->pkt, into + 1 == w->packets) : 0;
}

/* The response to packet `into` of *w, the oldest request, which is the next one. True where it was placed. */
static bool take_response(struct roci_qp *qp, const struct roci_rx *rx, struct roci_swqe *w, uint32_t into)
{
	uint32_t expected = expected_bytes(qp, w, into);
	int err;

	if (rx->pkt.payload_len != expected) {
		ROCI_WHY("a READ response has %u bytes, expected were %u", rx->pkt.payload_len, expected);
		roci_requester_fail(qp, ROCI_WC_BAD_RESP_ERR);
		return false;
	}
	err = place_response(qp, rx, w, into);
	if (err && err != -EAGAIN) /* else it is lost */
		roci_requester_fail(qp, ROCI_WC_LOC_PROT_ERR);
	return !err;
}

static void on_read_response(struct roci_qp *qp, const struct roci_rx *rx)
{
	struct roci_swqe *w = match_response(qp, rx);
	uint32_t into;

	if (!w)
		return;
	into = (uint32_t)roci_psn_diff(rx->pkt.psn, w->first_psn);
	if (take_response(qp, rx, w, into))
		advance(qp, w, into + 1);
}

static void on_atomic_ack(struct roci_qp *qp, const struct roci_rx *rx)
{
	struct roci_swqe *w = match_response(qp, rx);
	struct roci_sgl sgl;

	if (!w)
		return;
	if (w->opcode != ROCI_WR_ATOMIC_CMP_AND_SWP && w->opcode != ROCI_WR_ATOMIC_FETCH_AND_ADD) {
		ROCI_WHY("the peer answered with an atomic acknowledgement");
		roci_requester_fail(qp, ROCI_WC_BAD_RESP_ERR);
		return;
	}
	sgl = (struct roci_sgl){w->sges, w->num_sge};
	if (roci_sgl_scatter(qp->e, qp->pd, &sgl, 0, (const uint8_t *)&rx->pkt.atomic_orig, 8, true)) {
		roci_requester_fail(qp, ROCI_WC_LOC_PROT_ERR);
		return;
	}
	advance(qp, w, 1);
}

/* A response to a READ over a far path (far_read.h). */
static void on_next_far_response(struct roci_qp *qp, const struct roci_rx *rx)
{
	struct roci_swqe *w = match_response(qp, rx);
	uint32_t into;

	if (!w)
		return;
	into = (uint32_t)roci_psn_diff(rx->pkt.psn, w->first_psn);
	if (!take_response(qp, rx, w, into))
		return;
	roci_far_read_came(qp, w, rx->pkt.psn, into, false);
	advance(qp, w, into + 1);
}

/* What cannot be placed now is asked for again, and fails in its turn. */
static void on_early_far_response(struct roci_qp *qp, const struct roci_rx *rx, const struct roci_swqe *w)
{
	uint32_t into = (uint32_t)roci_psn_diff(rx->pkt.psn, w->first_psn);

	if (rx->pkt.payload_len != expected_bytes(qp, w, into)) {
		qp->e->stats->rx_malformed++;
		return;
	}
	if (!place_response(qp, rx, w, into)) {
		roci_far_read_came(qp, w, rx->pkt.psn, into, true);
		acknowledge(qp, rx->pkt.psn);
		roci_rc_restart_timer(qp);
	}
}

/* False where the standard says what *rx does. */
static bool handle_far(struct roci_qp *qp, const struct roci_rx *rx)
{
	struct roci_swqe *request;

	switch (roci_far_read_judge(qp, rx, &request)) {
	case ROCI_FAR_RESPONSE_NONE: return false;
	case ROCI_FAR_RESPONSE_DROP: break;
	case ROCI_FAR_RESPONSE_NEXT: on_next_far_response(qp, rx); break;
	case ROCI_FAR_RESPONSE_EARLY: on_early_far_response(qp, rx, request); break;
	}
	return true;
}

static void handle(struct roci_qp *qp, const struct roci_rx *rx)
{
	switch (rx->pkt.op->kind) {
	case ROCI_KIND_ACK: on_ack(qp, &rx->pkt); break;
	case ROCI_KIND_READ_RESPONSE: on_read_response(qp, rx); break;
	case ROCI_KIND_ATOMIC_ACK: on_atomic_ack(qp, rx); break;
	default: assert(!"a response");
	}
}

/* The responses that came early and are next now. */
static void handle_early(struct roci_qp *qp)
{
	struct roci_reorder_slot *s;

	while (qp->sq.head != qp->sq.started &&
	       (s = roci_reorder_take(&qp->e->reorder, &qp->req.early, qp->req.window.una))) {
		handle(qp, &s->rx);
		roci_reorder_release(&qp->e->reorder, s);
	}
}

/* The same of READs over a far path, which were placed at once. */
static void pass_early(struct roci_qp *qp)
{
	struct roci_swqe *w;

	while (qp->req.far_read && qp->req.far_read->board.have && (w = oldest(qp)) && w->opcode == ROCI_WR_RDMA_READ) {
		uint32_t into = (uint32_t)roci_psn_diff(qp->req.window.una, w->first_psn);
		uint32_t run = roci_far_read_run(qp, w, into);

		if (!run)
			return;
		advance(qp, w, into + run);
	}
}

/* Acknowledgements, responses and a NAK may have waited for the response that has come. */
static void catch_up(struct roci_qp *qp)
{
	struct roci_requester *r = &qp->req;
	uint32_t una;

	do {
		una = r->window.una;
		retire_acked(qp);
		handle_early(qp);
		pass_early(qp);
	} while (r->window.una != una);
	if (r->fatal_nak.pending && una == r->fatal_nak.psn && oldest(qp))
		fail_by_nak(qp, r->fatal_nak.code);
}

void roci_completer_acknowledge(struct roci_qp *qp, uint32_t limit)
{
	acknowledge(qp, limit);
	if (oldest(qp) && roci_psn_diff(limit, qp->req.window.una) > 0)
		response_is_missing(qp);
	catch_up(qp);
}

/* Sent, and not done. Others are ghosts (IBTA 9.7.5.1.1) or duplicates (IBTA 9.7.5.1.3). */
static bool is_outstanding(const struct roci_send_window *w, uint32_t psn)
{
	return roci_psn_diff(psn, w->max) < 0 && roci_psn_diff(psn, w->una) >= 0;
}

/* The peer waits for the packet that was not sent yet, so it has all others. It says that by a NAK where a packet of
 * somebody else, or of an older connection, seemed to be a later one; the NAK takes the place of the acknowledgement.
 */
static bool waits_for_next(const struct roci_send_window *w, const struct roci_packet *pkt)
{
	return pkt->op->kind == ROCI_KIND_ACK && pkt->syndrome == (ROCI_AETH_NAK | ROCI_NAK_PSN_SEQUENCE) &&
	       pkt->psn == w->max && w->una != w->max;
}

enum roci_proof roci_completer_proof(const struct roci_qp *qp, const struct roci_packet *pkt)
{
	const struct roci_send_window *w = &qp->req.window;

	if (qp->state != ROCI_QPS_RTS && qp->state != ROCI_QPS_SQD)
		return ROCI_PROOF_NONE;
	if (roci_psn_add(pkt->psn, 1) == w->max || roci_psn_add(pkt->psn, 1) == w->una || waits_for_next(w, pkt))
		return ROCI_PROOF_PEER;
	if (pkt->psn == w->una && is_outstanding(w, pkt->psn))
		return ROCI_PROOF_PEER;
	if (is_outstanding(w, pkt->psn) && (!qp->peer.shown || qp->peer.silent) && roci_answer_is_near(w, pkt->psn))
		return ROCI_PROOF_PEER;
	return ROCI_PROOF_NONE;
}

/* Whether the peer can be believed to have sent the answer. If not, it is asked again. */
static bool is_believed(struct roci_qp *qp, uint32_t psn)
{
	const struct roci_send_window *w = &qp->req.window;
	unsigned probes;

	if (roci_answer_is_near(w, psn))
		return true;
	qp->e->stats->rx_far++;
	if (roci_far_answer_counts(&qp->req.far, psn, (uint32_t)roci_psn_diff(w->max, w->una)) &&
	    !qp->req.selective.agreed)
		return true; /* a peer that answers with RANGES proves them */
	probes = roci_far_answer_probes(&qp->req.far, qp->e->now, qp->path->srtt);
	if (probes > 1 && qp->req.selective.agreed)
		probes = 1;
	qp->e->stats->probes += probes;
	roci_probe_send(qp, probes);
	qp->req.ack_timer.probes = 0; /* somebody is there: the next one is due as soon as the first */
	return false;
}

void roci_completer_rx(struct roci_qp *qp, const struct roci_rx *rx)
{
	const struct roci_send_window *w = &qp->req.window;
	uint32_t una = w->una;

	if (qp->state != ROCI_QPS_RTS && qp->state != ROCI_QPS_SQD) {
		qp->e->stats->rx_wrong_state++;
		return;
	}
	if (!is_outstanding(w, rx->pkt.psn) && !waits_for_next(w, &rx->pkt)) {
		if (rx->pkt.op->kind == ROCI_KIND_READ_RESPONSE)
			roci_far_read_late(qp);
		if (!roci_rc_probe_answered(qp, &rx->pkt))
			qp->e->stats->rx_duplicate++;
		return;
	}
	if (!qp->req.far_read || !handle_far(qp, rx)) {
		if (!is_believed(qp, rx->pkt.psn))
			return;
		handle(qp, rx);
	}
	catch_up(qp);
	if (qp->state == ROCI_QPS_ERR)
		return;
	if (w->una != una) {
		roci_rc_restart_timer(qp);
		if (roci_far_answer_reached(&qp->req.far, w->una) && roci_send_window_packets(w))
			roci_rc_ask(qp);
	}
	if (qp->sq.next != qp->sq.tail)
		roci_qp_make_ready(qp);
}
