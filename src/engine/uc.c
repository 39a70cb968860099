/* SPDX-License-Identifier: BSD-2-Clause */
/* UC: packets are sent once (IBTA 9.8.2), under the flow control of uc_flow.h. */
#include "engine/flight.h"
#include "engine/responder.h"
#include "engine/service.h"

#define ANSWER_RTTS    4           /* an answer takes no longer */
#define WINDOW_UNKNOWN (64u << 10) /* bytes: many peers never answer, and cost no time up to here */

/* ---- sending ---- */

static bool may_send(struct roci_qp *qp, uint64_t bytes)
{
	struct roci_uc_flow *f = &qp->req.uc;
	uint64_t at;

	if (roci_uc_flow_waits(f))
		return false;
	if (!f->unresponsive)
		return (!f->answered && !f->unanswered && !qp->path->far && qp->path->flight < WINDOW_UNKNOWN) ||
		       roci_flight_fits(qp, roci_uc_flow_bytes(qp->mtu, 1));
	at = roci_path_pace(qp->path, qp->e->now, bytes);
	if (!at)
		return true;
	f->paced = true;
	roci_timer_set(&qp->e->timers, &qp->timer, at);
	return false;
}

static bool wants_ack(const struct roci_qp *qp, const struct roci_swqe *w, uint64_t bytes)
{
	return roci_uc_flow_asks(&qp->req.uc) || roci_flight_wants_ack(qp, bytes);
}

static void sent(struct roci_qp *qp, const struct roci_swqe *w, uint32_t packets, bool ack)
{
	struct roci_send_window *window = &qp->req.window;
	uint32_t psn = window->next;
	uint64_t bytes = roci_uc_flow_bytes(qp->mtu, packets);

	roci_uc_flow_sent(&qp->req.uc, ack);
	if (ack && !qp->path->far)
		roci_rtt_sample_start(&qp->req.rtt, psn, qp->e->now);
	roci_send_window_sent(window, packets, window->next_bytes + bytes);
	if (qp->req.uc.unresponsive)
		roci_send_window_forget(window);
	else
		roci_flight_sent(qp, psn, bytes, false);
}

/* ---- answers of the peer ---- */

/* Everything before `una` is no longer in flight; `arrived` packets of it have come. */
static void advance(struct roci_qp *qp, uint32_t una, uint32_t arrived)
{
	struct roci_send_window *w = &qp->req.window;
	uint64_t after = roci_uc_flow_bytes(qp->mtu, (uint32_t)roci_psn_diff(w->next, una));
	uint32_t packets = (uint32_t)roci_psn_diff(una, w->una);

	roci_send_window_advance(w, una, w->next_bytes - after);
	roci_flight_acked(qp, packets, roci_uc_flow_bytes(qp->mtu, arrived));
	roci_flight_release(qp);
	if (qp->sq.next != qp->sq.tail)
		roci_qp_make_ready(qp);
}

/* The peer has answered about everything before `una`, and has `came` packets. */
static void answered(struct roci_qp *qp, uint32_t una, uint32_t came)
{
	struct roci_requester *r = &qp->req;
	uint32_t lost, packets = (uint32_t)roci_psn_diff(una, r->window.una);
	uint32_t arrived = roci_uc_flow_count(&r->uc, packets, came, &lost);
	const struct roci_sent *sent = roci_sent_log_find(&r->log, roci_psn_add(una, ROCI_PSN_MASK));

	if (lost && (qp->path->far || roci_uc_flow_may_be_far(&r->uc)))
		roci_path_lost(qp->path, qp->e->now, roci_uc_flow_bytes(qp->mtu, lost), sent,
			       ROCI_MIDDLE); /* which of them are lost, the answer does not say */
	if (!qp->path->far) {
		roci_scoreboard_reset(&r->selective.board, una); /* nothing is marked: UC uses its PSNs only */
		if (!roci_uc_flow_may_be_far(&r->uc))
			arrived = packets;
	}
	advance(qp, una, arrived);
}

static void measure(struct roci_qp *qp, uint32_t una)
{
	uint64_t rtt_ns;

	if (!roci_rtt_sample_end(&qp->req.rtt, una, qp->e->now, &rtt_ns) || !roci_uc_flow_is_far(&qp->req.uc, rtt_ns))
		return;
	roci_path_rtt(qp->path, qp->e->now, rtt_ns, false);
	roci_path_agree(qp->path, qp->e->now);
}

static void start_timer(struct roci_qp *qp)
{
	const struct roci_requester *r = &qp->req;
	bool wait = !r->uc.unresponsive && roci_send_window_packets(&r->window);
	uint64_t answer_ns = ANSWER_RTTS * qp->path->srtt;

	if (answer_ns < ROCI_UC_ANSWER_NS)
		answer_ns = ROCI_UC_ANSWER_NS;
	if (!r->uc.paced)
		roci_timer_set(&qp->e->timers, &qp->timer, wait ? qp->e->now + answer_ns : ROCI_TIMER_OFF);
}

static void answer(struct roci_qp *qp, const struct roci_packet *pkt)
{
	const struct roci_send_window *w = &qp->req.window;
	uint32_t una = roci_psn_add(pkt->psn, 1);

	if (qp->state != ROCI_QPS_RTS && qp->state != ROCI_QPS_SQD)
		return;
	roci_uc_flow_answer(&qp->req.uc);
	roci_path_room(qp->path, roci_uc_flow_room(qp->mtu, pkt->syndrome));
	measure(qp, una);
	if (roci_psn_diff(una, w->una) > 0 && roci_psn_diff(una, w->next) <= 0)
		answered(qp, una, pkt->msn);
	start_timer(qp);
	if (qp->sq.next != qp->sq.tail)
		roci_qp_make_ready(qp);
}

/* What is in flight has arrived, as far as the window of a near path is concerned. That of one that may be far opens
 * by what is known to have arrived. */
static void forget_near(struct roci_qp *qp)
{
	uint32_t packets = roci_send_window_packets(&qp->req.window);

	advance(qp, qp->req.window.next, roci_uc_flow_may_be_far(&qp->req.uc) ? 0 : packets);
}

static void silence(struct roci_qp *qp)
{
	if (roci_uc_flow_silence(&qp->req.uc, !qp->path->far)) {
		roci_path_silent(qp->path, qp->e->now);
		if (!qp->req.uc.answered)
			roci_qp_peer_silent(qp, false);
	}
	if (qp->path->far)
		roci_flight_forget(qp);
	else
		forget_near(qp);
	if (qp->sq.next != qp->sq.tail)
		roci_qp_make_ready(qp);
}

/* ---- the service ---- */

/* An acknowledgement changes the pace, and nothing else. */
static enum roci_proof proof(const struct roci_qp *qp, const struct roci_packet *pkt)
{
	if (!pkt->op->response)
		return roci_responder_uc_proof(qp, pkt);
	return roci_psn_add(pkt->psn, 1) == qp->req.window.next ? ROCI_PROOF_PEER : ROCI_PROOF_NEEDLESS;
}

static void rx(struct roci_qp *qp, const struct roci_rx *rx)
{
	if (rx->pkt.op->response)
		answer(qp, &rx->pkt);
	else
		roci_responder_uc_rx(qp, rx);
}

const struct roci_service roci_service_uc = {
	.transport = ROCI_TRANSPORT_UC,
	.proof = proof,
	.rx = rx,
	.may_send = may_send,
	.wants_ack = wants_ack,
	.sent = sent,
	.start_timer = start_timer,
	.silence = silence,
	.failed = roci_qp_send_queue_error,
};
