/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/mr.h"

#include <errno.h>
#include <stdlib.h>

#include "engine/internal.h"
#include "engine/why.h"

#define ACCESS_ALL                                                                                                     \
	(ROCI_ACCESS_LOCAL_WRITE | ROCI_ACCESS_REMOTE_WRITE | ROCI_ACCESS_REMOTE_READ | ROCI_ACCESS_REMOTE_ATOMIC |    \
	 ROCI_ACCESS_MW_BIND | ROCI_ACCESS_ZERO_BASED | ROCI_ACCESS_FLUSH_GLOBAL)
#define ACCESS_MW                                                                                                      \
	(ROCI_ACCESS_REMOTE_WRITE | ROCI_ACCESS_REMOTE_READ | ROCI_ACCESS_REMOTE_ATOMIC | ROCI_ACCESS_ZERO_BASED |     \
	 ROCI_ACCESS_FLUSH_GLOBAL)

struct roci_mr {
	struct roci_region region;
	struct roci_engine *e;
	char *base;
	uint64_t iova, len;
	uint32_t access;
	unsigned windows; /* bound here */
};

struct roci_mw {
	struct roci_region region;
	struct roci_engine *e;
	int type;
	struct roci_mr *mr; /* NULL: not bound */
	uint64_t addr, len; /* inside mr */
	uint64_t base_va;   /* the address of its first byte for peers: addr, or 0 if zero-based */
	uint32_t access;
	uint32_t qpn;           /* type 2 */
	struct roci_list bound; /* type 2, while it is bound: in the engine's list */
};

static int insert_region(struct roci_engine *e, struct roci_region *r)
{
	return roci_idmap_insert(&e->regions, r->key >> 8, r);
}

static struct roci_region *find_region(struct roci_engine *e, uint32_t key)
{
	struct roci_region *r = roci_idmap_find(&e->regions, key >> 8);

	return r && r->key == key ? r : NULL;
}

/* `start`, `size` lie in [first, first + len), without overflow. */
static bool in_range(uint64_t start, uint64_t size, uint64_t first, uint64_t len)
{
	return start >= first && start - first <= len && size <= len - (start - first);
}

static int check_mr_attr(const struct roci_mr_attr *attr)
{
	uint32_t needs_write = ROCI_ACCESS_REMOTE_WRITE | ROCI_ACCESS_REMOTE_ATOMIC;

	if (attr->access & ~(uint32_t)ACCESS_ALL)
		return ROCI_REFUSE(-EINVAL, "access 0x%x: 0x%x is unknown", attr->access,
				   attr->access & ~(uint32_t)ACCESS_ALL);
	/* IBTA 10.6.3.1: remote write and atomic need local write. */
	if ((attr->access & needs_write) && !(attr->access & ROCI_ACCESS_LOCAL_WRITE))
		return ROCI_REFUSE(-EINVAL, "access 0x%x: remote write and atomic need IBV_ACCESS_LOCAL_WRITE",
				   attr->access);
	if (attr->len > UINT64_MAX - attr->iova || attr->len > UINT64_MAX - (uint64_t)(uintptr_t)attr->base)
		return ROCI_REFUSE(-EINVAL, "length %llu: the range overflows", (unsigned long long)attr->len);
	return 0;
}

static void fill_mr(struct roci_mr *mr, const struct roci_mr_attr *attr)
{
	mr->region.pd = attr->pd;
	mr->base = attr->base;
	mr->iova = attr->iova;
	mr->len = attr->len;
	mr->access = attr->access;
}

int roci_mr_create(struct roci_engine *e, const struct roci_mr_attr *attr, struct roci_mr **out)
{
	struct roci_mr *mr;
	int err = check_mr_attr(attr);

	if (err)
		return err;
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return -ENOMEM;
	mr->e = e;
	mr->region.kind = REGION_MR;
	mr->region.key = attr->key;
	fill_mr(mr, attr);
	err = insert_region(e, &mr->region);
	if (err) {
		free(mr);
		return err;
	}
	*out = mr;
	return 0;
}

int roci_mr_change(struct roci_mr *mr, const struct roci_mr_attr *attr)
{
	int err = check_mr_attr(attr);

	if (err)
		return err;
	if (mr->windows)
		return ROCI_REFUSE(-EBUSY, "%u memory windows are bound to the region", mr->windows);
	fill_mr(mr, attr);
	return 0;
}

int roci_mr_destroy(struct roci_mr *mr)
{
	if (mr->windows)
		return ROCI_REFUSE(-EBUSY, "%u memory windows are bound to the region", mr->windows);
	roci_idmap_remove(&mr->e->regions, mr->region.key >> 8);
	free(mr);
	return 0;
}

uint32_t roci_mr_key(const struct roci_mr *mr)
{
	return mr->region.key;
}

int roci_mw_create(struct roci_engine *e, uint32_t pd, int type, uint32_t key, struct roci_mw **out)
{
	struct roci_mw *mw;
	int err;

	if (type != 1 && type != 2)
		return -EINVAL;
	mw = calloc(1, sizeof(*mw));
	if (!mw)
		return -ENOMEM;
	mw->e = e;
	mw->type = type;
	mw->region = (struct roci_region){REGION_MW, key, pd};
	err = insert_region(e, &mw->region);
	if (err) {
		free(mw);
		return err;
	}
	*out = mw;
	return 0;
}

/* What peers on the wire have asked for has left. Those on this host fetch it. */
static void unbind(struct roci_mw *mw)
{
	struct roci_mr *mr = mw->mr;

	if (!mr)
		return;
	mr->windows--;
	mw->mr = NULL;
	if (mw->type == 2)
		roci_list_remove(&mw->bound);
	if (mw->e->local)
		mw->e->local->close_window(mw->e->driver, mr->base + (mw->addr - mr->iova), mw->len);
}

int roci_mw_destroy(struct roci_mw *mw)
{
	unbind(mw);
	roci_idmap_remove(&mw->e->regions, mw->region.key >> 8);
	free(mw);
	return 0;
}

uint32_t roci_mw_rkey(const struct roci_mw *mw)
{
	return mw->region.key;
}

static char no_bytes[1];

/* ---- what is wrong, for roci_why_note() ---- */

static bool wrong_key(const char *kind, uint32_t key)
{
	return ROCI_REFUSE(false, "%s 0x%x is of no region: it is wrong, or was deregistered", kind, key);
}

static bool wrong_pd(const char *kind, const struct roci_region *r, uint32_t pd)
{
	return ROCI_REFUSE(false, "%s 0x%x belongs to PD %u, and the QP to PD %u", kind, r->key, r->pd, pd);
}

static bool wrong_rights(const char *kind, const struct roci_region *r, uint32_t has, uint32_t needs)
{
	char have[ROCI_WHY_NAMES], lacks[ROCI_WHY_NAMES];

	return ROCI_REFUSE(false, "%s 0x%x lacks %s (it has: %s)", kind, r->key, roci_access_names(needs & ~has, lacks),
			   roci_access_names(has, have));
}

static bool wrong_range(const char *kind, uint32_t key, uint64_t addr, uint64_t len, uint64_t first, uint64_t size)
{
	return ROCI_REFUSE(false, "%s 0x%x: %llu bytes at 0x%llx leave the region, which has %llu bytes at 0x%llx",
			   kind, key, (unsigned long long)len, (unsigned long long)addr, (unsigned long long)size,
			   (unsigned long long)first);
}

/* ---- the checks ---- */

void *roci_mr_local(struct roci_engine *e, uint32_t pd, uint32_t lkey, uint64_t addr, uint64_t len, uint32_t access)
{
	struct roci_region *r;
	struct roci_mr *mr;

	if (!len)
		return no_bytes;
	r = find_region(e, lkey);
	mr = (struct roci_mr *)r;
	if (!r || r->kind != REGION_MR)
		wrong_key("lkey", lkey);
	else if (r->pd != pd)
		wrong_pd("lkey", r, pd);
	else if (access & ~mr->access)
		wrong_rights("lkey", r, mr->access, access);
	else if (!in_range(addr, len, mr->iova, mr->len))
		wrong_range("lkey", lkey, addr, len, mr->iova, mr->len);
	else
		return mr->base + (addr - mr->iova);
	return NULL;
}

/* The memory behind an rkey: `len` bytes at `base`, which peers address from `va` on. */
struct remote_range {
	char *base;
	uint64_t va, len;
};

/* IBTA 10.6.7.2.3: a type 2B window belongs to one QP, a type 1 window to its PD. */
static bool window_range(const struct roci_mw *mw, uint32_t qpn, uint32_t access, struct remote_range *out)
{
	if (!mw->mr)
		return ROCI_REFUSE(false, "rkey 0x%x is of a memory window that is not bound", mw->region.key);
	if (mw->type == 2 && mw->qpn != qpn)
		return ROCI_REFUSE(false, "rkey 0x%x is of a memory window of QP 0x%x", mw->region.key, mw->qpn);
	if (access & ~mw->access)
		return wrong_rights("rkey", &mw->region, mw->access, access);
	*out = (struct remote_range){mw->mr->base + (mw->addr - mw->mr->iova), mw->base_va, mw->len};
	return true;
}

static bool key_range(struct roci_engine *e, uint32_t pd, uint32_t qpn, uint32_t rkey, uint32_t access,
		      struct remote_range *out)
{
	struct roci_region *r = find_region(e, rkey);
	struct roci_mr *mr = (struct roci_mr *)r;

	if (!r)
		return wrong_key("rkey", rkey);
	if (r->pd != pd)
		return wrong_pd("rkey", r, pd);
	if (r->kind == REGION_MW)
		return window_range((struct roci_mw *)r, qpn, access, out);
	if (access & ~mr->access)
		return wrong_rights("rkey", r, mr->access, access);
	*out = (struct remote_range){mr->base, mr->iova, mr->len};
	return true;
}

void *roci_mr_remote(struct roci_engine *e, uint32_t pd, uint32_t qpn, uint32_t rkey, uint64_t va, uint64_t len,
		     uint32_t access)
{
	struct remote_range o;

	if (!len)
		return no_bytes; /* IBTA 9.7.4.1.7: neither key nor range of a zero-length access is checked */
	if (!key_range(e, pd, qpn, rkey, access, &o))
		return NULL;
	if (!in_range(va, len, o.va, o.len)) {
		wrong_range("rkey", rkey, va, len, o.va, o.len);
		return NULL;
	}
	return o.base + (va - o.va);
}

bool roci_mr_may_flush(struct roci_engine *e, uint32_t pd, uint32_t qpn, uint32_t rkey, uint64_t va, uint64_t len,
		       bool whole, uint32_t access)
{
	struct remote_range o;

	return key_range(e, pd, qpn, rkey, access, &o) &&
	       (whole || in_range(va, len, o.va, o.len) || wrong_range("rkey", rkey, va, len, o.va, o.len));
}

static bool may_bind(const struct roci_mr *mr, uint32_t pd, const struct roci_bind *bind)
{
	uint32_t needs_write = ROCI_ACCESS_REMOTE_WRITE | ROCI_ACCESS_REMOTE_ATOMIC;

	if (mr->region.pd != pd)
		return wrong_pd("the region with lkey", &mr->region, pd);
	if (!(mr->access & ROCI_ACCESS_MW_BIND))
		return wrong_rights("the region with lkey", &mr->region, mr->access, ROCI_ACCESS_MW_BIND);
	if (bind->access & ~(uint32_t)ACCESS_MW)
		return ROCI_REFUSE(false, "mw_access_flags 0x%x: 0x%x is not for windows", bind->access,
				   bind->access & ~(uint32_t)ACCESS_MW);
	if (mr->access & ROCI_ACCESS_ZERO_BASED)
		return ROCI_REFUSE(false, "the region is zero-based: no window can be bound to it");
	if ((bind->access & needs_write) && !(mr->access & ROCI_ACCESS_LOCAL_WRITE))
		return wrong_rights("the region with lkey", &mr->region, mr->access, ROCI_ACCESS_LOCAL_WRITE);
	return in_range(bind->addr, bind->len, mr->iova, mr->len) ||
	       wrong_range("the region with lkey", mr->region.key, bind->addr, bind->len, mr->iova, mr->len);
}

int roci_mw_bind(struct roci_engine *e, uint32_t pd, uint32_t qpn, const struct roci_bind *bind)
{
	struct roci_region *w = roci_idmap_find(&e->regions, bind->mw_key >> 8);
	struct roci_region *r = find_region(e, bind->mr_key);
	struct roci_mw *mw = (struct roci_mw *)w;
	struct roci_mr *mr = (struct roci_mr *)r;

	if (!w || w->kind != REGION_MW)
		return ROCI_REFUSE(-EINVAL, "the window does not exist any more");
	if (w->pd != pd)
		return ROCI_REFUSE(-EINVAL, "the window belongs to PD %u, and the QP to PD %u", w->pd, pd);
	if (mw->type == 2 && (mw->mr || !bind->len)) /* a type 2 window is bound once and then invalidated */
		return ROCI_REFUSE(-EINVAL, mw->mr ? "the window of type 2 is bound already: invalidate it first"
						   : "length 0: a window of type 2 is unbound by invalidating it");
	if (bind->len && (!r || r->kind != REGION_MR))
		return ROCI_REFUSE(-EINVAL, "the region does not exist any more");
	if (bind->len && !may_bind(mr, pd, bind))
		return -EINVAL;
	unbind(mw);
	mw->region.key = roci_key_with_variant(w->key, bind->rkey);
	if (!bind->len)
		return 0;
	mw->mr = mr;
	mr->windows++;
	mw->addr = bind->addr;
	mw->len = bind->len;
	mw->base_va = bind->access & ROCI_ACCESS_ZERO_BASED ? 0 : bind->addr;
	mw->access = bind->access;
	mw->qpn = qpn;
	if (mw->type == 2)
		roci_list_append(&e->windows, &mw->bound);
	return 0;
}

int roci_mw_invalidate(struct roci_engine *e, uint32_t pd, uint32_t qpn, uint32_t rkey)
{
	struct roci_region *r = find_region(e, rkey);
	struct roci_mw *mw;

	if (!r || r->kind != REGION_MW || r->pd != pd)
		return ROCI_REFUSE(-EINVAL, "rkey 0x%x is of no memory window of this PD", rkey);
	mw = (struct roci_mw *)r;
	if (mw->type != 2 || !mw->mr || mw->qpn != qpn)
		return ROCI_REFUSE(-EINVAL, "rkey 0x%x is of no window of type 2 that is bound on QP 0x%x", rkey, qpn);
	unbind(mw);
	return 0;
}

void roci_mw_forget_qp(struct roci_engine *e, uint32_t qpn)
{
	for (struct roci_list *n = e->windows.next, *next; n != &e->windows; n = next) {
		struct roci_mw *mw = roci_container_of(n, struct roci_mw, bound);

		next = n->next;
		if (mw->qpn == qpn)
			unbind(mw);
	}
}

void roci_regions_free(struct roci_engine *e)
{
	struct roci_idmap *map = &e->regions;

	for (uint32_t i = 0; map->slots && i <= map->mask; i++)
		free(map->slots[i].object);
	roci_idmap_free(map);
}
