/* SPDX-License-Identifier: BSD-2-Clause */
/* The queue pair of an id: creating it with its CQs, and modifying its state. */
#include <string.h>

#include "rdmacm/device.h"
#include "rdmacm/manager.h"
#include "verbs/flush.h"
#include "verbs/keepalive.h"

#define KEEPALIVE_INTERVAL_NS UINT64_C(5000000000)

/* ---- completion queues, if the program has none ---- */

static void destroy_cqs(struct cma_id *id)
{
	struct rdma_cm_id *rid = &id->id;
	if (id->own_recv_cq) {
		ibv_destroy_cq(rid->recv_cq);
		ibv_destroy_comp_channel(rid->recv_cq_channel);
		rid->recv_cq = NULL;
		rid->recv_cq_channel = NULL;
		id->own_recv_cq = false;
	}
	if (id->own_send_cq) {
		ibv_destroy_cq(rid->send_cq);
		ibv_destroy_comp_channel(rid->send_cq_channel);
		rid->send_cq = NULL;
		rid->send_cq_channel = NULL;
		id->own_send_cq = false;
	}
}

/* The helpers of rdma_verbs.h expect the id as the CQ's context. */
static int create_cq(struct cma_id *id, uint32_t size, struct ibv_cq **cq, struct ibv_comp_channel **channel)
{
	*channel = ibv_create_comp_channel(id->id.verbs);
	if (!*channel)
		return -errno;
	*cq = ibv_create_cq(id->id.verbs, size ? (int)size : 1, &id->id, *channel, 0);
	if (*cq)
		return 0;
	int err = -errno;
	ibv_destroy_comp_channel(*channel);
	*channel = NULL;
	return err;
}

static int create_cqs(struct cma_id *id, const struct ibv_qp_init_attr_ex *attr)
{
	struct rdma_cm_id *rid = &id->id;
	int err = 0;
	if (!attr->recv_cq && !rid->recv_cq) {
		err = create_cq(id, attr->cap.max_recv_wr, &rid->recv_cq, &rid->recv_cq_channel);
		id->own_recv_cq = !err;
	}
	if (!err && !attr->send_cq && !rid->send_cq) {
		err = create_cq(id, attr->cap.max_send_wr, &rid->send_cq, &rid->send_cq_channel);
		id->own_send_cq = !err;
	}
	if (err)
		destroy_cqs(id);
	return err;
}

/* ---- states ---- */

/* What the peer may do, as far as it is known. */
static unsigned access_flags(const struct cma_id *id)
{
	if (!id->conn)
		return 0;
	if (!id->responder_resources)
		return IBV_ACCESS_REMOTE_WRITE;
	return IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_FLUSH_GLOBAL;
}

static int modify(struct rdma_cm_id *rid, struct ibv_qp *qp, struct ibv_qp_attr *attr)
{
	int mask;
	if (rdma_init_qp_attr(rid, attr, &mask))
		return -errno;
	return -ibv_modify_qp(qp, attr, mask);
}

static int init_connected(struct cma_id *id, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
	roci_verbs_keepalive(qp, KEEPALIVE_INTERVAL_NS);
	return modify(&id->id, qp, &attr);
}

/* A datagram QP is ready for use at once. */
static int init_datagram(struct cma_id *id, struct ibv_qp *qp)
{
	static const enum ibv_qp_state states[] = {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS};
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		struct ibv_qp_attr attr = {.qp_state = states[i]};
		int err = modify(&id->id, qp, &attr);
		if (err)
			return err;
	}
	return 0;
}

int cma_qp_to_rtr(struct cma_id *id, uint8_t responder_resources)
{
	struct ibv_qp *qp = id->id.qp;
	if (!qp)
		return -EINVAL;
	int mask, err = qp->state == IBV_QPS_INIT ? 0 : init_connected(id, qp);
	if (err)
		return err;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
	if (rdma_init_qp_attr(&id->id, &attr, &mask))
		return -errno;
	attr.qp_access_flags = access_flags(id); /* only now the peer's rights are known */
	mask |= IBV_QP_ACCESS_FLAGS;
	if (responder_resources != RDMA_MAX_RESP_RES && (mask & IBV_QP_MAX_DEST_RD_ATOMIC))
		attr.max_dest_rd_atomic = responder_resources;
	return -ibv_modify_qp(qp, &attr, mask);
}

int cma_qp_to_rts(struct cma_id *id, uint8_t initiator_depth)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};
	int mask;
	if (rdma_init_qp_attr(&id->id, &attr, &mask))
		return -errno;
	if (initiator_depth != RDMA_MAX_INIT_DEPTH && (mask & IBV_QP_MAX_QP_RD_ATOMIC))
		attr.max_rd_atomic = initiator_depth;
	return -ibv_modify_qp(id->id.qp, &attr, mask);
}

void cma_qp_to_err(struct cma_id *id)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	if (id->id.qp && !cma_is_ud(id))
		ibv_modify_qp(id->id.qp, &attr, IBV_QP_STATE);
}

/* ---- rdma_init_qp_attr() ---- */

static void attr_init(const struct cma_id *id, struct ibv_qp_attr *attr, int *mask)
{
	attr->pkey_index = 0;
	attr->port_num = CMA_PORT_NUM;
	*mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	if (cma_is_ud(id)) {
		attr->qkey = id->qkey ? id->qkey : RDMA_UDP_QKEY;
		*mask |= IBV_QP_QKEY;
		return;
	}
	attr->qp_access_flags = access_flags(id);
	*mask |= IBV_QP_ACCESS_FLAGS;
}

static void attr_rtr(const struct cma_id *id, const struct roci_conn_info *info, struct ibv_qp_attr *attr, int *mask)
{
	cma_path_ah(id, &info->path, &attr->ah_attr);
	attr->path_mtu = info->path.mtu;
	attr->dest_qp_num = info->remote_qpn;
	attr->rq_psn = id->psn;
	*mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (info->transport == ROCI_CM_UC)
		return;
	attr->max_dest_rd_atomic = info->responder_resources;
	attr->min_rnr_timer = 0; /* rdma_connect(3): 655 ms */
	*mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
}

static void attr_rts(const struct cma_id *id, const struct roci_conn_info *info, struct ibv_qp_attr *attr, int *mask)
{
	attr->sq_psn = info->sq_psn;
	*mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	if (info->transport == ROCI_CM_UC)
		return;
	attr->timeout = id->ack_timeout_set ? id->ack_timeout : info->ack_timeout;
	attr->retry_cnt = info->retry_count;
	attr->rnr_retry = info->rnr_retry_count;
	attr->max_rd_atomic = info->initiator_depth;
	*mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
}

static int refuse_state(const struct ibv_qp_attr *attr)
{
	return CMA_REFUSE(-EINVAL, "qp_state %d: IBV_QPS_INIT, RTR and RTS are allowed", (int)attr->qp_state);
}

static int datagram_attr(const struct cma_id *id, struct ibv_qp_attr *attr, int *mask)
{
	switch (attr->qp_state) {
	case IBV_QPS_INIT: attr_init(id, attr, mask); return 0;
	case IBV_QPS_RTR: *mask = IBV_QP_STATE; return 0;
	case IBV_QPS_RTS:
		attr->sq_psn = 0;
		*mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
		return 0;
	default: return refuse_state(attr);
	}
}

static int connected_attr(struct cma_id *id, struct ibv_qp_attr *attr, int *mask)
{
	struct roci_conn_info info;
	switch (attr->qp_state) {
	case IBV_QPS_INIT: attr_init(id, attr, mask); return 0;
	case IBV_QPS_RTR:
	case IBV_QPS_RTS:
		if (!cma_conn_info(id, &info) || !info.remote_qpn)
			return CMA_REFUSE(-EINVAL, "the id is %s: the peer's QP is not known", cma_state_name(id));
		if (attr->qp_state == IBV_QPS_RTR)
			attr_rtr(id, &info, attr, mask);
		else
			attr_rts(id, &info, attr, mask);
		return 0;
	default: return refuse_state(attr);
	}
}

int rdma_init_qp_attr(struct rdma_cm_id *rid, struct ibv_qp_attr *attr, int *mask)
{
	if (!rid || !attr || !mask)
		return cma_error(EINVAL);
	struct cma_id *id = cma_id(rid);
	if (!rid->verbs)
		return cma_error(CMA_REFUSE(EINVAL, "the id is %s, and has no device", cma_state_name(id)));
	return cma_result(cma_is_ud(id) ? datagram_attr(id, attr, mask) : connected_attr(id, attr, mask));
}

/* ---- making and destroying ---- */

static int create_qp(struct cma_id *id, struct ibv_qp_init_attr_ex *attr)
{
	struct rdma_cm_id *rid = &id->id;
	if (!rid->verbs)
		return CMA_REFUSE(-EINVAL,
				  "the id is %s, and has no device; rdma_create_qp() comes after "
				  "RDMA_CM_EVENT_ADDR_RESOLVED, or takes the id of RDMA_CM_EVENT_CONNECT_REQUEST",
				  cma_state_name(id));
	if (rid->qp)
		return CMA_REFUSE(-EINVAL, "the id has a QP already");
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd) {
		attr->pd = rid->pd ? rid->pd : cma_default_pd();
		attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
		if (!attr->pd)
			return -errno;
	}
	if (attr->pd->context != rid->verbs)
		return CMA_REFUSE(-EINVAL, "pd is of another context than id->verbs");
	if ((attr->recv_cq && rid->recv_cq && attr->recv_cq != rid->recv_cq) ||
	    (attr->send_cq && rid->send_cq && attr->send_cq != rid->send_cq))
		return CMA_REFUSE(-EINVAL, "the id has another send_cq or recv_cq already");
	int err = create_cqs(id, attr);
	if (err)
		return err;
	if (!attr->send_cq)
		attr->send_cq = rid->send_cq;
	if (!attr->recv_cq)
		attr->recv_cq = rid->recv_cq;
	if (!attr->srq)
		attr->srq = rid->srq;
	struct ibv_qp *qp = ibv_create_qp_ex(rid->verbs, attr);
	if (!qp) {
		err = -errno;
		goto err_destroy_cqs;
	}
	err = cma_is_ud(id) ? init_datagram(id, qp) : init_connected(id, qp);
	if (err)
		goto err_destroy_qp;
	rid->pd = attr->pd;
	rid->qp = qp;
	return 0;

err_destroy_qp:
	ibv_destroy_qp(qp);
err_destroy_cqs:
	destroy_cqs(id);
	return err;
}

int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	return id && attr ? cma_result(create_qp(cma_id(id), attr)) : cma_error(EINVAL);
}

int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	if (!id || !attr)
		return cma_error(EINVAL);
	struct ibv_qp_init_attr_ex ex = {0};
	memcpy(&ex, attr, sizeof(*attr)); /* the extended structure starts with the plain one */
	ex.comp_mask = pd ? IBV_QP_INIT_ATTR_PD : 0;
	ex.pd = pd;
	int err = create_qp(cma_id(id), &ex);
	memcpy(attr, &ex, sizeof(*attr));
	return cma_result(err);
}

void rdma_destroy_qp(struct rdma_cm_id *id)
{
	if (!id || !id->qp)
		return;
	cma_mcast_detach_all(cma_id(id)); /* else it would be busy */
	ibv_destroy_qp(id->qp);
	id->qp = NULL;
	destroy_cqs(cma_id(id));
}
