/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queues. */
#include <errno.h>
#include <stdlib.h>

#include "engine/why.h"
#include "verbs/pd.h"
#include "verbs/qp.h"

static atomic_uint live_srqs;
static atomic_uint next_handle = 1;

ALSO_1_0(ibv_create_srq);
/* The limit is ignored at creation: IBTA 11.2.3.1. */
struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
	if (!vb_is_pd(pd) || !init)
		return vb_null(EINVAL);
	if (init->attr.max_wr < 1 || init->attr.max_wr > ROCI_MAX_SRQ_WR || init->attr.max_sge > ROCI_MAX_SGE)
		return vb_null(ROCI_REFUSE(EINVAL, "max_wr %u, max_sge %u: 1 to %d, and at most %d, are allowed",
					   init->attr.max_wr, init->attr.max_sge, ROCI_MAX_SRQ_WR, ROCI_MAX_SGE));
	if (!vb_quota_take(&live_srqs, ROCI_MAX_SRQ))
		return vb_null(ENOMEM);
	int err = ENOMEM;
	struct vb_srq *srq = calloc(1, sizeof(*srq));
	if (!srq)
		goto err_quota;

	struct vb_context *ctx = vb_context(pd->context);
	struct roci_engine *e = roci_device_lock(ctx->dev);
	err = -roci_srq_create(e, vb_pd_number(pd), init->attr.max_wr, init->attr.max_sge, srq, &srq->engine);
	if (!err) {
		roci_list_append(&ctx->objects[VB_SRQ], &srq->object);
		roci_srq_query(srq->engine, &init->attr.max_wr, &init->attr.max_sge, &init->attr.srq_limit);
	}
	roci_device_unlock(ctx->dev);
	if (err)
		goto err_free;

	srq->srq.context = pd->context;
	srq->srq.srq_context = init->srq_context;
	srq->srq.pd = pd;
	srq->srq.handle = atomic_fetch_add(&next_handle, 1);
	pthread_mutex_init(&srq->srq.mutex, NULL);
	pthread_cond_init(&srq->srq.cond, NULL);
	vb_pd_get(pd);
	return &srq->srq;

err_free:
	free(srq);
err_quota:
	vb_quota_give(&live_srqs);
	return vb_null(err);
}

/* Basic SRQs only: XRC and tag matching are not supported. */
struct ibv_srq *vb_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
	if (!vb_is_context(context) || !attr)
		return vb_null(EINVAL);
	if ((attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) && attr->srq_type != IBV_SRQT_BASIC)
		return vb_null(ROCI_REFUSE(attr->srq_type <= IBV_SRQT_TM ? EOPNOTSUPP : EINVAL,
					   "srq_type %d: roci0 has IBV_SRQT_BASIC only", (int)attr->srq_type));
	if (attr->comp_mask >= IBV_SRQ_INIT_ATTR_RESERVED)
		return vb_null(ROCI_REFUSE(EINVAL, "comp_mask 0x%x has an unknown bit", attr->comp_mask));
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !vb_is_pd(attr->pd) || attr->pd->context != context)
		return vb_null(ROCI_REFUSE(EINVAL, "pd is missing in comp_mask, or is NULL or of another context"));
	return ibv_create_srq(attr->pd, (struct ibv_srq_init_attr *)attr);
}

static bool is_srq(const struct ibv_srq *srq)
{
	return srq && vb_is_context(srq->context);
}

ALSO_1_0(ibv_modify_srq);
VERB_DEFINE(3, ibv_modify_srq, struct ibv_srq *, ibsrq, struct ibv_srq_attr *, attr, int, mask)
{
	if (!is_srq(ibsrq) || !attr)
		return EINVAL;
	if (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
		return ROCI_REFUSE(EINVAL, "srq_attr_mask 0x%x: IBV_SRQ_MAX_WR and IBV_SRQ_LIMIT are allowed",
				   (unsigned)mask);
	if ((mask & IBV_SRQ_MAX_WR) && (attr->max_wr < 1 || attr->max_wr > ROCI_MAX_SRQ_WR))
		return ROCI_REFUSE(EINVAL, "max_wr %u: 1 to %d are allowed", attr->max_wr, ROCI_MAX_SRQ_WR);
	struct roci_srq *srq = ((struct vb_srq *)ibsrq)->engine;
	struct vb_context *ctx = vb_context(ibsrq->context);
	roci_device_lock(ctx->dev);
	int err = -roci_srq_modify(srq, mask & IBV_SRQ_MAX_WR ? attr->max_wr : 0,
				   mask & IBV_SRQ_LIMIT ? (long)attr->srq_limit : -1);
	roci_device_unlock(ctx->dev);
	return err;
}

ALSO_1_0(ibv_query_srq);
VERB_DEFINE(2, ibv_query_srq, struct ibv_srq *, ibsrq, struct ibv_srq_attr *, attr)
{
	if (!is_srq(ibsrq) || !attr)
		return EINVAL;
	struct vb_context *ctx = vb_context(ibsrq->context);
	roci_device_lock(ctx->dev);
	roci_srq_query(((struct vb_srq *)ibsrq)->engine, &attr->max_wr, &attr->max_sge, &attr->srq_limit);
	roci_device_unlock(ctx->dev);
	return 0;
}

ALSO_1_0(ibv_destroy_srq);
VERB_DEFINE(1, ibv_destroy_srq, struct ibv_srq *, ibsrq)
{
	if (!ibsrq || !vb_is_ours(ibsrq->context))
		return EINVAL;
	struct vb_srq *srq = (struct vb_srq *)ibsrq;
	struct vb_context *ctx = vb_context(ibsrq->context);
	if (ctx->dev && srq->engine) {
		roci_device_lock(ctx->dev);
		int err = -roci_srq_destroy(srq->engine);
		if (!err) {
			roci_list_remove(&srq->object);
			srq->engine = NULL;
		}
		roci_device_unlock(ctx->dev);
		if (err)
			return err;
		vb_async_purge(&ctx->async, srq);
	}
	vb_async_wait_acks(&ibsrq->mutex, &ibsrq->cond, &ibsrq->events_completed, &srq->async_delivered);
	pthread_cond_destroy(&ibsrq->cond);
	pthread_mutex_destroy(&ibsrq->mutex);
	vb_pd_put(ibsrq->pd);
	vb_quota_give(&live_srqs);
	free(srq);
	return 0;
}
