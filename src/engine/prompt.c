/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Short SENDs between processes of this host, in as few steps as they take. Of a QP that has nothing else to send, the
 * work request becomes a packet as soon as it is posted. And the packet that a QP expects, for which a receive waits,
 * is executed without a chain of checks that answers with errors. All others, and what is sent again, take the way of
 * the requester and of the responder.
 */
#include "engine/batch.h"
#include "engine/cq.h"
#include "engine/qp.h"
#include "engine/requester.h"
#include "engine/response.h"
#include "engine/service.h"
#include "engine/sgl.h"
#include "engine/trace.h"

/* ---- sending ---- */

/* Everything that was posted is sent, and nothing holds the next request back. */
static bool is_up_to_date(const struct roci_qp *qp)
{
	const struct roci_requester *r = &qp->req;

	return qp->state == ROCI_QPS_RTS && qp->sq.next == qp->sq.tail && !r->stopped && !r->rnr.waiting &&
	       !r->selective.agreed && roci_send_window_is_new(&r->window);
}

/* What the QP still has to say to its peer, if anything, is an acknowledgement. */
static bool owes_an_ack_at_most(struct roci_qp *qp)
{
	const struct roci_responder *r = &qp->resp;

	return roci_list_empty(&qp->ready) ||
	       (!qp->nat && !qp->probe.due && !qp->req.selective.offer_due && !r->ranges.asked && !r->nak_due &&
		!r->cnp_due && !roci_response_ring_next(&qp->resp.responses));
}

/* The payload, where it is one piece and may be sent. False: the requester looks closer. */
static bool find_payload(struct roci_qp *qp, const struct roci_send_wr *wr, uint32_t len, struct roci_span *out)
{
	*out = (struct roci_span){.len = len};
	if (!len)
		return true;
	if (wr->flags & ROCI_SEND_INLINE)
		out->base = roci_sq_at(&qp->sq, qp->sq.tail)->sges;
	else if (wr->num_sge == 1)
		out->base = roci_mr_local(qp->e, qp->pd, wr->sges[0].lkey, wr->sges[0].addr, len, 0);
	return out->base;
}

static void acknowledge(struct roci_qp *qp, struct roci_tx_batch *batch)
{
	if (!roci_list_empty(&qp->ready) && !roci_response_fill_ack(qp, batch))
		roci_list_remove(&qp->ready); /* it has nothing else to send */
}

/* As the requester starts a request and sends its only packet. */
static void send(struct roci_qp *qp, struct roci_swqe *w, const struct roci_span *payload, struct roci_tx_batch *batch)
{
	struct roci_requester *r = &qp->req;
	bool imm = w->opcode == ROCI_WR_SEND_WITH_IMM, ack;
	struct roci_packet pkt = {.opcode = imm ? ROCI_OP_SEND_ONLY_IMM : ROCI_OP_SEND_ONLY,
				  .solicited = w->flags & ROCI_SEND_SOLICITED,
				  .pkey = ROCI_PKEY_DEFAULT,
				  .dest_qpn = qp->attr.dest_qpn,
				  .psn = r->window.next,
				  .imm = w->imm,
				  .payload_len = (uint32_t)w->length};

	w->first_psn = r->window.next;
	w->cum_bytes = r->window.next_bytes;
	w->packets = 1;
	qp->sq.started++;
	ROCI_TRACE(qp->e, roci_trace_send_taken(qp, w));
	pkt.ack_req = ack = qp->service->wants_ack(qp, w, roci_swqe_bytes(qp, w, 1));
	if (payload->len)
		batch->spans[batch->span_count++] = *payload;
	roci_tx_batch_add(batch, &qp->attr.av, &pkt);
	r->next_packet = 1;
	qp->service->sent(qp, w, 1, ack);
	r->next_packet = 0;
	qp->sq.next++;
	if (qp->timer.at == ROCI_TIMER_OFF)
		qp->service->start_timer(qp);
	qp->load_at = qp->e->now;
}

bool roci_qp_send_promptly(struct roci_qp *qp, uint64_t now, const struct roci_send_wr *wr, struct roci_tx_batch *batch)
{
	struct roci_sgl sgl = {wr->sges, wr->num_sge};
	struct roci_span payload;
	struct roci_swqe *w;
	uint64_t len;

	if (!roci_qp_is_local(qp) || (wr->opcode != ROCI_WR_SEND && wr->opcode != ROCI_WR_SEND_WITH_IMM))
		return false;
	len = roci_sgl_len(&sgl);
	if (len > ROCI_LOCAL_INLINE || (wr->flags & ROCI_SEND_FENCE) || !is_up_to_date(qp) ||
	    !owes_an_ack_at_most(qp) || !roci_qp_send_room(qp, 1) || !find_payload(qp, wr, (uint32_t)len, &payload))
		return false;
	roci_engine_clock(qp->e, now);
	if (!qp->service->may_send(qp, len + ROCI_PATH_PACKET_BYTES))
		return false;
	w = roci_sq_at(&qp->sq, qp->sq.tail);
	if (roci_sq_post(&qp->sq, wr, qp->sig_all))
		return false; /* roci_qp_send_room() has seen that there is room */
	ROCI_TRACE(qp->e, roci_trace_post_send(qp, wr));
	batch->count = batch->span_count = 0;
	acknowledge(qp, batch);
	send(qp, w, &payload, batch);
	qp->e->stats->tx_packets += batch->count;
	return true;
}

/* ---- receiving ---- */

/* The QP expects a first packet, and is in the middle of nothing else. */
static bool expects(const struct roci_qp *qp, uint16_t local, uint32_t psn)
{
	const struct roci_responder *r = &qp->resp;

	return qp->type == ROCI_QPT_RC && qp->attr.av.local == local && qp->established && roci_qp_receives(qp) &&
	       r->epsn == psn && !r->message.kind && !r->have_rwqe && !r->nak_due && !r->early.count;
}

/* The place of the payload, where the oldest receive is one piece that has room for it. */
static void *find_place(struct roci_qp *qp, uint32_t len)
{
	const struct roci_rwqe *w;

	if (qp->srq || !roci_rq_count(&qp->rq))
		return NULL;
	w = roci_rq_at(&qp->rq, qp->rq.head);
	if (w->num_sge != 1 || w->sges[0].len < len)
		return NULL;
	return roci_mr_local(qp->e, qp->pd, w->sges[0].lkey, w->sges[0].addr, len, ROCI_ACCESS_LOCAL_WRITE);
}

/* As the responder does after the checks. */
static void take(struct roci_qp *qp, const struct roci_packet *p)
{
	struct roci_responder *r = &qp->resp;
	struct roci_cqe cqe = {.wr_id = roci_rq_at(&qp->rq, qp->rq.head)->wr_id,
			       .opcode = ROCI_WC_RECV,
			       .byte_len = p->payload_len,
			       .qpn = qp->qpn,
			       .src_qpn = qp->attr.dest_qpn};

	qp->rq.head++;
	roci_cq_push(qp->recv_cq, &cqe, p->solicited);
	r->epsn = roci_psn_add(p->psn, 1);
	r->msn = (r->msn + 1) & ROCI_PSN_MASK;
	r->gap_reported = false;
	r->message.mtu = p->payload_len;
	r->message.offset = p->payload_len;
	if (!p->ack_req)
		return;
	r->ack_due = true;
	roci_qp_make_ready(qp);
}

bool roci_engine_rx_promptly(struct roci_engine *e, uint64_t now, uint16_t local, const uint8_t *header,
			     unsigned header_len, const uint8_t *payload, uint32_t len)
{
	struct roci_packet pkt;
	struct roci_qp *qp;
	void *to;

	if (e->trace || !roci_packet_parse_send(&pkt, header, header_len))
		return false;
	qp = roci_idmap_find(&e->qps, pkt.dest_qpn);
	if (!qp || !expects(qp, local, pkt.psn) || len > qp->mtu || !roci_peer_port_is(&qp->peer, 0))
		return false;
	to = find_place(qp, len);
	if (!to)
		return false;
	roci_engine_clock(e, now);
	e->stats->rx_packets++;
	roci_keepalive_rx(qp);
	roci_copy_last(to, payload, len);
	pkt.payload_len = len;
	take(qp, &pkt);
	return true;
}
