/* SPDX-License-Identifier: BSD-2-Clause */
/* A REQ arrives: IBTA 12.9.5.3, 12.10.4. Each check that fails names the reason of the REJ (12.6.7.2). */
#include <string.h>

#include "cm/conn_state.h"
#include "cm/listener.h"
#include "wire/mtu.h"

void roci_conn_reject_req(struct roci_cm *cm, const struct roci_cm_source *from, const struct roci_cm_msg *req,
			  enum roci_cm_reason reason)
{
	struct roci_cm_msg rej = {
		.attribute = ROCI_CM_ATTR_REJ,
		.tid = req->tid,
		.remote_id = req->local_id,
		.about = ROCI_CM_ABOUT_REQ,
		.reason = (uint16_t)reason,
	};

	if (reason == ROCI_REJ_INVALID_MTU && roci_cm_probed_mtu(cm, req->tid)) {
		rej.info[0] = roci_cm_probed_mtu(cm, req->tid);
		rej.info_len = 1;
	}
	roci_cm_reply(cm, from, &rej);
}

/* ---- checks: the reason for a REJ, or 0 ---- */

/* What no listener could accept. The GIDs are checked so that a peer cannot aim our QP at a third host. */
static enum roci_cm_reason check_fields(const struct roci_cm_source *from, const struct roci_cm_msg *req)
{
	const uint8_t *src = from->nat ? from->nat->src : from->sgid, *dst = from->nat ? from->nat->dst : from->dgid;

	if (memcmp(req->primary.local_gid, src, 16) || memcmp(req->primary.remote_gid, dst, 16))
		return ROCI_REJ_INVALID_GID;
	if (req->transport == ROCI_CM_XRC ? req->ext_transport != 1 : req->transport > ROCI_CM_UC)
		return ROCI_REJ_INVALID_TRANSPORT_TYPE;
	if (!roci_mtu_code_is_valid(req->mtu))
		return ROCI_REJ_INVALID_MTU;
	return 0;
}

/* The path does not bear packets as long as the peer means to send. */
static bool is_too_long(const struct roci_cm *cm, const struct roci_cm_msg *req)
{
	uint8_t probed = roci_cm_probed_mtu(cm, req->tid);

	return probed && probed < req->mtu;
}

/* 12.9.8.3.1: a connection exists with the peer's QP, so the peer has forgotten it. */
static enum roci_cm_reason check_stale(struct roci_cm *cm, uint64_t now, const struct roci_cm_source *from,
				       const struct roci_cm_msg *req)
{
	struct roci_conn *old = roci_conn_of_qpn(cm, from->sgid, req);

	if (!old)
		return 0;
	cm->stats.stale++;
	if (old->state == ROCI_CONN_ESTABLISHED) {
		struct roci_cm_msg dreq = roci_conn_message(old, ROCI_CM_ATTR_DREQ);

		roci_conn_send_dreq(old, now, &dreq);
	}
	return ROCI_REJ_STALE_CONN;
}

/* ---- what the connection keeps of the REQ ---- */

static void take_path(struct roci_cm_path *path, const struct roci_cm_msg *req, const struct roci_cm_source *from)
{
	const struct roci_cm_msg_path *primary = &req->primary;

	memcpy(path->sgid, from->dgid, 16);
	memcpy(path->dgid, from->sgid, 16);
	path->ifindex = from->ifindex;
	path->flow_label = primary->flow_label;
	path->pkey = req->pkey;
	path->traffic_class = primary->traffic_class;
	path->hop_limit = primary->hop_limit;
	path->sl = primary->sl;
	path->mtu = req->mtu;
	path->rate = primary->rate;
	path->packet_life = primary->ack_timeout ? primary->ack_timeout - 1 : 0;
}

static void take_req(struct roci_conn *conn, const struct roci_cm_msg *req)
{
	struct roci_conn_info *info = &conn->info;

	info->service_id = req->service_id;
	info->transport = req->transport;
	info->retry_count = req->retry_count;
	info->ack_timeout = req->primary.ack_timeout;
	roci_conn_take_peer(conn, req);
}

/* How long the peer takes to answer, and when it resends. Never below first_retry_ns: otherwise one REQ could ask for a
 * storm of REPs. */
static void take_times(struct roci_conn *conn, const struct roci_cm_msg *req)
{
	uint64_t round = 2 * roci_cm_time_ns(conn->info.path.packet_life), first = conn->x.cm->config.first_retry_ns;

	conn->response_timeout_ns = round + roci_cm_time_ns(req->local_response_timeout);
	conn->remember_ns = 2 * round + roci_cm_time_ns(req->remote_response_timeout);
	if (conn->response_timeout_ns < first)
		conn->response_timeout_ns = first;
	if (conn->remember_ns < first)
		conn->remember_ns = first;
	conn->max_cm_retries = req->max_cm_retries;
}

static struct roci_conn *create(struct roci_cm *cm, const struct roci_cm_source *from, const struct roci_cm_msg *req)
{
	struct roci_conn *conn = roci_conn_create(cm, NULL);

	if (!conn)
		return NULL;
	conn->tid = req->tid;
	roci_exchange_come_from(&conn->x, from, req->tid);
	take_path(&conn->info.path, req, from);
	take_req(conn, req);
	take_times(conn, req);
	roci_peer_insert(&cm->remote_ids, &conn->remote_id_node, conn->x.remote_gid, req->local_id);
	roci_conn_insert_qpn(conn);
	return conn;
}

/* ---- a new connection ---- */

void roci_conn_report_req(struct roci_exchange *x)
{
	x->conn->state = ROCI_CONN_REQ_RECEIVED;
	roci_exchange_stop_timer(x);
	roci_exchange_report(x);
}

/* The event is prepared now, and reported when it is its turn in the backlog. */
static void prepare_event(struct roci_conn *conn, const struct roci_cm_msg *req, struct roci_listener *listener,
			  const struct roci_cm_ip *ip)
{
	struct roci_cm_event *ev = roci_exchange_prepare_event(&conn->x, ROCI_CM_REQ_RECEIVED, req);

	ev->listener = listener;
	ev->service_id = req->service_id;
	ev->peer = &conn->peer;
	ev->has_ip = ip;
	if (ip)
		ev->ip = *ip;
}

static void rx_new(struct roci_cm *cm, uint64_t now, const struct roci_cm_source *from, const struct roci_cm_msg *req)
{
	enum roci_backlog_verdict verdict = ROCI_BACKLOG_FULL;
	enum roci_cm_reason reason = check_fields(from, req);
	struct roci_listener *listener;
	struct roci_conn *conn;
	struct roci_cm_ip ip;
	bool has_ip;

	listener = roci_listener_for_request(cm, from, req, &ip, &has_ip);
	if (!reason && !listener) {
		if (roci_pending_add(cm, now, from, req))
			return;
		reason = ROCI_REJ_INVALID_SERVICE_ID;
	}
	if (!reason && is_too_long(cm, req))
		reason = ROCI_REJ_INVALID_MTU;
	if (!reason)
		reason = check_stale(cm, now, from, req);
	if (!reason && (verdict = roci_backlog_admit(listener, now)) == ROCI_BACKLOG_FULL)
		reason = ROCI_REJ_NO_RESOURCES;
	if (reason) {
		roci_conn_reject_req(cm, from, req, reason);
		return;
	}
	conn = create(cm, from, req);
	if (!conn)
		return; /* the peer will resend its REQ */
	prepare_event(conn, req, listener, has_ip ? &ip : NULL);
	conn->state = ROCI_CONN_REQ_WAITING;
	roci_backlog_enter(listener, &conn->x, verdict, now);
}

void roci_conn_rx_req(struct roci_cm *cm, uint64_t now, const struct roci_cm_source *from,
		      const struct roci_cm_msg *req)
{
	struct roci_peer_node *node = roci_peer_find(&cm->remote_ids, from->sgid, req->local_id);
	struct roci_conn *conn = node ? roci_container_of(node, struct roci_conn, remote_id_node) : NULL;

	/* The peer uses its id again, and we only remember the connection to answer duplicates. */
	if (conn && conn->state == ROCI_CONN_CLOSED && conn->tid != req->tid) {
		roci_peer_remove(&cm->remote_ids, &conn->remote_id_node);
		conn = NULL;
	}
	if (conn && from->nat && conn->tid != req->tid)
		conn = NULL; /* of another host behind the same NAT */
	if (conn)
		roci_conn_act(conn, now, from, req);
	else
		rx_new(cm, now, from, req);
}
