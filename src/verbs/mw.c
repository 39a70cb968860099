/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory windows: type 1, bound by ibv_bind_mw(), and type 2B, bound by a posted work request. */
#include <errno.h>
#include <stdlib.h>

#include "engine/why.h"
#include "verbs/mr.h"
#include "verbs/pd.h"
#include "verbs/qp.h"

static atomic_uint live_mws;
static atomic_uint next_handle = 1;

static int mw_create(struct vb_context *ctx, struct vb_mw *mw, uint32_t pd, int type)
{
	int err;
	struct roci_engine *e = roci_device_lock(ctx->dev);
	do {
		err = -roci_mw_create(e, pd, type, vb_mr_draw_key(), &mw->engine);
	} while (err == EEXIST);
	if (!err)
		roci_list_append(&ctx->objects[VB_MW], &mw->object);
	roci_device_unlock(ctx->dev);
	return err;
}

struct ibv_mw *vb_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	if (!vb_is_pd(pd))
		return vb_null(EINVAL);
	if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)
		return vb_null(ROCI_REFUSE(EINVAL, "type %d: IBV_MW_TYPE_1 and IBV_MW_TYPE_2 are allowed", (int)type));
	if (!vb_quota_take(&live_mws, ROCI_MAX_MW))
		return vb_null(ENOMEM);
	int err = ENOMEM;
	struct vb_mw *mw = calloc(1, sizeof(*mw));
	if (!mw)
		goto err_quota;
	err = mw_create(vb_context(pd->context), mw, vb_pd_number(pd), type);
	if (err)
		goto err_free;
	mw->mw = (struct ibv_mw){
		.context = pd->context,
		.pd = pd,
		.rkey = roci_mw_rkey(mw->engine),
		.handle = atomic_fetch_add(&next_handle, 1),
		.type = type,
	};
	vb_pd_get(pd);
	return &mw->mw;

err_free:
	free(mw);
err_quota:
	vb_quota_give(&live_mws);
	return vb_null(err);
}

VERB_DEFINE(1, vb_dealloc_mw, struct ibv_mw *, ibmw)
{
	if (!ibmw || !vb_is_ours(ibmw->context))
		return EINVAL;
	struct vb_mw *mw = (struct vb_mw *)ibmw;
	struct vb_context *ctx = vb_context(ibmw->context);
	if (ctx->dev) {
		roci_device_lock(ctx->dev);
		int err = -roci_mw_destroy(mw->engine);
		if (!err)
			roci_list_remove(&mw->object);
		roci_device_unlock(ctx->dev);
		if (err)
			return err;
	}
	vb_pd_put(ibmw->pd);
	vb_quota_give(&live_mws);
	free(mw);
	return 0;
}

int vb_mw_translate_bind(struct ibv_qp *qp, struct ibv_mw *mw, uint32_t rkey, const struct ibv_mw_bind_info *info,
			 struct roci_send_wr *wr)
{
	if (!mw || mw->context != qp->context || (info->mr && info->mr->context != qp->context))
		return ROCI_REFUSE(EINVAL, "window or region is missing, or of another context than the QP");
	if (!info->mr && info->length)
		return ROCI_REFUSE(EINVAL, "bind_info.mr is NULL, and bind_info.length %llu: name the region",
				   (unsigned long long)info->length);
	wr->opcode = ROCI_WR_BIND_MW;
	wr->bind.mw = ((struct vb_mw *)mw)->engine;
	wr->bind.rkey = rkey;
	/* Binding zero bytes unbinds, with or without a region. */
	if (info->length) {
		wr->bind.mr = ((struct vb_mr *)info->mr)->engine;
		wr->bind.addr = info->addr;
		wr->bind.len = info->length;
		/* Programs also set local write here. It belongs to the region: a window is for remote access. */
		wr->bind.access = info->mw_access_flags & ~(unsigned)IBV_ACCESS_LOCAL_WRITE;
	}
	return 0;
}

void vb_mw_posted(struct ibv_mw *mw, uint32_t rkey)
{
	mw->rkey = roci_key_with_variant(mw->rkey, rkey);
}

/* Type 1: the new rkey is ours to choose. */
VERB_DEFINE(3, vb_bind_mw, struct ibv_qp *, qp, struct ibv_mw *, mw, struct ibv_mw_bind *, bind)
{
	if (!vb_is_qp(qp) || !mw || !bind)
		return EINVAL;
	if (mw->type != IBV_MW_TYPE_1)
		return ROCI_REFUSE(EINVAL,
				   "mw->type %d: a window of type 2 is bound by ibv_post_send() (IBV_WR_BIND_MW)",
				   (int)mw->type);
	struct roci_send_wr wr = {
		.wr_id = bind->wr_id,
		.flags = bind->send_flags & (ROCI_SEND_FENCE | ROCI_SEND_SIGNALED),
	};
	uint32_t rkey = ibv_inc_rkey(mw->rkey);
	int err = vb_mw_translate_bind(qp, mw, rkey, &bind->bind_info, &wr);
	if (err)
		return err;
	struct vb_context *ctx = vb_context(qp->context);
	roci_device_lock(ctx->dev);
	err = -roci_qp_post_send(vb_qp(qp)->engine, &wr);
	roci_device_unlock(ctx->dev);
	if (!err)
		vb_mw_posted(mw, rkey);
	return err;
}
