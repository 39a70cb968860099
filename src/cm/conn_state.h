/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection inside this room:
 *
 *     conn.c        creates, closes and frees it; sends its REJ, DREQ and DREP
 *     conn_calls.c  the consumer's calls
 *     conn_rx.c     what each message does in each state: the table `actions`
 *     conn_req.c    a REQ that begins a connection: checks, backlog
 *     conn_rep.c    the REP that answers ours
 *     conn_timer.c  retransmissions, backlog, TimeWait
 */
#ifndef ROCI_CM_CONN_STATE_H
#define ROCI_CM_CONN_STATE_H

#include "cm/conn.h"
#include "cm/exchange.h"
#include "cm/manager.h"

/* IBTA 12.9.7. The MRA Sent and MRA Rcvd states of the standard are missing: an MRA only moves the peer's timer. */
enum roci_conn_state {
	ROCI_CONN_CLOSED, /* rejected, timed out, TimeWait is over. A closed one may be `remembered` */
	ROCI_CONN_REQ_SENT,
	ROCI_CONN_REQ_WAITING,  /* REQ received, not reported yet: it waits for its turn in the backlog */
	ROCI_CONN_REQ_RECEIVED, /* and reported */
	ROCI_CONN_REP_SENT,
	ROCI_CONN_REP_RECEIVED,
	ROCI_CONN_ESTABLISHED,
	ROCI_CONN_DREQ_SENT,
	ROCI_CONN_DREQ_RECEIVED,
	ROCI_CONN_TIMEWAIT,
	ROCI_CONN_STATES
};

struct roci_conn {
	struct roci_exchange x;
	enum roci_conn_state state;
	struct roci_conn_info info;
	struct roci_cm_peer peer;
	uint64_t tid;                                          /* of the REQ */
	uint64_t dreq_tid;                                     /* of the DREQ, ours or the peer's */
	uint64_t response_timeout_ns;                          /* how long the peer may take to answer */
	uint64_t remember_ns;                                  /* how long the peer may go on resending */
	uint8_t max_cm_retries;                                /* of the peer's REQ */
	bool remembered;                                       /* closed, but still answers duplicates */
	struct roci_peer_node remote_id_node, remote_qpn_node; /* in cm->remote_ids, cm->remote_qpns */
};

/* ---- conn.c ---- */

/* In state CLOSED, with a local id. NULL: out of memory. */
struct roci_conn *roci_conn_create(struct roci_cm *cm, void *user);
/* Closes it, and remembers it for remember_ns: what was sent last answers duplicates. */
void roci_conn_close(struct roci_conn *conn, uint64_t now);
/* Closes it at once: duplicates find no connection. */
void roci_conn_close_forgotten(struct roci_conn *conn);
/* IBTA 12.9.8.4: for as long as packets of the connection may be on their way. */
void roci_conn_enter_timewait(struct roci_conn *conn, uint64_t now);

/* Fills `peer` and the peer's part of `info` from a REQ or REP. Before: info.transport and info.retry_count, which only
 * a REQ has. */
void roci_conn_take_peer(struct roci_conn *conn, const struct roci_cm_msg *msg);
/* The last message of ours that wants an answer has it: fills info.answer_ns. */
void roci_conn_answered(struct roci_conn *conn, uint64_t now);
/* The peer's QP leads to the connection from now on. Before: `peer` and x.remote_gid. */
void roci_conn_insert_qpn(struct roci_conn *conn);
/* 12.9.8.3.1: the connection with the QP that this REQ or REP from `gid` names. The same QPN of another CA is another
 * QP. NULL: none; QPNs 0 and 1 have none. */
struct roci_conn *roci_conn_of_qpn(struct roci_cm *cm, const uint8_t gid[16], const struct roci_cm_msg *msg);
/* An empty message of the connection: attribute, ids, TID. */
struct roci_cm_msg roci_conn_message(const struct roci_conn *conn, enum roci_cm_attribute attribute);
/* Complete and send `msg`, which roci_conn_message() made and the caller may have given private data and ARI. */
void roci_conn_send_rej(struct roci_conn *conn, enum roci_cm_reason reason, struct roci_cm_msg *msg);
void roci_conn_send_dreq(struct roci_conn *conn, uint64_t now, struct roci_cm_msg *msg); /* enters DREQ_SENT */
void roci_conn_send_drep(struct roci_conn *conn, uint64_t now, struct roci_cm_msg *msg); /* enters TIMEWAIT */
/* Sends a REJ without private data, then closes it. */
void roci_conn_reject_and_close(struct roci_conn *conn, uint64_t now, enum roci_cm_reason reason);

/* ---- conn_rx.c ---- */

/* The action of this message in the state of the connection. */
void roci_conn_act(struct roci_conn *conn, uint64_t now, const struct roci_cm_source *from,
		   const struct roci_cm_msg *msg);
/* Every message but REQ: finds its connection and acts. */
void roci_conn_rx(struct roci_cm *cm, uint64_t now, const struct roci_cm_source *from, const struct roci_cm_msg *msg);

/* ---- conn_req.c ---- */

/* A REQ: of a connection that exists, or a new one's. */
void roci_conn_rx_req(struct roci_cm *cm, uint64_t now, const struct roci_cm_source *from,
		      const struct roci_cm_msg *req);
/* Answers a REQ with a REJ. No connection is created. */
void roci_conn_reject_req(struct roci_cm *cm, const struct roci_cm_source *from, const struct roci_cm_msg *req,
			  enum roci_cm_reason reason);
/* REQ_WAITING becomes REQ_RECEIVED. */
void roci_conn_report_req(struct roci_exchange *x);

/* ---- conn_rep.c ---- */

/* The first REP, in REQ_SENT. */
void roci_conn_rx_rep(struct roci_conn *conn, uint64_t now, const struct roci_cm_source *from,
		      const struct roci_cm_msg *rep);
/* Answers a REP with a REJ. */
void roci_conn_reject_rep(struct roci_cm *cm, const struct roci_cm_source *from, const struct roci_cm_msg *rep,
			  enum roci_cm_reason reason);

/* ---- conn_timer.c ---- */

void roci_conn_timeout(struct roci_exchange *x, uint64_t now);
void roci_conn_unreachable(struct roci_exchange *x, uint64_t now, int err);

#endif
