/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/local/table.h"

#define PLACES 16 /* that a key may have */

static struct roci_local_region *place(struct roci_local_shared *s, uint32_t key, unsigned i)
{
	return &s->regions[((key >> 8) * UINT32_C(0x9e3779b1) / (UINT32_MAX / ROCI_LOCAL_REGIONS + 1) + i) %
			   ROCI_LOCAL_REGIONS];
}

static struct roci_local_region *find(struct roci_local_shared *s, uint32_t key, uint32_t content)
{
	for (unsigned i = 0; i < PLACES; i++)
		if (atomic_load(&place(s, key, i)->key) == content)
			return place(s, key, i);
	return NULL;
}

void roci_local_publish_region(struct roci_local_shared *own, const struct roci_mr_attr *attr)
{
	struct roci_local_region *r = find(own, attr->key, 0);

	if (!r)
		return;
	r->pd = attr->pd;
	r->access = attr->access;
	r->base = (uintptr_t)attr->base;
	r->iova = attr->iova;
	r->len = attr->len;
	atomic_store(&r->key, attr->key);
}

void roci_local_revoke_region(struct roci_local_shared *own, uint32_t key)
{
	struct roci_local_region *r = find(own, key, key);

	if (r)
		atomic_store(&r->key, 0);
}

uint64_t roci_local_find_region(struct roci_local_shared *owner, const struct roci_direct *d)
{
	struct roci_local_qp *qp = &owner->qps[d->dest_qpn % ROCI_QPNS_PER_SLOT];
	uint32_t need = d->read ? ROCI_ACCESS_REMOTE_READ : ROCI_ACCESS_REMOTE_WRITE;
	uint32_t state = atomic_load(&qp->state);
	struct roci_local_region *r;

	if (!(state & ROCI_PUBLISHED) || !(state & need) || qp->peer_qpn != d->qpn || !d->rkey)
		return 0;
	r = find(owner, d->rkey, d->rkey);
	if (!r || r->pd != qp->pd || !(r->access & need))
		return 0;
	if (d->remote_addr < r->iova || d->remote_addr - r->iova > r->len ||
	    d->len > r->len - (d->remote_addr - r->iova))
		return 0;
	return r->base + (d->remote_addr - r->iova);
}

bool roci_local_is_first(struct roci_local_shared *owner, uint32_t qpn)
{
	_Atomic uint32_t *state = &owner->qps[qpn % ROCI_QPNS_PER_SLOT].state;

	return (atomic_load_explicit(state, memory_order_relaxed) & ROCI_PUBLISHED_NEW) &&
	       (atomic_fetch_and(state, ~ROCI_PUBLISHED_NEW) & ROCI_PUBLISHED_NEW);
}
