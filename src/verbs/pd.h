/* SPDX-License-Identifier: BSD-2-Clause */
/* Protection domains, thread domains and parent domains. */
#ifndef ROCI_VERBS_PD_H
#define ROCI_VERBS_PD_H

#include "verbs/context.h"

struct vb_td {
	struct ibv_td td;
	atomic_uint users; /* parent domains */
};

struct vb_pd {
	struct ibv_pd pd;
	struct vb_pd *base; /* the PD whose number counts: itself, or the PD of a parent domain */
	struct vb_td *td;   /* of a parent domain, or NULL */
	uint32_t number;
	atomic_uint users; /* objects made in it, and its parent domains */
};

static inline uint32_t vb_pd_number(const struct ibv_pd *pd)
{
	return ((const struct vb_pd *)pd)->base->number;
}
static inline void vb_pd_get(struct ibv_pd *pd)
{
	atomic_fetch_add(&((struct vb_pd *)pd)->users, 1);
}
static inline void vb_pd_put(struct ibv_pd *pd)
{
	atomic_fetch_sub(&((struct vb_pd *)pd)->users, 1);
}
/* True for a PD of this device; false for NULL. */
static inline bool vb_is_pd(const struct ibv_pd *pd)
{
	return pd && vb_is_context(pd->context);
}

/* ---- entries of struct verbs_context ---- */

struct ibv_td *vb_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr);
int vb_dealloc_td(struct ibv_td *td);
struct ibv_pd *vb_alloc_parent_domain(struct ibv_context *context, struct ibv_parent_domain_init_attr *attr);

#endif
