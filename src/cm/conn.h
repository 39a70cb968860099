/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection, for its consumer (IBTA 12.9). Consumers include cm/cm.h.
 *
 *     active side                                       passive side
 *     roci_conn_connect()    -- REQ -->                 ROCI_CM_REQ_RECEIVED (a new conn)
 *     ROCI_CM_REP_RECEIVED   <-- REP --                 roci_conn_accept()
 *     roci_conn_establish()  -- RTU -->                 ROCI_CM_ESTABLISHED
 *     roci_conn_disconnect() -- DREQ ->                 ROCI_CM_DREQ_RECEIVED
 *     ROCI_CM_DREP_RECEIVED  <- DREP --                 roci_conn_disconnect()
 *     ROCI_CM_TIMEWAIT_EXIT                             ROCI_CM_TIMEWAIT_EXIT
 *
 * MRAs need no call: a repeated REQ or REP that finds the consumer without an answer yet is answered with an MRA.
 */
#ifndef ROCI_CM_CONN_H
#define ROCI_CM_CONN_H

#include "cm/reason.h"
#include "cm/types.h"

/* A starting PSN is where the receiver of the REQ or REP begins to transmit (IBTA 12.7, Starting PSN): our own is the
 * first that we expect, the peer's is the first that we send. */
struct roci_cm_connect {
	uint64_t service_id;
	struct roci_cm_path path;
	uint32_t qpn, starting_psn, qkey;
	enum roci_cm_transport transport;
	uint8_t responder_resources; /* RDMA READs and atomics that we serve at once */
	uint8_t initiator_depth;     /* RDMA READs and atomics that we want to have outstanding */
	uint8_t retry_count, rnr_retry_count;
	uint8_t ack_timeout; /* 5-bit time; 0: twice path.packet_life */
	bool flow_control, srq;
	struct roci_cm_ece ece;
	struct roci_cm_bytes private; /* copied; at most ROCI_CM_REQ_PRIVATE, the IP CM header included */
	void *user;
};
/* Sends a REQ. -EINVAL: a field does not fit; -ENOMEM. */
int roci_conn_connect(struct roci_cm *cm, uint64_t now, const struct roci_cm_connect *params, struct roci_conn **out);

struct roci_cm_accept {
	uint32_t qpn, starting_psn, qkey;
	uint8_t responder_resources, initiator_depth; /* the consumer keeps within what the REQ offers */
	uint8_t rnr_retry_count, target_ack_delay;
	bool flow_control, srq;
	struct roci_cm_ece ece;
	struct roci_cm_bytes private; /* copied; at most ROCI_CM_REP_PRIVATE */
};
/* Answers REQ_RECEIVED with a REP. -EINVAL: another state, or a field does not fit. */
int roci_conn_accept(struct roci_conn *conn, uint64_t now, const struct roci_cm_accept *params);

/* Answers REP_RECEIVED with an RTU. -EINVAL: another state, or too much private data. */
int roci_conn_establish(struct roci_conn *conn, uint64_t now, struct roci_cm_bytes private);

/* Passive side, as rdma_notify(): data arrived on the QP before the RTU (IBTA 12.9.6). ROCI_CM_ESTABLISHED follows.
 * -EINVAL: another state; -EISCONN: the connection is established already. */
int roci_conn_notify(struct roci_conn *conn, uint64_t now);

/* Sends a REJ: rejects the peer's REQ or REP, or withdraws our own. The connection is closed. -EINVAL: another state,
 * or a field does not fit. */
int roci_conn_reject(struct roci_conn *conn, uint64_t now, enum roci_cm_reason reason, struct roci_cm_bytes ari,
		     struct roci_cm_bytes private);

/* Sends a DREQ when established; answers DREQ_RECEIVED with a DREP. -EINVAL: any other state, or too much private
 * data. */
int roci_conn_disconnect(struct roci_conn *conn, uint64_t now, struct roci_cm_bytes private);

/* The consumer lets go, in any state: no event follows, and the handle is invalid. The peer gets REJ 28 where a REQ or
 * REP waits for an answer, REJ 4 for a REQ of ours, and a DREQ or DREP for an established connection. Retransmissions
 * and TimeWait go on without the consumer. */
void roci_conn_destroy(struct roci_conn *conn, uint64_t now);

/* Its last message was not taken by roci_cm_tx() yet, and the consumer's next call may replace it by another. */
bool roci_conn_has_tx(const struct roci_conn *conn);

/* The user of the connection's events from now on. */
void roci_conn_set_user(struct roci_conn *conn, void *user);
/* The consumer has fetched REQ_RECEIVED: the request no longer counts against the backlog. accept(), reject() and
 * destroy() imply it. in_turn: the consumer has answered the request that it fetched before this one, and no other
 * fetch or look for events came between (backlog.h). */
void roci_conn_fetched(struct roci_conn *conn, uint64_t now, bool in_turn);

/* What both sides know so far, for rdma_init_qp_attr() and rdma_get_*(). Messages update it. */
struct roci_conn_info {
	struct roci_cm_path path;
	uint64_t service_id;
	bool active;
	enum roci_cm_transport transport;
	uint32_t local_comm_id, remote_comm_id;
	uint32_t local_qpn, remote_qpn;
	uint32_t sq_psn, rq_psn;              /* the peer's starting PSN, ours */
	uint8_t responder_resources;          /* max_dest_rd_atomic of our QP */
	uint8_t initiator_depth;              /* max_rd_atomic of our QP */
	uint8_t retry_count, rnr_retry_count; /* of our QP */
	uint8_t ack_timeout;                  /* `timeout` of our QP, 5-bit time */
	bool remote_srq, flow_control;
	/* ns from our first REQ to the peer's REP, or from our first REP to the RTU; 0: no answer yet. A round trip
	 * takes that long at most: it includes what the peer's program took, and the wait for what had to be sent
	 * again. */
	uint64_t answer_ns;
};
const struct roci_conn_info *roci_conn_info(const struct roci_conn *conn);

#endif
