/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs: modifying and querying them. The engine has the table of states; here attributes are translated. */
#include <errno.h>

#include "engine/why.h"
#include "verbs/cq.h"
#include "verbs/pd.h"
#include "verbs/qp.h"

#define SAME_MASK(x) _Static_assert((int)ROCI_QP_##x == (int)IBV_QP_##x, "the engine's mask bits are those of verbs.h")
SAME_MASK(STATE);
SAME_MASK(CUR_STATE);
SAME_MASK(EN_SQD_ASYNC_NOTIFY);
SAME_MASK(ACCESS_FLAGS);
SAME_MASK(PKEY_INDEX);
SAME_MASK(PORT);
SAME_MASK(QKEY);
SAME_MASK(AV);
SAME_MASK(PATH_MTU);
SAME_MASK(TIMEOUT);
SAME_MASK(RETRY_CNT);
SAME_MASK(RNR_RETRY);
SAME_MASK(RQ_PSN);
SAME_MASK(MAX_QP_RD_ATOMIC);
SAME_MASK(MIN_RNR_TIMER);
SAME_MASK(SQ_PSN);
SAME_MASK(MAX_DEST_RD_ATOMIC);
SAME_MASK(PATH_MIG_STATE);
SAME_MASK(DEST_QPN);
_Static_assert((int)ROCI_QPS_ERR == (int)IBV_QPS_ERR && (int)ROCI_QPS_SQD == (int)IBV_QPS_SQD &&
		       (int)ROCI_QPS_RTS == (int)IBV_QPS_RTS && (int)ROCI_QPT_UD == (int)IBV_QPT_UD,
	       "the engine's states and types are those of verbs.h");

#define KNOWN_MASK                                                                                                     \
	(IBV_QP_STATE | IBV_QP_CUR_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX |      \
	 IBV_QP_PORT | IBV_QP_QKEY | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |                 \
	 IBV_QP_RNR_RETRY | IBV_QP_RQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER | IBV_QP_SQ_PSN |           \
	 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_PATH_MIG_STATE | IBV_QP_DEST_QPN)
/* Alternate paths, resizing and rate limits are not announced, so they are refused. */
#define REFUSED_MASK (IBV_QP_ALT_PATH | IBV_QP_CAP | IBV_QP_RATE_LIMIT)

/* Access flags of a QP. Other flags are ignored: programs pass the ones of ibv_reg_mr(). */
#define QP_ACCESS                                                                                                      \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |        \
	 (unsigned)IBV_ACCESS_MW_BIND | IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT)

static int check_modify(const struct ibv_qp_attr *attr, int mask)
{
	if (mask & ~(KNOWN_MASK | REFUSED_MASK))
		return ROCI_REFUSE(EINVAL, "attr_mask 0x%x: 0x%x is unknown", (unsigned)mask,
				   (unsigned)(mask & ~(KNOWN_MASK | REFUSED_MASK)));
	if (mask & REFUSED_MASK)
		return ROCI_REFUSE(
			EOPNOTSUPP,
			"attr_mask 0x%x: roci0 has no alternate path (IBV_QP_ALT_PATH), no resizing of queues "
			"(IBV_QP_CAP) and no rate limit (IBV_QP_RATE_LIMIT)",
			(unsigned)mask);
	if ((mask & IBV_QP_PORT) && attr->port_num != VB_PORT)
		return ROCI_REFUSE(EINVAL, "port_num %u: roci0 has port 1 only", attr->port_num);
	if ((mask & IBV_QP_PKEY_INDEX) && attr->pkey_index != 0)
		return ROCI_REFUSE(EINVAL, "pkey_index %u: roci0 has index 0 only", attr->pkey_index);
	if ((mask & IBV_QP_PATH_MIG_STATE) && attr->path_mig_state != IBV_MIG_MIGRATED)
		return ROCI_REFUSE(EINVAL, "path_mig_state %d: roci0 does not migrate paths",
				   (int)attr->path_mig_state);
	return 0;
}

static void to_engine(const struct ibv_qp_attr *attr, struct roci_qp_attr *out)
{
	*out = (struct roci_qp_attr){
		.state = (enum roci_qp_state)attr->qp_state,
		.cur_state = (enum roci_qp_state)attr->cur_qp_state,
		.qkey = attr->qkey,
		.rq_psn = attr->rq_psn,
		.sq_psn = attr->sq_psn,
		.dest_qpn = attr->dest_qp_num,
		.access = attr->qp_access_flags & QP_ACCESS,
		.path_mtu = attr->path_mtu,
		.pkey_index = attr->pkey_index,
		.en_sqd_async_notify = attr->en_sqd_async_notify,
		.max_rd_atomic = attr->max_rd_atomic,
		.max_dest_rd_atomic = attr->max_dest_rd_atomic,
		.min_rnr_timer = attr->min_rnr_timer,
		.port_num = attr->port_num,
		.timeout = attr->timeout,
		.retry_cnt = attr->retry_cnt,
		.rnr_retry = attr->rnr_retry,
		.path_mig_state = attr->path_mig_state,
	};
}

/* Listens on the address that peers will send to. The device prints a warning if it cannot. Peers on this host reach it
 * even then, so the result is ignored. */
static void listen_for(struct vb_context *ctx, const struct vb_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	if (qp->ex.qp_base.qp_type == IBV_QPT_UD) {
		if ((mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_INIT)
			(void)roci_device_listen(ctx->dev, -1);
	} else if (mask & IBV_QP_AV) {
		(void)roci_device_listen(ctx->dev, attr->ah_attr.grh.sgid_index);
	}
}

/* Device lock held. */
static int modify_locked(struct vb_context *ctx, struct vb_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	struct roci_qp_attr inner;
	to_engine(attr, &inner);
	int err = 0;
	if (mask & IBV_QP_AV)
		err = vb_ah_make_av(ctx, &attr->ah_attr, false, &inner.av);
	if (!err && (mask & IBV_QP_AV) && (mask & IBV_QP_DEST_QPN) && qp->ex.qp_base.qp_type == IBV_QPT_RC)
		err = -roci_device_find_local(ctx->dev, &inner.av, inner.dest_qpn);
	if (err)
		return err;
	if ((mask & IBV_QP_AV) && (mask & IBV_QP_DEST_QPN) && qp->ex.qp_base.qp_type != IBV_QPT_UD && !inner.av.local &&
	    roci_qp_state(qp->engine) == ROCI_QPS_INIT)
		err = -roci_device_cross_nat(ctx->dev, qp->engine, inner.av.dgid, inner.dest_qpn);
	err = err ? err : -roci_qp_modify(qp->engine, roci_now(), &inner, (unsigned)mask);
	if (err)
		return err;
	if ((mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_RTR)
		roci_device_publish_qp(ctx->dev, qp->engine, vb_pd_number(qp->ex.qp_base.pd));
	if (mask & IBV_QP_AV)
		qp->ah_attr = attr->ah_attr;
	else if ((mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_RESET)
		qp->ah_attr = (struct ibv_ah_attr){0}; /* as the engine forgets the other attributes */
	listen_for(ctx, qp, attr, mask);
	qp->ex.qp_base.state = (enum ibv_qp_state)roci_qp_state(qp->engine);
	return 0;
}

ALSO_1_0(ibv_modify_qp);
VERB_DEFINE(3, ibv_modify_qp, struct ibv_qp *, ibqp, struct ibv_qp_attr *, attr, int, mask)
{
	if (!vb_is_qp(ibqp) || !attr)
		return EINVAL;
	int err = check_modify(attr, mask);
	if (err)
		return err;
	struct vb_qp *qp = vb_qp(ibqp);
	struct vb_context *ctx = vb_context(ibqp->context);
	bool reset = (mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_RESET;
	struct vb_cq *send_cq = reset ? (struct vb_cq *)ibqp->send_cq : NULL;
	struct vb_cq *recv_cq = reset ? (struct vb_cq *)ibqp->recv_cq : NULL;
	vb_cq_lock_consumers(send_cq, recv_cq);
	roci_device_lock(ctx->dev);
	err = modify_locked(ctx, qp, attr, mask);
	if (!err && reset) {
		roci_cq_purge(send_cq->engine, ibqp->qp_num);
		if (recv_cq != send_cq)
			roci_cq_purge(recv_cq->engine, ibqp->qp_num);
	}
	roci_device_unlock(ctx->dev);
	vb_cq_unlock_consumers(send_cq, recv_cq);
	return err;
}

static void from_engine(const struct roci_qp_attr *in, const struct roci_qp_cap *cap, struct ibv_qp_attr *attr)
{
	*attr = (struct ibv_qp_attr){
		.qp_state = (enum ibv_qp_state)in->state,
		.cur_qp_state = (enum ibv_qp_state)in->state,
		.path_mtu = in->path_mtu,
		.path_mig_state = IBV_MIG_MIGRATED,
		.qkey = in->qkey,
		.rq_psn = in->rq_psn,
		.sq_psn = in->sq_psn,
		.dest_qp_num = in->dest_qpn,
		.qp_access_flags = in->access,
		.cap = {cap->max_send_wr, cap->max_recv_wr, cap->max_send_sge, cap->max_recv_sge, cap->max_inline},
		.pkey_index = in->pkey_index,
		.en_sqd_async_notify = in->en_sqd_async_notify,
		.sq_draining = in->sq_draining,
		.max_rd_atomic = in->max_rd_atomic,
		.max_dest_rd_atomic = in->max_dest_rd_atomic,
		.min_rnr_timer = in->min_rnr_timer,
		.port_num = in->port_num,
		.timeout = in->timeout,
		.retry_cnt = in->retry_cnt,
		.rnr_retry = in->rnr_retry,
	};
}

ALSO_1_0(ibv_query_qp);
/* The mask is ignored: all attributes are filled in. */
VERB_DEFINE(4, ibv_query_qp, struct ibv_qp *, ibqp, struct ibv_qp_attr *, attr, int, attr_mask,
	    struct ibv_qp_init_attr *, init)
{
	if (!vb_is_qp(ibqp) || !attr || !init)
		return EINVAL;
	struct vb_qp *qp = vb_qp(ibqp);
	struct vb_context *ctx = vb_context(ibqp->context);
	struct roci_qp_attr inner;
	struct roci_qp_cap cap;
	roci_device_lock(ctx->dev);
	roci_qp_query(qp->engine, &inner, &cap);
	roci_device_unlock(ctx->dev);
	from_engine(&inner, &cap, attr);
	attr->ah_attr = qp->ah_attr;
	ibqp->state = attr->qp_state;
	*init = (struct ibv_qp_init_attr){
		.qp_context = ibqp->qp_context,
		.send_cq = ibqp->send_cq,
		.recv_cq = ibqp->recv_cq,
		.srq = ibqp->srq,
		.cap = attr->cap,
		.qp_type = ibqp->qp_type,
		.sq_sig_all = qp->sq_sig_all,
	};
	return 0;
}

/* No order is promised: packets that overtake others are placed as they arrive. */
int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	return 0;
}
