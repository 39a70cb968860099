/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues. */
#include <errno.h>
#include <stdlib.h>

#include "engine/cq.h"
#include "engine/why.h"
#include "verbs/cq.h"
#include "verbs/pd.h"

static atomic_uint live_cqs;
static atomic_uint next_handle = 1;

static int check_create(const struct ibv_context *context, int cqe, const struct ibv_comp_channel *channel,
			int comp_vector)
{
	if (!vb_is_context(context))
		return EINVAL;
	if (cqe < 1 || cqe > ROCI_MAX_CQE)
		return ROCI_REFUSE(EINVAL, "cqe %d: 1 to %d are allowed", cqe, ROCI_MAX_CQE);
	if (comp_vector < 0 || comp_vector >= VB_COMP_VECTORS)
		return ROCI_REFUSE(EINVAL, "comp_vector %d: 0 to %d are allowed", comp_vector, VB_COMP_VECTORS - 1);
	return channel && channel->context != context ? ROCI_REFUSE(EINVAL, "channel is of another context") : 0;
}

static void mutex_init(pthread_mutex_t *mutex)
{
	/* A poller holds it for less time than a thread switch takes, so waiters spin first. */
	pthread_mutexattr_t attr;
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
	pthread_mutex_init(mutex, &attr);
	pthread_mutexattr_destroy(&attr);
}

/* NULL: *err is a positive errno. */
static struct vb_cq *cq_create(struct ibv_context *context, int cqe, void *cq_context, struct ibv_comp_channel *channel,
			       int comp_vector, int *err)
{
	*err = check_create(context, cqe, channel, comp_vector);
	if (*err)
		return NULL;
	*err = ENOMEM;
	if (!vb_quota_take(&live_cqs, ROCI_MAX_CQ))
		return NULL;
	struct vb_cq *cq = calloc(1, sizeof(*cq));
	if (!cq)
		goto err_quota;

	struct vb_context *ctx = vb_context(context);
	struct roci_engine *e = roci_device_lock(ctx->dev);
	*err = -roci_cq_create(e, (unsigned)cqe, cq, &cq->engine);
	if (!*err) {
		roci_list_append(&ctx->objects[VB_CQ], &cq->object);
		cq->cq.cqe = (int)roci_cq_capacity(cq->engine);
	}
	roci_device_unlock(ctx->dev);
	if (*err)
		goto err_free;

	cq->cq.context = context;
	cq->cq.channel = channel;
	cq->cq.cq_context = cq_context;
	cq->cq.handle = atomic_fetch_add(&next_handle, 1);
	pthread_mutex_init(&cq->cq.mutex, NULL);
	pthread_cond_init(&cq->cq.cond, NULL);
	mutex_init(&cq->consumer);
	roci_list_init(&cq->in_channel);
	vb_channel_count(channel, 1);
	return cq;

err_free:
	free(cq);
err_quota:
	vb_quota_give(&live_cqs);
	return NULL;
}

ALSO_1_0(ibv_create_cq);
struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context, struct ibv_comp_channel *channel,
			     int comp_vector)
{
	int err;
	struct vb_cq *cq = cq_create(context, cqe, cq_context, channel, comp_vector, &err);
	return cq ? &cq->cq : vb_null(err);
}

struct ibv_cq_ex *vb_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
	const uint64_t fields = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
				IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
	if (!attr)
		return vb_null(EINVAL);
	if (attr->comp_mask & ~(uint32_t)(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD))
		return vb_null(ROCI_REFUSE(EINVAL, "comp_mask 0x%x has an unknown bit", attr->comp_mask));
	/* There is no VLAN, flow tag or tag matching here, and an overrun is always detected. */
	if (attr->wc_flags & ~fields)
		return vb_null(ROCI_REFUSE(EOPNOTSUPP, "wc_flags 0x%llx: roci0 does not have 0x%llx",
					   (unsigned long long)attr->wc_flags,
					   (unsigned long long)(attr->wc_flags & ~fields)));
	if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) &&
	    (attr->flags & ~(uint32_t)IBV_CREATE_CQ_ATTR_SINGLE_THREADED))
		return vb_null(ROCI_REFUSE(EOPNOTSUPP, "flags 0x%x: roci0 has IBV_CREATE_CQ_ATTR_SINGLE_THREADED only",
					   attr->flags));
	if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) &&
	    (!vb_is_pd(attr->parent_domain) || attr->parent_domain->context != context))
		return vb_null(ROCI_REFUSE(EINVAL, "parent_domain is NULL or of another context"));
	if (attr->cqe > ROCI_MAX_CQE || attr->comp_vector >= VB_COMP_VECTORS)
		return vb_null(ROCI_REFUSE(EINVAL, "cqe %u, comp_vector %u: at most %d and %d", attr->cqe,
					   attr->comp_vector, ROCI_MAX_CQE, VB_COMP_VECTORS - 1));
	int err;
	struct vb_cq *cq =
		cq_create(context, (int)attr->cqe, attr->cq_context, attr->channel, (int)attr->comp_vector, &err);
	if (!cq)
		return vb_null(err);
	vb_cq_ex_init(cq);
	return &cq->ex;
}

ALSO_1_0(ibv_resize_cq);
VERB_DEFINE(2, ibv_resize_cq, struct ibv_cq *, ibcq, int, cqe)
{
	if (!vb_is_cq(ibcq))
		return EINVAL;
	if (cqe < 1 || cqe > ROCI_MAX_CQE)
		return ROCI_REFUSE(EINVAL, "cqe %d: 1 to %d are allowed", cqe, ROCI_MAX_CQE);
	struct vb_cq *cq = (struct vb_cq *)ibcq;
	struct vb_context *ctx = vb_context(ibcq->context);
	vb_cq_lock_consumers(cq, NULL);
	roci_device_lock(ctx->dev);
	int err = -roci_cq_resize(cq->engine, (unsigned)cqe);
	if (err == EINVAL)
		ROCI_WHY("cqe %d: the CQ holds more completions; poll first", cqe);
	ibcq->cqe = (int)roci_cq_capacity(cq->engine);
	roci_device_unlock(ctx->dev);
	vb_cq_unlock_consumers(cq, NULL);
	return err;
}

ALSO_1_0(ibv_destroy_cq);
VERB_DEFINE(1, ibv_destroy_cq, struct ibv_cq *, ibcq)
{
	if (!ibcq || !vb_is_ours(ibcq->context))
		return EINVAL;
	struct vb_cq *cq = (struct vb_cq *)ibcq;
	struct vb_context *ctx = vb_context(ibcq->context);
	if (ctx->dev && cq->engine) {
		roci_device_lock(ctx->dev);
		int err = -roci_cq_destroy(cq->engine);
		if (!err) {
			roci_list_remove(&cq->object);
			cq->engine = NULL;
		}
		roci_device_unlock(ctx->dev);
		if (err)
			return err;
		vb_async_purge(&ctx->async, cq);
	}
	if (ibcq->channel)
		vb_channel_purge(cq);
	vb_async_wait_acks(&ibcq->mutex, &ibcq->cond, &ibcq->comp_events_completed, &cq->comp_delivered);
	vb_async_wait_acks(&ibcq->mutex, &ibcq->cond, &ibcq->async_events_completed, &cq->async_delivered);
	vb_channel_count(ibcq->channel, -1);
	pthread_mutex_destroy(&cq->consumer);
	pthread_cond_destroy(&ibcq->cond);
	pthread_mutex_destroy(&ibcq->mutex);
	vb_quota_give(&live_cqs);
	free(cq);
	return 0;
}

/* ---- consuming ---- */

static void unlock_consumer(struct vb_cq *cq)
{
	if (cq && !vb_cq_is_polled_here(cq))
		pthread_mutex_unlock(&cq->consumer);
}

/* A thread that forks between ibv_start_poll() and ibv_end_poll() goes on. Any other one that has the lock is not
 * there.
 */
void vb_cq_reset(struct vb_cq *cq)
{
	if (!vb_cq_is_polled_here(cq)) {
		atomic_store_explicit(&cq->poller, 0, memory_order_relaxed);
		mutex_init(&cq->consumer);
	}
	vb_async_reset_acks(&cq->cq.mutex, &cq->cq.cond);
	cq->comp_delivered = cq->cq.comp_events_completed;
	cq->async_delivered = cq->cq.async_events_completed;
}

/* Who waits for one has not the other: a thread that polls the one may want that. */
void vb_cq_lock_consumers(struct vb_cq *a, struct vb_cq *b)
{
	while (true) {
		if (a && !vb_cq_is_polled_here(a))
			pthread_mutex_lock(&a->consumer);
		if (!b || b == a || vb_cq_is_polled_here(b) || !pthread_mutex_trylock(&b->consumer))
			return;
		unlock_consumer(a);
		struct vb_cq *busy = b;
		b = a;
		a = busy;
	}
}

void vb_cq_unlock_consumers(struct vb_cq *a, struct vb_cq *b)
{
	unlock_consumer(a);
	if (b != a)
		unlock_consumer(b);
}

#define SAME(x) _Static_assert((int)ROCI_WC_##x == (int)IBV_WC_##x, "the engine has the values of verbs.h")
SAME(SUCCESS);
SAME(LOC_LEN_ERR);
SAME(LOC_QP_OP_ERR);
SAME(LOC_PROT_ERR);
SAME(WR_FLUSH_ERR);
SAME(MW_BIND_ERR);
SAME(BAD_RESP_ERR);
SAME(LOC_ACCESS_ERR);
SAME(REM_INV_REQ_ERR);
SAME(REM_ACCESS_ERR);
SAME(REM_OP_ERR);
SAME(RETRY_EXC_ERR);
SAME(RNR_RETRY_EXC_ERR);
SAME(SEND);
SAME(RDMA_WRITE);
SAME(RDMA_READ);
SAME(COMP_SWAP);
SAME(FETCH_ADD);
SAME(BIND_MW);
SAME(LOCAL_INV);
SAME(ATOMIC_WRITE);
SAME(FLUSH);
SAME(RECV);
SAME(RECV_RDMA_WITH_IMM);
SAME(GRH);
SAME(WITH_IMM);
SAME(WITH_INV);

static void translate(struct ibv_wc *wc, const struct roci_cqe *cqe)
{
	*wc = (struct ibv_wc){
		.wr_id = cqe->wr_id,
		.status = (enum ibv_wc_status)cqe->status,
		.opcode = (enum ibv_wc_opcode)cqe->opcode,
		.byte_len = cqe->byte_len,
		.imm_data = cqe->imm,
		.qp_num = cqe->qpn,
		.src_qp = cqe->src_qpn,
		.wc_flags = cqe->flags,
		.sl = cqe->sl,
	};
}

#define POLL_BATCH 16

static int consume(struct vb_cq *cq, int want, struct ibv_wc *wc)
{
	struct roci_cqe batch[POLL_BATCH];
	int got = 0;
	if (roci_cq_is_empty(cq->engine))
		return 0;
	pthread_mutex_lock(&cq->consumer);
	while (got < want) {
		unsigned ask = want - got < POLL_BATCH ? (unsigned)(want - got) : POLL_BATCH;
		unsigned n = roci_cq_poll(cq->engine, batch, ask);
		for (unsigned i = 0; i < n; i++)
			translate(&wc[got++], &batch[i]);
		if (n < ask)
			break;
	}
	pthread_mutex_unlock(&cq->consumer);
	return got;
}

VERB_DEFINE_COUNT(3, int, vb_poll_cq, struct ibv_cq *, ibcq, int, num_entries, struct ibv_wc *, wc)
{
	struct vb_cq *cq = (struct vb_cq *)ibcq;
	if (num_entries < 0 || (num_entries && !wc))
		return ROCI_REFUSE(-EINVAL, "num_entries %d: at least 0, and wc for as many", num_entries);
	int got = consume(cq, num_entries, wc);
	if (got || !num_entries)
		return got;
	roci_device_poll(vb_context(ibcq->context)->dev);
	got = consume(cq, num_entries, wc);
	/* Completions before an overrun are still delivered. Later ones are lost: the program must not wait for them.
	 */
	return !got && roci_cq_overrun(cq->engine)
		       ? ROCI_REFUSE(-EIO, "the CQ of %d entries has overflowed: completions are lost", ibcq->cqe)
		       : got;
}

VERB_DEFINE(2, vb_req_notify_cq, struct ibv_cq *, ibcq, int, solicited_only)
{
	struct vb_context *ctx = vb_context(ibcq->context);
	roci_device_lock_post(ctx->dev);
	roci_cq_arm(((struct vb_cq *)ibcq)->engine, solicited_only);
	roci_device_unlock_quiet(ctx->dev);
	return 0;
}
