/* SPDX-License-Identifier: BSD-2-Clause */
/* A REP arrives for a connection in REQ_SENT: IBTA 12.9.5, 12.10.4. */
#include "cm/conn_state.h"

void roci_conn_reject_rep(struct roci_cm *cm, const struct roci_cm_source *from, const struct roci_cm_msg *rep,
			  enum roci_cm_reason reason)
{
	struct roci_cm_msg rej = {
		.attribute = ROCI_CM_ATTR_REJ,
		.tid = rep->tid,
		.local_id = rep->remote_id,
		.remote_id = rep->local_id,
		.about = ROCI_CM_ABOUT_REP,
		.reason = (uint16_t)reason,
	};

	roci_cm_reply(cm, from, &rej);
}

/* The QP's ACK timeout (IBTA 12.7.34), as Linux computes it: t, the 5-bit time there and back, plus the peer's delay.
 * Only where the two are about equal does the sum reach the next power of two. */
static uint8_t ack_timeout(unsigned t, unsigned delay)
{
	if (t >= delay)
		t += delay + 1 >= t;
	else
		t = delay + (t + 1 >= delay);
	return (uint8_t)(t < 32 ? t : 31);
}

/* 12.9.8.3.1, as for a REQ: a connection exists with the peer's QP. */
static void reject_stale(struct roci_conn *conn, const struct roci_cm_source *from, const struct roci_cm_msg *rep)
{
	conn->x.cm->stats.stale++;
	roci_conn_reject_rep(conn->x.cm, from, rep, ROCI_REJ_STALE_CONN);
	roci_exchange_prepare_event(&conn->x, ROCI_CM_REJ_RECEIVED, NULL)->reason = ROCI_REJ_STALE_CONN;
	roci_exchange_report(&conn->x);
	roci_conn_close_forgotten(conn);
}

void roci_conn_rx_rep(struct roci_conn *conn, uint64_t now, const struct roci_cm_source *from,
		      const struct roci_cm_msg *rep)
{
	if (roci_conn_of_qpn(conn->x.cm, conn->x.remote_gid, rep)) {
		reject_stale(conn, from, rep);
		return;
	}
	roci_conn_answered(conn, now);
	roci_conn_take_peer(conn, rep);
	conn->info.ack_timeout = ack_timeout(conn->info.ack_timeout, rep->target_ack_delay);
	roci_conn_insert_qpn(conn);
	roci_exchange_stop_timer(&conn->x);
	conn->state = ROCI_CONN_REP_RECEIVED;
	roci_exchange_prepare_event(&conn->x, ROCI_CM_REP_RECEIVED, rep)->peer = &conn->peer;
	roci_exchange_report(&conn->x);
}
