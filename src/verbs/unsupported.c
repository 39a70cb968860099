/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What this library does not support. All of it fails with EOPNOTSUPP, as on a device that cannot do it.
 *
 * Entries that verbs_template (device.c) leaves NULL, for which verbs.h itself sets errno to EOPNOTSUPP, or that need
 * an object of a kind that cannot be made:
 *
 *	XRC: open_xrcd, close_xrcd, open_qp
 *	device memory: alloc_dm, free_dm, reg_dm_mr
 *	flow steering: ibv_create_flow, ibv_destroy_flow, create/modify/destroy_flow_action
 *	work queues and RSS: create_wq, modify_wq, destroy_wq, create/destroy_rwq_ind_table
 *	counters: create_counters, destroy_counters, attach_counters_point_flow, read_counters
 *	null MRs: alloc_null_mr
 * Refused where the object is made or changed:
 *	QP types RAW_PACKET, XRC_SEND, XRC_RECV, DRIVER; create flags, TSO, RSS (qp.c)
 *	alternate paths, resizing and rate limits of a QP (qp_attr.c)
 *	SRQ types XRC and TM (srq.c)
 *	CQ fields cvlan, flow_tag, tm_info; IGNORE_OVERRUN (cq.c)
 *	on-demand paging (mr.c), allocators of parent domains (pd.c)
 * And the functions of this file.
 */
#include <errno.h>

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
