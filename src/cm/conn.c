/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/conn.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "cm/conn_state.h"

#define TIMEWAIT_DEFAULT 18 /* 5-bit time, where the ACK timeout is infinite */
#define TIMEWAIT_LONGEST 20

/* ---- create, close, free ---- */

static void free_conn(struct roci_exchange *x);

static void destroy_conn(struct roci_exchange *x, uint64_t now)
{
	roci_conn_destroy(x->conn, now);
}

static const struct roci_exchange_ops conn_ops = {
	.free = free_conn,
	.destroy = destroy_conn,
	.timeout = roci_conn_timeout,
	.unreachable = roci_conn_unreachable,
	.report_req = roci_conn_report_req,
};

struct roci_conn *roci_conn_create(struct roci_cm *cm, void *user)
{
	struct roci_conn *conn = calloc(1, sizeof(*conn));

	if (!conn)
		goto err;
	if (roci_exchange_init(&conn->x, cm, &conn_ops, &conn->info.path))
		goto err_free;
	conn->x.conn = conn;
	conn->x.user = user;
	conn->info.local_comm_id = roci_cm_alloc_id(cm, &conn->x);
	if (!conn->info.local_comm_id)
		goto err_fini;
	return conn;
err_fini:
	roci_exchange_fini(&conn->x);
err_free:
	free(conn);
err:
	cm->stats.no_memory++;
	return NULL;
}

/* The peer's id and QPN no longer lead to this connection. */
static void forget_peer(struct roci_conn *conn)
{
	struct roci_cm *cm = conn->x.cm;

	roci_peer_remove(&cm->remote_ids, &conn->remote_id_node);
	roci_peer_remove(&cm->remote_qpns, &conn->remote_qpn_node);
	if (conn->remembered) {
		conn->remembered = false;
		cm->remembered_count--;
	}
}

static void free_conn(struct roci_exchange *x)
{
	struct roci_conn *conn = x->conn;

	forget_peer(conn);
	roci_idmap_remove(&x->cm->ids, conn->info.local_comm_id);
	roci_exchange_fini(x);
	free(conn);
}

void roci_conn_close_forgotten(struct roci_conn *conn)
{
	roci_exchange_stop_timer(&conn->x);
	forget_peer(conn);
	conn->state = ROCI_CONN_CLOSED;
}

void roci_conn_close(struct roci_conn *conn, uint64_t now)
{
	struct roci_cm *cm = conn->x.cm;

	if (cm->remembered_count >= ROCI_CM_MAX_REMEMBERED) {
		roci_conn_close_forgotten(conn);
		return;
	}
	conn->state = ROCI_CONN_CLOSED;
	roci_peer_remove(&cm->remote_qpns, &conn->remote_qpn_node);
	conn->remembered = true;
	cm->remembered_count++;
	roci_exchange_set_timer(&conn->x, now + conn->remember_ns);
}

/* TimeWait lasts the connection's ACK timeout, but no longer than TIMEWAIT_LONGEST. The peer may use its QP again
 * meanwhile: both sides have left this connection, so it cannot be stale. */
void roci_conn_enter_timewait(struct roci_conn *conn, uint64_t now)
{
	unsigned t = conn->info.ack_timeout ? conn->info.ack_timeout : TIMEWAIT_DEFAULT;

	conn->state = ROCI_CONN_TIMEWAIT;
	roci_peer_remove(&conn->x.cm->remote_qpns, &conn->remote_qpn_node);
	roci_exchange_set_timer(&conn->x, now + roci_cm_time_ns(t < TIMEWAIT_LONGEST ? t : TIMEWAIT_LONGEST));
}

/* ---- the peer's QP ---- */

/* The key of a QP of this CA. The salt keeps peers from choosing CAs whose QPs share a place in the table. */
static uint32_t qpn_key(const struct roci_cm *cm, uint64_t ca_guid, uint32_t qpn)
{
	return qpn ^ (uint32_t)((ca_guid ^ cm->remote_qpns.salt) * 0xd6e8feb86659fd93u >> 32);
}

void roci_conn_insert_qpn(struct roci_conn *conn)
{
	struct roci_cm *cm = conn->x.cm;

	roci_peer_insert(&cm->remote_qpns, &conn->remote_qpn_node, conn->x.remote_gid,
			 qpn_key(cm, conn->peer.ca_guid, conn->peer.qpn));
}

struct roci_conn *roci_conn_of_qpn(struct roci_cm *cm, const uint8_t gid[16], const struct roci_cm_msg *msg)
{
	struct roci_peer_node *node;
	struct roci_conn *conn;

	if (msg->qpn <= 1)
		return NULL;
	node = roci_peer_find(&cm->remote_qpns, gid, qpn_key(cm, msg->ca_guid, msg->qpn));
	conn = node ? roci_container_of(node, struct roci_conn, remote_qpn_node) : NULL;
	return conn && conn->peer.ca_guid == msg->ca_guid && conn->peer.qpn == msg->qpn ? conn : NULL;
}

/* ---- messages ---- */

void roci_conn_take_peer(struct roci_conn *conn, const struct roci_cm_msg *msg)
{
	struct roci_conn_info *info = &conn->info;

	/* 12.7.29, 12.7.30: we respond to what the peer initiates, and the other way round. */
	conn->peer = (struct roci_cm_peer){
		.ca_guid = msg->ca_guid,
		.qpn = msg->qpn,
		.qkey = msg->qkey,
		.starting_psn = msg->starting_psn,
		.transport = (uint8_t)info->transport,
		.responder_resources = msg->initiator_depth,
		.initiator_depth = msg->responder_resources,
		.retry_count = info->retry_count,
		.rnr_retry_count = msg->rnr_retry_count,
		.ack_timeout = msg->primary.ack_timeout,
		.target_ack_delay = msg->target_ack_delay,
		.failover = msg->failover,
		.flow_control = msg->flow_control,
		.srq = msg->srq,
		.ece = {msg->vendor_id, msg->modifier},
	};
	info->remote_comm_id = msg->local_id;
	info->remote_qpn = msg->qpn;
	info->sq_psn = msg->starting_psn;
	info->responder_resources = conn->peer.responder_resources;
	info->initiator_depth = conn->peer.initiator_depth;
	info->rnr_retry_count = msg->rnr_retry_count;
	info->remote_srq = msg->srq;
	info->flow_control = msg->flow_control;
}

void roci_conn_answered(struct roci_conn *conn, uint64_t now)
{
	conn->info.answer_ns = now - conn->x.asked_at;
}

struct roci_cm_msg roci_conn_message(const struct roci_conn *conn, enum roci_cm_attribute attribute)
{
	return (struct roci_cm_msg){
		.attribute = (uint16_t)attribute,
		.tid = conn->tid,
		.local_id = conn->info.local_comm_id,
		.remote_id = conn->info.remote_comm_id,
	};
}

/* IBTA 12.6.7, Message REJected: neither REQ nor REP where we withdraw our own. */
static enum roci_cm_about rejected_message(const struct roci_conn *conn)
{
	switch (conn->state) {
	case ROCI_CONN_REQ_WAITING:
	case ROCI_CONN_REQ_RECEIVED: return ROCI_CM_ABOUT_REQ;
	case ROCI_CONN_REP_RECEIVED: return ROCI_CM_ABOUT_REP;
	default: return ROCI_CM_ABOUT_OTHER;
	}
}

void roci_conn_send_rej(struct roci_conn *conn, enum roci_cm_reason reason, struct roci_cm_msg *msg)
{
	msg->about = (uint8_t)rejected_message(conn);
	msg->reason = (uint16_t)reason;
	/* 12.6.7.2, reason 4: the CA GUID lets a peer whose id we do not know find the connection. */
	if (reason == ROCI_REJ_TIMEOUT && !msg->info_len) {
		uint64_t guid = htobe64(conn->x.cm->config.ca_guid);

		memcpy(msg->info, &guid, sizeof(guid));
		msg->info_len = sizeof(guid);
	}
	roci_exchange_send(&conn->x, msg);
}

void roci_conn_reject_and_close(struct roci_conn *conn, uint64_t now, enum roci_cm_reason reason)
{
	struct roci_cm_msg rej = roci_conn_message(conn, ROCI_CM_ATTR_REJ);

	roci_conn_send_rej(conn, reason, &rej);
	roci_conn_close(conn, now);
}

void roci_conn_send_dreq(struct roci_conn *conn, uint64_t now, struct roci_cm_msg *msg)
{
	struct roci_cm *cm = conn->x.cm;

	msg->tid = conn->dreq_tid = roci_cm_new_tid(cm);
	msg->qpn = conn->info.remote_qpn;
	conn->state = ROCI_CONN_DREQ_SENT;
	roci_exchange_send(&conn->x, msg);
	roci_exchange_start_retries(&conn->x, now, conn->response_timeout_ns, cm->config.dreq_retries);
}

void roci_conn_send_drep(struct roci_conn *conn, uint64_t now, struct roci_cm_msg *msg)
{
	msg->tid = conn->dreq_tid;
	roci_exchange_send(&conn->x, msg);
	roci_conn_enter_timewait(conn, now);
}

/* ---- for the consumer ---- */

bool roci_conn_has_tx(const struct roci_conn *conn)
{
	return !roci_list_empty(&conn->x.sending) && conn->state != ROCI_CONN_TIMEWAIT &&
	       conn->state != ROCI_CONN_CLOSED;
}

void roci_conn_set_user(struct roci_conn *conn, void *user)
{
	conn->x.user = user;
}

const struct roci_conn_info *roci_conn_info(const struct roci_conn *conn)
{
	return &conn->info;
}
