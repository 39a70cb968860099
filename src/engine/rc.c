/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/rc.h"
#include "engine/why.h"

#include "engine/completer.h"
#include "engine/far_read.h"
#include "engine/flight.h"
#include "engine/requester.h"
#include "engine/responder.h"
#include "engine/service.h"

#define PROBES_UNHEARD 3 /* then the peer's port may have changed */

/* ---- sending ---- */

static bool may_send(struct roci_qp *qp, uint64_t bytes)
{
	const struct roci_requester *r = &qp->req;

	if (r->rnr.kept)
		return false; /* until it is taken */
	if (r->selective.agreed &&
	    roci_send_window_packets(&r->window) - roci_far_read_packets(r->far_read) >= r->selective.room)
		return false; /* until something is acknowledged */
	if (!qp->peer.shown && roci_send_window_packets(&r->window) >= ROCI_PEER_PORT_NEAR)
		return false; /* until the first answer */
	return roci_recovery_allows(&r->recovery, roci_send_window_packets(&r->window)) && roci_flight_fits(qp, bytes);
}

/* Whether a packet of another request follows at once, which may ask in the place of the last one of *w. */
static bool more_follows(const struct roci_qp *qp, const struct roci_swqe *w)
{
	const struct roci_sq *sq = &qp->sq;
	const struct roci_swqe *next;

	if (sq->next + 1 == sq->tail || !roci_flight_streams(qp) || qp->state != ROCI_QPS_RTS ||
	    roci_swqe_needs_response(w))
		return false;
	next = roci_sq_at(sq, sq->next + 1);
	return !roci_swqe_needs_response(next) && !roci_swqe_is_local(next) && !(next->flags & ROCI_SEND_FENCE);
}

/* The last packet of a request asks, so that the request completes, and all do in recovery. In a stream nearby a part
 * of the window is asked for at once: an acknowledgement costs both ends as much as ten kilobytes. So do READ requests
 * of a far path: the answer tells that one before it is missing. */
static bool wants_ack(const struct roci_qp *qp, const struct roci_swqe *w, uint64_t bytes)
{
	return (qp->req.next_packet + 1 == w->packets && !more_follows(qp, w)) || qp->req.recovery.active ||
	       roci_far_read_is(w, qp->req.next_packet) || roci_flight_wants_ack(qp, bytes);
}

static void sent(struct roci_qp *qp, const struct roci_swqe *w, uint32_t packets, bool ack)
{
	struct roci_requester *r = &qp->req;

	bool again = !roci_send_window_is_new(&r->window);
	uint32_t psn = r->window.next;
	uint64_t before = r->window.next_bytes;

	/* Where nothing is known, from the first packet on: a NAK, which is not asked for, may be the first answer. */
	if ((ack || roci_swqe_needs_response(w) || !qp->path->srtt) && !again && !qp->path->far)
		roci_rtt_sample_start(&r->rtt, r->window.next, qp->e->now);
	if (roci_far_read_is(w, r->next_packet - packets))
		roci_far_read_asked(qp, psn, packets, again);
	else if (roci_swqe_needs_response(w))
		roci_outstanding_add(&r->outstanding, roci_psn_add(r->window.next, packets));
	roci_send_window_sent(&r->window, packets, w->cum_bytes + roci_swqe_bytes(qp, w, r->next_packet));
	roci_flight_sent(qp, psn, r->window.next_bytes - before, again);
	if (roci_path_may_be_far(qp->path) || roci_path_is_line(qp->path))
		roci_selective_sent(qp);
}

/* ---- acknowledgements ---- */

void roci_rc_advance(struct roci_qp *qp, uint32_t una, uint64_t bytes)
{
	struct roci_requester *r = &qp->req;
	uint32_t packets = (uint32_t)roci_psn_diff(una, r->window.una);
	uint64_t now = qp->e->now, acked = roci_send_window_advance(&r->window, una, bytes), rtt_ns;

	r->ack_timer.retries_left = qp->attr.retry_cnt;
	roci_rnr_wait_passed(&r->rnr, qp->attr.rnr_retry);
	qp->probe.awaiting = false;
	roci_outstanding_answered(&r->outstanding, una);
	roci_recovery_advance(&r->recovery, una);
	if (roci_psn_diff(r->window.next, una) < 0)
		roci_requester_seek(qp, una, bytes); /* the peer had kept more than was sent again */
	if (roci_rtt_sample_end(&r->rtt, una, now, &rtt_ns))
		roci_path_rtt(qp->path, now, rtt_ns, r->rtt.again);
	roci_flight_acked(qp, packets, acked);
}

/* ---- sending again ---- */

void roci_rc_resend(struct roci_qp *qp)
{
	struct roci_requester *r = &qp->req;

	if (qp->sq.head != qp->sq.started && roci_swqe_head(qp)->opcode == ROCI_WR_FLUSH)
		roci_flush_icrc_unanswered(&r->flush_icrc);
	roci_requester_seek(qp, r->window.una, r->window.una_bytes);
	roci_outstanding_clear(&r->outstanding);
	roci_rtt_sample_again(&r->rtt, !qp->path->srtt || qp->path->rtt_is_bound);
	roci_sent_log_rewind(&r->log, r->window.una);
	roci_scoreboard_reset(&r->selective.board, r->window.una);
	roci_far_read_restart(qp);
	roci_timer_set(&qp->e->timers, &qp->loss_timer, ROCI_TIMER_OFF);
	roci_recovery_begin(&r->recovery, r->window.max);
	roci_rnr_wait_resend(&r->rnr);
	roci_flight_release(qp);
	roci_qp_make_ready(qp);
}

void roci_rc_ask(struct roci_qp *qp)
{
	qp->e->stats->probes++;
	qp->probe.awaiting = true;
	qp->req.recovery.noticed = false; /* its answer is a new notice */
	qp->req.selective.probe_end = qp->req.window.max;
	roci_probe_send(qp, 1);
}

/* The peer has nothing beyond the packets that it acknowledged before. */
bool roci_rc_probe_answered(struct roci_qp *qp, const struct roci_packet *p)
{
	if (!qp->probe.awaiting || p->op->kind != ROCI_KIND_ACK ||
	    (p->syndrome & ROCI_AETH_TYPE_MASK) != ROCI_AETH_ACK || roci_psn_add(p->psn, 1) != qp->req.window.una)
		return false;
	qp->probe.awaiting = false;
	roci_black_hole_request(qp);
	roci_rc_loss(qp);
	return true;
}

void roci_rc_loss(struct roci_qp *qp)
{
	struct roci_requester *r = &qp->req;
	const struct roci_sent *sent;

	if (!roci_send_window_packets(&r->window) || !roci_recovery_notice(&r->recovery))
		return;
	sent = roci_sent_log_find(&r->log, r->window.una);
	roci_path_lost(qp->path, qp->e->now, qp->mtu, sent, roci_sent_place(sent, r->window.una));
	roci_rc_resend(qp);
}

/* ---- the timer ---- */

void roci_engine_answered(struct roci_engine *e, uint32_t qpn, uint64_t answer_ns)
{
	const struct roci_qp *qp = roci_idmap_find(&e->qps, qpn);

	if (qp && qp->path)
		roci_path_answered(qp->path, answer_ns);
}

/* Whether the peer has ever acknowledged something. Once in 2^24 packets it is wrong, for a moment. */
static bool acked(const struct roci_qp *qp)
{
	return qp->req.window.una != qp->attr.sq_psn;
}

static void set_timer(struct roci_qp *qp)
{
	const struct roci_path *p = qp->path;
	bool soon = qp->req.selective.agreed && !p->rtt_is_bound; /* a probe repairs at once */
	uint64_t srtt = soon ? p->srtt / 2 : p->srtt;
	uint64_t at = roci_ack_timer_next(&qp->req.ack_timer, qp->e->now, srtt, p->rtt_is_bound, acked(qp));

	roci_timer_set(&qp->e->timers, &qp->timer, at);
}

void roci_rc_restart_timer(struct roci_qp *qp)
{
	struct roci_requester *r = &qp->req;

	if (r->rnr.waiting)
		return;
	if (!roci_send_window_packets(&r->window)) {
		roci_timer_set(&qp->e->timers, &qp->timer, ROCI_TIMER_OFF);
		return;
	}
	roci_ack_timer_restart(&r->ack_timer, qp->e->now, qp->attr.timeout, qp->path->srtt, qp->path->answer_ns);
	set_timer(qp);
}

void roci_rc_wait(struct roci_qp *qp, uint32_t psn, uint64_t wait_ns)
{
	roci_rnr_wait_begin(&qp->req.rnr, psn);
	qp->probe.awaiting = false;
	/* Off first: a timer that is only moved back keeps its early place in the heap. */
	roci_timer_set(&qp->e->timers, &qp->timer, ROCI_TIMER_OFF);
	roci_timer_set(&qp->e->timers, &qp->timer, qp->e->now + wait_ns);
}

static void silence(struct roci_qp *qp)
{
	struct roci_requester *r = &qp->req;
	enum roci_ack_expiry expiry = roci_ack_timer_expire(&r->ack_timer, qp->e->now, acked(qp));

	roci_qp_peer_silent(qp, expiry > ROCI_ACK_RESEND || r->ack_timer.probes >= PROBES_UNHEARD);
	switch (expiry) {
	case ROCI_ACK_PROBE:
		roci_rc_ask(qp);
		set_timer(qp);
		break;
	case ROCI_ACK_RESEND:
		if (roci_black_hole_may_be(qp) && !acked(qp))
			roci_rc_ask(qp); /* perhaps only what is short arrives */
		else
			qp->e->stats->probes++;
		if (r->selective.agreed && r->window.next == r->window.max)
			roci_selective_lose_all(qp);
		else
			roci_rc_resend(qp);
		set_timer(qp);
		break;
	case ROCI_ACK_RETRY:
		qp->e->stats->timeouts++;
		roci_path_silent(qp->path, qp->e->now);
		if (r->far_read)
			roci_path_silent(r->far_read->path, qp->e->now);
		roci_rc_resend(qp); /* the next packet starts the timer */
		break;
	case ROCI_ACK_GIVE_UP:
		qp->e->stats->timeouts++;
		ROCI_WHY("the peer (QP 0x%x) acknowledged nothing, also after retry_cnt %u; timeout %u",
			 qp->attr.dest_qpn, qp->attr.retry_cnt, qp->attr.timeout);
		roci_requester_fail(qp, ROCI_WC_RETRY_EXC_ERR);
		break;
	}
}

/* ---- the service ---- */

static enum roci_proof proof(const struct roci_qp *qp, const struct roci_packet *pkt)
{
	return pkt->op->response ? roci_completer_proof(qp, pkt) : roci_responder_proof(qp, pkt);
}

static void rx(struct roci_qp *qp, const struct roci_rx *rx)
{
	if (rx->pkt.op->response)
		roci_completer_rx(qp, rx);
	else
		roci_responder_rx(qp, rx);
}

static void failed(struct roci_qp *qp)
{
	roci_qp_error(qp, -1);
}

const struct roci_service roci_service_rc = {
	.transport = ROCI_TRANSPORT_RC,
	.acknowledged = true,
	.proof = proof,
	.rx = rx,
	.may_send = may_send,
	.wants_ack = wants_ack,
	.sent = sent,
	.start_timer = roci_rc_restart_timer,
	.silence = silence,
	.failed = failed,
};
