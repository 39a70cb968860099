/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests that the driver executes by itself on the memory of a peer of the host. They take no PSN. Nothing may be
 * outstanding before them: what they write must not become visible before an earlier SEND is received.
 */
#include "engine/qp.h"
#include "engine/requester.h"
#include "engine/sgl.h"

static int own_spans(struct roci_qp *qp, const struct roci_send_wr *wr, struct roci_direct *out)
{
	struct roci_sgl sgl = {wr->sges, wr->num_sge};
	int count = 0;

	if (!(wr->flags & ROCI_SEND_INLINE))
		return roci_sgl_spans(qp->e, qp->pd, &sgl, 0, out->len, out->read ? ROCI_ACCESS_LOCAL_WRITE : 0,
				      out->spans);
	for (unsigned i = 0; i < wr->num_sge; i++)
		if (wr->sges[i].len)
			out->spans[count++] = (struct roci_span){(void *)(uintptr_t)wr->sges[i].addr, wr->sges[i].len};
	return count;
}

bool roci_qp_direct_begin(struct roci_qp *qp, const struct roci_send_wr *wr, struct roci_direct *out)
{
	struct roci_sgl sgl = {wr->sges, wr->num_sge};
	int count;

	if (!roci_qp_is_local(qp) || qp->state != ROCI_QPS_RTS || qp->sq.head != qp->sq.tail)
		return false;
	if (wr->opcode != ROCI_WR_RDMA_WRITE && (wr->opcode != ROCI_WR_RDMA_READ || !qp->attr.max_rd_atomic))
		return false;
	out->read = wr->opcode == ROCI_WR_RDMA_READ;
	out->len = roci_sgl_len(&sgl);
	if (!out->len || !roci_qp_send_room(qp, 1))
		return false;
	count = own_spans(qp, wr, out);
	if (count <= 0)
		return false;
	out->span_count = (unsigned)count;
	out->local = qp->attr.av.local;
	out->qpn = qp->qpn;
	out->dest_qpn = qp->attr.dest_qpn;
	out->rkey = wr->rkey;
	out->remote_addr = wr->remote_addr;
	return true;
}

/* A request without completion leaves no trace: its slot would be free at once. */
void roci_qp_direct_done(struct roci_qp *qp, const struct roci_send_wr *wr, bool first)
{
	struct roci_sq *sq = &qp->sq;
	struct roci_swqe *w;
	struct roci_cqe cqe;

	if (first)
		roci_probe_send(qp, 1);
	if (!qp->sig_all && !(wr->flags & ROCI_SEND_SIGNALED))
		return;
	if (roci_sq_post(sq, wr, qp->sig_all))
		return; /* roci_qp_direct_begin() has seen that there is room */
	w = roci_swqe_head(qp);
	w->done = true;
	cqe = (struct roci_cqe){.wr_id = wr->wr_id, .opcode = roci_swqe_wc_opcode(w), .qpn = qp->qpn};
	if (roci_swqe_fetches(w))
		cqe.byte_len = (uint32_t)w->length;
	roci_qp_complete_send(qp, w, &cqe);
	sq->next = sq->started = sq->head = sq->tail;
}
