/* SPDX-License-Identifier: BSD-2-Clause */
/* A REQ arrives: IBTA 12.9.5.3, 12.10.4. Each check that fails says with which reason (12.6.7.2). */
#include <string.h>

#include "cm/internal.h"
#include "wire/mtu.h"

void roci_conn_reject_req(struct roci_cm *cm, const struct roci_cm_source *from, const struct roci_cm_msg *req,
			  enum roci_cm_reason reason)
{
	struct roci_cm_msg rej = {
		.attribute = ROCI_CM_ATTR_REJ,
		.tid = req->tid,
		.remote_id = req->local_id,
		.about = ROCI_CM_ABOUT_REQ,
		.reason = reason,
	};

	roci_cm_reply(cm, from, &rej);
}

/* The REQ arrived, and the consumer has not answered yet: 12.6.6. */
static void send_mra(struct roci_conn *conn)
{
	struct roci_cm_msg mra = {0};

	roci_conn_message(conn, &mra, ROCI_CM_ATTR_MRA);
	mra.about = ROCI_CM_ABOUT_REQ;
	mra.service_timeout = conn->x.cm->config.mra_timeout;
	roci_exchange_send(&conn->x, &mra);
}

/* The connection of this REQ exists. True: it was a duplicate, and is dealt with. */
static bool duplicate(struct roci_conn *conn, const struct roci_cm_source *from, const struct roci_cm_msg *req)
{
	struct roci_cm *cm = conn->x.cm;

	/* The peer has used its id again while we only remember our refusal. */
	if (conn->state == ROCI_CONN_CLOSED && conn->tid != req->tid) {
		roci_peer_remove(&cm->remote_ids, &conn->remote_id_node);
		return false;
	}
	cm->stats.rx_duplicate++;
	switch (conn->state) {
	case ROCI_CONN_REQ_RECEIVED: send_mra(conn); break;
	case ROCI_CONN_REP_SENT: /* 12.9.8.3.1: the REP may have been lost */ roci_exchange_resend(&conn->x); break;
	case ROCI_CONN_ESTABLISHED: /* by roci_conn_notify(), mistakenly */
		if (conn->x.sent == ROCI_CM_ATTR_REP)
			roci_exchange_resend(&conn->x);
		break;
	case ROCI_CONN_CLOSED: /* the REJ may have been lost; one that the peer sent us calls for nothing */
		if (conn->x.sent == ROCI_CM_ATTR_REJ)
			roci_exchange_resend(&conn->x);
		break;
	case ROCI_CONN_TIMEWAIT: roci_conn_reject_req(cm, from, req, ROCI_REJ_STALE_CONN); break;
	default: break;
	}
	return true;
}

/* 12.9.8.3.1: the peer's QP is in use by a connection that the peer has forgotten. */
static bool stale(struct roci_cm *cm, uint64_t now, const struct roci_cm_source *from, const struct roci_cm_msg *req)
{
	struct roci_peer_node *node = req->qpn > 1 ? roci_peer_find(&cm->remote_qpns, from->sgid, req->qpn) : NULL;
	struct roci_cm_msg dreq = {0};
	struct roci_conn *old;

	if (!node)
		return false;
	cm->stats.stale++;
	old = roci_container_of(node, struct roci_conn, remote_qpn_node);
	if (old->state == ROCI_CONN_ESTABLISHED)
		roci_conn_send_dreq(old, now, &dreq);
	return true;
}

/* What cannot be right whoever listens. 0: fine. A QP is connected to whoever asks for it, and not to a third host that
 * it names. */
static enum roci_cm_reason check_fields(const struct roci_cm_source *from, const struct roci_cm_msg *req)
{
	if (memcmp(req->primary.local_gid, from->sgid, 16) || memcmp(req->primary.remote_gid, from->dgid, 16))
		return ROCI_REJ_INVALID_GID;
	if (req->transport == ROCI_CM_XRC ? req->ext_transport != 1 : req->transport > ROCI_CM_UC)
		return ROCI_REJ_INVALID_TRANSPORT_TYPE;
	if (!roci_mtu_code_is_valid(req->mtu))
		return ROCI_REJ_INVALID_MTU;
	return 0;
}

static void take_path(struct roci_cm_path *path, const struct roci_cm_msg *req, uint32_t ifindex)
{
	const struct roci_cm_msg_path *primary = &req->primary;

	memcpy(path->sgid, primary->remote_gid, 16);
	memcpy(path->dgid, primary->local_gid, 16);
	path->ifindex = ifindex;
	path->flow_label = primary->flow_label;
	path->pkey = req->pkey;
	path->traffic_class = primary->traffic_class;
	path->hop_limit = primary->hop_limit;
	path->sl = primary->sl;
	path->mtu = req->mtu;
	path->rate = primary->rate;
	path->packet_life = primary->ack_timeout ? primary->ack_timeout - 1 : 0;
}

static void take_peer(struct roci_conn *conn, const struct roci_cm_msg *req)
{
	struct roci_conn_info *info = &conn->info;

	/* 12.7.29, 12.7.30: what the peer initiates we respond to, and the other way round. */
	conn->peer = (struct roci_cm_peer){
		.ca_guid = req->ca_guid,
		.qpn = req->qpn,
		.qkey = req->qkey,
		.starting_psn = req->starting_psn,
		.transport = req->transport,
		.responder_resources = req->initiator_depth,
		.initiator_depth = req->responder_resources,
		.retry_count = req->retry_count,
		.rnr_retry_count = req->rnr_retry_count,
		.ack_timeout = req->primary.ack_timeout,
		.flow_control = req->flow_control,
		.srq = req->srq,
		.ece = {req->vendor_id, req->modifier},
	};
	info->service_id = req->service_id;
	info->transport = req->transport;
	info->remote_comm_id = req->local_id;
	info->remote_qpn = req->qpn;
	info->sq_psn = req->starting_psn;
	info->responder_resources = conn->peer.responder_resources;
	info->initiator_depth = conn->peer.initiator_depth;
	info->retry_count = req->retry_count;
	info->rnr_retry_count = req->rnr_retry_count;
	info->ack_timeout = req->primary.ack_timeout;
	info->remote_srq = req->srq;
	info->flow_control = req->flow_control;
}

/* How long the peer takes to answer, and when it asks again; never so fast that a REQ buys a storm of REPs. */
static void take_times(struct roci_conn *conn, const struct roci_cm_msg *req)
{
	uint64_t round = 2 * roci_cm_time_ns(conn->info.path.packet_life), first = conn->x.cm->config.first_retry_ns;

	conn->response_timeout_ns = round + roci_cm_time_ns(req->local_response_timeout);
	conn->remember_ns = 2 * round + roci_cm_time_ns(req->remote_response_timeout);
	if (conn->response_timeout_ns < first)
		conn->response_timeout_ns = first;
	if (conn->remember_ns < first)
		conn->remember_ns = first;
	conn->max_cm_retries = req->max_retries;
}

static struct roci_conn *create(struct roci_cm *cm, const struct roci_cm_source *from, const struct roci_cm_msg *req)
{
	struct roci_conn *conn = roci_conn_create(cm, NULL);

	if (!conn)
		return NULL;
	conn->tid = req->tid;
	memcpy(conn->x.local_gid, from->dgid, 16);
	memcpy(conn->x.remote_gid, from->sgid, 16);
	conn->x.ifindex = from->ifindex;
	take_path(&conn->info.path, req, from->ifindex);
	take_peer(conn, req);
	take_times(conn, req);
	roci_peer_insert(&cm->remote_ids, &conn->remote_id_node, conn->x.remote_gid, req->local_id);
	roci_peer_insert(&cm->remote_qpns, &conn->remote_qpn_node, conn->x.remote_gid, req->qpn);
	return conn;
}

/* The event is composed at once, and told when the backlog lets it. */
static void compose(struct roci_conn *conn, const struct roci_cm_msg *req, struct roci_listener *listener,
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

void roci_conn_report_req(struct roci_conn *conn)
{
	conn->state = ROCI_CONN_REQ_RECEIVED;
	roci_exchange_stop(&conn->x);
	roci_exchange_report(&conn->x);
}

void roci_conn_rx_req(struct roci_cm *cm, uint64_t now, const struct roci_cm_source *from,
		      const struct roci_cm_msg *req)
{
	struct roci_peer_node *node = roci_peer_find(&cm->remote_ids, from->sgid, req->local_id);
	enum roci_cm_reason reason = check_fields(from, req);
	enum roci_backlog verdict = ROCI_BACKLOG_FULL;
	struct roci_listener *listener;
	struct roci_cm_ip ip;
	bool has_ip;
	struct roci_conn *conn;

	if (node && duplicate(roci_container_of(node, struct roci_conn, remote_id_node), from, req))
		return;
	listener = roci_listener_for_request(cm, from, req, &ip, &has_ip);
	if (!reason && !listener) {
		if (roci_pending_add(cm, now, from, req))
			return;
		reason = ROCI_REJ_INVALID_SERVICE_ID;
	}
	if (!reason && stale(cm, now, from, req))
		reason = ROCI_REJ_STALE_CONN;
	if (!reason && (verdict = roci_backlog_admit(listener, now)) == ROCI_BACKLOG_FULL)
		reason = ROCI_REJ_NO_RESOURCES;
	if (reason) {
		roci_conn_reject_req(cm, from, req, reason);
		return;
	}
	conn = create(cm, from, req);
	if (!conn)
		return; /* the peer asks again */
	compose(conn, req, listener, has_ip ? &ip : NULL);
	if (verdict == ROCI_BACKLOG_REPORT) {
		roci_backlog_reported(listener, &conn->x, now);
		roci_conn_report_req(conn);
	} else {
		conn->state = ROCI_CONN_REQ_WAITING;
		roci_backlog_wait(listener, &conn->x, now);
	}
}
