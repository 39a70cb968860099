/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection as its consumer drives it: the calls, and what both halves of its life share. What its peer does to it
 * is in conn_rx.c and conn_req.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cm/internal.h"
#include "wire/mtu.h"

#define LID_PERMISSIVE   0xffff /* there are no LIDs on Ethernet */
#define TIMEWAIT_DEFAULT 18     /* 5-bit, where the ACK timeout is infinite */
#define TIMEWAIT_LONGEST 20

/* ---- birth and death ---- */

struct roci_conn *roci_conn_create(struct roci_cm *cm, void *user)
{
	struct roci_conn *conn = calloc(1, sizeof(*conn));

	if (!conn)
		goto err;
	if (roci_exchange_init(&conn->x, cm, ROCI_EXCHANGE_CONN, &conn->info.path))
		goto err_free;
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

/* The peer's numbers no longer mean this connection. */
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

void roci_conn_free(struct roci_conn *conn)
{
	forget_peer(conn);
	roci_idmap_remove(&conn->x.cm->ids, conn->info.local_comm_id);
	roci_exchange_fini(&conn->x);
	free(conn);
}

void roci_conn_finish(struct roci_conn *conn)
{
	roci_exchange_stop(&conn->x);
	forget_peer(conn);
	conn->state = ROCI_CONN_CLOSED;
}

void roci_conn_close(struct roci_conn *conn, uint64_t now)
{
	struct roci_cm *cm = conn->x.cm;

	conn->state = ROCI_CONN_CLOSED;
	roci_peer_remove(&cm->remote_qpns, &conn->remote_qpn_node);
	if (cm->remembered_count >= ROCI_CM_MAX_REMEMBERED) {
		roci_conn_finish(conn);
		return;
	}
	conn->remembered = true;
	cm->remembered_count++;
	roci_exchange_set_timer(&conn->x, now + conn->remember_ns);
}

/* IBTA 12.9.8.4: as long as packets of the connection may be on their way. Whether the peer uses its QP again meanwhile
 * is its own affair: both have left the connection, so it is none that could be stale. */
void roci_conn_enter_timewait(struct roci_conn *conn, uint64_t now)
{
	unsigned t = conn->info.ack_timeout ? conn->info.ack_timeout : TIMEWAIT_DEFAULT;

	conn->state = ROCI_CONN_TIMEWAIT;
	roci_peer_remove(&conn->x.cm->remote_qpns, &conn->remote_qpn_node);
	roci_exchange_set_timer(&conn->x, now + roci_cm_time_ns(t < TIMEWAIT_LONGEST ? t : TIMEWAIT_LONGEST));
}

/* ---- messages ---- */

void roci_conn_message(const struct roci_conn *conn, struct roci_cm_msg *msg, enum roci_cm_attribute attribute)
{
	msg->attribute = attribute;
	msg->tid = conn->tid;
	msg->local_id = conn->info.local_comm_id;
	msg->remote_id = conn->info.remote_comm_id;
}

/* A message with its private data. False: too long. */
static bool begin(const struct roci_conn *conn, struct roci_cm_msg *msg, enum roci_cm_attribute attribute,
		  struct roci_cm_bytes private)
{
	memset(msg, 0, sizeof(*msg));
	roci_conn_message(conn, msg, attribute);
	return roci_cm_copy(msg->private, roci_cm_private_room(attribute), private);
}

/* IBTA 12.6.7: which message is refused; neither, where we withdraw our own. */
static enum roci_cm_about about(const struct roci_conn *conn)
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
	roci_conn_message(conn, msg, ROCI_CM_ATTR_REJ);
	msg->about = about(conn);
	msg->reason = reason;
	/* 12.6.7.2, reason 4: the CA GUID lets a peer whose id we do not know find the connection. */
	if (reason == ROCI_REJ_TIMEOUT && !msg->info_len) {
		uint64_t guid = htobe64(conn->x.cm->config.ca_guid);

		memcpy(msg->info, &guid, sizeof(guid));
		msg->info_len = sizeof(guid);
	}
	roci_exchange_send(&conn->x, msg);
}

void roci_conn_send_dreq(struct roci_conn *conn, uint64_t now, struct roci_cm_msg *msg)
{
	struct roci_cm *cm = conn->x.cm;

	roci_conn_message(conn, msg, ROCI_CM_ATTR_DREQ);
	msg->tid = conn->dreq_tid = roci_cm_new_tid(cm);
	msg->qpn = conn->info.remote_qpn;
	conn->state = ROCI_CONN_DREQ_SENT;
	roci_exchange_send(&conn->x, msg);
	roci_exchange_start_retries(&conn->x, now, conn->response_timeout_ns, cm->config.dreq_retries);
}

static void send_drep(struct roci_conn *conn, uint64_t now, struct roci_cm_msg *msg)
{
	roci_conn_message(conn, msg, ROCI_CM_ATTR_DREP);
	msg->tid = conn->dreq_tid;
	roci_exchange_send(&conn->x, msg);
	roci_conn_enter_timewait(conn, now);
}

/* ---- connect ---- */

static bool path_ok(const struct roci_cm_path *path)
{
	return path->flow_label < 1u << 20 && path->sl < 16 && roci_mtu_code_is_valid(path->mtu) && path->rate < 64 &&
	       path->packet_life < 32;
}

static bool connect_ok(const struct roci_cm_connect *p)
{
	return path_ok(&p->path) && p->qpn < 1u << 24 && p->starting_psn < 1u << 24 && p->retry_count < 8 &&
	       p->rnr_retry_count < 8 && p->ack_timeout < 32 && p->ece.vendor_id < 1u << 24 &&
	       (p->transport == ROCI_CM_RC || p->transport == ROCI_CM_UC || p->transport == ROCI_CM_XRC);
}

static void fill_req(const struct roci_conn *conn, struct roci_cm_msg *msg, const struct roci_cm_connect *p)
{
	const struct roci_cm_config *config = &conn->x.cm->config;
	struct roci_cm_msg_path *path = &msg->primary;

	msg->service_id = p->service_id;
	msg->vendor_id = p->ece.vendor_id;
	msg->modifier = p->ece.options;
	msg->ca_guid = config->ca_guid;
	msg->qkey = p->qkey;
	msg->qpn = p->qpn;
	msg->starting_psn = p->starting_psn;
	msg->responder_resources = p->responder_resources;
	msg->initiator_depth = p->initiator_depth;
	msg->remote_response_timeout = msg->local_response_timeout = config->response_timeout;
	msg->transport = p->transport;
	msg->ext_transport = p->transport == ROCI_CM_XRC;
	msg->flow_control = p->flow_control;
	msg->retry_count = p->retry_count;
	msg->rnr_retry_count = p->rnr_retry_count;
	msg->max_retries = config->max_retries;
	msg->srq = p->srq;
	msg->pkey = p->path.pkey;
	msg->mtu = p->path.mtu;
	path->local_lid = path->remote_lid = LID_PERMISSIVE;
	memcpy(path->local_gid, p->path.sgid, 16);
	memcpy(path->remote_gid, p->path.dgid, 16);
	path->flow_label = p->path.flow_label;
	path->rate = p->path.rate;
	path->traffic_class = p->path.traffic_class;
	path->hop_limit = p->path.hop_limit;
	path->sl = p->path.sl;
	path->subnet_local = p->path.hop_limit <= 1;
	path->ack_timeout = conn->info.ack_timeout;
}

static void take_connect(struct roci_conn *conn, const struct roci_cm_connect *p)
{
	struct roci_conn_info *info = &conn->info;
	unsigned ack_timeout = p->ack_timeout ? p->ack_timeout : p->path.packet_life + 1u;

	info->path = p->path;
	memcpy(conn->x.local_gid, p->path.sgid, 16);
	memcpy(conn->x.remote_gid, p->path.dgid, 16);
	conn->x.ifindex = p->path.ifindex;
	conn->tid = roci_cm_new_tid(conn->x.cm);
	info->service_id = p->service_id;
	info->active = true;
	info->transport = p->transport;
	info->local_qpn = p->qpn;
	info->rq_psn = p->starting_psn;
	info->responder_resources = p->responder_resources;
	info->initiator_depth = p->initiator_depth;
	info->retry_count = p->retry_count;
	info->rnr_retry_count = p->rnr_retry_count;
	info->flow_control = p->flow_control;
	info->ack_timeout = (uint8_t)(ack_timeout < 32 ? ack_timeout : 31);
}

int roci_conn_connect(struct roci_cm *cm, uint64_t now, const struct roci_cm_connect *params, struct roci_conn **out)
{
	struct roci_cm_msg msg;
	struct roci_conn *conn;

	if (!connect_ok(params) || params->private.len > ROCI_CM_REQ_PRIVATE)
		return -EINVAL;
	conn = roci_conn_create(cm, params->user);
	if (!conn)
		return -ENOMEM;
	take_connect(conn, params);
	conn->response_timeout_ns =
		2 * roci_cm_time_ns(params->path.packet_life) + roci_cm_time_ns(cm->config.response_timeout);
	conn->remember_ns = conn->response_timeout_ns;
	begin(conn, &msg, ROCI_CM_ATTR_REQ, params->private);
	fill_req(conn, &msg, params);
	conn->state = ROCI_CONN_REQ_SENT;
	roci_exchange_send(&conn->x, &msg);
	roci_exchange_start_retries(&conn->x, now, conn->response_timeout_ns, cm->config.max_retries);
	*out = conn;
	return 0;
}

/* ---- answers ---- */

int roci_conn_accept(struct roci_conn *conn, uint64_t now, const struct roci_cm_accept *p)
{
	struct roci_cm_msg msg;

	if (conn->state != ROCI_CONN_REQ_RECEIVED || p->qpn >= 1u << 24 || p->starting_psn >= 1u << 24 ||
	    p->rnr_retry_count > 7 || p->target_ack_delay > 31 || p->ece.vendor_id >= 1u << 24 ||
	    !begin(conn, &msg, ROCI_CM_ATTR_REP, p->private))
		return -EINVAL;
	msg.vendor_id = p->ece.vendor_id;
	msg.modifier = p->ece.options;
	msg.qkey = p->qkey;
	msg.qpn = p->qpn;
	msg.starting_psn = p->starting_psn;
	msg.responder_resources = p->responder_resources;
	msg.initiator_depth = p->initiator_depth;
	msg.target_ack_delay = p->target_ack_delay;
	msg.flow_control = p->flow_control;
	msg.rnr_retry_count = p->rnr_retry_count;
	msg.srq = p->srq;
	msg.ca_guid = conn->x.cm->config.ca_guid;
	conn->info.local_qpn = p->qpn;
	conn->info.rq_psn = p->starting_psn;
	conn->info.responder_resources = p->responder_resources;
	conn->info.initiator_depth = p->initiator_depth;
	conn->state = ROCI_CONN_REP_SENT;
	conn->x.cm->answered_requests++;
	roci_exchange_send(&conn->x, &msg);
	roci_exchange_start_retries(&conn->x, now, conn->response_timeout_ns, conn->max_cm_retries);
	roci_backlog_answered(&conn->x, now);
	return 0;
}

int roci_conn_establish(struct roci_conn *conn, uint64_t now, struct roci_cm_bytes private)
{
	struct roci_cm_msg msg;

	if (conn->state != ROCI_CONN_REP_RECEIVED || !begin(conn, &msg, ROCI_CM_ATTR_RTU, private))
		return -EINVAL;
	conn->state = ROCI_CONN_ESTABLISHED;
	roci_exchange_send(&conn->x, &msg);
	return 0;
}

int roci_conn_notify(struct roci_conn *conn, uint64_t now)
{
	if (conn->state == ROCI_CONN_ESTABLISHED)
		return -EISCONN;
	if (conn->state != ROCI_CONN_REP_SENT)
		return -EINVAL;
	conn->state = ROCI_CONN_ESTABLISHED;
	roci_exchange_stop(&conn->x);
	roci_exchange_prepare_event(&conn->x, ROCI_CM_ESTABLISHED, NULL);
	roci_exchange_report(&conn->x);
	return 0;
}

int roci_conn_reject(struct roci_conn *conn, uint64_t now, enum roci_cm_reason reason, struct roci_cm_bytes ari,
		     struct roci_cm_bytes private)
{
	struct roci_cm_msg msg;

	switch (conn->state) {
	case ROCI_CONN_REQ_SENT:
	case ROCI_CONN_REQ_RECEIVED:
	case ROCI_CONN_REP_SENT:
	case ROCI_CONN_REP_RECEIVED: break;
	default: return -EINVAL;
	}
	if (!begin(conn, &msg, ROCI_CM_ATTR_REJ, private) || !roci_cm_copy(msg.info, sizeof(msg.info), ari))
		return -EINVAL;
	msg.info_len = (uint8_t)ari.len;
	roci_conn_send_rej(conn, reason, &msg);
	roci_conn_close(conn, now);
	conn->x.cm->answered_requests++;
	roci_backlog_answered(&conn->x, now);
	return 0;
}

int roci_conn_disconnect(struct roci_conn *conn, uint64_t now, struct roci_cm_bytes private)
{
	struct roci_cm_msg msg;

	if (conn->state == ROCI_CONN_ESTABLISHED) {
		if (!begin(conn, &msg, ROCI_CM_ATTR_DREQ, private))
			return -EINVAL;
		roci_conn_send_dreq(conn, now, &msg);
		return 0;
	}
	if (conn->state != ROCI_CONN_DREQ_RECEIVED || !begin(conn, &msg, ROCI_CM_ATTR_DREP, private))
		return -EINVAL;
	send_drep(conn, now, &msg);
	return 0;
}

void roci_conn_destroy(struct roci_conn *conn, uint64_t now)
{
	struct roci_cm_msg msg = {0};

	if (conn->x.orphan)
		return; /* by roci_cm_disconnect_all() */
	roci_exchange_cancel_event(&conn->x);
	conn->x.orphan = true;
	conn->x.cm->answered_requests += conn->state == ROCI_CONN_REQ_RECEIVED;
	switch (conn->state) {
	case ROCI_CONN_REQ_SENT:
		roci_conn_send_rej(conn, ROCI_REJ_TIMEOUT, &msg);
		roci_conn_close(conn, now);
		break;
	case ROCI_CONN_REQ_WAITING:
	case ROCI_CONN_REQ_RECEIVED:
	case ROCI_CONN_REP_SENT:
	case ROCI_CONN_REP_RECEIVED:
		roci_conn_send_rej(conn, ROCI_REJ_CONSUMER_DEFINED, &msg);
		roci_conn_close(conn, now);
		break;
	case ROCI_CONN_ESTABLISHED: roci_conn_send_dreq(conn, now, &msg); break;
	case ROCI_CONN_DREQ_RECEIVED: send_drep(conn, now, &msg); break;
	default: /* over, or on its way there */ break;
	}
	roci_backlog_answered(&conn->x, now);
	roci_cm_free_if_done(&conn->x);
}

/* ---- questions ---- */

void roci_conn_set_user(struct roci_conn *conn, void *user)
{
	conn->x.user = user;
}

void *roci_conn_user(const struct roci_conn *conn)
{
	return conn->x.user;
}

void roci_conn_fetched(struct roci_conn *conn, uint64_t now)
{
	roci_backlog_fetched(&conn->x, now);
}

enum roci_conn_state roci_conn_state(const struct roci_conn *conn)
{
	return conn->state;
}

const struct roci_conn_info *roci_conn_info(const struct roci_conn *conn)
{
	return &conn->info;
}
