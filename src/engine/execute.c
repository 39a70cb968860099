/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/execute.h"

#include <errno.h>
#include <string.h>

#include "engine/sgl.h"
#include "engine/trace.h"
#include "engine/why.h"

static bool is_imm(const struct roci_packet *p)
{
	return p->op->headers & 1u << ROCI_HDR_IMMDT;
}

static bool is_inv(const struct roci_packet *p)
{
	return p->op->headers & 1u << ROCI_HDR_IETH;
}

/* IBTA 9.7.4.1.2: First, Middle, Last follow each other, and all packets of a message are of one kind. */
static enum roci_verdict check_sequence(const struct roci_qp *qp, const struct roci_packet *p)
{
	if (p->op->first)
		return qp->resp.message.kind
			       ? ROCI_REFUSE(ROCI_EXEC_INVALID, "a message begins before the last one has ended")
			       : ROCI_EXEC_OK;
	return qp->resp.message.kind == p->op->kind
		       ? ROCI_EXEC_OK
		       : ROCI_REFUSE(ROCI_EXEC_INVALID, "the packet continues a message that has not begun");
}

/* IBTA 9.7.4.1.6: First and Middle are PMTU long, Last 1..PMTU, Only 0..PMTU. */
static enum roci_verdict wrong_length(const struct roci_qp *qp, const struct roci_packet *p)
{
	return ROCI_REFUSE(ROCI_EXEC_INVALID,
			   "a packet has %u bytes, and path_mtu of this QP is %u: is it the peer's, too?",
			   p->payload_len, qp->mtu);
}

/* Payload bytes that the packet has at most. The first one of a message may be longer than the path MTU where the peer
 * has probed for that (plpmtu.h), and says how long the others are. */
static uint32_t longest(const struct roci_qp *qp, const struct roci_packet *p)
{
	if (!p->op->first)
		return qp->resp.message.mtu;
	return roci_qp_longest_rx(qp);
}

static enum roci_verdict check_length(const struct roci_qp *qp, const struct roci_packet *p)
{
	uint32_t len = p->payload_len, most = longest(qp, p);

	if (p->op->kind != ROCI_KIND_SEND && p->op->kind != ROCI_KIND_WRITE)
		return ROCI_EXEC_OK;
	if (!p->op->last)
		return len == most || (p->op->first && len >= qp->mtu && len < most) ? ROCI_EXEC_OK
										     : wrong_length(qp, p);
	if (len > most || (!p->op->first && !len))
		return wrong_length(qp, p);
	return ROCI_EXEC_OK;
}

static uint32_t flush_rights(const struct roci_packet *p)
{
	return (p->feth & ROCI_FETH_GLOBAL ? ROCI_ACCESS_FLUSH_GLOBAL : 0) |
	       (p->feth & ROCI_FETH_PERSISTENT ? ROCI_ACCESS_FLUSH_PERSISTENT : 0);
}

/* The QP must allow the operation and have resources for it (IBTA 9.7.4.1.3-5). */
static enum roci_verdict check_operation(const struct roci_qp *qp, const struct roci_packet *p)
{
	char names[ROCI_WHY_NAMES];
	uint32_t need = 0;

	switch (p->op->kind) {
	case ROCI_KIND_SEND: return ROCI_EXEC_OK;
	case ROCI_KIND_WRITE:
	case ROCI_KIND_ATOMIC_WRITE: need = ROCI_ACCESS_REMOTE_WRITE; break;
	case ROCI_KIND_READ_REQUEST: need = ROCI_ACCESS_REMOTE_READ; break;
	case ROCI_KIND_ATOMIC: need = ROCI_ACCESS_REMOTE_ATOMIC; break;
	case ROCI_KIND_FLUSH: need = flush_rights(p); break;
	default: return ROCI_EXEC_INVALID;
	}
	if (need & ~qp->attr.access)
		return ROCI_REFUSE(ROCI_EXEC_INVALID, "qp_access_flags of this QP lacks %s",
				   roci_access_names(need & ~qp->attr.access, names));
	if (p->op->kind != ROCI_KIND_WRITE && p->op->kind != ROCI_KIND_FLUSH && !qp->resp.responses.room)
		return ROCI_REFUSE(ROCI_EXEC_INVALID, "max_dest_rd_atomic of this QP is 0");
	return ROCI_EXEC_OK;
}

/* ---- SEND ---- */

static enum roci_verdict run_send(struct roci_qp *qp, const struct roci_packet *p)
{
	struct roci_message *m = &qp->resp.message;
	struct roci_cqe cqe = {.opcode = ROCI_WC_RECV, .src_qpn = qp->attr.dest_qpn};
	struct roci_sgl sgl;

	if (p->op->first) {
		if (!roci_qp_take_receive(qp))
			return ROCI_EXEC_NO_RECEIVE;
		m->offset = 0;
	}
	if (m->offset + p->payload_len > ROCI_MAX_MESSAGE_BYTES)
		return ROCI_EXEC_INVALID; /* even where it fits: the completion could not state its length */
	sgl = (struct roci_sgl){qp->resp.rwqe->sges, qp->resp.rwqe->num_sge};
	if (m->offset + p->payload_len > roci_sgl_len(&sgl))
		return ROCI_REFUSE(ROCI_EXEC_TOO_LONG,
				   "the message has %s%llu bytes, and the receive (wr_id 0x%llx) has room for %llu",
				   p->op->last ? "" : "more than ", (unsigned long long)(m->offset + p->payload_len),
				   (unsigned long long)qp->resp.rwqe->wr_id, (unsigned long long)roci_sgl_len(&sgl));
	switch (roci_sgl_place(qp->e, roci_qp_receive_pd(qp), &sgl, m->offset, p, p->op->last)) {
	case 0: break;
	case -EAGAIN: return ROCI_EXEC_IGNORE;
	default: return ROCI_EXEC_OPERATION;
	}
	m->offset += p->payload_len;
	if (!p->op->last)
		return ROCI_EXEC_OK;
	cqe.byte_len = (uint32_t)m->offset;
	if (is_imm(p)) {
		cqe.flags = ROCI_WC_WITH_IMM;
		cqe.imm = p->imm;
	} else if (is_inv(p)) {
		if (roci_mw_invalidate(qp->e, qp->pd, qp->qpn, p->inv_rkey))
			return ROCI_EXEC_BAD_INV;
		cqe.flags = ROCI_WC_WITH_INV;
		cqe.imm = p->inv_rkey;
	}
	roci_qp_complete_receive(qp, &cqe, p->solicited);
	return ROCI_EXEC_OK;
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
static enum roci_verdict begin_write(struct roci_qp *qp, const struct roci_packet *p)
{
	struct roci_message *m = &qp->resp.message;

	if (p->dma_len > ROCI_MAX_MESSAGE_BYTES)
		return ROCI_EXEC_INVALID;
	m->va = p->va;
	m->rkey = p->rkey;
	m->left = p->dma_len;
	m->offset = p->dma_len; /* for the completion of a WRITE with immediate data */
	if (!roci_mr_remote(qp->e, qp->pd, qp->qpn, p->rkey, p->va, p->dma_len, ROCI_ACCESS_REMOTE_WRITE))
		return ROCI_EXEC_ACCESS;
	return ROCI_EXEC_OK;
}

static enum roci_verdict fetch_payload(struct roci_qp *qp, const struct roci_packet *p, void *to)
{
	struct roci_span span = {to, p->payload_len};

	switch (qp->e->local->fetch(qp->e->driver, p->far, &span, 1, p->op->last)) {
	case 0: return ROCI_EXEC_OK;
	case -EFAULT: /* IBTA 9.9.3.1: the responder has an error of its own */
		return ROCI_REFUSE(ROCI_EXEC_OPERATION, "the registered memory at %p is not mapped, or not writable",
				   to);
	default: return ROCI_EXEC_IGNORE;
	}
}

static enum roci_verdict write_payload(struct roci_qp *qp, const struct roci_packet *p, void *to)
{
	if (p->far)
		return fetch_payload(qp, p, to);
	if (p->op->last)
		roci_copy_last(to, p->payload, p->payload_len);
	else
		memcpy(to, p->payload, p->payload_len);
	return ROCI_EXEC_OK;
}

static enum roci_verdict run_write(struct roci_qp *qp, const struct roci_packet *p)
{
	struct roci_message *m = &qp->resp.message;
	enum roci_verdict v;
	void *to;

	if (p->op->first) {
		v = begin_write(qp, p);
		if (v != ROCI_EXEC_OK)
			return v;
	}
	if (p->op->last ? p->payload_len != m->left : p->payload_len >= m->left)
		return ROCI_REFUSE(ROCI_EXEC_INVALID, "the packets do not add up to the length of the WRITE");
	if (is_imm(p) && !roci_qp_take_receive(qp))
		return ROCI_EXEC_NO_RECEIVE;
	to = roci_mr_remote(qp->e, qp->pd, qp->qpn, m->rkey, m->va, p->payload_len, ROCI_ACCESS_REMOTE_WRITE);
	if (!to)
		return ROCI_EXEC_ACCESS;
	v = write_payload(qp, p, to);
	if (v != ROCI_EXEC_OK)
		return v;
	m->va += p->payload_len;
	m->left -= p->payload_len;
	if (is_imm(p))
		complete_write_imm(qp, p, (uint32_t)m->offset);
	return ROCI_EXEC_OK;
}

/* ---- READ, atomics, FLUSH ---- */

uint32_t roci_read_packets(uint32_t mtu, uint32_t len)
{
	return len ? (uint32_t)(((uint64_t)len + mtu - 1) / mtu) : 1;
}

/* A response to the request, which is being executed now; NULL: see roci_response_ring_add(). */
static struct roci_response *respond(struct roci_qp *qp, const struct roci_packet *p, uint32_t packets)
{
	return roci_response_ring_add(&qp->resp.responses, p, packets, (qp->resp.msn + 1) & ROCI_PSN_MASK);
}

static enum roci_verdict run_read(struct roci_qp *qp, const struct roci_packet *p)
{
	if (p->dma_len > ROCI_MAX_MESSAGE_BYTES)
		return ROCI_EXEC_INVALID;
	if (!roci_mr_remote(qp->e, qp->pd, qp->qpn, p->rkey, p->va, p->dma_len, ROCI_ACCESS_REMOTE_READ))
		return ROCI_EXEC_ACCESS;
	if (!respond(qp, p, roci_read_packets(qp->mtu, p->dma_len)))
		return ROCI_REFUSE(ROCI_EXEC_INVALID, "more READs are outstanding than max_dest_rd_atomic %u",
				   qp->attr.max_dest_rd_atomic); /* IBTA 9.7.4.1.5 */
	return ROCI_EXEC_OK;
}

/* Compare and swap, fetch and add: atomic towards all other accesses to the word, also those of CPUs (IBV_ATOMIC_GLOB).
 */
static uint64_t run_atomic_on(uint64_t *word, const struct roci_packet *p)
{
	uint64_t expected = p->compare;

	if ((p->opcode & ROCI_OPERATION_MASK) == ROCI_OP_FETCH_ADD)
		return __atomic_fetch_add(word, p->swap_add, __ATOMIC_SEQ_CST);
	__atomic_compare_exchange_n(word, &expected, p->swap_add, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	return expected;
}

static enum roci_verdict run_atomic(struct roci_qp *qp, const struct roci_packet *p)
{
	bool write = p->op->kind == ROCI_KIND_ATOMIC_WRITE;
	uint32_t access = write ? ROCI_ACCESS_REMOTE_WRITE : ROCI_ACCESS_REMOTE_ATOMIC;
	struct roci_response *x;
	uint64_t *word;

	if ((p->va & 7) || (write && (p->payload_len != 8 || p->dma_len != 8)))
		return ROCI_REFUSE(ROCI_EXEC_INVALID, "an atomic at 0x%llx: 8 bytes at a multiple of 8 are allowed",
				   (unsigned long long)p->va); /* IBTA 9.4.5, A19 */
	word = roci_mr_remote(qp->e, qp->pd, qp->qpn, p->rkey, p->va, 8, access);
	if (!word)
		return ROCI_EXEC_ACCESS;
	if ((uintptr_t)word & 7)
		return ROCI_REFUSE(ROCI_EXEC_INVALID, "the iova is a multiple of 8, but the memory is not");
	x = respond(qp, p, 1);
	if (!x)
		return ROCI_REFUSE(ROCI_EXEC_INVALID, "more atomics are outstanding than max_dest_rd_atomic %u",
				   qp->attr.max_dest_rd_atomic);
	if (write) {
		uint64_t value;

		memcpy(&value, p->payload, 8);
		__atomic_store_n(word, value, __ATOMIC_SEQ_CST);
	} else {
		x->original = run_atomic_on(word, p);
	}
	return ROCI_EXEC_OK;
}

/* IBTA A19. There is nothing to do: what earlier requests wrote is visible to all processors before the system call
 * that sends the response. Persistence would need more, so no region has the right to it. */
static enum roci_verdict run_flush(struct roci_qp *qp, const struct roci_packet *p)
{
	uint32_t level = p->feth & ROCI_FETH_LEVEL_MASK, rights = flush_rights(p);
	bool whole = level == ROCI_FETH_MR;

	if (!rights || (p->feth & ROCI_FETH_PLACEMENT_MASK & ~(ROCI_FETH_GLOBAL | ROCI_FETH_PERSISTENT)))
		return ROCI_EXEC_INVALID;
	if (level > ROCI_FETH_MR || (!whole && p->dma_len > ROCI_MAX_MESSAGE_BYTES))
		return ROCI_EXEC_INVALID;
	if (!roci_mr_may_flush(qp->e, qp->pd, qp->qpn, p->rkey, p->va, p->dma_len, whole, rights))
		return ROCI_EXEC_ACCESS;
	return roci_response_ring_add_flush(&qp->resp.responses, p->psn) ? ROCI_EXEC_OK : ROCI_EXEC_IGNORE;
}

/* ---- the chain ---- */

enum roci_verdict roci_execute(struct roci_qp *qp, const struct roci_packet *p)
{
	enum roci_verdict v = check_sequence(qp, p);

	if (v == ROCI_EXEC_OK)
		v = check_length(qp, p);
	if (v == ROCI_EXEC_OK)
		v = check_operation(qp, p);
	if (v != ROCI_EXEC_OK)
		return v;
	switch (p->op->kind) {
	case ROCI_KIND_SEND: return run_send(qp, p);
	case ROCI_KIND_WRITE: v = run_write(qp, p); break;
	case ROCI_KIND_READ_REQUEST: v = run_read(qp, p); break;
	case ROCI_KIND_FLUSH: v = run_flush(qp, p); break;
	default: v = run_atomic(qp, p);
	}
	if (v == ROCI_EXEC_OK && p->op->last && !is_imm(p))
		ROCI_TRACE(qp->e, roci_trace_executed(qp, p));
	return v;
}
