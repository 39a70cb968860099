/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What this library does not support. All of it fails with EOPNOTSUPP, as on a device that cannot do it.
 *
 * Kinds of objects that cannot be made. The entries of verbs_template (device.c) that need such an object are NULL:
 *
 *	XRC domains, QPs of other processes, device memory, null MRs, flow steering, work queues and RSS, counters
 * Refused where the object is made or changed:
 *	QP types RAW_PACKET, XRC_SEND, XRC_RECV, DRIVER; create flags, TSO, RSS (qp.c)
 *	alternate paths, resizing and rate limits of a QP (qp_attr.c)
 *	SRQ types XRC and TM (srq.c)
 *	CQ fields cvlan, flow_tag, tm_info; IGNORE_OVERRUN (cq.c)
 *	on-demand paging (mr.c), allocators of parent domains (pd.c)
 * And the functions of this file.
 */
#include <errno.h>

#include "engine/why.h"
#include "verbs/context.h"

/* ---- entries of struct verbs_context: left NULL, verbs.h would return EOPNOTSUPP without setting errno ---- */

/* Moderation of CQ events. */
VERB_DEFINE(2, vb_modify_cq, struct ibv_cq *, cq, struct ibv_modify_cq_attr *, attr)
{
	return EOPNOTSUPP;
}

/* XRC */
VERB_DEFINE(2, vb_get_srq_num, struct ibv_srq *, srq, uint32_t *, srq_num)
{
	return EOPNOTSUPP;
}

/* Tag matching. */
VERB_DEFINE(3, vb_post_srq_ops, struct ibv_srq *, srq, struct ibv_ops_wr *, op, struct ibv_ops_wr **, bad_op)
{
	*bad_op = op;
	return EOPNOTSUPP;
}

/* Pacing. */
VERB_DEFINE(2, vb_modify_qp_rate_limit, struct ibv_qp *, qp, struct ibv_qp_rate_limit_attr *, attr)
{
	return EOPNOTSUPP;
}

/* Were these entries NULL, verbs.h would set errno itself, and `roci run --why` could not tell. */

struct ibv_xrcd *vb_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr)
{
	return vb_null(ROCI_REFUSE(EOPNOTSUPP, "roci0 has no XRC"));
}

struct ibv_qp *vb_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr)
{
	return vb_null(ROCI_REFUSE(EOPNOTSUPP, "roci0 has no XRC, and no QP of another process"));
}

struct ibv_dm *vb_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
	return vb_null(ROCI_REFUSE(EOPNOTSUPP, "roci0 has no memory of its own"));
}

struct ibv_mr *vb_alloc_null_mr(struct ibv_pd *pd)
{
	return vb_null(ROCI_REFUSE(EOPNOTSUPP, "roci0 has no null MRs"));
}

struct ibv_flow *vb_create_flow(struct ibv_qp *qp, struct ibv_flow_attr *attr)
{
	return vb_null(ROCI_REFUSE(EOPNOTSUPP, "roci0 has no flow steering: it sees RDMA packets only"));
}

struct ibv_flow_action *vb_create_flow_action_esp(struct ibv_context *context, struct ibv_flow_action_esp_attr *attr)
{
	return vb_null(ROCI_REFUSE(EOPNOTSUPP, "roci0 has no flow steering: it sees RDMA packets only"));
}

struct ibv_wq *vb_create_wq(struct ibv_context *context, struct ibv_wq_init_attr *attr)
{
	return vb_null(ROCI_REFUSE(EOPNOTSUPP, "roci0 has no work queues outside of QPs (RSS)"));
}

struct ibv_rwq_ind_table *vb_create_rwq_ind_table(struct ibv_context *context, struct ibv_rwq_ind_table_init_attr *attr)
{
	return vb_null(ROCI_REFUSE(EOPNOTSUPP, "roci0 has no work queues outside of QPs (RSS)"));
}

struct ibv_counters *vb_create_counters(struct ibv_context *context, struct ibv_counters_init_attr *attr)
{
	return vb_null(
		ROCI_REFUSE(EOPNOTSUPP, "roci0 has no counters of flows; `roci stats PID` has those of the device"));
}

/* ---- public functions ---- */

/* Sharing objects between processes needs kernel handles. */
struct ibv_context *ibv_import_device(int cmd_fd)
{
	return vb_null(EOPNOTSUPP);
}

struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t pd_handle)
{
	return vb_null(EOPNOTSUPP);
}

void ibv_unimport_pd(struct ibv_pd *pd)
{
}

struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
	return vb_null(EOPNOTSUPP);
}

void ibv_unimport_mr(struct ibv_mr *mr)
{
}

struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t dm_handle)
{
	return vb_null(EOPNOTSUPP);
}

void ibv_unimport_dm(struct ibv_dm *dm)
{
}

/* This device is a process: it cannot read the memory of other devices. */
struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access)
{
	return vb_null(EOPNOTSUPP);
}

/* Enhanced connection establishment negotiates vendor options. There are none. */
VERB_DEFINE(2, ibv_set_ece, struct ibv_qp *, qp, struct ibv_ece *, ece)
{
	return EOPNOTSUPP;
}

VERB_DEFINE(2, ibv_query_ece, struct ibv_qp *, qp, struct ibv_ece *, ece)
{
	if (ece)
		*ece = (struct ibv_ece){0};
	return EOPNOTSUPP;
}
