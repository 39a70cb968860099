/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What objects answer whose context is closed. Some programs destroy objects after their context, and some call
 * functions that go by pointers in the context, the CQ or the QP.
 */
#include <errno.h>

#include "verbs/cq.h"
#include "verbs/qp.h"

static int refuse(const char *call)
{
	ROCI_WHY("the context is closed");
	roci_verbs_refused(call, EINVAL);
	return EINVAL;
}

static int poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc)
{
	return -refuse("ibv_poll_cq");
}

static int req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	return refuse("ibv_req_notify_cq");
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	*bad_wr = wr;
	return refuse("ibv_post_send");
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	*bad_wr = wr;
	return refuse("ibv_post_recv");
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	*bad_wr = wr;
	return refuse("ibv_post_srq_recv");
}

static int start_poll(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
	return refuse("ibv_start_poll");
}

static int wr_complete(struct ibv_qp_ex *qp)
{
	qp->wr_abort(qp);
	return refuse("ibv_wr_complete");
}

void vb_context_refuse_calls(struct vb_context *ctx)
{
	struct ibv_context_ops *ops = &ctx->vctx.context.ops;

	ops->poll_cq = poll_cq;
	ops->req_notify_cq = req_notify_cq;
	ops->post_send = post_send;
	ops->post_recv = post_recv;
	ops->post_srq_recv = post_srq_recv;
	for (struct roci_list *l = ctx->objects[VB_CQ].next; l != &ctx->objects[VB_CQ]; l = l->next)
		roci_container_of(l, struct vb_cq, object)->ex.start_poll = start_poll;
	for (struct roci_list *l = ctx->objects[VB_QP].next; l != &ctx->objects[VB_QP]; l = l->next)
		roci_container_of(l, struct vb_qp, object)->ex.wr_complete = wr_complete;
}
