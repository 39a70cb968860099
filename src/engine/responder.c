/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/responder.h"

#include <assert.h>
#include <string.h>

#include "engine/cq.h"
#include "engine/response.h"
#include "wire/print.h"

#define UC_LATE 4096 /* packets that a network delays one by, at most */

/* What a check or step says about a request packet. */
enum verdict {
	V_OK,
	V_DROP,      /* silence */
	V_RNR,       /* no receive: come again */
	V_INVALID,   /* NAK invalid request */
	V_ACCESS,    /* NAK remote access error */
	V_OPERATION, /* NAK remote operational error */
	V_TOO_LONG,  /* the receive is too small: local length error, NAK invalid request */
	V_BAD_INV, /* SEND with Invalidate of a wrong key: executed, acknowledged, then fatal (IBTA 9.9.3.1 class J) */
};

static bool is_imm(const struct roci_packet *p)
{
	return p->op->headers & 1u << ROCI_HDR_IMMDT;
}

static bool is_inv(const struct roci_packet *p)
{
	return p->op->headers & 1u << ROCI_HDR_IETH;
}

/* IBTA 9.7.4.1.2: First, Middle, Last follow each other, and a message is of one kind. */
static enum verdict check_sequence(const struct roci_qp *qp, const struct roci_packet *p)
{
	if (p->op->first)
		return qp->resp.message ? V_INVALID : V_OK;
	return qp->resp.message == p->op->kind ? V_OK : V_INVALID;
}

/* IBTA 9.7.4.1.6: First and Middle are PMTU long, Last 1..PMTU, Only 0..PMTU. */
static enum verdict check_length(const struct roci_qp *qp, const struct roci_packet *p)
{
	uint32_t len = p->payload_len;

	if (p->op->kind != ROCI_KIND_SEND && p->op->kind != ROCI_KIND_WRITE)
		return V_OK;
	if (!p->op->last)
		return len == qp->mtu ? V_OK : V_INVALID;
	if (len > qp->mtu || (!p->op->first && !len))
		return V_INVALID;
	return V_OK;
}

static uint32_t flush_rights(const struct roci_packet *p)
{
	return (p->feth & ROCI_FETH_GLOBAL ? ROCI_ACCESS_FLUSH_GLOBAL : 0) |
	       (p->feth & ROCI_FETH_PERSISTENT ? ROCI_ACCESS_FLUSH_PERSISTENT : 0);
}

/* The QP must allow the operation, and have resources for it (IBTA 9.7.4.1.3-5). */
static enum verdict check_operation(const struct roci_qp *qp, const struct roci_packet *p)
{
	uint32_t need = 0;

	switch (p->op->kind) {
	case ROCI_KIND_SEND: return V_OK;
	case ROCI_KIND_WRITE:
	case ROCI_KIND_ATOMIC_WRITE: need = ROCI_ACCESS_REMOTE_WRITE; break;
	case ROCI_KIND_READ_REQUEST: need = ROCI_ACCESS_REMOTE_READ; break;
	case ROCI_KIND_ATOMIC: need = ROCI_ACCESS_REMOTE_ATOMIC; break;
	case ROCI_KIND_FLUSH: need = flush_rights(p); break;
	default: return V_INVALID;
	}
	if (need & ~qp->attr.access)
		return V_INVALID;
	if (p->op->kind != ROCI_KIND_WRITE && p->op->kind != ROCI_KIND_FLUSH && !qp->resp.response_room)
		return V_INVALID;
	return V_OK;
}

/* ---- SEND ---- */

static enum verdict begin_send(struct roci_qp *qp)
{
	struct roci_sgl sgl;

	if (!roci_qp_take_receive(qp))
		return V_RNR;
	sgl = (struct roci_sgl){qp->resp.rwqe->sges, qp->resp.rwqe->num_sge};
	qp->resp.offset = 0;
	return roci_sgl_check(qp->e, roci_qp_receive_pd(qp), &sgl, ROCI_ACCESS_LOCAL_WRITE) ? V_OK : V_OPERATION;
}

static enum verdict run_send(struct roci_qp *qp, const struct roci_packet *p)
{
	struct roci_responder *r = &qp->resp;
	struct roci_cqe cqe = {.opcode = ROCI_WC_RECV, .src_qpn = qp->attr.dest_qpn};
	struct roci_sgl sgl;
	enum verdict v;

	if (p->op->first) {
		v = begin_send(qp);
		if (v != V_OK)
			return v;
	}
	if (r->offset + p->payload_len > ROCI_MAX_MESSAGE_BYTES)
		return V_INVALID; /* however much the receive has room for: a completion could not say it */
	sgl = (struct roci_sgl){r->rwqe->sges, r->rwqe->num_sge};
	if (r->offset + p->payload_len > roci_sgl_len(&sgl))
		return V_TOO_LONG;
	if (roci_sgl_scatter(qp->e, roci_qp_receive_pd(qp), &sgl, r->offset, p->payload, p->payload_len, p->op->last))
		return V_OPERATION;
	r->offset += p->payload_len;
	if (!p->op->last)
		return V_OK;
	cqe.byte_len = (uint32_t)r->offset;
	if (is_imm(p)) {
		cqe.flags = ROCI_WC_WITH_IMM;
		cqe.imm = p->imm;
	} else if (is_inv(p)) {
		if (roci_mw_invalidate(qp->e, qp->pd, qp->qpn, p->inv_rkey))
			return V_BAD_INV;
		cqe.flags = ROCI_WC_WITH_INV;
		cqe.imm = p->inv_rkey;
	}
	roci_qp_complete_receive(qp, &cqe, p->solicited);
	return V_OK;
}

/* ---- RDMA WRITE ---- */

static void complete_write_imm(struct roci_qp *qp, const struct roci_packet *p, uint32_t byte_len)
{
	struct roci_cqe cqe = {.opcode = ROCI_WC_RECV_RDMA_WITH_IMM,
			       .flags = ROCI_WC_WITH_IMM,
			       .imm = p->imm,
			       .byte_len = byte_len,
			       .src_qpn = qp->attr.dest_qpn};

	roci_qp_complete_receive(qp, &cqe, p->solicited);
}

/* IBTA 9.7.4.1.7: the whole range is checked before the first byte is written. */
static enum verdict begin_write(struct roci_qp *qp, const struct roci_packet *p)
{
	struct roci_responder *r = &qp->resp;

	if (p->dma_len > ROCI_MAX_MESSAGE_BYTES)
		return V_INVALID;
	r->va = p->va;
	r->rkey = p->rkey;
	r->left = p->dma_len;
	r->offset = p->dma_len; /* what a completion with immediate data reports */
	if (!roci_mr_remote(qp->e, qp->pd, qp->qpn, p->rkey, p->va, p->dma_len, ROCI_ACCESS_REMOTE_WRITE))
		return V_ACCESS;
	return V_OK;
}

static enum verdict run_write(struct roci_qp *qp, const struct roci_packet *p)
{
	struct roci_responder *r = &qp->resp;
	enum verdict v;
	void *to;

	if (p->op->first) {
		v = begin_write(qp, p);
		if (v != V_OK)
			return v;
	}
	if (p->op->last ? p->payload_len != r->left : p->payload_len >= r->left)
		return V_INVALID;
	if (is_imm(p) && !roci_qp_take_receive(qp))
		return V_RNR;
	to = roci_mr_remote(qp->e, qp->pd, qp->qpn, r->rkey, r->va, p->payload_len, ROCI_ACCESS_REMOTE_WRITE);
	if (!to)
		return V_ACCESS;
	if (p->op->last)
		roci_copy_last(to, p->payload, p->payload_len);
	else
		memcpy(to, p->payload, p->payload_len);
	r->va += p->payload_len;
	r->left -= p->payload_len;
	if (is_imm(p))
		complete_write_imm(qp, p, (uint32_t)r->offset);
	return V_OK;
}

/* ---- READ, atomics, FLUSH ---- */

static uint32_t read_packets(const struct roci_qp *qp, uint32_t len)
{
	return len ? (uint32_t)(((uint64_t)len + qp->mtu - 1) / qp->mtu) : 1;
}

static void queue_response(struct roci_qp *qp, struct roci_response *x, const struct roci_packet *p, uint32_t packets)
{
	x->kind = (enum roci_kind)p->op->kind;
	x->psn = p->psn;
	x->packets = x->send_end = packets;
	x->send = 0;
	x->whole = true;
	x->va = p->va;
	x->rkey = p->rkey;
	x->len = p->dma_len;
	x->again = false;
	x->copy_payload = packets == 1;
	x->msn = (qp->resp.msn + 1) & ROCI_PSN_MASK;
	roci_qp_make_ready(qp);
}

static enum verdict run_read(struct roci_qp *qp, const struct roci_packet *p)
{
	struct roci_response *x;

	if (p->dma_len > ROCI_MAX_MESSAGE_BYTES)
		return V_INVALID;
	if (!roci_mr_remote(qp->e, qp->pd, qp->qpn, p->rkey, p->va, p->dma_len, ROCI_ACCESS_REMOTE_READ))
		return V_ACCESS;
	x = roci_response_add(qp);
	if (!x)
		return V_INVALID; /* more outstanding than max_dest_rd_atomic, IBTA 9.7.4.1.5 */
	queue_response(qp, x, p, read_packets(qp, p->dma_len));
	return V_OK;
}

/* Compare and swap, fetch and add: atomic towards every other access to the word, CPU included (IBV_ATOMIC_GLOB). */
static uint64_t run_atomic_on(uint64_t *word, const struct roci_packet *p)
{
	uint64_t expected = p->compare;

	if ((p->opcode & ROCI_OPERATION_MASK) == ROCI_OP_FETCH_ADD)
		return __atomic_fetch_add(word, p->swap_add, __ATOMIC_SEQ_CST);
	__atomic_compare_exchange_n(word, &expected, p->swap_add, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	return expected;
}

static enum verdict run_atomic(struct roci_qp *qp, const struct roci_packet *p)
{
	bool write = p->op->kind == ROCI_KIND_ATOMIC_WRITE;
	uint32_t access = write ? ROCI_ACCESS_REMOTE_WRITE : ROCI_ACCESS_REMOTE_ATOMIC;
	struct roci_response *x;
	uint64_t *word;

	if ((p->va & 7) || (write && (p->payload_len != 8 || p->dma_len != 8)))
		return V_INVALID; /* IBTA 9.4.5, A19 */
	word = roci_mr_remote(qp->e, qp->pd, qp->qpn, p->rkey, p->va, 8, access);
	if (!word)
		return V_ACCESS;
	if ((uintptr_t)word & 7)
		return V_INVALID; /* an iova that is aligned where the memory is not */
	x = roci_response_add(qp);
	if (!x)
		return V_INVALID;
	queue_response(qp, x, p, 1);
	if (write) {
		uint64_t value;

		memcpy(&value, p->payload, 8);
		__atomic_store_n(word, value, __ATOMIC_SEQ_CST);
	} else {
		x->original = run_atomic_on(word, p);
	}
	return V_OK;
}

/* IBTA A19. What earlier requests wrote lies in memory that every processor sees alike, and the system call that sends
 * the response comes after it: nothing is left to do. Persistence would need more, so no region has the right to it. */
static enum verdict run_flush(struct roci_qp *qp, const struct roci_packet *p)
{
	uint32_t level = p->feth & ROCI_FETH_LEVEL_MASK, rights = flush_rights(p);
	bool whole = level == ROCI_FETH_MR;

	if (!rights || (p->feth & ROCI_FETH_PLACEMENT_MASK & ~(ROCI_FETH_GLOBAL | ROCI_FETH_PERSISTENT)))
		return V_INVALID;
	if (level > ROCI_FETH_MR || (!whole && p->dma_len > ROCI_MAX_MESSAGE_BYTES))
		return V_INVALID;
	if (!roci_mr_may_flush(qp->e, qp->pd, qp->qpn, p->rkey, p->va, p->dma_len, whole, rights))
		return V_ACCESS;
	return roci_response_flush(qp, p->psn) ? V_OK : V_DROP; /* it comes again */
}

/* ---- flow ---- */

static enum verdict run(struct roci_qp *qp, const struct roci_packet *p)
{
	enum verdict v = check_sequence(qp, p);

	if (v == V_OK)
		v = check_length(qp, p);
	if (v == V_OK)
		v = check_operation(qp, p);
	if (v != V_OK)
		return v;
	switch (p->op->kind) {
	case ROCI_KIND_SEND: return run_send(qp, p);
	case ROCI_KIND_WRITE: return run_write(qp, p);
	case ROCI_KIND_READ_REQUEST: return run_read(qp, p);
	case ROCI_KIND_FLUSH: return run_flush(qp, p);
	default: return run_atomic(qp, p);
	}
}

/* The receive in hand, if there is one, completes with `status`. */
static void fail_receive(struct roci_qp *qp, enum roci_wc_status status)
{
	struct roci_cqe cqe = {.status = status, .opcode = ROCI_WC_RECV};

	if (qp->resp.have_rwqe)
		roci_qp_complete_receive(qp, &cqe, false);
}

/* IBTA 9.9.3 table 61: what the peer is told, what the receive says, what the consumer hears. */
static void fail(struct roci_qp *qp, const struct roci_packet *p, enum verdict v)
{
	bool err = qp->type == ROCI_QPT_RC;
	unsigned nak = ROCI_NAK_INVALID_REQUEST;
	int event = ROCI_EVENT_QP_REQ_ERR;

	switch (v) {
	case V_ACCESS:
		nak = ROCI_NAK_REMOTE_ACCESS;
		event = ROCI_EVENT_QP_ACCESS_ERR;
		break;
	case V_OPERATION:
		nak = ROCI_NAK_REMOTE_OPERATION;
		event = -1;
		fail_receive(qp, ROCI_WC_LOC_PROT_ERR);
		break;
	case V_TOO_LONG:
		event = -1;
		fail_receive(qp, ROCI_WC_LOC_LEN_ERR);
		break;
	default: break;
	}
	if (err)
		roci_responder_nak(qp, (uint8_t)(ROCI_AETH_NAK | nak), p->psn);
	roci_qp_error(qp, event);
}

static void executed(struct roci_qp *qp, const struct roci_packet *p)
{
	struct roci_responder *r = &qp->resp;
	uint32_t packets = p->op->kind == ROCI_KIND_READ_REQUEST ? read_packets(qp, p->dma_len) : 1;

	r->epsn = roci_psn_add(p->psn, packets);
	r->nak_sent = false;
	if (r->nak_due) {
		/* It has not left, and what it misses or refuses is here: what it acknowledges is still to be told. */
		r->nak_due = false;
		roci_responder_ack(qp);
	}
	r->message = p->op->last ? 0 : p->op->kind;
	if (p->op->last)
		r->msn = (r->msn + 1) & ROCI_PSN_MASK;
}

static void establish(struct roci_qp *qp)
{
	if (qp->established)
		return;
	qp->established = true;
	if (qp->state == ROCI_QPS_RTR)
		roci_event_async(qp->e, &qp->event, ROCI_EVENT_COMM_EST);
}

/* ---- RC ---- */

static void not_ready(struct roci_qp *qp, const struct roci_packet *p)
{
	roci_responder_nak(qp, (uint8_t)(ROCI_AETH_RNR_NAK | qp->attr.min_rnr_timer), p->psn);
	qp->resp.nak_sent = true; /* what is behind it in flight needs no second NAK */
	roci_reorder_clear(&qp->e->reorder, &qp->resp.early);
}

static void rc_execute(struct roci_qp *qp, const struct roci_packet *p)
{
	enum verdict v = run(qp, p);

	switch (v) {
	case V_OK:
		executed(qp, p);
		if (p->ack_req && (p->op->kind == ROCI_KIND_SEND || p->op->kind == ROCI_KIND_WRITE))
			roci_responder_ack(qp);
		break;
	case V_RNR: not_ready(qp, p); break;
	case V_DROP: break;
	case V_BAD_INV:
		executed(qp, p);
		fail_receive(qp, ROCI_WC_REM_INV_REQ_ERR);
		roci_qp_error(qp, ROCI_EVENT_QP_REQ_ERR);
		qp->resp.last_words = true;
		roci_responder_ack(qp);
		break;
	default: fail(qp, p, v); break;
	}
}

/* A READ that comes again, whole or its tail: IBTA 9.7.5.2.1. It is answered from memory as it is now. */
static void read_again(struct roci_qp *qp, struct roci_response *x, const struct roci_packet *p)
{
	uint32_t into = (uint32_t)roci_psn_diff(p->psn, x->psn);
	uint64_t offset = (uint64_t)into * qp->mtu;
	uint32_t end = into + read_packets(qp, p->dma_len);

	if (p->rkey != x->rkey || p->va != x->va + offset || offset + p->dma_len > x->len || end > x->packets)
		return;
	x->copy_payload = true;
	if (x->send == x->send_end) {
		x->send = x->send_end = into;
		x->again = x->whole = true;
	} else if (into < x->send) {
		x->send = into;
		x->whole = true;
	}
	if (x->send_end < end)
		x->send_end = end;
	roci_qp_make_ready(qp);
}

static void rc_duplicate(struct roci_qp *qp, const struct roci_packet *p)
{
	struct roci_response *x;

	qp->e->stats.rx_duplicate++;
	switch (p->op->kind) {
	case ROCI_KIND_SEND:
	case ROCI_KIND_WRITE: roci_responder_ack(qp); return;
	case ROCI_KIND_FLUSH: roci_response_flush(qp, p->psn); return;
	default: break;
	}
	x = roci_response_find(qp, p->psn);
	if (!x || x->kind != (enum roci_kind)p->op->kind)
		return;
	if (p->op->kind == ROCI_KIND_READ_REQUEST) {
		read_again(qp, x, p);
	} else {
		x->again = true;
		x->send = 0; /* the saved value, never the operation again (IBTA 9.7.5.2.2) */
		roci_qp_make_ready(qp);
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
	qp->e->stats.rx_out_of_order++;
	roci_reorder_keep(&qp->e->reorder, &r->early, rx);
	if (!r->nak_sent) {
		r->nak_sent = true;
		roci_responder_nak(qp, ROCI_AETH_NAK | ROCI_NAK_PSN_SEQUENCE, r->epsn);
	}
}

/* Requests that came early and have their turn now; a gap that is left is told at once. */
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
	/* The jump is news to the requester, which may be about to send all of it again. */
	if (some && !r->nak_due && roci_qp_receives(qp))
		roci_responder_ack(qp);
}

/* ---- UC ---- */

/* What an IP network doubled or delivers late is passed over: UC promises order, and no message twice. What is far
 * behind, or behind the first packet, is none of that, but of a sender that starts elsewhere. */
static bool uc_late(const struct roci_responder *r, uint32_t psn)
{
	int32_t d = roci_psn_diff(psn, r->epsn);

	return r->begun && d < 0 && d >= -UC_LATE;
}

/* IBTA 9.8.2.2: a gap loses the message under way; the next First or Only starts afresh, whatever its PSN. */
static void uc_rx(struct roci_qp *qp, const struct roci_rx *rx)
{
	struct roci_responder *r = &qp->resp;
	const struct roci_packet *p = &rx->pkt;
	enum verdict v;

	if (uc_late(r, p->psn)) {
		qp->e->stats.rx_duplicate++;
		return;
	}
	r->begun = true;
	if (p->psn != r->epsn) {
		qp->e->stats.rx_out_of_order++;
		r->message = 0;
		r->skipping = true;
	}
	if (p->op->first) {
		r->message = 0;
		r->skipping = false;
	} else if (r->skipping) {
		r->epsn = roci_psn_add(p->psn, 1);
		return;
	}
	v = run(qp, p);
	if (v == V_OK) {
		executed(qp, p);
		return;
	}
	if (v == V_TOO_LONG || v == V_OPERATION) {
		fail(qp, p, v);
		return;
	}
	if (v == V_BAD_INV)
		fail_receive(qp, ROCI_WC_REM_INV_REQ_ERR);
	if (v == V_RNR)
		qp->e->stats.rx_no_wqe++;
	r->message = 0;
	r->skipping = true;
	r->epsn = roci_psn_add(p->psn, 1);
}

static bool accepts(struct roci_qp *qp)
{
	if (roci_qp_receives(qp)) {
		establish(qp);
		return true;
	}
	qp->e->stats.rx_wrong_state++;
	return false;
}

void roci_responder_uc_rx(struct roci_qp *qp, const struct roci_rx *rx)
{
	if (!accepts(qp))
		return;
	uc_rx(qp, rx);
	if (rx->pkt.ack_req && roci_qp_receives(qp))
		roci_responder_ack(qp); /* advice, see uc_flow.h */
}

void roci_responder_rx(struct roci_qp *qp, const struct roci_rx *rx)
{
	if (!accepts(qp))
		return;
	rc_rx(qp, rx);
	if (!roci_list_empty(&qp->resp.early.kept))
		rc_early(qp);
}
