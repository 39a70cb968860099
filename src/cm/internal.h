/* SPDX-License-Identifier: BSD-2-Clause */
/* The manager and its objects, for the files of this room. */
#ifndef ROCI_CM_INTERNAL_H
#define ROCI_CM_INTERNAL_H

#include "cm/backlog.h"
#include "cm/exchange.h"
#include "cm/pending.h"
#include "cm/peers.h"
#include "engine/idmap.h"

#define ROCI_CM_MAX_REPLIES 256 /* answers to strangers that wait to be sent */
#define ROCI_CM_MAX_REMEMBERED                                                                                         \
	8192 /* rejected connections, answered SIDR exchanges that answer duplicates for a while */

struct roci_cm {
	struct roci_cm_config config;
	struct roci_cm_stats stats;
	struct roci_timers timers;
	struct roci_idmap ids; /* local communication and request ids of ours: exchanges */
	struct roci_list exchanges, listeners, sending, events;
	bool disconnected; /* by roci_cm_disconnect_all(): nothing is freed any more, because threads of the process may
			      still use it */
	unsigned exchange_count, listener_count, waiting_count, remembered_count;
	uint64_t answered_requests;             /* that the consumer gave to requests */
	struct roci_peer_table remote_ids;      /* passive connections, by the peer's communication id */
	struct roci_peer_table remote_qpns;     /* connections, by the peer's QPN */
	struct roci_peer_table remote_sidr_ids; /* passive SIDR exchanges, by the peer's request id */
	struct roci_pending pending;
	unsigned reply_first, reply_count;
	struct roci_cm_tx replies[ROCI_CM_MAX_REPLIES]; /* a ring */
};

struct roci_conn {
	struct roci_exchange x;
	enum roci_conn_state state;
	struct roci_conn_info info;
	struct roci_cm_peer peer;
	uint64_t tid;                                          /* of the REQ */
	uint64_t dreq_tid;                                     /* of the DREQ, ours or the peer's */
	uint64_t response_timeout_ns;                          /* the peer answers within */
	uint64_t remember_ns;                                  /* the peer would ask again within */
	uint8_t max_cm_retries;                                /* max CM retries of the REQ */
	bool remembered;                                       /* closed, but answers duplicates */
	struct roci_peer_node remote_id_node, remote_qpn_node; /* in cm->remote_ids, cm->remote_qpns */
};

struct roci_sidr {
	struct roci_exchange x;
	bool active;
	bool done;       /* answered or given up */
	bool remembered; /* answers duplicates */
	uint32_t request_id;
	uint64_t service_id, tid;
	struct roci_cm_path path;
	struct roci_peer_node remote_id_node; /* in cm->remote_sidr_ids */
};

static inline struct roci_conn *roci_conn_of(struct roci_exchange *x)
{
	return roci_container_of(x, struct roci_conn, x);
}

static inline struct roci_sidr *roci_sidr_of(struct roci_exchange *x)
{
	return roci_container_of(x, struct roci_sidr, x);
}

/* ---- cm.c ---- */

/* Draws a free local id for x. 0: out of memory. */
uint32_t roci_cm_alloc_id(struct roci_cm *cm, struct roci_exchange *x);
uint64_t roci_cm_new_tid(struct roci_cm *cm);
/* Queues an answer to somebody whom no exchange is for. */
void roci_cm_reply(struct roci_cm *cm, const struct roci_cm_source *from, const struct roci_cm_msg *msg);
/* Frees x if nobody needs it any longer: no consumer, no time to wait for, nothing to send. */
void roci_cm_free_if_done(struct roci_exchange *x);

/* ---- connection.c: what both halves of a connection's life use ---- */

/* With its local id drawn. NULL when out of memory. */
struct roci_conn *roci_conn_create(struct roci_cm *cm, void *user);
void roci_conn_free(struct roci_conn *conn);
/* A message of the connection: ids, TID. */
void roci_conn_message(const struct roci_conn *conn, struct roci_cm_msg *msg, enum roci_cm_attribute attribute);
/* *msg comes with the private data, and REJ with its info, in place. */
void roci_conn_send_rej(struct roci_conn *conn, enum roci_cm_reason reason, struct roci_cm_msg *msg);
void roci_conn_send_dreq(struct roci_conn *conn, uint64_t now, struct roci_cm_msg *msg);
/* Over; what was sent last answers duplicates for a while. */
void roci_conn_close(struct roci_conn *conn, uint64_t now);
/* Over, and nobody needs to be told. */
void roci_conn_finish(struct roci_conn *conn);
void roci_conn_enter_timewait(struct roci_conn *conn, uint64_t now);

/* ---- messages and time, by kind ---- */

void roci_conn_rx_req(struct roci_cm *cm, uint64_t now, const struct roci_cm_source *from,
		      const struct roci_cm_msg *msg);
/* Refuses a request that no object is made of. */
void roci_conn_reject_req(struct roci_cm *cm, const struct roci_cm_source *from, const struct roci_cm_msg *req,
			  enum roci_cm_reason reason);
void roci_conn_rx(struct roci_cm *cm, uint64_t now, const struct roci_cm_source *from, const struct roci_cm_msg *msg);
void roci_conn_timeout(struct roci_conn *conn, uint64_t now);
/* It had to wait, and now the consumer is told. */
void roci_conn_report_req(struct roci_conn *conn);

void roci_sidr_rx_req(struct roci_cm *cm, uint64_t now, const struct roci_cm_source *from,
		      const struct roci_cm_msg *msg);
void roci_sidr_reject_req(struct roci_cm *cm, const struct roci_cm_source *from, const struct roci_cm_msg *req,
			  enum roci_cm_sidr_status status);
void roci_sidr_rx_rep(struct roci_cm *cm, uint64_t now, const struct roci_cm_source *from,
		      const struct roci_cm_msg *msg);
void roci_sidr_timeout(struct roci_sidr *sidr, uint64_t now);
void roci_sidr_report_req(struct roci_sidr *sidr);
void roci_sidr_free(struct roci_sidr *sidr);

#endif
