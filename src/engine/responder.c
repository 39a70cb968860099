/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/responder.h"

#include <stdlib.h>

#include "engine/execute.h"
#include "engine/response.h"
#include "engine/service.h"
#include "engine/why.h"
#include "wire/print.h"

#define UC_LATE 4096 /* PSNs: a UC packet that is older by at most so many was delayed or doubled on its way */

/* The receive that is being filled, if there is one, completes with `status`. */
static void fail_receive(struct roci_qp *qp, enum roci_wc_status status)
{
	struct roci_cqe cqe = {.status = status, .opcode = ROCI_WC_RECV};

	if (qp->resp.have_rwqe)
		roci_qp_complete_receive(qp, &cqe, false);
}

/* ---- acknowledgements and errors ---- */

static void send_ack(struct roci_qp *qp)
{
	qp->resp.ack_due = true;
	roci_qp_make_ready(qp);
}

static void send_nak(struct roci_qp *qp, unsigned syndrome, uint32_t psn)
{
	struct roci_responder *r = &qp->resp;

	if ((syndrome & ROCI_AETH_TYPE_MASK) == ROCI_AETH_RNR_NAK)
		qp->e->stats->rnr_sent++;
	else
		qp->e->stats->naks_sent++;
	r->nak_due = true;
	r->ack_due = false; /* a NAK acknowledges what came before it */
	r->nak_syndrome = (uint8_t)syndrome;
	r->nak_psn = psn;
	roci_qp_make_ready(qp);
}

static void tell_refused(struct roci_qp *qp, const struct roci_packet *p, unsigned syndrome)
{
	ROCI_WHY_TELL_PACED(&qp->why, qp->e->now, "QP 0x%x refuses the %s of its peer (QP 0x%x, PSN %u) with %s",
			    qp->qpn, p->op->name, qp->attr.dest_qpn, p->psn, roci_syndrome_str((uint8_t)syndrome));
}

/* IBTA 9.9.3 table 61: which NAK the peer gets, how the receive completes, and which event is raised. */
static void fail(struct roci_qp *qp, const struct roci_packet *p, enum roci_verdict v)
{
	unsigned nak = ROCI_NAK_INVALID_REQUEST;
	int event = ROCI_EVENT_QP_REQ_ERR;

	switch (v) {
	case ROCI_EXEC_ACCESS:
		nak = ROCI_NAK_REMOTE_ACCESS;
		event = ROCI_EVENT_QP_ACCESS_ERR;
		/* The receive that a WRITE with immediate data would have completed says so (IBTA 11.6.2), and no
		 * event. */
		if (p->op->headers & 1u << ROCI_HDR_IMMDT && roci_qp_take_receive(qp))
			event = -1;
		fail_receive(qp, ROCI_WC_LOC_ACCESS_ERR);
		break;
	case ROCI_EXEC_OPERATION:
		nak = ROCI_NAK_REMOTE_OPERATION;
		event = -1;
		fail_receive(qp, ROCI_WC_LOC_PROT_ERR);
		break;
	case ROCI_EXEC_TOO_LONG:
		event = -1;
		fail_receive(qp, ROCI_WC_LOC_LEN_ERR);
		break;
	default: break;
	}
	tell_refused(qp, p, ROCI_AETH_NAK | nak);
	if (qp->service->acknowledged)
		send_nak(qp, ROCI_AETH_NAK | nak, p->psn);
	roci_qp_error(qp, event);
}

static void executed(struct roci_qp *qp, const struct roci_packet *p)
{
	struct roci_responder *r = &qp->resp;
	uint32_t packets = p->op->kind == ROCI_KIND_READ_REQUEST ? roci_read_packets(qp->mtu, p->dma_len) : 1;

	r->epsn = roci_psn_add(p->psn, packets);
	r->gap_reported = false;
	if (r->nak_due) {
		/* It was not sent yet, and the packet that it asks for is here. An ACK says what it would acknowledge.
		 */
		r->nak_due = false;
		send_ack(qp);
	}
	if (p->op->first)
		r->message.mtu = p->payload_len;
	r->message.kind = p->op->last ? 0 : p->op->kind;
	if (p->op->last && qp->service->acknowledged)
		r->msn = (r->msn + 1) & ROCI_PSN_MASK;
}

static void establish(struct roci_qp *qp)
{
	if (qp->established)
		return;
	qp->established = true;
	roci_qp_published(qp);
	if (qp->state == ROCI_QPS_RTR)
		roci_event_async(qp->e, &qp->event, ROCI_EVENT_COMM_EST);
}

/* ---- RC ---- */

void roci_responder_offered(struct roci_qp *qp, const struct roci_rx *rx)
{
	struct roci_responder *r = &qp->resp;
	int32_t ago = roci_psn_diff(r->epsn, rx->pkt.psn);
	struct roci_offer offer;

	if (!roci_qp_receives(qp) || !roci_offer_parse(rx->pkt.payload, rx->pkt.payload_len, &offer) ||
	    offer.first_psn != qp->attr.rq_psn || ago <= 0 || ago > ROCI_OFFER_WINDOW ||
	    (!qp->peer.shown && !(offer.flags & ROCI_OFFER_ASKS))) {
		qp->e->stats->rx_wrong_source++;
		return;
	}
	if (!r->ranges.kept)
		r->ranges.kept = calloc(1, sizeof(*r->ranges.kept));
	if (!r->ranges.kept)
		return; /* as if it was lost */
	qp->path->ours = true;
	if (offer.probes_for > r->ranges.longest)
		r->ranges.longest = offer.probes_for;
	if (offer.flags & ROCI_OFFER_ASKS && !r->ranges.offered) {
		r->ranges.secret = offer.secret;
		r->ranges.asked = true;
		roci_qp_make_ready(qp);
		return;
	}
	if (offer.flags & ROCI_OFFER_READS)
		roci_response_ring_extend(&r->responses); /* else as if it was lost, too */
	r->ranges.secret = offer.secret;
	r->ranges.offered = r->ranges.due = true;
	r->ranges.asked = false; /* that is an answer, too */
	send_ack(qp);
}

static void not_ready(struct roci_qp *qp, const struct roci_packet *p)
{
	bool again = qp->resp.nak_psn == p->psn && (qp->resp.nak_syndrome & ROCI_AETH_TYPE_MASK) == ROCI_AETH_RNR_NAK;

	if (!again) {
		ROCI_WHY("no receive is posted%s", qp->srq ? " to the SRQ" : "");
		tell_refused(qp, p, ROCI_AETH_RNR_NAK | qp->attr.min_rnr_timer);
	}
	send_nak(qp, ROCI_AETH_RNR_NAK | qp->attr.min_rnr_timer, p->psn);
	qp->resp.gap_reported = true; /* the packets in flight behind it need no second NAK */
	if (!qp->resp.ranges.offered) /* else the peer sends just this packet again (rnr_wait.h) */
		roci_reorder_clear(&qp->e->reorder, &qp->resp.early);
}

static void rc_execute(struct roci_qp *qp, const struct roci_packet *p)
{
	enum roci_verdict v = roci_execute(qp, p);

	switch (v) {
	case ROCI_EXEC_OK:
		executed(qp, p);
		if (p->op->kind != ROCI_KIND_SEND && p->op->kind != ROCI_KIND_WRITE)
			roci_qp_make_ready(qp); /* it has a response of its own */
		else if (p->ack_req)
			send_ack(qp);
		break;
	case ROCI_EXEC_NO_RECEIVE: not_ready(qp, p); break;
	case ROCI_EXEC_IGNORE: break;
	case ROCI_EXEC_BAD_INV:
		ROCI_WHY_TELL("QP 0x%x: a receive completes with %s", qp->qpn,
			      roci_wc_status_name(ROCI_WC_REM_INV_REQ_ERR));
		executed(qp, p);
		fail_receive(qp, ROCI_WC_REM_INV_REQ_ERR);
		roci_qp_error(qp, ROCI_EVENT_QP_REQ_ERR);
		qp->resp.drain = true;
		send_ack(qp);
		break;
	default: fail(qp, p, v); break;
	}
}

/* A READ request that was sent twice, in case one is lost (far_read.h). From a peer that does not do that, the bit
 * means nothing. */
static bool is_copy(const struct roci_qp *qp, const struct roci_packet *p)
{
	return p->solicited && p->op->kind == ROCI_KIND_READ_REQUEST &&
	       roci_response_ring_extended(&qp->resp.responses);
}

/* IBTA 9.7.5.2: a duplicate is answered again, and not executed again. A FLUSH changes nothing, and is just answered.
 */
static void rc_duplicate(struct roci_qp *qp, const struct roci_packet *p)
{
	struct roci_response_ring *ring = &qp->resp.responses;
	uint32_t packets = 1;

	if (is_copy(qp, p))
		return;
	qp->e->stats->rx_duplicate++;
	switch (p->op->kind) {
	case ROCI_KIND_SEND:
	case ROCI_KIND_WRITE:
		roci_ack_steps_repeat(&qp->resp.steps, p->psn, qp->resp.epsn);
		qp->resp.ranges.duplicates += p->payload_len != 0; /* else it is a probe */
		qp->resp.ranges.answers = qp->resp.ranges.due = qp->resp.ranges.offered;
		send_ack(qp);
		return;
	case ROCI_KIND_FLUSH:
		if (roci_response_ring_add_flush(ring, p->psn))
			roci_qp_make_ready(qp);
		return;
	case ROCI_KIND_READ_REQUEST:
		packets = roci_read_packets(qp->mtu, p->dma_len);
		if (!roci_response_ring_waits(ring, p->psn))
			roci_black_hole_response(qp, p->psn, p->dma_len);
		break;
	default: break;
	}
	if (roci_response_ring_again(ring, p, packets, qp->mtu))
		roci_qp_make_ready(qp);
}

/* Whether a packet of a peer that is told what is missing may be kept. Where its port is no secret, who guesses a PSN
 * must not find more places than without RANGES: so many of those that are missing, and behind them, count. */
static bool may_keep(const struct roci_qp *qp, uint32_t psn)
{
	const struct roci_responder *r = &qp->resp;

	if (!qp->peer.sprays && qp->peer.port != ROCI_UDP_PORT)
		return (uint32_t)roci_psn_diff(psn, r->epsn) <
		       roci_reorder_far_window(&r->early, r->epsn, ROCI_REORDER_AHEAD);
	return roci_reorder_missing(&r->early, r->epsn, psn, ROCI_REORDER_WINDOW) < ROCI_REORDER_WINDOW;
}

/* The peer hears at once that something is missing, and then as often as it asks. */
static void rc_early_offered(struct roci_qp *qp, const struct roci_rx *rx)
{
	struct roci_responder *r = &qp->resp;
	uint32_t psn = rx->pkt.psn, newest = r->early.newest;
	bool first = !r->early.count;

	if (!may_keep(qp, psn) || !roci_reorder_keep(&qp->e->reorder, &r->early, rx, r->epsn, ROCI_REORDER_SPAN))
		r->ranges.duplicates += !is_copy(qp, &rx->pkt);
	else if (!first && roci_psn_diff(psn, newest) < 0)
		roci_late_ranges_add(&r->ranges.kept->late, psn);
	if (first || rx->pkt.ack_req) {
		r->ranges.due = true;
		send_ack(qp);
	}
}

static void rc_rx(struct roci_qp *qp, const struct roci_rx *rx)
{
	struct roci_responder *r = &qp->resp;
	int32_t d = roci_psn_diff(rx->pkt.psn, r->epsn);

	if (d == 0) {
		rc_execute(qp, &rx->pkt);
		return;
	}
	if (d < 0) {
		rc_duplicate(qp, &rx->pkt);
		return;
	}
	qp->e->stats->rx_out_of_order++;
	if (r->ranges.offered) {
		rc_early_offered(qp, rx);
		return;
	}
	roci_reorder_keep(&qp->e->reorder, &r->early, rx, r->epsn, ROCI_REORDER_WINDOW);
	if (!r->gap_reported) {
		r->gap_reported = true;
		send_nak(qp, ROCI_AETH_NAK | ROCI_NAK_PSN_SEQUENCE, r->epsn);
	}
}

/* The requests that came early and are next now. */
static void rc_early(struct roci_qp *qp)
{
	struct roci_responder *r = &qp->resp;
	struct roci_reorder_slot *s;
	bool some = false;

	while (roci_qp_receives(qp) && (s = roci_reorder_take(&qp->e->reorder, &r->early, r->epsn))) {
		rc_execute(qp, &s->rx.pkt);
		roci_reorder_release(&qp->e->reorder, s);
		some = true;
	}
	/* Tell the requester now, which may be about to send all of them again. */
	if (some && !r->nak_due && roci_qp_receives(qp))
		send_ack(qp);
}

/* ---- UC ---- */

/* An IP network may double or delay a packet. It is ignored: UC delivers in order, and no message twice. A packet that
 * is much older than expected, or the first one, is neither: its sender starts with another PSN. */
static bool uc_late(const struct roci_responder *r, uint32_t psn)
{
	int32_t d = roci_psn_diff(psn, r->epsn);

	return r->begun && d < 0 && d >= -UC_LATE;
}

/* IBTA 9.8.2.2: at a gap the current message is lost. The next First or Only begins a new one, whatever its PSN. */
static void uc_rx(struct roci_qp *qp, const struct roci_rx *rx)
{
	struct roci_responder *r = &qp->resp;
	const struct roci_packet *p = &rx->pkt;
	enum roci_verdict v;

	if (uc_late(r, p->psn)) {
		qp->e->stats->rx_duplicate++;
		return;
	}
	r->begun = true;
	if (p->psn != r->epsn) {
		qp->e->stats->rx_out_of_order++;
		r->message.kind = 0;
		r->skipping = true;
	}
	if (p->op->first) {
		r->message.kind = 0;
		r->skipping = false;
	} else if (r->skipping) {
		r->epsn = roci_psn_add(p->psn, 1);
		return;
	}
	v = roci_execute(qp, p);
	if (v == ROCI_EXEC_OK) {
		executed(qp, p);
		return;
	}
	if (v == ROCI_EXEC_TOO_LONG || v == ROCI_EXEC_OPERATION) {
		fail(qp, p, v);
		return;
	}
	if (v == ROCI_EXEC_NO_RECEIVE) {
		qp->e->stats->rx_no_wqe++;
		ROCI_WHY("no receive is posted%s", qp->srq ? " to the SRQ" : "");
	}
	ROCI_WHY_TELL_PACED(&qp->why, qp->e->now, "QP 0x%x drops a UC message of its peer (%s, PSN %u)", qp->qpn,
			    p->op->name, p->psn);
	if (v == ROCI_EXEC_BAD_INV)
		fail_receive(qp, ROCI_WC_REM_INV_REQ_ERR);
	r->message.kind = 0;
	r->skipping = true;
	r->epsn = roci_psn_add(p->psn, 1);
}

/* One of the first packets: the next few, which may overtake each other, and those before them. */
static bool is_near(const struct roci_qp *qp, uint32_t psn)
{
	int32_t d = roci_psn_diff(psn, qp->resp.epsn);

	return d < ROCI_PEER_PORT_NEAR && d >= -ROCI_PEER_PORT_NEAR;
}

enum roci_proof roci_responder_proof(const struct roci_qp *qp, const struct roci_packet *pkt)
{
	uint32_t packets = pkt->op->kind == ROCI_KIND_READ_REQUEST ? roci_read_packets(qp->mtu, pkt->dma_len) : 1;
	int32_t begin = roci_psn_diff(pkt->psn, qp->resp.epsn);
	int32_t end = roci_psn_diff(roci_psn_add(pkt->psn, packets), qp->resp.epsn);

	if (begin == 0 || (end <= 0 && end > -ROCI_PEER_PORT_NEAR))
		return ROCI_PROOF_PEER;
	if (!qp->peer.shown && is_near(qp, pkt->psn))
		return ROCI_PROOF_PEER;
	return begin < 0 ? ROCI_PROOF_NEEDLESS : ROCI_PROOF_NONE;
}

enum roci_proof roci_responder_uc_proof(const struct roci_qp *qp, const struct roci_packet *pkt)
{
	return is_near(qp, pkt->psn) ? ROCI_PROOF_PEER : ROCI_PROOF_NONE;
}

static bool accepts(struct roci_qp *qp)
{
	if (roci_qp_receives(qp)) {
		establish(qp);
		return true;
	}
	qp->e->stats->rx_wrong_state++;
	return false;
}

void roci_responder_uc_rx(struct roci_qp *qp, const struct roci_rx *rx)
{
	if (!accepts(qp))
		return;
	qp->resp.msn = (qp->resp.msn + 1) & ROCI_PSN_MASK;
	uc_rx(qp, rx);
	if (rx->pkt.ack_req && roci_qp_receives(qp))
		send_ack(qp); /* flow control, see uc_flow.h */
}

void roci_responder_rx(struct roci_qp *qp, const struct roci_rx *rx)
{
	if (!accepts(qp))
		return;
	rc_rx(qp, rx);
	if (qp->resp.early.count)
		rc_early(qp);
}

/* ---- sending ---- */

bool roci_responder_fill(struct roci_qp *qp, struct roci_tx_batch *batch, unsigned quantum)
{
	unsigned end = batch->count + quantum < ROCI_TX_BATCH ? batch->count + quantum : ROCI_TX_BATCH;
	uint32_t psn;

	/* A QP that failed because of a request still answers the requests before it. */
	if (qp->state == ROCI_QPS_ERR && !qp->resp.nak_due && !qp->resp.drain)
		return roci_response_fill_ack(qp, batch);
	switch (roci_response_fill(qp, batch, end, &psn)) {
	case ROCI_FILL_DONE: break;
	case ROCI_FILL_MORE: return true;
	case ROCI_FILL_PACED: return false; /* no acknowledgement either: it would acknowledge the response too */
	case ROCI_FILL_NO_ACCESS:           /* IBTA 9.7.5.2.4 */
		ROCI_WHY_TELL("QP 0x%x cannot send the response to a READ again", qp->qpn);
		send_nak(qp, ROCI_AETH_NAK | ROCI_NAK_REMOTE_ACCESS, psn);
		roci_qp_error(qp, ROCI_EVENT_QP_ACCESS_ERR);
		break;
	}
	return roci_response_fill_ack(qp, batch);
}
