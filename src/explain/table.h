/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of this room, and the calls that rows about an errno belong to. */
#ifndef ROCI_EXPLAIN_TABLE_H
#define ROCI_EXPLAIN_TABLE_H

#include "explain/explain.h"

struct explain_table {
	const struct explanation *rows;
	size_t count;
};

extern const struct explain_table explain_wc_statuses, explain_naks, explain_cm_rejects, explain_cm_events,
	explain_asyncs, explain_calls, explain_errnos, explain_qp_states;

#define EXPLAIN_TABLE(name, rows) const struct explain_table name = {rows, sizeof(rows) / sizeof((rows)[0])}

/* Calls of verbs and rdma_cm, as far as their errno means something of its own. */
enum explain_call {
	CALL_OPEN_DEVICE = 1 << 0, /* and ibv_get_device_list() */
	CALL_REG_MR = 1 << 1,
	CALL_CREATE_CQ = 1 << 2,
	CALL_CREATE_QP = 1 << 3,
	CALL_MODIFY_RTR = 1 << 4,
	CALL_MODIFY_QP = 1 << 5, /* to a state that is not named */
	CALL_POST_SEND = 1 << 6,
	CALL_POST_RECV = 1 << 7, /* and ibv_post_srq_recv() */
	CALL_CREATE_AH = 1 << 8,
	CALL_DESTROY = 1 << 9,     /* of any object */
	CALL_CM_CHANNEL = 1 << 10, /* rdma_create_event_channel(), rdma_create_id() */
	CALL_CM_RESOLVE = 1 << 11, /* rdma_resolve_addr(), rdma_resolve_route() */
	CALL_CM_BIND = 1 << 12,    /* rdma_bind_addr(), rdma_listen() */
	CALL_CM_CONNECT = 1 << 13, /* rdma_connect(), rdma_accept() */
	CALL_CM_CREATE_QP = 1 << 14,
	CALL_MODIFY_OTHER = 1 << 15, /* to a state that is named, and is not RTR */
	CALL_QUERY_GID = 1 << 16,
};

#endif
