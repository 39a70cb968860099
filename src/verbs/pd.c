/* SPDX-License-Identifier: BSD-2-Clause */
/* Protection domains, thread domains and parent domains. */
#include <errno.h>
#include <stdlib.h>

#include "engine/why.h"
#include "verbs/pd.h"

static atomic_uint live_pds;
static atomic_uint next_number = 1;

static struct vb_pd *pd_new(struct ibv_context *context)
{
	if (!vb_quota_take(&live_pds, ROCI_MAX_PD))
		return NULL;
	struct vb_pd *pd = calloc(1, sizeof(*pd));
	if (!pd) {
		vb_quota_give(&live_pds);
		return NULL;
	}
	pd->pd.context = context;
	vb_context_get(context);
	pd->base = pd;
	pd->number = atomic_fetch_add(&next_number, 1);
	pd->pd.handle = pd->number;
	return pd;
}

ALSO_1_0(ibv_alloc_pd);
struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	if (!vb_is_context(context))
		return vb_null(EINVAL);
	struct vb_pd *pd = pd_new(context);
	return pd ? &pd->pd : vb_null(ENOMEM);
}

ALSO_1_0(ibv_dealloc_pd);
VERB_DEFINE(1, ibv_dealloc_pd, struct ibv_pd *, ibpd)
{
	if (!ibpd || !vb_is_ours(ibpd->context))
		return EINVAL;
	struct vb_pd *pd = (struct vb_pd *)ibpd;
	if (atomic_load(&pd->users))
		return ROCI_REFUSE(EBUSY, "%u objects of the PD exist: QPs, SRQs, regions, windows or address handles",
				   (unsigned)atomic_load(&pd->users));
	if (pd->base != pd)
		vb_pd_put(&pd->base->pd);
	if (pd->td)
		atomic_fetch_sub(&pd->td->users, 1);
	vb_context_put(ibpd->context);
	free(pd);
	vb_quota_give(&live_pds);
	return 0;
}

/* The program promises that one thread at a time uses the objects made with it. It changes nothing here: locks without
 * contention are cheap. */
struct ibv_td *vb_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
	if (!vb_is_context(context) || !attr)
		return vb_null(EINVAL);
	if (attr->comp_mask)
		return vb_null(ROCI_REFUSE(EINVAL, "comp_mask 0x%x: 0 is allowed", attr->comp_mask));
	struct vb_td *td = calloc(1, sizeof(*td));
	if (!td)
		return vb_null(ENOMEM);
	td->td.context = context;
	vb_context_get(context);
	return &td->td;
}

VERB_DEFINE(1, vb_dealloc_td, struct ibv_td *, td)
{
	if (!td)
		return EINVAL;
	if (atomic_load(&((struct vb_td *)td)->users))
		return ROCI_REFUSE(EBUSY, "%u parent domains have it",
				   (unsigned)atomic_load(&((struct vb_td *)td)->users));
	vb_context_put(td->context);
	free(td);
	return 0;
}

/* Allocators of the program are refused, because the engine allocates the queues. */
struct ibv_pd *vb_alloc_parent_domain(struct ibv_context *context, struct ibv_parent_domain_init_attr *attr)
{
	const uint32_t known =
		IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | (uint32_t)IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
	if (!vb_is_context(context) || !attr || !vb_is_pd(attr->pd) || attr->pd->context != context)
		return vb_null(EINVAL);
	if ((attr->comp_mask & ~known) || (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS))
		return vb_null(ROCI_REFUSE(EOPNOTSUPP, "comp_mask 0x%x: roci0 takes no allocators of the program",
					   attr->comp_mask));
	if (attr->td && attr->td->context != context)
		return vb_null(ROCI_REFUSE(EINVAL, "td is of another context"));

	struct vb_pd *pd = pd_new(context);
	if (!pd)
		return vb_null(ENOMEM);
	pd->base = ((struct vb_pd *)attr->pd)->base;
	vb_pd_get(&pd->base->pd);
	pd->td = (struct vb_td *)attr->td;
	if (pd->td)
		atomic_fetch_add(&pd->td->users, 1);
	return &pd->pd;
}
