/* SPDX-License-Identifier: BSD-2-Clause */
/* Posting lists of work requests: translates struct ibv_send_wr and ibv_recv_wr for the engine. */
#include <errno.h>

#include "engine/why.h"
#include "verbs/cq.h"
#include "verbs/mr.h"
#include "verbs/qp.h"

#define SAME(a, b) _Static_assert((int)(a) == (int)(b), "the engine has the values of verbs.h")
SAME(ROCI_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE);
SAME(ROCI_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM);
SAME(ROCI_WR_SEND, IBV_WR_SEND);
SAME(ROCI_WR_SEND_WITH_IMM, IBV_WR_SEND_WITH_IMM);
SAME(ROCI_WR_RDMA_READ, IBV_WR_RDMA_READ);
SAME(ROCI_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_CMP_AND_SWP);
SAME(ROCI_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_FETCH_AND_ADD);
SAME(ROCI_WR_LOCAL_INV, IBV_WR_LOCAL_INV);
SAME(ROCI_WR_BIND_MW, IBV_WR_BIND_MW);
SAME(ROCI_WR_SEND_WITH_INV, IBV_WR_SEND_WITH_INV);
SAME(ROCI_WR_FLUSH, IBV_WR_FLUSH);
SAME(ROCI_WR_ATOMIC_WRITE, IBV_WR_ATOMIC_WRITE);
SAME(ROCI_SEND_FENCE, IBV_SEND_FENCE);
SAME(ROCI_SEND_SIGNALED, IBV_SEND_SIGNALED);
SAME(ROCI_SEND_SOLICITED, IBV_SEND_SOLICITED);
SAME(ROCI_SEND_INLINE, IBV_SEND_INLINE);
SAME(sizeof(struct roci_sge), sizeof(struct ibv_sge));
SAME(offsetof(struct roci_sge, addr), offsetof(struct ibv_sge, addr));
SAME(offsetof(struct roci_sge, len), offsetof(struct ibv_sge, length));
SAME(offsetof(struct roci_sge, lkey), offsetof(struct ibv_sge, lkey));

#define KNOWN_FLAGS (ROCI_SEND_FENCE | ROCI_SEND_SIGNALED | ROCI_SEND_SOLICITED | ROCI_SEND_INLINE)

/* The fields that depend on the opcode and on the QP type. */
static int translate_opcode(struct ibv_qp *qp, const struct ibv_send_wr *in, struct roci_send_wr *out)
{
	switch (in->opcode) {
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
	case IBV_WR_SEND_WITH_INV:
		if (qp->qp_type != IBV_QPT_UD)
			return 0;
		if (!in->wr.ud.ah || in->wr.ud.ah->context != qp->context)
			return ROCI_REFUSE(EINVAL, "wr.ud.ah %p is no address handle of the QP's context",
					   (void *)in->wr.ud.ah);
		out->av = &((const struct vb_ah *)in->wr.ud.ah)->av;
		out->remote_qpn = in->wr.ud.remote_qpn;
		out->remote_qkey = in->wr.ud.remote_qkey;
		return 0;
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
	case IBV_WR_RDMA_READ:
	case IBV_WR_ATOMIC_WRITE:
		out->remote_addr = in->wr.rdma.remote_addr;
		out->rkey = in->wr.rdma.rkey;
		return 0;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		out->remote_addr = in->wr.atomic.remote_addr;
		out->rkey = in->wr.atomic.rkey;
		out->compare_add = in->wr.atomic.compare_add;
		out->swap = in->wr.atomic.swap;
		return 0;
	case IBV_WR_LOCAL_INV: return 0;
	case IBV_WR_BIND_MW:
		/* A posted bind is for type 2; type 1 has ibv_bind_mw(). */
		if (!in->bind_mw.mw || in->bind_mw.mw->type != IBV_MW_TYPE_2)
			return ROCI_REFUSE(EINVAL, "bind_mw.mw is no window of type 2; type 1 has ibv_bind_mw()");
		return vb_mw_translate_bind(qp, in->bind_mw.mw, in->bind_mw.rkey, &in->bind_mw.bind_info, out);
	default: return ROCI_REFUSE(EINVAL, "opcode %d: roci0 does not have it", (int)in->opcode);
	}
}

static int check_sges(int num_sge, const struct ibv_sge *sg_list)
{
	return num_sge < 0 || (num_sge && !sg_list)
		       ? ROCI_REFUSE(EINVAL, "num_sge %d, sg_list %p: is the work request set to zero first?", num_sge,
				     (const void *)sg_list)
		       : 0;
}

static int translate(struct ibv_qp *qp, const struct ibv_send_wr *in, struct roci_send_wr *out)
{
	int err = check_sges(in->num_sge, in->sg_list);

	if (err)
		return err;
	if (in->send_flags & ~(unsigned)KNOWN_FLAGS)
		return ROCI_REFUSE(EINVAL, "send_flags 0x%x: 0x%x is unknown; is the work request set to zero first?",
				   in->send_flags, in->send_flags & ~(unsigned)KNOWN_FLAGS);
	*out = (struct roci_send_wr){
		.wr_id = in->wr_id,
		.opcode = (enum roci_wr_opcode)in->opcode,
		.flags = in->send_flags,
		.imm = in->imm_data,
		.sges = (const struct roci_sge *)in->sg_list,
		.num_sge = (unsigned)in->num_sge,
	};
	/* Without an SGE, ATOMIC_WRITE would send the zeroes of atomic_write_data. */
	if (in->opcode == IBV_WR_ATOMIC_WRITE && !in->num_sge)
		return ROCI_REFUSE(EINVAL, "num_sge 0: an ATOMIC WRITE needs 8 bytes");
	return translate_opcode(qp, in, out);
}

/* Stops at the first request that fails. */
VERB_DEFINE(3, vb_post_send, struct ibv_qp *, ibqp, struct ibv_send_wr *, wr, struct ibv_send_wr **, bad_wr)
{
	struct roci_qp *qp = vb_qp(ibqp)->engine;
	struct vb_context *ctx = vb_context(ibqp->context);
	int err = 0;
	roci_device_lock_post(ctx->dev);
	for (; wr; wr = wr->next) {
		struct roci_send_wr inner;
		err = translate(ibqp, wr, &inner);
		if (!err)
			err = -roci_device_post_send(ctx->dev, qp, &inner);
		if (err)
			break;
		if (wr->opcode == IBV_WR_BIND_MW)
			vb_mw_posted(wr->bind_mw.mw, wr->bind_mw.rkey);
	}
	roci_device_unlock_post(ctx->dev, vb_qp_has_completions(ibqp));
	if (err && bad_wr)
		*bad_wr = wr;
	return err;
}

static int translate_recv(const struct ibv_recv_wr *in, struct roci_recv_wr *out)
{
	int err = check_sges(in->num_sge, in->sg_list);

	if (err)
		return err;
	*out = (struct roci_recv_wr){
		.wr_id = in->wr_id, .sges = (const struct roci_sge *)in->sg_list, .num_sge = (unsigned)in->num_sge};
	return 0;
}

/* `qp` or `srq` is NULL. */
static int post_recv(struct vb_context *ctx, struct roci_qp *qp, struct roci_srq *srq, struct ibv_recv_wr *wr,
		     struct ibv_recv_wr **bad_wr)
{
	int err = 0;

	roci_device_lock_post(ctx->dev);
	for (; wr; wr = wr->next) {
		struct roci_recv_wr inner;
		err = translate_recv(wr, &inner);
		if (!err)
			err = srq ? -roci_srq_post(srq, &inner) : -roci_qp_post_recv(qp, &inner);
		if (err)
			break;
	}
	roci_device_unlock_quiet(ctx->dev);
	if (err && bad_wr)
		*bad_wr = wr;
	return err;
}

VERB_DEFINE(3, vb_post_recv, struct ibv_qp *, ibqp, struct ibv_recv_wr *, wr, struct ibv_recv_wr **, bad_wr)
{
	return post_recv(vb_context(ibqp->context), vb_qp(ibqp)->engine, NULL, wr, bad_wr);
}

VERB_DEFINE(3, vb_post_srq_recv, struct ibv_srq *, ibsrq, struct ibv_recv_wr *, wr, struct ibv_recv_wr **, bad_wr)
{
	return post_recv(vb_context(ibsrq->context), NULL, ((struct vb_srq *)ibsrq)->engine, wr, bad_wr);
}
