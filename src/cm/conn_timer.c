/* SPDX-License-Identifier: BSD-2-Clause */
/* What time does to a connection: retransmissions, the backlog, TimeWait (IBTA 12.9.8.4). */
#include <errno.h>

#include "cm/conn_state.h"

/* No answer: the consumer gets an error, and the peer, if there is one, REJ 4. */
static void give_up(struct roci_conn *conn, uint64_t now, enum roci_cm_event_kind event, int err)
{
	roci_conn_reject_and_close(conn, now, ROCI_REJ_TIMEOUT);
	roci_exchange_report_error(&conn->x, event, err);
}

void roci_conn_unreachable(struct roci_exchange *x, uint64_t now, int err)
{
	if (x->conn->state == ROCI_CONN_REQ_SENT)
		give_up(x->conn, now, ROCI_CM_REQ_ERROR, err);
}

static void backlog_timeout(struct roci_conn *conn, uint64_t now)
{
	if (!roci_backlog_timeout(&conn->x, now))
		return;
	conn->x.orphan = true; /* the consumer never heard of it */
	roci_conn_reject_and_close(conn, now, ROCI_REJ_NO_RESOURCES);
	roci_backlog_answered(&conn->x, now);
}

void roci_conn_timeout(struct roci_exchange *x, uint64_t now)
{
	struct roci_conn *conn = x->conn;

	switch (conn->state) {
	case ROCI_CONN_REQ_SENT:
		if (!roci_exchange_retransmit(x, now))
			give_up(conn, now, ROCI_CM_REQ_ERROR, -ETIMEDOUT);
		break;
	case ROCI_CONN_REP_SENT:
		if (!roci_exchange_retransmit(x, now))
			give_up(conn, now, ROCI_CM_REP_ERROR, -ETIMEDOUT);
		break;
	case ROCI_CONN_DREQ_SENT:
		if (!roci_exchange_retransmit(x, now)) {
			roci_conn_enter_timewait(conn, now);
			roci_exchange_report_error(x, ROCI_CM_DREQ_ERROR, -ETIMEDOUT);
		}
		break;
	case ROCI_CONN_REQ_WAITING: backlog_timeout(conn, now); break;
	case ROCI_CONN_TIMEWAIT:
		roci_conn_close_forgotten(conn);
		roci_exchange_report_event(x, ROCI_CM_TIMEWAIT_EXIT, NULL);
		break;
	default: roci_conn_close_forgotten(conn); /* closed: duplicates are no longer answered */
	}
}
