/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Short SENDs to a peer of this host, of QPs that have nothing else to send: the work request becomes a packet as soon
 * as it is posted, with as few steps as that takes. All others, and what is sent again, take the requester's way.
 */
#include "engine/batch.h"
#include "engine/qp.h"
#include "engine/requester.h"
#include "engine/response.h"
#include "engine/service.h"
#include "engine/sgl.h"
#include "engine/trace.h"

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
