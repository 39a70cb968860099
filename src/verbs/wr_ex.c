/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ibv_wr_* builder. Collects requests between ibv_wr_start() and ibv_wr_complete(), which posts them all under the
 * device's lock. After a mistake ibv_wr_complete() posts nothing and returns the error.
 */
#include <errno.h>
#include <stdlib.h>

#include "engine/why.h"
#include "verbs/cq.h"
#include "verbs/mr.h"
#include "verbs/qp.h"
#include "wire/packet.h"

_Static_assert((int)ROCI_FETH_GLOBAL == (int)IBV_FLUSH_GLOBAL && (int)ROCI_FETH_PERSISTENT == (int)IBV_FLUSH_PERSISTENT,
	       "the placement types of the wire are those of verbs.h");

/* Makes room for `more` elements of an array. False: out of memory, and the error is set. */
static bool reserve(struct vb_builder *b, void *array, size_t *room, size_t count, size_t more, size_t size)
{
	if (count + more <= *room)
		return true;
	size_t wanted = *room ? *room * 2 : 4;
	if (wanted < count + more)
		wanted = count + more;
	void **p = array;
	void *grown = reallocarray(*p, wanted, size);
	if (!grown) {
		b->err = ENOMEM;
		return false;
	}
	*p = grown;
	*room = wanted;
	return true;
}

static struct vb_qp *qp_of(struct ibv_qp_ex *ex)
{
	return (struct vb_qp *)ex;
}

/* A new request to fill in. NULL: a mistake; the QP must have been made for `op`. */
static struct roci_send_wr *add(struct vb_qp *qp, enum roci_wr_opcode opcode, uint64_t op)
{
	struct vb_builder *b = &qp->builder;
	if (b->err)
		return NULL;
	unsigned unknown = qp->ex.wr_flags &
			   ~(unsigned)(IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE);
	if (!(qp->send_ops & op))
		b->err = ROCI_REFUSE(EINVAL, "%s: send_ops_flags of the QP (0x%llx) lacks 0x%llx",
				     roci_wr_opcode_name(opcode), (unsigned long long)qp->send_ops,
				     (unsigned long long)op);
	else if (unknown)
		b->err = ROCI_REFUSE(EINVAL, "wr_flags 0x%x: 0x%x is unknown", qp->ex.wr_flags, unknown);
	else if (b->wr_count >= qp->cap.max_send_wr)
		b->err = ROCI_REFUSE(ENOMEM,
				     "more requests between ibv_wr_start() and ibv_wr_complete() than max_send_wr %u",
				     qp->cap.max_send_wr);
	if (b->err)
		return NULL;
	if (!reserve(b, &b->wrs, &b->wr_room, b->wr_count, 1, sizeof(*b->wrs)))
		return NULL;
	struct vb_built *built = &b->wrs[b->wr_count++];
	*built = (struct vb_built){.wr = {
					   .wr_id = qp->ex.wr_id,
					   .opcode = opcode,
					   /* the setter decides whether data is inline */
					   .flags = qp->ex.wr_flags & ~(unsigned)IBV_SEND_INLINE,
				   }};
	return &built->wr;
}

/* The request that a setter changes, or NULL. */
static struct vb_built *last(struct vb_builder *b)
{
	if (!b->err && !b->wr_count)
		b->err = ROCI_REFUSE(EINVAL,
				     "an SGE or inline data without a request: call ibv_wr_send() or another first");
	return b->err ? NULL : &b->wrs[b->wr_count - 1];
}

/* ---- operations ---- */

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, uint64_t compare,
			      uint64_t swap)
{
	struct roci_send_wr *wr = add(qp_of(ex), ROCI_WR_ATOMIC_CMP_AND_SWP, IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP);
	if (!wr)
		return;
	wr->rkey = rkey;
	wr->remote_addr = remote_addr;
	wr->compare_add = compare;
	wr->swap = swap;
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, uint64_t addend)
{
	struct roci_send_wr *wr = add(qp_of(ex), ROCI_WR_ATOMIC_FETCH_AND_ADD, IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD);
	if (!wr)
		return;
	wr->rkey = rkey;
	wr->remote_addr = remote_addr;
	wr->compare_add = addend;
}

static void wr_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, const void *data)
{
	struct roci_send_wr *wr = add(qp_of(ex), ROCI_WR_ATOMIC_WRITE, IBV_QP_EX_WITH_ATOMIC_WRITE);
	if (!wr)
		return;
	wr->rkey = rkey;
	wr->remote_addr = remote_addr;
	memcpy(wr->atomic_write_data, data, sizeof(wr->atomic_write_data));
}

static void wr_flush(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, size_t len, uint8_t type, uint8_t level)
{
	struct vb_qp *qp = qp_of(ex);
	struct roci_send_wr *wr = add(qp, ROCI_WR_FLUSH, IBV_QP_EX_WITH_FLUSH);
	if (!wr)
		return;
	if (!type || (type & ~(IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT)) || level > IBV_FLUSH_MR) {
		qp->builder.err = ROCI_REFUSE(EINVAL,
					      "type 0x%x, level %u: see enum ibv_placement_type and "
					      "ibv_selectivity_level",
					      type, level);
		return;
	}
	wr->rkey = rkey;
	wr->remote_addr = remote_addr;
	wr->flush.len = level == IBV_FLUSH_MR ? 0 : len; /* not used for a whole region */
	wr->flush.feth = type | (level == IBV_FLUSH_MR ? ROCI_FETH_MR : ROCI_FETH_RANGE);
}

static void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey, const struct ibv_mw_bind_info *info)
{
	struct vb_qp *qp = qp_of(ex);
	struct roci_send_wr *wr = add(qp, ROCI_WR_BIND_MW, IBV_QP_EX_WITH_BIND_MW);
	if (!wr)
		return;
	last(&qp->builder)->mw = mw;
	if (!mw || !info || mw->type != IBV_MW_TYPE_2)
		qp->builder.err =
			ROCI_REFUSE(EINVAL, "ibv_wr_bind_mw() takes a memory window of type 2, and bind_info");
	else
		qp->builder.err = vb_mw_translate_bind(&ex->qp_base, mw, rkey, info, wr);
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	struct roci_send_wr *wr = add(qp_of(ex), ROCI_WR_LOCAL_INV, IBV_QP_EX_WITH_LOCAL_INV);
	if (wr)
		wr->imm = invalidate_rkey;
}

static void rdma(struct vb_qp *qp, enum roci_wr_opcode opcode, uint64_t op, uint32_t rkey, uint64_t remote_addr,
		 uint32_t imm)
{
	struct roci_send_wr *wr = add(qp, opcode, op);
	if (!wr)
		return;
	wr->rkey = rkey;
	wr->remote_addr = remote_addr;
	wr->imm = imm;
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	rdma(qp_of(ex), ROCI_WR_RDMA_READ, IBV_QP_EX_WITH_RDMA_READ, rkey, remote_addr, 0);
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	rdma(qp_of(ex), ROCI_WR_RDMA_WRITE, IBV_QP_EX_WITH_RDMA_WRITE, rkey, remote_addr, 0);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, __be32 imm_data)
{
	rdma(qp_of(ex), ROCI_WR_RDMA_WRITE_WITH_IMM, IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM, rkey, remote_addr, imm_data);
}

static void wr_send(struct ibv_qp_ex *ex)
{
	add(qp_of(ex), ROCI_WR_SEND, IBV_QP_EX_WITH_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm_data)
{
	struct roci_send_wr *wr = add(qp_of(ex), ROCI_WR_SEND_WITH_IMM, IBV_QP_EX_WITH_SEND_WITH_IMM);
	if (wr)
		wr->imm = imm_data;
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	struct roci_send_wr *wr = add(qp_of(ex), ROCI_WR_SEND_WITH_INV, IBV_QP_EX_WITH_SEND_WITH_INV);
	if (wr)
		wr->imm = invalidate_rkey;
}

static void wr_send_tso(struct ibv_qp_ex *ex, void *hdr, uint16_t hdr_sz, uint16_t mss)
{
	qp_of(ex)->builder.err = ROCI_REFUSE(EOPNOTSUPP, "roci0 has no TSO");
}

/* ---- setters ---- */

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t remote_qpn, uint32_t remote_qkey)
{
	struct vb_builder *b = &qp_of(ex)->builder;
	struct vb_built *built = last(b);
	if (!built)
		return;
	if (ex->qp_base.qp_type != IBV_QPT_UD || !ah || ah->context != ex->qp_base.context) {
		b->err = ROCI_REFUSE(EINVAL,
				     "ibv_wr_set_ud_addr() takes a UD QP (qp_type is %d) and an address handle "
				     "of its context",
				     (int)ex->qp_base.qp_type);
		return;
	}
	built->wr.av = &((struct vb_ah *)ah)->av;
	built->wr.remote_qpn = remote_qpn;
	built->wr.remote_qkey = remote_qkey;
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t remote_srqn)
{
	qp_of(ex)->builder.err = ROCI_REFUSE(EOPNOTSUPP, "roci0 has no XRC");
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t num_buf, const struct ibv_data_buf *bufs)
{
	struct vb_qp *qp = qp_of(ex);
	struct vb_builder *b = &qp->builder;
	struct vb_built *built = last(b);
	if (!built)
		return;
	size_t total = 0;
	for (size_t i = 0; i < num_buf; i++) {
		if (bufs[i].length > qp->cap.max_inline - total) {
			b->err = ROCI_REFUSE(EINVAL, "%zu bytes of inline data: max_inline_data of the QP is %u",
					     total + bufs[i].length, qp->cap.max_inline);
			return;
		}
		total += bufs[i].length;
	}
	if (!reserve(b, &b->bytes, &b->byte_room, b->byte_count, total, 1))
		return;
	built->first = b->byte_count;
	built->wr.flags |= ROCI_SEND_INLINE;
	built->inline_len = total;
	for (size_t i = 0; i < num_buf; i++) {
		if (bufs[i].length)
			memcpy(b->bytes + b->byte_count, bufs[i].addr, bufs[i].length);
		b->byte_count += bufs[i].length;
	}
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	struct ibv_data_buf buf = {addr, length};
	wr_set_inline_data_list(ex, 1, &buf);
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t num_sge, const struct ibv_sge *list)
{
	struct vb_qp *qp = qp_of(ex);
	struct vb_builder *b = &qp->builder;
	struct vb_built *built = last(b);
	if (!built)
		return;
	if (num_sge > qp->cap.max_send_sge) {
		b->err = ROCI_REFUSE(EINVAL, "num_sge %zu: the QP has max_send_sge %u", num_sge, qp->cap.max_send_sge);
		return;
	}
	if (!reserve(b, &b->sges, &b->sge_room, b->sge_count, num_sge, sizeof(*b->sges)))
		return;
	built->first = b->sge_count;
	built->wr.num_sge = (unsigned)num_sge;
	if (num_sge)
		memcpy(&b->sges[b->sge_count], list, num_sge * sizeof(*list));
	b->sge_count += num_sge;
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct ibv_sge sge = {addr, length, lkey};
	wr_set_sge_list(ex, 1, &sge);
}

/* ---- start, complete, abort ---- */

static void wr_start(struct ibv_qp_ex *ex)
{
	struct vb_builder *b = &qp_of(ex)->builder;
	pthread_mutex_lock(&b->lock);
	b->err = 0;
	b->wr_count = b->sge_count = b->byte_count = 0;
}

/* Replaces indices by pointers: the arrays do not move any more. *data becomes the SGE of inline data. */
static const struct roci_send_wr *finish(const struct vb_builder *b, struct vb_built *built, struct roci_sge *data)
{
	struct roci_send_wr *wr = &built->wr;
	if (wr->flags & ROCI_SEND_INLINE) {
		*data = (struct roci_sge){.addr = (uintptr_t)(b->bytes + built->first),
					  .len = (uint32_t)built->inline_len};
		wr->sges = data;
		wr->num_sge = 1;
	} else {
		wr->sges = b->sges + built->first;
	}
	return wr;
}

/* All or nothing (ibv_wr_post(3)): checks all requests before it posts the first. Device lock held. */
static int post_all(struct vb_qp *qp)
{
	struct vb_builder *b = &qp->builder;
	struct roci_device *dev = vb_context(qp->ex.qp_base.context)->dev;
	struct roci_sge data;
	int err = roci_qp_send_room(qp->engine, b->wr_count)
			  ? 0
			  : ROCI_REFUSE(ENOMEM,
					"the send queue has no room for %zu requests (max_send_wr %u): poll the CQ",
					b->wr_count, qp->cap.max_send_wr);
	for (size_t i = 0; i < b->wr_count && !err; i++)
		err = -roci_qp_check_send(qp->engine, finish(b, &b->wrs[i], &data));
	for (size_t i = 0; i < b->wr_count && !err; i++) {
		struct vb_built *built = &b->wrs[i];
		err = -roci_device_post_send(dev, qp->engine, finish(b, built, &data));
		if (!err && built->wr.opcode == ROCI_WR_BIND_MW)
			vb_mw_posted(built->mw, built->wr.bind.rkey);
	}
	return err;
}

static int wr_complete(struct ibv_qp_ex *ex);

VERB_DEFINE(1, wr_complete, struct ibv_qp_ex *, ex)
{
	struct vb_qp *qp = qp_of(ex);
	struct vb_builder *b = &qp->builder;
	int err = b->err;
	if (!err && b->wr_count) {
		struct vb_context *ctx = vb_context(ex->qp_base.context);
		roci_device_lock_post(ctx->dev);
		err = post_all(qp);
		roci_device_unlock_post(ctx->dev, vb_qp_has_completions(&ex->qp_base));
	}
	pthread_mutex_unlock(&b->lock);
	return err;
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	pthread_mutex_unlock(&qp_of(ex)->builder.lock);
}

/* Nobody goes on with what was begun: what a child posts to an inherited QP never completes. */
void vb_builder_reset(struct vb_qp *qp)
{
	pthread_mutex_init(&qp->builder.lock, NULL);
}

void vb_builder_init(struct vb_qp *qp)
{
	pthread_mutex_init(&qp->builder.lock, NULL);
	if (!qp->has_ex)
		return;
	struct ibv_qp_ex *ex = &qp->ex;
	ex->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	ex->wr_atomic_fetch_add = wr_atomic_fetch_add;
	ex->wr_atomic_write = wr_atomic_write;
	ex->wr_bind_mw = wr_bind_mw;
#ifdef HAVE_IBV_WR_FLUSH
	ex->wr_flush = wr_flush;
#else
	qp->wr_flush = wr_flush;
#endif
	ex->wr_local_inv = wr_local_inv;
	ex->wr_rdma_read = wr_rdma_read;
	ex->wr_rdma_write = wr_rdma_write;
	ex->wr_rdma_write_imm = wr_rdma_write_imm;
	ex->wr_send = wr_send;
	ex->wr_send_imm = wr_send_imm;
	ex->wr_send_inv = wr_send_inv;
	ex->wr_send_tso = wr_send_tso;
	ex->wr_set_ud_addr = wr_set_ud_addr;
	ex->wr_set_xrc_srqn = wr_set_xrc_srqn;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
}

void vb_builder_fini(struct vb_qp *qp)
{
	pthread_mutex_destroy(&qp->builder.lock);
	free(qp->builder.wrs);
	free(qp->builder.sges);
	free(qp->builder.bytes);
}
