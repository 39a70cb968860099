/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/packets.h"

#include "engine/batch.h"
#include "engine/requester.h"
#include "engine/service.h"
#include "engine/sgl.h"

/* The operation code by the place in the message. */
static uint8_t place(bool first, bool last, uint8_t only, uint8_t first_op, uint8_t middle, uint8_t last_op)
{
	if (first)
		return last ? only : first_op;
	return last ? last_op : middle;
}

static uint8_t operation(const struct roci_swqe *w, bool first, bool last)
{
	switch (w->opcode) {
	case ROCI_WR_SEND:
		return place(first, last, ROCI_OP_SEND_ONLY, ROCI_OP_SEND_FIRST, ROCI_OP_SEND_MIDDLE,
			     ROCI_OP_SEND_LAST);
	case ROCI_WR_SEND_WITH_IMM:
		return place(first, last, ROCI_OP_SEND_ONLY_IMM, ROCI_OP_SEND_FIRST, ROCI_OP_SEND_MIDDLE,
			     ROCI_OP_SEND_LAST_IMM);
	case ROCI_WR_SEND_WITH_INV:
		return place(first, last, ROCI_OP_SEND_ONLY_INV, ROCI_OP_SEND_FIRST, ROCI_OP_SEND_MIDDLE,
			     ROCI_OP_SEND_LAST_INV);
	case ROCI_WR_RDMA_WRITE:
		return place(first, last, ROCI_OP_WRITE_ONLY, ROCI_OP_WRITE_FIRST, ROCI_OP_WRITE_MIDDLE,
			     ROCI_OP_WRITE_LAST);
	case ROCI_WR_RDMA_WRITE_WITH_IMM:
		return place(first, last, ROCI_OP_WRITE_ONLY_IMM, ROCI_OP_WRITE_FIRST, ROCI_OP_WRITE_MIDDLE,
			     ROCI_OP_WRITE_LAST_IMM);
	case ROCI_WR_RDMA_READ: return ROCI_OP_READ_REQUEST;
	case ROCI_WR_ATOMIC_CMP_AND_SWP: return ROCI_OP_COMPARE_SWAP;
	case ROCI_WR_ATOMIC_FETCH_AND_ADD: return ROCI_OP_FETCH_ADD;
	case ROCI_WR_FLUSH: return ROCI_OP_FLUSH;
	default: return ROCI_OP_ATOMIC_WRITE;
	}
}

static void fill_headers(const struct roci_qp *qp, const struct roci_swqe *w, struct roci_packet *pkt)
{
	pkt->dest_qpn = qp->attr.dest_qpn;
	pkt->va = w->remote_addr;
	pkt->rkey = w->rkey;
	pkt->dma_len = (uint32_t)w->length;
	pkt->imm = w->imm;
	pkt->inv_rkey = w->imm;
	switch (w->opcode) {
	case ROCI_WR_ATOMIC_CMP_AND_SWP:
		pkt->swap_add = w->atomic.swap;
		pkt->compare = w->atomic.compare_add;
		break;
	case ROCI_WR_ATOMIC_FETCH_AND_ADD: pkt->swap_add = w->atomic.compare_add; break;
	case ROCI_WR_FLUSH:
		pkt->dma_len = w->flush.len;
		pkt->feth = w->flush.feth;
		break;
	default: break;
	}
	if (!qp->service->is_datagram)
		return;
	pkt->dest_qpn = roci_swqe_dest(w)->qpn;
	pkt->src_qpn = qp->qpn;
	/* IBTA 10.2.5: a Q_Key with its top bit set stands for the QP's own. */
	pkt->qkey = roci_swqe_dest(w)->qkey & 0x80000000u ? qp->attr.qkey : roci_swqe_dest(w)->qkey;
}

static bool add_payload(struct roci_qp *qp, const struct roci_swqe *w, uint64_t offset, uint32_t len,
			struct roci_tx_batch *batch)
{
	struct roci_sgl sgl = {w->sges, w->num_sge};

	if (!len)
		return true;
	if (!(w->flags & ROCI_SEND_INLINE))
		return !roci_sgl_gather(qp->e, qp->pd, &sgl, offset, len, batch);
	roci_tx_batch_span(batch, (char *)w->sges + offset, len);
	return true;
}

const struct roci_av *roci_swqe_av(const struct roci_qp *qp, const struct roci_swqe *w)
{
	return qp->service->is_datagram ? &roci_swqe_dest(w)->av : &qp->attr.av;
}

uint32_t roci_swqe_mtu(const struct roci_qp *qp, const struct roci_swqe *w)
{
	return qp->service->is_datagram ? roci_swqe_dest(w)->av.mtu : roci_swqe_full(qp, w);
}

bool roci_packets_request(struct roci_qp *qp, const struct roci_swqe *w, uint32_t index, uint32_t step,
			  struct roci_packet *pkt, struct roci_tx_batch *batch)
{
	uint32_t mtu = roci_swqe_mtu(qp, w);
	uint64_t offset = (uint64_t)index * mtu;
	bool last = index + step == w->packets;

	pkt->opcode = qp->service->transport | operation(w, index == 0, last);
	fill_headers(qp, w, pkt);
	/* Solicited Event belongs to the packet that completes a receive (IBTA 9.2.3). */
	pkt->solicited = last && (w->flags & ROCI_SEND_SOLICITED) && w->opcode != ROCI_WR_RDMA_WRITE &&
			 !roci_swqe_needs_response(w);
	if (w->opcode == ROCI_WR_RDMA_READ) {
		uint64_t left = w->length - offset, piece = (uint64_t)step * mtu;

		pkt->va += offset;
		pkt->dma_len = (uint32_t)(piece < left ? piece : left);
	}
	if (roci_swqe_fetches(w))
		return true;
	pkt->payload_len = (uint32_t)(w->length - offset < mtu ? w->length - offset : mtu);
	return add_payload(qp, w, offset, pkt->payload_len, batch);
}
