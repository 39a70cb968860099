/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs: creating and destroying them. */
#include <errno.h>
#include <stdlib.h>

#include "engine/why.h"
#include "verbs/cq.h"
#include "verbs/keepalive.h"
#include "verbs/pd.h"
#include "verbs/qp.h"

static atomic_uint live_qps;

#define OPS_UD (IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)
#define OPS_UC                                                                                                         \
	(OPS_UD | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_BIND_MW |            \
	 IBV_QP_EX_WITH_LOCAL_INV)
#define OPS_RC                                                                                                         \
	(OPS_UC | IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |        \
	 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_ATOMIC_WRITE | IBV_QP_EX_WITH_FLUSH)

static int check_type(enum ibv_qp_type type)
{
	switch ((int)type) {
	case IBV_QPT_RC:
	case IBV_QPT_UC:
	case IBV_QPT_UD: return 0;
	case IBV_QPT_RAW_PACKET:
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
	case IBV_QPT_DRIVER: return ROCI_REFUSE(EOPNOTSUPP, "qp_type %d: roci0 has IBV_QPT_RC, UC and UD", (int)type);
	default: return ROCI_REFUSE(EINVAL, "qp_type %d is unknown", (int)type);
	}
}

static int check_most(const char *field, uint32_t value, uint32_t most)
{
	return value > most ? ROCI_REFUSE(EINVAL, "%s %u: at most %u", field, value, most) : 0;
}

/* The engine checks its limits, too. Checked here first: larger values would overflow in its arithmetic. */
static int check_cap(const struct ibv_qp_cap *cap, bool has_srq)
{
	int err = check_most("cap.max_send_wr", cap->max_send_wr, ROCI_MAX_QP_WR);

	err = err ? err : check_most("cap.max_send_sge", cap->max_send_sge, ROCI_MAX_SGE);
	err = err ? err : check_most("cap.max_inline_data", cap->max_inline_data, ROCI_MAX_INLINE);
	if (has_srq)
		return err;
	err = err ? err : check_most("cap.max_recv_wr", cap->max_recv_wr, ROCI_MAX_QP_WR);
	return err ? err : check_most("cap.max_recv_sge", cap->max_recv_sge, ROCI_MAX_SGE);
}

static int check_attr(const struct ibv_pd *pd, const struct ibv_qp_init_attr_ex *attr)
{
	int err = check_type(attr->qp_type);
	if (err)
		return err;
	if (!vb_is_cq(attr->send_cq) || attr->send_cq->context != pd->context)
		return ROCI_REFUSE(EINVAL, "send_cq %p is no CQ of the PD's context", (void *)attr->send_cq);
	if (!vb_is_cq(attr->recv_cq) || attr->recv_cq->context != pd->context)
		return ROCI_REFUSE(EINVAL, "recv_cq %p is no CQ of the PD's context", (void *)attr->recv_cq);
	if (attr->srq && attr->srq->context != pd->context)
		return ROCI_REFUSE(EINVAL, "srq %p is of another context than the PD", (void *)attr->srq);
	return check_cap(&attr->cap, attr->srq);
}

static int check_attr_ex(const struct ibv_qp_init_attr_ex *attr)
{
	const uint32_t known =
		IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS | (uint32_t)IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	if (attr->comp_mask & ~known)
		return ROCI_REFUSE(EOPNOTSUPP, "comp_mask 0x%x: roci0 does not have 0x%x", attr->comp_mask,
				   attr->comp_mask & ~known);
	if ((attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) && attr->create_flags)
		return ROCI_REFUSE(EOPNOTSUPP, "create_flags 0x%x: roci0 has none", attr->create_flags);
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS))
		return 0;
	uint64_t can = attr->qp_type == IBV_QPT_RC ? OPS_RC : attr->qp_type == IBV_QPT_UC ? OPS_UC : OPS_UD;
	return attr->send_ops_flags & ~can
		       ? ROCI_REFUSE(EOPNOTSUPP, "send_ops_flags 0x%llx: this type of QP does not have 0x%llx",
				     (unsigned long long)attr->send_ops_flags,
				     (unsigned long long)(attr->send_ops_flags & ~can))
		       : 0;
}

static int qp_create_engine(struct vb_context *ctx, struct vb_qp *qp, const struct ibv_pd *pd,
			    const struct ibv_qp_init_attr_ex *attr)
{
	struct roci_qp_init init = {
		.type = (enum roci_qp_type)attr->qp_type,
		.pd = vb_pd_number(pd),
		.send_cq = ((struct vb_cq *)attr->send_cq)->engine,
		.recv_cq = ((struct vb_cq *)attr->recv_cq)->engine,
		.srq = attr->srq ? ((struct vb_srq *)attr->srq)->engine : NULL,
		.cap = {.max_send_wr = attr->cap.max_send_wr,
			.max_recv_wr = attr->srq ? 0 : attr->cap.max_recv_wr,
			.max_send_sge = attr->cap.max_send_sge,
			.max_recv_sge = attr->srq ? 0 : attr->cap.max_recv_sge,
			.max_inline = attr->cap.max_inline_data},
		.sq_sig_all = attr->sq_sig_all,
		.user = qp,
	};
	if (init.type == ROCI_QPT_RC)
		init.secret = (uint64_t)roci_random32() << 32 | roci_random32();
	struct roci_engine *e = roci_device_lock(ctx->dev);
	int err = -roci_device_alloc_qpn(ctx->dev, &init.qpn);
	if (!err) {
		err = -roci_qp_create(e, &init, &qp->engine);
		if (err)
			roci_device_free_qpn(ctx->dev, init.qpn);
		else
			roci_list_append(&ctx->objects[VB_QP], &qp->object);
	}
	roci_device_unlock(ctx->dev);
	qp->cap = init.cap;
	qp->ex.qp_base.qp_num = init.qpn;
	return err;
}

static struct ibv_qp *qp_create(struct ibv_pd *pd, struct ibv_qp_init_attr_ex *attr, bool has_ex)
{
	const char *call = has_ex ? "ibv_create_qp_ex" : "ibv_create_qp";
	int err = check_attr(pd, attr);
	if (err)
		return vb_null_in(call, err);
	if (!vb_quota_take(&live_qps, ROCI_MAX_QP))
		return vb_null_in(call, ROCI_REFUSE(ENOMEM, "max_qp %u: as many QPs exist", ROCI_MAX_QP));
	err = ENOMEM;
	struct vb_qp *qp = calloc(1, sizeof(*qp));
	if (!qp)
		goto err_quota;
	roci_list_init(&qp->groups);
	err = qp_create_engine(vb_context(pd->context), qp, pd, attr);
	if (err)
		goto err_free;

	struct ibv_qp *base = &qp->ex.qp_base;
	base->context = pd->context;
	base->qp_context = attr->qp_context;
	base->pd = pd;
	base->send_cq = attr->send_cq;
	base->recv_cq = attr->recv_cq;
	base->srq = attr->srq;
	base->handle = base->qp_num;
	base->state = IBV_QPS_RESET;
	base->qp_type = attr->qp_type;
	pthread_mutex_init(&base->mutex, NULL);
	pthread_cond_init(&base->cond, NULL);
	qp->sq_sig_all = attr->sq_sig_all;
	qp->has_ex = has_ex;
	qp->send_ops = has_ex ? attr->send_ops_flags : 0;
	vb_builder_init(qp);
	vb_pd_get(pd);
	attr->cap = (struct ibv_qp_cap){qp->cap.max_send_wr, qp->cap.max_recv_wr, qp->cap.max_send_sge,
					qp->cap.max_recv_sge, qp->cap.max_inline};
	return base;

err_free:
	free(qp);
err_quota:
	vb_quota_give(&live_qps);
	return vb_null_in(call, err);
}

ALSO_1_0(ibv_create_qp);
struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	if (!vb_is_pd(pd) || !attr)
		return vb_null(EINVAL);
	struct ibv_qp_init_attr_ex ex = {.comp_mask = IBV_QP_INIT_ATTR_PD, .pd = pd};
	memcpy(&ex, attr, sizeof(*attr)); /* the extended structure starts with the plain one */
	struct ibv_qp *qp = qp_create(pd, &ex, false);
	if (qp)
		attr->cap = ex.cap;
	return qp;
}

struct ibv_qp *vb_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	if (!vb_is_context(context) || !attr)
		return vb_null(EINVAL);
	int err = check_type(attr->qp_type); /* first, because an XRC QP has no PD */
	if (!err)
		err = check_attr_ex(attr);
	if (!err && (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !vb_is_pd(attr->pd) || attr->pd->context != context))
		err = ROCI_REFUSE(EINVAL, "pd is missing in comp_mask, or is NULL or of another context");
	if (err)
		return vb_null(err);
	return qp_create(attr->pd, attr, attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS);
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	if (!vb_is_qp(qp) || !vb_qp(qp)->has_ex)
		return vb_null(ROCI_REFUSE(EOPNOTSUPP, "the QP was made without IBV_QP_INIT_ATTR_SEND_OPS_FLAGS"));
	return &vb_qp(qp)->ex;
}

static void qp_destroy_engine(struct vb_context *ctx, struct vb_qp *qp)
{
	struct vb_cq *send_cq = (struct vb_cq *)qp->ex.qp_base.send_cq;
	struct vb_cq *recv_cq = (struct vb_cq *)qp->ex.qp_base.recv_cq;
	uint32_t qpn = qp->ex.qp_base.qp_num;
	vb_cq_lock_consumers(send_cq, recv_cq);
	roci_device_lock(ctx->dev);
	roci_qp_destroy(qp->engine);
	qp->engine = NULL;
	roci_cq_purge(send_cq->engine, qpn);
	if (recv_cq != send_cq)
		roci_cq_purge(recv_cq->engine, qpn);
	roci_device_free_qpn(ctx->dev, qpn);
	roci_list_remove(&qp->object);
	roci_device_unlock(ctx->dev);
	vb_cq_unlock_consumers(send_cq, recv_cq);
	vb_async_purge(&ctx->async, qp);
}

void roci_verbs_keepalive(struct ibv_qp *ibqp, uint64_t interval_ns)
{
	struct vb_context *ctx = vb_context(ibqp->context);

	roci_device_lock(ctx->dev);
	roci_qp_keepalive(vb_qp(ibqp)->engine, roci_now(), interval_ns);
	roci_device_unlock(ctx->dev);
}

ALSO_1_0(ibv_destroy_qp);
VERB_DEFINE(1, ibv_destroy_qp, struct ibv_qp *, ibqp)
{
	if (!ibqp || !vb_is_ours(ibqp->context))
		return EINVAL;
	struct vb_qp *qp = vb_qp(ibqp);
	struct vb_context *ctx = vb_context(ibqp->context);
	if (ctx->dev && qp->engine && vb_mcast_joined(qp))
		return ROCI_REFUSE(EBUSY, "the QP is in a multicast group: call ibv_detach_mcast() first");
	if (ctx->dev && qp->engine)
		qp_destroy_engine(ctx, qp);
	vb_async_wait_acks(&ibqp->mutex, &ibqp->cond, &ibqp->events_completed, &qp->async_delivered);
	vb_builder_fini(qp);
	pthread_cond_destroy(&ibqp->cond);
	pthread_mutex_destroy(&ibqp->mutex);
	vb_pd_put(ibqp->pd);
	vb_quota_give(&live_qps);
	free(qp);
	return 0;
}
