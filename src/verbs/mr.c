/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory regions. */
#include <errno.h>
#include <stdlib.h>

#include "engine/why.h"
#include "verbs/mr.h"
#include "verbs/range.h"
#include "verbs/pd.h"

static atomic_uint live_mrs;
static atomic_uint next_handle = 1;

/* Flags of the optional range only permit something, and are ignored. HUGETLB is a promise of the program. */
#define KNOWN_ACCESS                                                                                                   \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |        \
	 IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB |                      \
	 IBV_ACCESS_OPTIONAL_RANGE | IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT)
#define ENGINE_ACCESS                                                                                                  \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |        \
	 IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_FLUSH_GLOBAL)

#define SAME(x)                                                                                                        \
	_Static_assert((int)ROCI_ACCESS_##x == (int)IBV_ACCESS_##x, "the engine's access bits are those of verbs.h")
SAME(LOCAL_WRITE);
SAME(REMOTE_WRITE);
SAME(REMOTE_READ);
SAME(REMOTE_ATOMIC);
SAME(MW_BIND);
SAME(ZERO_BASED);
SAME(FLUSH_GLOBAL);

static int check_access(unsigned access)
{
	if (access & ~(unsigned)KNOWN_ACCESS)
		return ROCI_REFUSE(EINVAL, "access 0x%x: 0x%x is unknown", access, access & ~(unsigned)KNOWN_ACCESS);
	/* A region has all its pages. On-demand paging, which ibv_query_device_ex() does not announce, allows holes. */
	if (access & IBV_ACCESS_ON_DEMAND)
		return ROCI_REFUSE(EOPNOTSUPP, "access 0x%x: roci0 has no IBV_ACCESS_ON_DEMAND", access);
	/* The device does not announce persistence either. */
	if (access & IBV_ACCESS_FLUSH_PERSISTENT)
		return ROCI_REFUSE(EOPNOTSUPP, "access 0x%x: roci0 has no IBV_ACCESS_FLUSH_PERSISTENT", access);
	/* IBTA 10.6.3.1: remote write and atomic need local write. */
	if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) && !(access & IBV_ACCESS_LOCAL_WRITE))
		return ROCI_REFUSE(
			EINVAL, "access 0x%x: IBV_ACCESS_REMOTE_WRITE and _ATOMIC need IBV_ACCESS_LOCAL_WRITE", access);
	return 0;
}

/* An empty region is allowed, wherever it lies: no access fits in it. */
static int check_range(void *addr, size_t length, uint64_t iova, unsigned access)
{
	int err;

	if (iova + length < iova)
		return ROCI_REFUSE(EINVAL, "iova 0x%llx + length %zu overflow", (unsigned long long)iova, length);
	err = length ? vb_range_check(addr, length, access & IBV_ACCESS_LOCAL_WRITE) : 0;
	return err ? ROCI_REFUSE(err, "addr %p, length %zu: not all of it is memory that may be %s", addr, length,
				 access & IBV_ACCESS_LOCAL_WRITE ? "written" : "read")
		   : 0;
}

uint32_t vb_mr_draw_key(void)
{
	uint32_t key;
	do {
		key = roci_random32();
	} while (key < 256);
	return key;
}

static int mr_create(struct vb_context *ctx, struct vb_mr *mr, struct roci_mr_attr *attr)
{
	int err;
	struct roci_engine *e = roci_device_lock(ctx->dev);
	do {
		attr->key = vb_mr_draw_key();
		err = -roci_mr_create(e, attr, &mr->engine);
	} while (err == EEXIST);
	if (!err) {
		roci_list_append(&ctx->objects[VB_MR], &mr->object);
		roci_device_publish_mr(ctx->dev, attr);
	}
	roci_device_unlock(ctx->dev);
	return err;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	if (!vb_is_pd(pd))
		return vb_null(EINVAL);
	int err = check_access(access);
	if (access & IBV_ACCESS_ZERO_BASED)
		iova = 0;
	if (!err)
		err = check_range(addr, length, iova, access);
	if (err)
		return vb_null(err);
	if (!vb_quota_take(&live_mrs, ROCI_MAX_MR))
		return vb_null(ENOMEM);

	err = ENOMEM;
	struct vb_mr *mr = calloc(1, sizeof(*mr));
	if (!mr)
		goto err_quota;
	struct roci_mr_attr attr = {
		.pd = vb_pd_number(pd), .base = addr, .iova = iova, .len = length, .access = access & ENGINE_ACCESS};
	err = mr_create(vb_context(pd->context), mr, &attr);
	if (err)
		goto err_free;
	mr->iova = iova;
	mr->access = access;
	mr->mr = (struct ibv_mr){
		.context = pd->context,
		.pd = pd,
		.addr = addr,
		.length = length,
		.handle = atomic_fetch_add(&next_handle, 1),
		.lkey = roci_mr_key(mr->engine),
		.rkey = roci_mr_key(mr->engine),
	};
	vb_pd_get(pd);
	return &mr->mr;

err_free:
	free(mr);
err_quota:
	vb_quota_give(&live_mrs);
	return vb_null(err);
}

ALSO_1_0(ibv_reg_mr);
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, (unsigned)access);
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, iova, (unsigned)access);
}

/* What peers on this host know of the region. */
static struct roci_mr_attr published(const struct vb_mr *mr)
{
	return (struct roci_mr_attr){.key = mr->mr.rkey, .base = mr->mr.addr, .len = mr->mr.length};
}

int vb_mr_destroy_engine(struct vb_context *ctx, struct vb_mr *mr)
{
	struct roci_mr_attr attr = published(mr);
	int err = -roci_mr_destroy(mr->engine);

	if (!err)
		roci_device_revoke_mr(ctx->dev, &attr);
	return err;
}

ALSO_1_0(ibv_dereg_mr);
VERB_DEFINE(1, ibv_dereg_mr, struct ibv_mr *, ibmr)
{
	if (!ibmr || !vb_is_ours(ibmr->context))
		return EINVAL;
	struct vb_mr *mr = (struct vb_mr *)ibmr;
	struct vb_context *ctx = vb_context(ibmr->context);
	if (ctx->dev) {
		roci_device_lock(ctx->dev);
		int err = vb_mr_destroy_engine(ctx, mr);
		if (!err)
			roci_list_remove(&mr->object);
		roci_device_unlock(ctx->dev);
		if (err)
			return err;
	}
	vb_pd_put(ibmr->pd);
	vb_quota_give(&live_mrs);
	free(mr);
	return 0;
}

/* ---- changing ---- */

static int rereg_check(const struct vb_mr *mr, int flags, struct ibv_pd *pd, const struct roci_mr_attr *attr,
		       unsigned access)
{
	if (!flags || (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED))
		return ROCI_REFUSE(EINVAL, "flags 0x%x: bits of 0x%x are allowed, at least one", (unsigned)flags,
				   (unsigned)IBV_REREG_MR_FLAGS_SUPPORTED);
	if ((flags & IBV_REREG_MR_CHANGE_PD) && (!vb_is_pd(pd) || pd->context != mr->mr.context))
		return ROCI_REFUSE(EINVAL, "pd is NULL or of another context than the region");
	int err = check_access(access);
	if (!err && (flags & (IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS)))
		err = check_range(attr->base, attr->len, attr->iova, access);
	return err;
}

static int rereg_refused(int err)
{
	roci_verbs_refused("ibv_rereg_mr", err);
	return IBV_REREG_MR_ERR_INPUT;
}

/* A failure leaves the region as it was, so its code is always IBV_REREG_MR_ERR_INPUT. */
int ibv_rereg_mr(struct ibv_mr *ibmr, int flags, struct ibv_pd *pd, void *addr, size_t length, int access)
{
	struct vb_mr *mr = (struct vb_mr *)ibmr;
	if (!ibmr || !vb_is_context(ibmr->context))
		return rereg_refused(EINVAL);
	struct vb_context *ctx = vb_context(ibmr->context);
	bool move = flags & IBV_REREG_MR_CHANGE_TRANSLATION;
	unsigned new_access = flags & IBV_REREG_MR_CHANGE_ACCESS ? (unsigned)access : mr->access;
	struct roci_mr_attr attr = {
		.key = ibmr->lkey,
		.base = move ? addr : ibmr->addr,
		.len = move ? length : ibmr->length,
		.access = new_access & ENGINE_ACCESS,
	};
	attr.iova = !move ? mr->iova : new_access & IBV_ACCESS_ZERO_BASED ? 0 : (uintptr_t)addr;
	int err = rereg_check(mr, flags, pd, &attr, new_access);
	if (err)
		return rereg_refused(err);
	struct ibv_pd *new_pd = flags & IBV_REREG_MR_CHANGE_PD ? pd : ibmr->pd;
	attr.pd = vb_pd_number(new_pd);

	struct roci_mr_attr old = published(mr);
	roci_device_lock(ctx->dev);
	err = -roci_mr_change(mr->engine, &attr);
	if (!err) {
		roci_device_revoke_mr(ctx->dev, &old);
		roci_device_publish_mr(ctx->dev, &attr);
	}
	roci_device_unlock(ctx->dev);
	if (err)
		return rereg_refused(err);
	vb_pd_get(new_pd);
	vb_pd_put(ibmr->pd);
	ibmr->pd = new_pd;
	ibmr->addr = attr.base;
	ibmr->length = attr.len;
	mr->iova = attr.iova;
	mr->access = new_access;
	return 0;
}

/* ---- advice ---- */

/* Finds the memory of an SGE. Errors as in ibv_advise_mr(3). Device lock held. */
static int advise_find(struct vb_context *ctx, const struct ibv_pd *pd, const struct ibv_sge *sge, bool write,
		       void **addr)
{
	const struct roci_list *objects = &ctx->objects[VB_MR];
	for (struct roci_list *object = objects->next; object != objects; object = object->next) {
		const struct vb_mr *mr = roci_container_of(object, struct vb_mr, object);
		if (mr->mr.lkey != sge->lkey)
			continue;
		if (vb_pd_number(mr->mr.pd) != vb_pd_number(pd))
			return ROCI_REFUSE(EPERM, "lkey 0x%x is of a region in another PD", sge->lkey);
		if (write && !(mr->access & IBV_ACCESS_LOCAL_WRITE))
			return ROCI_REFUSE(EPERM, "lkey 0x%x lacks IBV_ACCESS_LOCAL_WRITE", sge->lkey);
		uint64_t offset = sge->addr - mr->iova;
		if (offset > mr->mr.length || sge->length > mr->mr.length - offset)
			return ROCI_REFUSE(EFAULT, "addr 0x%llx, length %u leave the region of lkey 0x%x",
					   (unsigned long long)sge->addr, sge->length, sge->lkey);
		*addr = (char *)mr->mr.addr + offset;
		return 0;
	}
	return ROCI_REFUSE(ENOENT, "lkey 0x%x is of no region", sge->lkey);
}

/* Prefetching brings back pages that were swapped out after the registration. */
VERB_DEFINE(5, vb_advise_mr, struct ibv_pd *, pd, enum ibv_advise_mr_advice, advice, uint32_t, flags, struct ibv_sge *,
	    sg_list, uint32_t, num_sge)
{
	if (!vb_is_pd(pd) || !sg_list)
		return EINVAL;
	if ((flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH) || !num_sge)
		return ROCI_REFUSE(EINVAL,
				   "flags 0x%x, num_sge %u: IBV_ADVISE_MR_FLAG_FLUSH, and 1 or more, are allowed",
				   flags, num_sge);
	if (advice != IBV_ADVISE_MR_ADVICE_PREFETCH && advice != IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE &&
	    advice != IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return ROCI_REFUSE(EOPNOTSUPP, "advice %d: roci0 has the three kinds of IBV_ADVISE_MR_ADVICE_PREFETCH",
				   (int)advice);
	bool write = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	struct vb_context *ctx = vb_context(pd->context);
	for (uint32_t i = 0; i < num_sge; i++) {
		void *addr;
		roci_device_lock(ctx->dev);
		int err = advise_find(ctx, pd, &sg_list[i], write, &addr);
		roci_device_unlock(ctx->dev);
		if (err)
			return err;
		if (!sg_list[i].length || advice == IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
			continue;
		err = vb_range_check(addr, sg_list[i].length, write);
		if (err)
			return ROCI_REFUSE(err, "sg_list[%u]: %u bytes at %p are not all there any more", i,
					   sg_list[i].length, addr);
	}
	return 0;
}
