/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/trace.h"

#include <string.h>

#include "engine/cq.h"
#include "engine/qp.h"
#include "wire/record.h"

void roci_engine_trace(struct roci_engine *e, struct roci_trace *trace)
{
	e->trace = trace;
}

static void tell(const struct roci_engine *e, struct roci_record *record)
{
	e->trace->record(e->trace, record);
}

static struct roci_record of_qp(const struct roci_qp *qp, enum roci_record_kind kind)
{
	struct roci_record r = {.kind = (uint16_t)kind, .qp_type = (uint8_t)qp->type, .qpn = qp->qpn};

	if (qp->type == ROCI_QPT_UD || qp->state == ROCI_QPS_RESET)
		return r;
	r.peer = qp->attr.dest_qpn;
	memcpy(r.local_gid, qp->attr.av.sgid, sizeof(r.local_gid));
	memcpy(r.remote_gid, qp->attr.av.dgid, sizeof(r.remote_gid));
	return r;
}

static uint64_t sges_len(const struct roci_sge *sges, unsigned count)
{
	uint64_t len = 0;

	for (unsigned i = 0; i < count; i++)
		len += sges[i].len;
	return len;
}

void roci_trace_post_send(const struct roci_qp *qp, const struct roci_send_wr *wr)
{
	struct roci_record r = of_qp(qp, ROCI_RECORD_POST_SEND);

	r.opcode = (uint8_t)wr->opcode;
	r.flags = wr->flags | (qp->sig_all ? ROCI_SEND_SIGNALED : 0);
	r.queue = qp->send_cq->number;
	r.imm = wr->imm;
	r.rkey = wr->rkey;
	r.wr_id = wr->wr_id;
	r.length = wr->opcode == ROCI_WR_FLUSH ? wr->flush.len : sges_len(wr->sges, wr->num_sge);
	r.remote_addr = wr->remote_addr;
	if (qp->type == ROCI_QPT_UD && wr->av) {
		r.peer = wr->remote_qpn;
		memcpy(r.local_gid, wr->av->sgid, sizeof(r.local_gid));
		memcpy(r.remote_gid, wr->av->dgid, sizeof(r.remote_gid));
	}
	tell(qp->e, &r);
}

void roci_trace_post_recv(const struct roci_qp *qp, const struct roci_recv_wr *wr)
{
	struct roci_record r = of_qp(qp, ROCI_RECORD_POST_RECV);

	r.queue = qp->recv_cq->number;
	r.wr_id = wr->wr_id;
	r.length = sges_len(wr->sges, wr->num_sge);
	tell(qp->e, &r);
}

void roci_trace_post_srq(const struct roci_srq *srq, const struct roci_recv_wr *wr)
{
	struct roci_record r = {.kind = ROCI_RECORD_POST_SRQ, .queue = srq->number, .wr_id = wr->wr_id};

	r.length = sges_len(wr->sges, wr->num_sge);
	tell(srq->e, &r);
}

void roci_trace_send_taken(const struct roci_qp *qp, const struct roci_swqe *w)
{
	struct roci_record r = of_qp(qp, ROCI_RECORD_SEND_TAKEN);

	r.opcode = w->opcode;
	r.queue = qp->send_cq->number;
	r.wr_id = w->wr_id;
	r.length = w->length;
	if (qp->type == ROCI_QPT_UD)
		r.peer = roci_swqe_dest(w)->qpn;
	tell(qp->e, &r);
}

void roci_trace_recv_taken(const struct roci_qp *qp)
{
	struct roci_record r = of_qp(qp, ROCI_RECORD_RECV_TAKEN);

	r.queue = qp->recv_cq->number;
	r.wr_id = qp->resp.rwqe->wr_id;
	tell(qp->e, &r);
}

void roci_trace_executed(const struct roci_qp *qp, const struct roci_packet *p)
{
	struct roci_record r = of_qp(qp, ROCI_RECORD_EXECUTED);

	r.opcode = p->opcode;
	tell(qp->e, &r);
}

void roci_trace_completion(const struct roci_qp *qp, const struct roci_swqe *w, const struct roci_cqe *cqe)
{
	struct roci_record r = of_qp(qp, ROCI_RECORD_COMPLETION);

	r.opcode = (uint8_t)cqe->opcode;
	r.status = cqe->status;
	r.flags = cqe->flags;
	r.queue = w ? qp->send_cq->number : qp->recv_cq->number;
	r.imm = cqe->imm;
	r.wr_id = cqe->wr_id;
	r.length = w ? w->length : cqe->byte_len;
	if (qp->type == ROCI_QPT_UD)
		r.peer = w ? roci_swqe_dest(w)->qpn : cqe->src_qpn;
	tell(qp->e, &r);
}

void roci_trace_state(const struct roci_qp *qp)
{
	struct roci_record r = of_qp(qp, ROCI_RECORD_QP_STATE);

	r.status = (uint32_t)qp->state;
	r.length = qp->mtu;
	tell(qp->e, &r);
}
