/* SPDX-License-Identifier: BSD-2-Clause */
/* What the consumer does to a connection: conn.h. */
#include <errno.h>
#include <string.h>

#include "cm/conn_state.h"
#include "wire/mtu.h"

#define LID_PERMISSIVE 0xffff /* there are no LIDs on Ethernet */

/* A message with private data. False: the data is too long. */
static bool begin_message(const struct roci_conn *conn, struct roci_cm_msg *msg, enum roci_cm_attribute attribute,
			  struct roci_cm_bytes private)
{
	*msg = roci_conn_message(conn, attribute);
	return roci_cm_copy(msg->private, roci_cm_private_room(attribute), private);
}

/* ---- connect ---- */

static bool path_fits(const struct roci_cm_path *path)
{
	return path->flow_label < 1u << 20 && path->sl < 16 && roci_mtu_code_is_valid(path->mtu) && path->rate < 64 &&
	       path->packet_life < 32;
}

static bool connect_fits(const struct roci_cm_connect *p)
{
	return path_fits(&p->path) && p->qpn < 1u << 24 && p->starting_psn < 1u << 24 && p->retry_count < 8 &&
	       p->rnr_retry_count < 8 && p->ack_timeout < 32 && p->ece.vendor_id < 1u << 24 &&
	       (p->transport == ROCI_CM_RC || p->transport == ROCI_CM_UC || p->transport == ROCI_CM_XRC) &&
	       p->private.len <= ROCI_CM_REQ_PRIVATE;
}

static void fill_req_path(struct roci_cm_msg_path *to, const struct roci_cm_path *path, uint8_t ack_timeout)
{
	to->local_lid = to->remote_lid = LID_PERMISSIVE;
	memcpy(to->local_gid, path->sgid, 16);
	memcpy(to->remote_gid, path->dgid, 16);
	to->flow_label = path->flow_label;
	to->rate = path->rate;
	to->traffic_class = path->traffic_class;
	to->hop_limit = path->hop_limit;
	to->sl = path->sl;
	to->subnet_local = path->hop_limit <= 1;
	to->ack_timeout = ack_timeout;
}

static void fill_req(const struct roci_conn *conn, struct roci_cm_msg *req, const struct roci_cm_connect *p)
{
	const struct roci_cm_config *config = &conn->x.cm->config;

	req->service_id = p->service_id;
	req->vendor_id = p->ece.vendor_id;
	req->modifier = p->ece.options;
	req->ca_guid = config->ca_guid;
	req->qkey = p->qkey;
	req->qpn = p->qpn;
	req->starting_psn = p->starting_psn;
	req->responder_resources = p->responder_resources;
	req->initiator_depth = p->initiator_depth;
	req->remote_response_timeout = req->local_response_timeout = config->response_timeout;
	req->transport = (uint8_t)p->transport;
	req->ext_transport = p->transport == ROCI_CM_XRC;
	req->flow_control = p->flow_control;
	req->retry_count = p->retry_count;
	req->rnr_retry_count = p->rnr_retry_count;
	req->max_cm_retries = config->max_retries;
	req->srq = p->srq;
	req->pkey = p->path.pkey;
	req->mtu = p->path.mtu;
	fill_req_path(&req->primary, &p->path, conn->info.ack_timeout);
}

/* What the connection keeps of the call. */
static void take_connect(struct roci_conn *conn, const struct roci_cm_connect *p)
{
	unsigned ack_timeout = p->ack_timeout ? p->ack_timeout : p->path.packet_life + 1u;

	conn->info = (struct roci_conn_info){
		.path = p->path,
		.service_id = p->service_id,
		.active = true,
		.transport = p->transport,
		.local_comm_id = conn->info.local_comm_id,
		.local_qpn = p->qpn,
		.rq_psn = p->starting_psn,
		.responder_resources = p->responder_resources,
		.initiator_depth = p->initiator_depth,
		.retry_count = p->retry_count,
		.rnr_retry_count = p->rnr_retry_count,
		.flow_control = p->flow_control,
		.ack_timeout = (uint8_t)(ack_timeout < 32 ? ack_timeout : 31),
	};
	memcpy(conn->x.local_gid, p->path.sgid, 16);
	memcpy(conn->x.remote_gid, p->path.dgid, 16);
	conn->x.ifindex = p->path.ifindex;
	conn->tid = conn->x.nat.token = roci_cm_new_tid(conn->x.cm);
	conn->response_timeout_ns =
		2 * roci_cm_time_ns(p->path.packet_life) + roci_cm_time_ns(conn->x.cm->config.response_timeout);
	conn->remember_ns = conn->response_timeout_ns;
}

int roci_conn_connect(struct roci_cm *cm, uint64_t now, const struct roci_cm_connect *params, struct roci_conn **out)
{
	struct roci_cm_msg req;
	struct roci_conn *conn;

	if (!connect_fits(params))
		return -EINVAL;
	conn = roci_conn_create(cm, params->user);
	if (!conn)
		return -ENOMEM;
	take_connect(conn, params);
	begin_message(conn, &req, ROCI_CM_ATTR_REQ, params->private);
	fill_req(conn, &req, params);
	conn->state = ROCI_CONN_REQ_SENT;
	roci_exchange_send(&conn->x, &req);
	roci_exchange_start_retries(&conn->x, now, conn->response_timeout_ns, cm->config.max_retries);
	*out = conn;
	return 0;
}

/* ---- answers ---- */

static void fill_rep(const struct roci_conn *conn, struct roci_cm_msg *rep, const struct roci_cm_accept *p)
{
	rep->vendor_id = p->ece.vendor_id;
	rep->modifier = p->ece.options;
	rep->qkey = p->qkey;
	rep->qpn = p->qpn;
	rep->starting_psn = p->starting_psn;
	rep->responder_resources = p->responder_resources;
	rep->initiator_depth = p->initiator_depth;
	rep->target_ack_delay = p->target_ack_delay;
	rep->flow_control = p->flow_control;
	rep->rnr_retry_count = p->rnr_retry_count;
	rep->srq = p->srq;
	rep->ca_guid = conn->x.cm->config.ca_guid;
}

int roci_conn_accept(struct roci_conn *conn, uint64_t now, const struct roci_cm_accept *p)
{
	struct roci_cm_msg rep;

	if (conn->state != ROCI_CONN_REQ_RECEIVED || p->qpn >= 1u << 24 || p->starting_psn >= 1u << 24 ||
	    p->rnr_retry_count > 7 || p->target_ack_delay > 31 || p->ece.vendor_id >= 1u << 24 ||
	    !begin_message(conn, &rep, ROCI_CM_ATTR_REP, p->private))
		return -EINVAL;
	fill_rep(conn, &rep, p);
	conn->info.local_qpn = p->qpn;
	conn->info.rq_psn = p->starting_psn;
	conn->info.responder_resources = p->responder_resources;
	conn->info.initiator_depth = p->initiator_depth;
	conn->state = ROCI_CONN_REP_SENT;
	conn->x.cm->answered_requests++;
	roci_exchange_send(&conn->x, &rep);
	roci_exchange_start_retries(&conn->x, now, conn->response_timeout_ns, conn->max_cm_retries);
	roci_backlog_answered(&conn->x, now);
	return 0;
}

int roci_conn_establish(struct roci_conn *conn, uint64_t now, struct roci_cm_bytes private)
{
	struct roci_cm_msg rtu;

	if (conn->state != ROCI_CONN_REP_RECEIVED || !begin_message(conn, &rtu, ROCI_CM_ATTR_RTU, private))
		return -EINVAL;
	conn->state = ROCI_CONN_ESTABLISHED;
	roci_exchange_send(&conn->x, &rtu);
	return 0;
}

int roci_conn_notify(struct roci_conn *conn, uint64_t now)
{
	if (conn->state == ROCI_CONN_ESTABLISHED)
		return -EISCONN;
	if (conn->state != ROCI_CONN_REP_SENT)
		return -EINVAL;
	conn->state = ROCI_CONN_ESTABLISHED;
	roci_conn_answered(conn, now); /* by the data */
	roci_exchange_stop_timer(&conn->x);
	roci_exchange_report_event(&conn->x, ROCI_CM_ESTABLISHED, NULL);
	return 0;
}

int roci_conn_reject(struct roci_conn *conn, uint64_t now, enum roci_cm_reason reason, struct roci_cm_bytes ari,
		     struct roci_cm_bytes private)
{
	struct roci_cm_msg rej;

	switch (conn->state) {
	case ROCI_CONN_REQ_SENT:
	case ROCI_CONN_REQ_RECEIVED:
	case ROCI_CONN_REP_SENT:
	case ROCI_CONN_REP_RECEIVED: break;
	default: return -EINVAL;
	}
	if (!begin_message(conn, &rej, ROCI_CM_ATTR_REJ, private) || !roci_cm_copy(rej.info, sizeof(rej.info), ari))
		return -EINVAL;
	rej.info_len = (uint8_t)ari.len;
	roci_conn_send_rej(conn, reason, &rej);
	roci_conn_close(conn, now);
	conn->x.cm->answered_requests++;
	roci_backlog_answered(&conn->x, now);
	return 0;
}

int roci_conn_disconnect(struct roci_conn *conn, uint64_t now, struct roci_cm_bytes private)
{
	struct roci_cm_msg msg;

	switch (conn->state) {
	case ROCI_CONN_ESTABLISHED:
		if (!begin_message(conn, &msg, ROCI_CM_ATTR_DREQ, private))
			return -EINVAL;
		roci_conn_send_dreq(conn, now, &msg);
		return 0;
	case ROCI_CONN_DREQ_RECEIVED:
		if (!begin_message(conn, &msg, ROCI_CM_ATTR_DREP, private))
			return -EINVAL;
		roci_conn_send_drep(conn, now, &msg);
		return 0;
	default: return -EINVAL;
	}
}

/* ---- destroy ---- */

static void end(struct roci_conn *conn, uint64_t now)
{
	struct roci_cm_msg dreq, drep;

	switch (conn->state) {
	case ROCI_CONN_REQ_SENT: roci_conn_reject_and_close(conn, now, ROCI_REJ_TIMEOUT); break;
	case ROCI_CONN_REQ_WAITING:
	case ROCI_CONN_REQ_RECEIVED:
	case ROCI_CONN_REP_SENT:
	case ROCI_CONN_REP_RECEIVED: roci_conn_reject_and_close(conn, now, ROCI_REJ_CONSUMER_DEFINED); break;
	case ROCI_CONN_ESTABLISHED:
		dreq = roci_conn_message(conn, ROCI_CM_ATTR_DREQ);
		roci_conn_send_dreq(conn, now, &dreq);
		break;
	case ROCI_CONN_DREQ_RECEIVED:
		drep = roci_conn_message(conn, ROCI_CM_ATTR_DREP);
		roci_conn_send_drep(conn, now, &drep);
		break;
	default: break; /* closed, or ends by itself */
	}
}

void roci_conn_destroy(struct roci_conn *conn, uint64_t now)
{
	if (conn->x.orphan)
		return; /* since roci_cm_disconnect_all() */
	roci_exchange_cancel_event(&conn->x);
	conn->x.orphan = true;
	conn->x.cm->answered_requests += conn->state == ROCI_CONN_REQ_RECEIVED;
	end(conn, now);
	roci_backlog_answered(&conn->x, now);
	roci_cm_free_if_done(&conn->x);
}

void roci_conn_fetched(struct roci_conn *conn, uint64_t now, bool in_turn)
{
	roci_backlog_fetches(&conn->x, in_turn);
	roci_backlog_fetched(&conn->x, now);
}
