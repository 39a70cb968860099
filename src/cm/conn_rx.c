/* SPDX-License-Identifier: BSD-2-Clause */
/* What the peer and the clock do to a connection after its REQ: IBTA 12.9.7, 12.9.8. */
#include <string.h>

#include "cm/internal.h"

static void count_unexpected(struct roci_cm *cm)
{
	cm->stats.rx_unexpected++;
}

/* ---- answers to who speaks of a connection that is not here ---- */

/* 12.9.8.3.3: whoever asks to disconnect what is gone gets its answer. */
static void answer_dreq(struct roci_cm *cm, const struct roci_cm_source *from, const struct roci_cm_msg *dreq)
{
	struct roci_cm_msg drep = {
		.attribute = ROCI_CM_ATTR_DREP,
		.tid = dreq->tid,
		.local_id = dreq->remote_id,
		.remote_id = dreq->local_id,
	};

	roci_cm_reply(cm, from, &drep);
}

static void answer_rep(struct roci_cm *cm, const struct roci_cm_source *from, const struct roci_cm_msg *rep,
		       enum roci_cm_reason reason)
{
	struct roci_cm_msg rej = {
		.attribute = ROCI_CM_ATTR_REJ,
		.tid = rep->tid,
		.local_id = rep->remote_id,
		.remote_id = rep->local_id,
		.about = ROCI_CM_ABOUT_REP,
		.reason = reason,
	};

	roci_cm_reply(cm, from, &rej);
}

/* Alternate paths are not offered (12.8): APR says so. */
static void answer_lap(struct roci_cm *cm, const struct roci_cm_source *from, const struct roci_cm_msg *lap)
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

static void answer_unknown_id(struct roci_cm *cm, const struct roci_cm_source *from, const struct roci_cm_msg *msg)
{
	count_unexpected(cm);
	if (msg->attribute == ROCI_CM_ATTR_DREQ)
		answer_dreq(cm, from, msg);
	else if (msg->attribute == ROCI_CM_ATTR_REP)
		answer_rep(cm, from, msg, ROCI_REJ_INVALID_COMM_ID);
}

/* ---- REP ---- */

/* The QP's ACK timeout, where t stands for the way there and back (IBTA 12.7.34): plus the peer's delay, rounded up to
 * the next power of two where the two are alike. */
static uint8_t ack_timeout(unsigned t, unsigned delay)
{
	if (t >= delay)
		t += delay + 1 >= t;
	else
		t = delay + (t + 1 >= delay);
	return (uint8_t)(t < 32 ? t : 31);
}

static void take_rep(struct roci_conn *conn, const struct roci_cm_msg *rep)
{
	struct roci_conn_info *info = &conn->info;

	conn->peer = (struct roci_cm_peer){
		.ca_guid = rep->ca_guid,
		.qpn = rep->qpn,
		.qkey = rep->qkey,
		.starting_psn = rep->starting_psn,
		.transport = (uint8_t)info->transport,
		.responder_resources = rep->initiator_depth,
		.initiator_depth = rep->responder_resources,
		.retry_count = info->retry_count,
		.rnr_retry_count = rep->rnr_retry_count,
		.target_ack_delay = rep->target_ack_delay,
		.failover = rep->failover,
		.flow_control = rep->flow_control,
		.srq = rep->srq,
		.ece = {rep->vendor_id, rep->modifier},
	};
	info->remote_comm_id = rep->local_id;
	info->remote_qpn = rep->qpn;
	info->sq_psn = rep->starting_psn;
	info->responder_resources = conn->peer.responder_resources;
	info->initiator_depth = conn->peer.initiator_depth;
	info->rnr_retry_count = rep->rnr_retry_count;
	info->ack_timeout = ack_timeout(info->ack_timeout, rep->target_ack_delay);
	info->remote_srq = rep->srq;
	info->flow_control = rep->flow_control;
}

/* 12.9.8.3.1, as for a REQ: the peer's QP belongs to a connection already. */
static void refuse_stale_rep(struct roci_conn *conn, const struct roci_cm_source *from, const struct roci_cm_msg *rep)
{
	conn->x.cm->stats.stale++;
	answer_rep(conn->x.cm, from, rep, ROCI_REJ_STALE_CONN);
	roci_exchange_prepare_event(&conn->x, ROCI_CM_REJ_RECEIVED, NULL)->reason = ROCI_REJ_STALE_CONN;
	roci_exchange_report(&conn->x);
	roci_conn_finish(conn);
}

static void first_rep(struct roci_conn *conn, const struct roci_cm_source *from, const struct roci_cm_msg *rep)
{
	struct roci_cm *cm = conn->x.cm;

	if (rep->qpn > 1 && roci_peer_find(&cm->remote_qpns, conn->x.remote_gid, rep->qpn)) {
		refuse_stale_rep(conn, from, rep);
		return;
	}
	take_rep(conn, rep);
	roci_peer_insert(&cm->remote_qpns, &conn->remote_qpn_node, conn->x.remote_gid, rep->qpn);
	roci_exchange_stop(&conn->x);
	conn->state = ROCI_CONN_REP_RECEIVED;
	roci_exchange_prepare_event(&conn->x, ROCI_CM_REP_RECEIVED, rep)->peer = &conn->peer;
	roci_exchange_report(&conn->x);
}

static void rx_rep(struct roci_conn *conn, const struct roci_cm_source *from, const struct roci_cm_msg *rep)
{
	struct roci_cm_msg mra = {0};

	if (conn->state == ROCI_CONN_REQ_SENT) {
		first_rep(conn, from, rep);
		return;
	}
	conn->x.cm->stats.rx_duplicate++;
	switch (conn->state) {
	case ROCI_CONN_REP_RECEIVED: /* the consumer has not answered yet */
		roci_conn_message(conn, &mra, ROCI_CM_ATTR_MRA);
		mra.about = ROCI_CM_ABOUT_REP;
		mra.service_timeout = conn->x.cm->config.mra_timeout;
		roci_exchange_send(&conn->x, &mra);
		break;
	case ROCI_CONN_ESTABLISHED:
		if (conn->info.active) /* the RTU was lost */
			roci_exchange_resend(&conn->x);
		break;
	case ROCI_CONN_CLOSED: /* the REJ was lost */
		if (conn->remembered && conn->x.sent == ROCI_CM_ATTR_REJ)
			roci_exchange_resend(&conn->x);
		else
			answer_rep(conn->x.cm, from, rep, ROCI_REJ_INVALID_COMM_ID);
		break;
	default: break;
	}
}

/* ---- RTU, REJ, MRA ---- */

static void rx_rtu(struct roci_conn *conn, const struct roci_cm_msg *rtu)
{
	if (conn->state == ROCI_CONN_REP_SENT) {
		roci_exchange_stop(&conn->x);
		conn->state = ROCI_CONN_ESTABLISHED;
		roci_exchange_prepare_event(&conn->x, ROCI_CM_ESTABLISHED, rtu);
		roci_exchange_report(&conn->x);
	} else if (conn->state == ROCI_CONN_CLOSED && conn->remembered && conn->x.sent == ROCI_CM_ATTR_REJ) {
		roci_exchange_resend(&conn->x); /* it has not heard that we withdrew */
	}
}

static void report_rej(struct roci_conn *conn, const struct roci_cm_msg *rej)
{
	struct roci_cm_event *ev = roci_exchange_prepare_event(&conn->x, ROCI_CM_REJ_RECEIVED, rej);

	ev->reason = rej->reason;
	ev->rejected = rej->about;
	roci_exchange_report(&conn->x);
}

/* A REQ that the network still holds must not begin the connection anew. */
static void close_by_peer(struct roci_conn *conn, uint64_t now)
{
	conn->x.sent = 0;
	roci_list_remove(&conn->x.sending);
	if (conn->info.active)
		roci_conn_finish(conn);
	else
		roci_conn_close(conn, now);
}

static void rx_rej(struct roci_conn *conn, uint64_t now, const struct roci_cm_msg *rej)
{
	switch (conn->state) {
	case ROCI_CONN_REQ_WAITING: /* the consumer never hears of it */
		conn->x.orphan = true;
		close_by_peer(conn, now);
		roci_backlog_answered(&conn->x, now);
		break;
	case ROCI_CONN_REQ_SENT:
	case ROCI_CONN_REQ_RECEIVED:
	case ROCI_CONN_REP_SENT:
	case ROCI_CONN_REP_RECEIVED:
		close_by_peer(conn, now);
		report_rej(conn, rej);
		roci_backlog_withdrawn(&conn->x, now);
		break;
	case ROCI_CONN_ESTABLISHED:
		roci_conn_enter_timewait(conn, now);
		report_rej(conn, rej);
		break;
	case ROCI_CONN_DREQ_SENT: /* it does not know the connection: as good as a DREP */
		roci_conn_enter_timewait(conn, now);
		roci_exchange_prepare_event(&conn->x, ROCI_CM_DREP_RECEIVED, NULL);
		roci_exchange_report(&conn->x);
		break;
	default: break;
	}
}

/* 12.6.6: what it speaks of is not sent again before the time is over. */
static void rx_mra(struct roci_conn *conn, uint64_t now, const struct roci_cm_msg *mra)
{
	uint64_t wait = roci_cm_time_ns(mra->service_timeout) + roci_cm_time_ns(conn->info.path.packet_life);

	if ((conn->state == ROCI_CONN_REQ_SENT && mra->about == ROCI_CM_ABOUT_REQ) ||
	    (conn->state == ROCI_CONN_REP_SENT && mra->about == ROCI_CM_ABOUT_REP))
		roci_exchange_postpone(&conn->x, now, wait);
}

/* ---- DREQ, DREP ---- */

/* 12.9.7.1: both asked. It is agreed, without another word to the consumer. */
static void both_disconnect(struct roci_conn *conn, uint64_t now, const struct roci_cm_source *from,
			    const struct roci_cm_msg *dreq)
{
	answer_dreq(conn->x.cm, from, dreq);
	roci_conn_enter_timewait(conn, now);
	roci_exchange_prepare_event(&conn->x, ROCI_CM_DREP_RECEIVED, NULL);
	roci_exchange_report(&conn->x);
}

static void disconnected(struct roci_conn *conn, const struct roci_cm_msg *dreq)
{
	roci_exchange_stop(&conn->x);
	conn->state = ROCI_CONN_DREQ_RECEIVED;
	conn->dreq_tid = dreq->tid;
	roci_exchange_prepare_event(&conn->x, ROCI_CM_DREQ_RECEIVED, dreq);
	roci_exchange_report(&conn->x);
}

static void rx_dreq(struct roci_conn *conn, uint64_t now, const struct roci_cm_source *from,
		    const struct roci_cm_msg *dreq)
{
	struct roci_cm *cm = conn->x.cm;

	switch (conn->state) {
	case ROCI_CONN_REP_SENT: /* the RTU was lost */
	case ROCI_CONN_REP_RECEIVED:
	case ROCI_CONN_ESTABLISHED:
		if (dreq->qpn != conn->info.local_qpn) {
			count_unexpected(cm);
			break;
		}
		disconnected(conn, dreq);
		break;
	case ROCI_CONN_REQ_SENT: /* it has overtaken its REP, and will be sent again */ count_unexpected(cm); break;
	case ROCI_CONN_DREQ_SENT: both_disconnect(conn, now, from, dreq); break;
	case ROCI_CONN_DREQ_RECEIVED: /* the consumer has not answered yet */ cm->stats.rx_duplicate++; break;
	case ROCI_CONN_TIMEWAIT: /* the DREP was lost */
		cm->stats.rx_duplicate++;
		answer_dreq(cm, from, dreq);
		break;
	default: answer_dreq(cm, from, dreq);
	}
}

static void rx_drep(struct roci_conn *conn, uint64_t now, const struct roci_cm_msg *drep)
{
	if (conn->state != ROCI_CONN_DREQ_SENT)
		return;
	roci_conn_enter_timewait(conn, now);
	roci_exchange_prepare_event(&conn->x, ROCI_CM_DREP_RECEIVED, drep);
	roci_exchange_report(&conn->x);
}

void roci_cm_disconnect_dead(struct roci_cm *cm, uint64_t now, roci_cm_peer_dead_fn *dead, void *context)
{
	struct roci_cm_msg dreq = {.attribute = ROCI_CM_ATTR_DREQ};

	for (struct roci_list *l = cm->exchanges.next; l != &cm->exchanges; l = l->next) {
		struct roci_exchange *x = roci_container_of(l, struct roci_exchange, all);
		struct roci_conn *conn = roci_conn_of(x);

		if (x->kind != ROCI_EXCHANGE_CONN ||
		    (conn->state != ROCI_CONN_REP_SENT && conn->state != ROCI_CONN_REP_RECEIVED &&
		     conn->state != ROCI_CONN_ESTABLISHED))
			continue;
		if (dead(context, x->remote_gid, &conn->info))
			disconnected(conn, &dreq);
	}
}

/* ---- which connection ---- */

/* Both ids must agree, but for what answers a REQ: the peer's id is news then, or was never drawn (a REJ with 0). */
static bool same_ids(const struct roci_conn *conn, const struct roci_cm_msg *msg)
{
	return conn->info.remote_comm_id == 0 || msg->local_id == conn->info.remote_comm_id ||
	       (msg->attribute == ROCI_CM_ATTR_REJ && msg->local_id == 0);
}

static struct roci_conn *find(struct roci_cm *cm, const struct roci_cm_source *from, const struct roci_cm_msg *msg)
{
	struct roci_exchange *x = roci_idmap_find(&cm->ids, msg->remote_id);
	struct roci_peer_node *node;

	if (x && x->kind == ROCI_EXCHANGE_CONN) {
		struct roci_conn *conn = roci_conn_of(x);

		if (memcmp(from->sgid, x->remote_gid, 16)) {
			cm->stats.rx_wrong_source++;
			return NULL;
		}
		return same_ids(conn, msg) ? conn : NULL;
	}
	/* A peer withdraws its REQ before it has heard of our id (12.6.7.2, reason 4). */
	if (msg->attribute != ROCI_CM_ATTR_REJ || msg->remote_id)
		return NULL;
	node = roci_peer_find(&cm->remote_ids, from->sgid, msg->local_id);
	return node ? roci_container_of(node, struct roci_conn, remote_id_node) : NULL;
}

void roci_conn_rx(struct roci_cm *cm, uint64_t now, const struct roci_cm_source *from, const struct roci_cm_msg *msg)
{
	struct roci_conn *conn = find(cm, from, msg);

	if (!conn && msg->attribute == ROCI_CM_ATTR_REJ && !msg->remote_id && roci_pending_withdraw(cm, from, msg))
		return;
	if (!conn) {
		answer_unknown_id(cm, from, msg);
		return;
	}
	switch (msg->attribute) {
	case ROCI_CM_ATTR_REP: rx_rep(conn, from, msg); break;
	case ROCI_CM_ATTR_RTU: rx_rtu(conn, msg); break;
	case ROCI_CM_ATTR_REJ: rx_rej(conn, now, msg); break;
	case ROCI_CM_ATTR_MRA: rx_mra(conn, now, msg); break;
	case ROCI_CM_ATTR_DREQ: rx_dreq(conn, now, from, msg); break;
	case ROCI_CM_ATTR_DREP: rx_drep(conn, now, msg); break;
	case ROCI_CM_ATTR_LAP: answer_lap(cm, from, msg); break;
	default: /* an APR without a LAP */ count_unexpected(cm);
	}
	roci_cm_free_if_done(&conn->x);
}

/* ---- time ---- */

/* Nobody answered: the consumer hears it, and the peer, if there is one, that we gave up (REJ 4). */
static void give_up(struct roci_conn *conn, uint64_t now, enum roci_cm_event_kind event)
{
	struct roci_cm_msg rej = {0};

	roci_conn_send_rej(conn, ROCI_REJ_TIMEOUT, &rej);
	roci_conn_close(conn, now);
	roci_exchange_report_timeout(&conn->x, event);
}

static void backlog_timeout(struct roci_conn *conn, uint64_t now)
{
	struct roci_cm_msg rej = {0};

	if (!roci_backlog_timeout(&conn->x, now))
		return;
	conn->x.orphan = true;
	roci_conn_send_rej(conn, ROCI_REJ_NO_RESOURCES, &rej);
	roci_conn_close(conn, now);
	roci_backlog_answered(&conn->x, now);
}

void roci_conn_timeout(struct roci_conn *conn, uint64_t now)
{
	switch (conn->state) {
	case ROCI_CONN_REQ_SENT:
		if (!roci_exchange_retransmit(&conn->x, now))
			give_up(conn, now, ROCI_CM_REQ_ERROR);
		break;
	case ROCI_CONN_REP_SENT:
		if (!roci_exchange_retransmit(&conn->x, now))
			give_up(conn, now, ROCI_CM_REP_ERROR);
		break;
	case ROCI_CONN_DREQ_SENT:
		if (!roci_exchange_retransmit(&conn->x, now)) {
			roci_conn_enter_timewait(conn, now);
			roci_exchange_report_timeout(&conn->x, ROCI_CM_DREQ_ERROR);
		}
		break;
	case ROCI_CONN_REQ_WAITING: backlog_timeout(conn, now); break;
	case ROCI_CONN_TIMEWAIT:
		roci_conn_finish(conn);
		roci_exchange_prepare_event(&conn->x, ROCI_CM_TIMEWAIT_EXIT, NULL);
		roci_exchange_report(&conn->x);
		break;
	default: /* the last duplicate has been answered */ roci_conn_finish(conn);
	}
}
