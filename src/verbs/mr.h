/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory regions (mr.c, range.c) and memory windows (mw.c). */
#ifndef ROCI_VERBS_MR_H
#define ROCI_VERBS_MR_H

#include "engine/engine.h"
#include "engine/list.h"
#include "verbs/public.h"

struct vb_mr {
	struct ibv_mr mr;
	struct roci_list object; /* node of its context */
	struct roci_mr *engine;
	uint64_t iova;
	unsigned access;
};
struct vb_mw {
	struct ibv_mw mw;
	struct roci_list object; /* node of its context */
	struct roci_mw *engine;
};

struct vb_context;
/* Destroys it in the engine. When this returns, no peer reaches it. EBUSY: a window is bound. Device lock held. */
int vb_mr_destroy_engine(struct vb_context *ctx, struct vb_mr *mr);

/* A random key that differs from 0 in its upper 24 bits: the lower 8 are the variant, which programs change. */
uint32_t vb_mr_draw_key(void);
/* Fills wr->bind. EINVAL: NULL, or objects of another context. */
int vb_mw_translate_bind(struct ibv_qp *qp, struct ibv_mw *mw, uint32_t rkey, const struct ibv_mw_bind_info *info,
			 struct roci_send_wr *wr);
/* A bind to `rkey` was posted: mw->rkey is the key that it gives. */
void vb_mw_posted(struct ibv_mw *mw, uint32_t rkey);

/* ---- entries of struct verbs_context ---- */

int vb_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags, struct ibv_sge *sg_list,
		 uint32_t num_sge);
struct ibv_mw *vb_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int vb_dealloc_mw(struct ibv_mw *mw);
int vb_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);

#endif
