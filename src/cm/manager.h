/* SPDX-License-Identifier: BSD-2-Clause */
/* The manager inside this room: its tables, and what cm.c does for the other files. */
#ifndef ROCI_CM_MANAGER_H
#define ROCI_CM_MANAGER_H

#include "cm/cm.h"
#include "cm/exchange.h"
#include "cm/peers.h"
#include "cm/pending.h"
#include "engine/idmap.h"

#define ROCI_CM_MAX_REPLIES    256  /* replies without an exchange that wait to be sent */
#define ROCI_CM_MAX_REMEMBERED 8192 /* rejected connections and answered SIDR exchanges that answer duplicates */

/* For tests and debuggers; nothing depends on them. */
struct roci_cm_stats {
	uint64_t rx_mads, tx_mads;
	uint64_t rx_malformed, rx_unsupported;
	uint64_t rx_duplicate;    /* repeated or late: no use in this state */
	uint64_t rx_unexpected;   /* of no connection that exists, or wrong for it */
	uint64_t rx_wrong_source; /* ids of a connection, from another address than its peer's */
	uint64_t retransmits, timeouts, no_memory, replies_dropped;
	uint64_t backlog_waits, backlog_rejects;
	uint64_t stale;   /* requests and answers with a QPN in use: IBTA 12.9.8.3.1 */
	uint64_t pending; /* requests that waited for a listener */
};

/* What probes have shown of the path of a REQ that is still to come. */
#define ROCI_CM_PROBED 64
struct roci_cm_probed {
	uint64_t tid;
	uint8_t mtu; /* of the longest that came; 0: the place is free */
};

struct roci_cm {
	struct roci_cm_config config; /* defaults filled in */
	struct roci_cm_stats stats;
	struct roci_timers timers;
	struct roci_idmap ids; /* local communication and request ids: struct roci_exchange */
	struct roci_list exchanges, listeners, sending, events;
	struct roci_list natted; /* exchanges that cross a NAT */
	bool disconnected;       /* by roci_cm_disconnect_all(): exchanges are no longer freed */
	unsigned exchange_count, listener_count;
	unsigned waiting_count;                       /* requests that wait for a backlog */
	unsigned remembered_count;                    /* at most ROCI_CM_MAX_REMEMBERED */
	uint64_t answered_requests;                   /* by the consumer */
	struct roci_peer_table remote_ids;            /* passive connections, by the peer's communication id */
	struct roci_peer_table remote_qpns;           /* connections, by the peer's CA and QPN */
	struct roci_peer_table remote_sidr_ids;       /* passive SIDR exchanges, by the peer's request id */
	struct roci_cm_probed probed[ROCI_CM_PROBED]; /* by TID: whoever floods it, loses what he finds out */
	struct roci_pending pending;
	unsigned reply_first, reply_count;
	struct roci_cm_tx replies[ROCI_CM_MAX_REPLIES]; /* a ring */
};

/* Allocates an unpredictable local id for x. 0: out of memory. */
uint32_t roci_cm_alloc_id(struct roci_cm *cm, struct roci_exchange *x);
/* An unpredictable transaction id. */
uint64_t roci_cm_new_tid(struct roci_cm *cm);
/* Queues a message to a peer without an exchange. It is sent once. */
void roci_cm_reply(struct roci_cm *cm, const struct roci_cm_source *from, const struct roci_cm_msg *msg);
/* The path MTU that probes of the REQ have shown; 0: none came. */
uint8_t roci_cm_probed_mtu(const struct roci_cm *cm, uint64_t tid);
/* Frees x when it is no longer needed: the consumer let go, no timer runs, nothing is to be sent. */
void roci_cm_free_if_done(struct roci_exchange *x);

#endif
