/* SPDX-License-Identifier: BSD-2-Clause */
/* What the peer's messages do to a connection: the table `actions` has every message in every state (IBTA 12.9.7). */
#include <string.h>

#include "cm/conn_state.h"
#include "wire/mtu.h"

/* ---- replies that need no connection ---- */

/* 12.9.8.3.3: a DREQ is answered even where the connection is gone. */
static void reply_drep(struct roci_cm *cm, const struct roci_cm_source *from, const struct roci_cm_msg *dreq)
{
	struct roci_cm_msg drep = {
		.attribute = ROCI_CM_ATTR_DREP,
		.tid = dreq->tid,
		.local_id = dreq->remote_id,
		.remote_id = dreq->local_id,
	};

	roci_cm_reply(cm, from, &drep);
}

/* Alternate paths are not offered (12.8): the APR says so. */
static void reply_apr(struct roci_cm *cm, const struct roci_cm_source *from, const struct roci_cm_msg *lap)
{
	struct roci_cm_msg apr = {
		.attribute = ROCI_CM_ATTR_APR,
		.tid = lap->tid,
		.local_id = lap->remote_id,
		.remote_id = lap->local_id,
		.outcome = ROCI_APR_UNSUPPORTED,
	};

	roci_cm_reply(cm, from, &apr);
}

static void rx_unknown(struct roci_cm *cm, const struct roci_cm_source *from, const struct roci_cm_msg *msg)
{
	cm->stats.rx_unexpected++;
	if (msg->attribute == ROCI_CM_ATTR_DREQ)
		reply_drep(cm, from, msg);
	else if (msg->attribute == ROCI_CM_ATTR_REP)
		roci_conn_reject_rep(cm, from, msg, ROCI_REJ_INVALID_COMM_ID);
}

/* ---- actions: one message in some states ---- */

typedef void action_fn(struct roci_conn *conn, uint64_t now, const struct roci_cm_source *from,
		       const struct roci_cm_msg *msg);

/* A duplicate: resends what answers it, if that was our last message. */
static void resend(struct roci_conn *conn, enum roci_cm_attribute answer)
{
	conn->x.cm->stats.rx_duplicate++;
	if (conn->x.sent == answer)
		roci_exchange_resend(&conn->x);
}

static void resend_rep(struct roci_conn *conn, uint64_t now, const struct roci_cm_source *from,
		       const struct roci_cm_msg *msg)
{
	resend(conn, ROCI_CM_ATTR_REP);
}

static void resend_rtu(struct roci_conn *conn, uint64_t now, const struct roci_cm_source *from,
		       const struct roci_cm_msg *msg)
{
	resend(conn, ROCI_CM_ATTR_RTU);
}

static void resend_rej(struct roci_conn *conn, uint64_t now, const struct roci_cm_source *from,
		       const struct roci_cm_msg *msg)
{
	resend(conn, ROCI_CM_ATTR_REJ);
}

/* 12.6.6: a duplicate, and the consumer has not answered yet. */
static void send_mra(struct roci_conn *conn, uint64_t now, const struct roci_cm_source *from,
		     const struct roci_cm_msg *msg)
{
	struct roci_cm_msg mra = roci_conn_message(conn, ROCI_CM_ATTR_MRA);

	conn->x.cm->stats.rx_duplicate++;
	mra.about = msg->attribute == ROCI_CM_ATTR_REQ ? ROCI_CM_ABOUT_REQ : ROCI_CM_ABOUT_REP;
	mra.service_timeout = conn->x.cm->config.mra_timeout;
	roci_exchange_send(&conn->x, &mra);
}

/* 12.9.8.3.1: this side still waits for the old packets to be gone. */
static void reject_stale_req(struct roci_conn *conn, uint64_t now, const struct roci_cm_source *from,
			     const struct roci_cm_msg *req)
{
	conn->x.cm->stats.rx_duplicate++;
	roci_conn_reject_req(conn->x.cm, from, req, ROCI_REJ_STALE_CONN);
}

/* Our REJ was lost, or nothing is remembered of it. */
static void reject_rep_again(struct roci_conn *conn, uint64_t now, const struct roci_cm_source *from,
			     const struct roci_cm_msg *rep)
{
	if (conn->remembered && conn->x.sent == ROCI_CM_ATTR_REJ) {
		resend_rej(conn, now, from, rep);
	} else {
		conn->x.cm->stats.rx_duplicate++;
		roci_conn_reject_rep(conn->x.cm, from, rep, ROCI_REJ_INVALID_COMM_ID);
	}
}

static void become_established(struct roci_conn *conn, uint64_t now, const struct roci_cm_source *from,
			       const struct roci_cm_msg *rtu)
{
	roci_exchange_stop_timer(&conn->x);
	roci_conn_answered(conn, now);
	conn->state = ROCI_CONN_ESTABLISHED;
	roci_exchange_report_event(&conn->x, ROCI_CM_ESTABLISHED, rtu);
}

/* The peer has not heard that we withdrew our REP. */
static void reject_rtu(struct roci_conn *conn, uint64_t now, const struct roci_cm_source *from,
		       const struct roci_cm_msg *rtu)
{
	if (conn->remembered)
		resend_rej(conn, now, from, rtu);
}

static void report_rej(struct roci_conn *conn, const struct roci_cm_msg *rej)
{
	struct roci_cm_event *ev = roci_exchange_prepare_event(&conn->x, ROCI_CM_REJ_RECEIVED, rej);

	ev->reason = rej->reason;
	ev->rejected = rej->about;
	roci_exchange_report(&conn->x);
}

/* A passive side remembers the REQ: a copy that is still in the network must not begin the connection anew. */
static void close_by_peer(struct roci_conn *conn, uint64_t now)
{
	conn->x.sent = 0;
	roci_list_remove(&conn->x.sending);
	if (conn->info.active)
		roci_conn_close_forgotten(conn);
	else
		roci_conn_close(conn, now);
}

/* The consumer never hears of this request. */
static void withdraw_waiting(struct roci_conn *conn, uint64_t now, const struct roci_cm_source *from,
			     const struct roci_cm_msg *rej)
{
	conn->x.orphan = true;
	close_by_peer(conn, now);
	roci_backlog_answered(&conn->x, now);
}

/* 12.6.7.2, reason 26: the peer says which path MTU it takes. What comes late about the first REQ has its TID. */
static bool connect_smaller(struct roci_conn *conn, uint64_t now, const struct roci_cm_msg *rej)
{
	struct roci_cm_msg req;

	if (conn->state != ROCI_CONN_REQ_SENT || rej->about != ROCI_CM_ABOUT_REQ ||
	    rej->reason != ROCI_REJ_INVALID_MTU || !rej->info_len || !roci_mtu_code_is_valid(rej->info[0]) ||
	    rej->info[0] >= conn->info.path.mtu || roci_cm_msg_parse(&req, conn->x.mad) != ROCI_CM_PARSE_OK)
		return false;
	conn->tid = conn->x.nat.token = req.tid = roci_cm_new_tid(conn->x.cm);
	conn->info.path.mtu = req.mtu = rej->info[0];
	conn->info.path.mtu_is_limit = true;
	roci_exchange_send(&conn->x, &req);
	roci_exchange_start_retries(&conn->x, now, conn->response_timeout_ns, conn->x.cm->config.max_retries);
	return true;
}

static void become_rejected(struct roci_conn *conn, uint64_t now, const struct roci_cm_source *from,
			    const struct roci_cm_msg *rej)
{
	if (connect_smaller(conn, now, rej))
		return;
	close_by_peer(conn, now);
	report_rej(conn, rej);
	roci_backlog_withdrawn(&conn->x, now);
}

/* 12.9.7: the peer never got our RTU and gave up, its consumer withdrew the REP, or a repeated REP found no connection
 * there. All of these are about the REP or about no message. The REQ was accepted long ago. */
static void reject_established(struct roci_conn *conn, uint64_t now, const struct roci_cm_source *from,
			       const struct roci_cm_msg *rej)
{
	if (rej->about == ROCI_CM_ABOUT_REQ) {
		conn->x.cm->stats.rx_unexpected++;
		return;
	}
	roci_conn_enter_timewait(conn, now);
	report_rej(conn, rej);
}

/* The peer does not know the connection: as good as a DREP. */
static void reject_disconnecting(struct roci_conn *conn, uint64_t now, const struct roci_cm_source *from,
				 const struct roci_cm_msg *rej)
{
	roci_conn_enter_timewait(conn, now);
	roci_exchange_report_event(&conn->x, ROCI_CM_DREP_RECEIVED, NULL);
}

/* 12.6.6: the message that the MRA is about is not resent before its service timeout is over. */
static void postpone(struct roci_conn *conn, uint64_t now, const struct roci_cm_source *from,
		     const struct roci_cm_msg *mra)
{
	uint64_t wait_ns = roci_cm_time_ns(mra->service_timeout) + roci_cm_time_ns(conn->info.path.packet_life);

	if (mra->about == (conn->state == ROCI_CONN_REQ_SENT ? ROCI_CM_ABOUT_REQ : ROCI_CM_ABOUT_REP))
		roci_exchange_postpone(&conn->x, now, wait_ns);
}

static void disconnected(struct roci_conn *conn, const struct roci_cm_msg *dreq)
{
	roci_exchange_stop_timer(&conn->x);
	conn->state = ROCI_CONN_DREQ_RECEIVED;
	conn->dreq_tid = dreq->tid;
	roci_exchange_report_event(&conn->x, ROCI_CM_DREQ_RECEIVED, dreq);
}

/* A DREQ names our QP (12.6.10). Before the RTU it says that the RTU was lost. */
static void become_disconnected(struct roci_conn *conn, uint64_t now, const struct roci_cm_source *from,
				const struct roci_cm_msg *dreq)
{
	if (dreq->qpn == conn->info.local_qpn)
		disconnected(conn, dreq);
	else
		conn->x.cm->stats.rx_unexpected++;
}

/* The DREQ has overtaken the REP. The peer resends both. */
static void count_early_dreq(struct roci_conn *conn, uint64_t now, const struct roci_cm_source *from,
			     const struct roci_cm_msg *dreq)
{
	conn->x.cm->stats.rx_unexpected++;
}

/* 12.9.7.1: both sides sent a DREQ. The consumer has disconnected already and need not answer. */
static void cross_dreq(struct roci_conn *conn, uint64_t now, const struct roci_cm_source *from,
		       const struct roci_cm_msg *dreq)
{
	reply_drep(conn->x.cm, from, dreq);
	roci_conn_enter_timewait(conn, now);
	roci_exchange_report_event(&conn->x, ROCI_CM_DREP_RECEIVED, NULL);
}

/* The DREP was lost, or the connection is closed. */
static void repeat_drep(struct roci_conn *conn, uint64_t now, const struct roci_cm_source *from,
			const struct roci_cm_msg *dreq)
{
	conn->x.cm->stats.rx_duplicate++;
	reply_drep(conn->x.cm, from, dreq);
}

static void enter_timewait(struct roci_conn *conn, uint64_t now, const struct roci_cm_source *from,
			   const struct roci_cm_msg *drep)
{
	roci_conn_enter_timewait(conn, now);
	roci_exchange_report_event(&conn->x, ROCI_CM_DREP_RECEIVED, drep);
}

/* ---- the table ---- */

#define ON(message) [ROCI_CM_ATTR_##message - ROCI_CM_ATTR_REQ]
#define MESSAGES    (ROCI_CM_ATTR_DREP - ROCI_CM_ATTR_REQ + 1)

/* IBTA 12.9.7. What is not in the table is late or a duplicate: it is counted and dropped. */
static action_fn *const actions[ROCI_CONN_STATES][MESSAGES] = {
	[ROCI_CONN_REQ_SENT] = {ON(REP) = roci_conn_rx_rep, ON(REJ) = become_rejected, ON(MRA) = postpone,
				ON(DREQ) = count_early_dreq},
	[ROCI_CONN_REQ_WAITING] = {ON(REJ) = withdraw_waiting, ON(DREQ) = repeat_drep},
	[ROCI_CONN_REQ_RECEIVED] = {ON(REQ) = send_mra, ON(REJ) = become_rejected, ON(DREQ) = repeat_drep},
	[ROCI_CONN_REP_SENT] = {ON(REQ) = resend_rep, /* 12.9.8.3.1 */
				ON(RTU) = become_established, ON(REJ) = become_rejected, ON(MRA) = postpone,
				ON(DREQ) = become_disconnected},
	[ROCI_CONN_REP_RECEIVED] = {ON(REP) = send_mra, ON(REJ) = become_rejected, ON(DREQ) = become_disconnected},
	[ROCI_CONN_ESTABLISHED] = {ON(REQ) = resend_rep, /* late, or the RTU was not awaited: roci_conn_notify() */
				   ON(REP) = resend_rtu, ON(REJ) = reject_established, ON(DREQ) = become_disconnected},
	[ROCI_CONN_DREQ_SENT] = {ON(REJ) = reject_disconnecting, ON(DREQ) = cross_dreq, ON(DREP) = enter_timewait},
	[ROCI_CONN_DREQ_RECEIVED] = {NULL}, /* the consumer answers */
	[ROCI_CONN_TIMEWAIT] = {ON(REQ) = reject_stale_req, ON(DREQ) = repeat_drep},
	[ROCI_CONN_CLOSED] = {ON(REQ) = resend_rej, ON(REP) = reject_rep_again, ON(RTU) = reject_rtu,
			      ON(DREQ) = repeat_drep},
};

void roci_conn_act(struct roci_conn *conn, uint64_t now, const struct roci_cm_source *from,
		   const struct roci_cm_msg *msg)
{
	action_fn *action = actions[conn->state][msg->attribute - ROCI_CM_ATTR_REQ];

	if (action)
		action(conn, now, from, msg);
	else
		conn->x.cm->stats.rx_duplicate++;
}

/* ---- which connection ---- */

/* The answers to a REQ and REP have the TID of the REQ: 64 bits that nobody off the path knows. A DREQ starts an
 * exchange of its own. */
static bool same_exchange(const struct roci_conn *conn, const struct roci_cm_msg *msg)
{
	switch (msg->attribute) {
	case ROCI_CM_ATTR_REP:
	case ROCI_CM_ATTR_REJ:
	case ROCI_CM_ATTR_MRA: return msg->tid == conn->tid;
	default: return true;
	}
}

/* Our id has led here. The sender's must agree too, unless no answer has brought it yet: a peer that rejects our REQ
 * may have none, and then writes 0. */
static bool names_peer(const struct roci_conn *conn, const struct roci_cm_msg *msg)
{
	return conn->info.remote_comm_id == 0 || msg->local_id == conn->info.remote_comm_id;
}

static struct roci_conn *find_by_local_id(struct roci_cm *cm, const struct roci_cm_source *from,
					  const struct roci_cm_msg *msg)
{
	struct roci_exchange *x = roci_idmap_find(&cm->ids, msg->remote_id);

	if (!x || !x->conn)
		return NULL;
	if (!roci_exchange_is_from(x, from)) {
		cm->stats.rx_wrong_source++;
		return NULL;
	}
	return names_peer(x->conn, msg) ? x->conn : NULL;
}

/* A peer withdraws its REQ before a REP brought it our id (12.6.7.2, reason 4). Later it has to name the id. */
static struct roci_conn *find_withdrawn(struct roci_cm *cm, const struct roci_cm_source *from,
					const struct roci_cm_msg *rej)
{
	struct roci_peer_node *node = roci_peer_find(&cm->remote_ids, from->sgid, rej->local_id);
	struct roci_conn *conn = node ? roci_container_of(node, struct roci_conn, remote_id_node) : NULL;

	if (!conn)
		return NULL;
	switch (conn->state) {
	case ROCI_CONN_REQ_WAITING:
	case ROCI_CONN_REQ_RECEIVED:
	case ROCI_CONN_REP_SENT: return conn;
	default: return NULL;
	}
}

static struct roci_conn *find(struct roci_cm *cm, const struct roci_cm_source *from, const struct roci_cm_msg *msg)
{
	struct roci_conn *conn = msg->attribute == ROCI_CM_ATTR_REJ && !msg->remote_id
					 ? find_withdrawn(cm, from, msg)
					 : find_by_local_id(cm, from, msg);

	return conn && same_exchange(conn, msg) ? conn : NULL;
}

void roci_conn_rx(struct roci_cm *cm, uint64_t now, const struct roci_cm_source *from, const struct roci_cm_msg *msg)
{
	struct roci_conn *conn = find(cm, from, msg);

	if (!conn) {
		if (msg->attribute != ROCI_CM_ATTR_REJ || msg->remote_id || !roci_pending_withdraw(cm, from, msg))
			rx_unknown(cm, from, msg);
		return;
	}
	switch (msg->attribute) {
	case ROCI_CM_ATTR_LAP: reply_apr(cm, from, msg); break;
	case ROCI_CM_ATTR_APR: cm->stats.rx_unexpected++; break; /* we send no LAP */
	default: roci_conn_act(conn, now, from, msg);
	}
	roci_cm_free_if_done(&conn->x);
}

/* ---- peers that are dead ---- */

static bool has_peer(const struct roci_conn *conn)
{
	return conn->state == ROCI_CONN_REP_SENT || conn->state == ROCI_CONN_REP_RECEIVED ||
	       conn->state == ROCI_CONN_ESTABLISHED;
}

void roci_cm_disconnect_dead(struct roci_cm *cm, uint64_t now, roci_cm_peer_dead_fn *dead, void *context)
{
	static const struct roci_cm_msg dreq = {.attribute = ROCI_CM_ATTR_DREQ};

	for (struct roci_list *l = cm->exchanges.next; l != &cm->exchanges; l = l->next) {
		struct roci_exchange *x = roci_container_of(l, struct roci_exchange, all);

		if (x->conn && has_peer(x->conn) && dead(context, x->remote_gid, &x->conn->info))
			disconnected(x->conn, &dreq);
	}
}
