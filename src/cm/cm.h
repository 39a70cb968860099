/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The InfiniBand communication manager (IBTA vol. 1, chapter 12) as a state machine, pure like the engine: no socket,
 * clock, thread or randomness of its own. The driver (src/device/cm_host, or tests/sim_cm) hands it MADs and the time,
 * takes MADs from it, and asks when to come back.
 *
 *     roci_cm_rx()          one MAD of QP1 in
 *     roci_cm_timers()      the time in
 *     roci_cm_tx()          one MAD out, until there is none
 *     roci_cm_deadline()    when to call roci_cm_timers() again
 *     roci_cm_next_event()  one event out, until there is none
 *
 * The driver's duty: after every call that takes `now`, it empties next_event() before it calls rx() or timers() again,
 * and tx() soon after. Every call needs the driver's lock. Functions that return int return 0 or a negative errno.
 * Memory is allocated when a listener, connection or SIDR exchange comes to be (a REQ that a listener takes is one) and
 * never per packet. Times are nanoseconds of one monotonic clock; "5-bit times" are 4.096 us * 2^n (IBTA 9.7.6.1.3).
 *
 *     active side                                       passive side
 *     roci_conn_connect()   -- REQ -->                  ROCI_CM_REQ_RECEIVED (a new conn)
 *     ROCI_CM_REP_RECEIVED  <-- REP --                  roci_conn_accept()
 *     roci_conn_establish() -- RTU -->                  ROCI_CM_ESTABLISHED
 *     roci_conn_disconnect()-- DREQ ->                  ROCI_CM_DREQ_RECEIVED
 *     ROCI_CM_DREP_RECEIVED <- DREP --                  roci_conn_disconnect()
 *     ROCI_CM_TIMEWAIT_EXIT                             ROCI_CM_TIMEWAIT_EXIT
 *
 * Every exchange ends: with an answer, or with ROCI_CM_..._ERROR when max_cm_retries retransmissions were not answered.
 * MRAs are sent by themselves: a duplicate REQ or REP that finds the consumer without an answer yet is answered with
 * one.
 */
#ifndef ROCI_CM_CM_H
#define ROCI_CM_CM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cm/cm_ip.h"
#include "cm/reason.h"

struct roci_cm;
struct roci_listener;
struct roci_conn;
struct roci_sidr;

#define ROCI_CM_NEVER     UINT64_MAX
#define ROCI_CM_MAD_BYTES 256

/* What each message has room for. Less may be sent; the rest arrives as zeros, so the receiver always sees the full
 * room (as on any InfiniBand CM). A consumer of an IP service has ROCI_CM_IP_BYTES less in REQ and SIDR_REQ. */
#define ROCI_CM_REQ_PRIVATE      92
#define ROCI_CM_REP_PRIVATE      196
#define ROCI_CM_REJ_PRIVATE      148
#define ROCI_CM_REJ_ARI          72
#define ROCI_CM_RTU_PRIVATE      224
#define ROCI_CM_DREQ_PRIVATE     220
#define ROCI_CM_DREP_PRIVATE     224
#define ROCI_CM_SIDR_REQ_PRIVATE 216
#define ROCI_CM_SIDR_REP_PRIVATE 136
#define ROCI_CM_SIDR_REP_INFO    72
#define ROCI_CM_MAX_PRIVATE      224

struct roci_cm_bytes {
	const void *data;
	unsigned len;
};

/* ---- the manager ---- */

struct roci_cm_config {
	/* Local communication ids are id_base | (random & id_mask): the driver puts its host registry slot into the
	 * base, so that any process of the host knows whose an id is. */
	uint32_t id_base, id_mask;
	uint32_t (*random)(void *context); /* unpredictable in production, seeded in tests */
	void *context;
	uint64_t ca_guid;
	uint8_t response_timeout; /* 5-bit: what we ask the peer to answer within, 0: 20 (4.3 s) */
	uint8_t mra_timeout;      /* 5-bit: what an MRA of ours asks for, 0: 22 (17 s) */
	uint8_t max_retries;      /* 4-bit, 0: 15 */
	uint8_t dreq_retries;     /* of a DREQ, whose sender has nothing to gain from patience; 0: 5 (about 16 s) */
	uint64_t first_retry_ns;  /* then twice as long, up to the standard's interval. 0: 500 ms */
	uint64_t backlog_wait_ns; /* a REQ that meets a full backlog waits so long, then REJ 3. 0: 2 s */
	uint64_t pace_ns;         /* between requests told, while the last is not answered (backlog.h). 0: 1 s */
	uint64_t pending_ns;      /* a request that nobody listens for waits so long for a listener. 0: 400 ms */
	unsigned max_waiting;     /* REQs that may wait so at once, over all listeners. 0: 16384 */
};

/* NULL when out of memory. */
struct roci_cm *roci_cm_create(const struct roci_cm_config *config);
/* Sends nothing; frees everything, connections that the consumer still holds too. */
void roci_cm_destroy(struct roci_cm *cm);

/* The consumer is gone altogether: as if it had destroyed every connection and exchange of its own, but nothing is
 * freed before roci_cm_destroy(): a thread that did not notice yet may still hold them, and destroy them. */
void roci_cm_disconnect_all(struct roci_cm *cm, uint64_t now);

/* One MAD: validated here, a malformed one is counted and dropped. GIDs are those of the datagram's IP header. */
void roci_cm_rx(struct roci_cm *cm, uint64_t now, const uint8_t mad[ROCI_CM_MAD_BYTES], const uint8_t sgid[16],
		const uint8_t dgid[16], uint32_t ifindex);

/* A MAD to send from sgid to dgid: UD SEND Only to QP1, Q_Key 0x80010000. */
struct roci_cm_tx {
	uint8_t sgid[16], dgid[16];
	uint32_t ifindex; /* 0: the sgid's own */
	uint32_t flow_label;
	uint8_t traffic_class, hop_limit, sl;
	uint8_t mad[ROCI_CM_MAD_BYTES];
};
/* Takes the next MAD to send. False when there is none. */
bool roci_cm_tx(struct roci_cm *cm, uint64_t now, struct roci_cm_tx *out);

void roci_cm_timers(struct roci_cm *cm, uint64_t now);
/* When roci_cm_timers() has work, ROCI_CM_NEVER if not. May be early, never late. */
uint64_t roci_cm_deadline(const struct roci_cm *cm);

/* Ends the connections whose peer is dead by other evidence than messages: `dead` is asked about each that has begun,
 * and where it says so, the consumer is told as if the peer had sent a DREQ. */
struct roci_conn_info;
typedef bool roci_cm_peer_dead_fn(void *context, const uint8_t gid[16], const struct roci_conn_info *info);
void roci_cm_disconnect_dead(struct roci_cm *cm, uint64_t now, roci_cm_peer_dead_fn *dead, void *context);

/* Requests that wait for a listener (pending.h) may be another process's by now. `pass` is shown each, as its sender
 * sent it, and returns true where it is handed over: then it is no longer ours. */
typedef bool roci_cm_forward_fn(void *context, const struct roci_cm_tx *request);
void roci_cm_forward_pending(struct roci_cm *cm, roci_cm_forward_fn *pass, void *context);
unsigned roci_cm_pending_count(const struct roci_cm *cm);

struct roci_cm_stats {
	uint64_t rx_mads, tx_mads, rx_malformed, rx_unsupported, rx_duplicate, rx_unexpected, rx_wrong_source;
	uint64_t retransmits, timeouts, no_memory, replies_dropped, backlog_waits, backlog_rejects, stale;
	uint64_t pending;
};
const struct roci_cm_stats *roci_cm_stats(const struct roci_cm *cm);
/* Objects that exist, TIMEWAIT included: 0 when everything is over. */
unsigned roci_cm_object_count(const struct roci_cm *cm);

/* ---- what is agreed ---- */

enum roci_cm_transport { ROCI_CM_RC = 0, ROCI_CM_UC = 1, ROCI_CM_XRC = 3 };

/* One side's view: "local" is the side that holds the struct. */
struct roci_cm_path {
	uint8_t sgid[16], dgid[16]; /* local, remote; IPv4 as ::ffff:a.b.c.d */
	uint32_t ifindex;           /* of sgid; what rx() said on the passive side. Not on the wire */
	uint32_t flow_label;        /* 20 bits */
	uint16_t pkey;
	uint8_t traffic_class, hop_limit, sl;
	uint8_t mtu;         /* enum ibv_mtu: 1..5 */
	uint8_t rate;        /* enum ibv_rate */
	uint8_t packet_life; /* 5-bit, one way. On the wire the ACK timeout says it */
};

/* Enhanced connection establishment: what the QPs' drivers agree on, carried in REQ and REP as Linux does. */
struct roci_cm_ece {
	uint32_t vendor_id; /* 24 bits; 0: nothing to agree on */
	uint32_t options;
};

/* What the peer said in REQ or REP, from the receiver's side: responder_resources is what the peer asks of us
 * (its initiator_depth), initiator_depth is what it offers us. */
struct roci_cm_peer {
	uint64_t ca_guid;
	uint32_t qpn, qkey, starting_psn;
	uint8_t transport; /* enum roci_cm_transport; of a REQ */
	uint8_t responder_resources, initiator_depth;
	uint8_t retry_count;      /* of a REQ */
	uint8_t rnr_retry_count;  /* 7: for ever */
	uint8_t ack_timeout;      /* 5-bit, of a REQ */
	uint8_t target_ack_delay; /* 5-bit, of a REP */
	uint8_t failover;         /* of a REP */
	bool flow_control, srq;
	struct roci_cm_ece ece;
};

/* ---- events ---- */

enum roci_cm_event_kind {
	ROCI_CM_REQ_RECEIVED,      /* listener's user; conn: new, give it a user; peer, path, private (92) */
	ROCI_CM_REP_RECEIVED,      /* peer, private (196): answer with establish() or reject() */
	ROCI_CM_ESTABLISHED,       /* passive: RTU came; private (224; none after roci_conn_notify()) */
	ROCI_CM_REJ_RECEIVED,      /* reason, ari, private (148): the connection is over */
	ROCI_CM_REQ_ERROR,         /* -ETIMEDOUT: the REQ was not answered: over */
	ROCI_CM_REP_ERROR,         /* -ETIMEDOUT: the RTU did not come: over */
	ROCI_CM_DREQ_RECEIVED,     /* private (220): answer with disconnect() */
	ROCI_CM_DREP_RECEIVED,     /* private (224; none where both sides asked at once): TIMEWAIT begins */
	ROCI_CM_DREQ_ERROR,        /* -ETIMEDOUT: the DREQ was not answered: TIMEWAIT begins */
	ROCI_CM_TIMEWAIT_EXIT,     /* the QPN may be used again */
	ROCI_CM_SIDR_REQ_RECEIVED, /* listener's user; sidr: new; path, private (216) */
	ROCI_CM_SIDR_REP_RECEIVED, /* sidr_status; qpn, qkey when 0; private (136) */
	ROCI_CM_SIDR_ERROR,        /* -ETIMEDOUT */
	ROCI_CM_EVENT_KINDS
};
const char *roci_cm_event_str(unsigned kind); /* never NULL */

/* Pointers are valid until the next call on the manager or the object. */
struct roci_cm_event {
	enum roci_cm_event_kind kind;
	int status;                     /* 0, or -ETIMEDOUT for the ..._ERROR kinds */
	void *user;                     /* of the conn or sidr; of the listener for ..._REQ_RECEIVED */
	struct roci_listener *listener; /* of ..._REQ_RECEIVED */
	struct roci_conn *conn;
	struct roci_sidr *sidr;
	uint64_t service_id;             /* of ..._REQ_RECEIVED */
	const struct roci_cm_peer *peer; /* of REQ_RECEIVED, REP_RECEIVED */
	const struct roci_cm_path *path; /* of every kind: from our side */
	bool has_ip;                     /* of ..._REQ_RECEIVED: the IP CM header, not yet cut from `private` */
	struct roci_cm_ip ip;
	struct roci_cm_bytes private;
	uint16_t reason;          /* of REJ_RECEIVED: enum roci_cm_reason, or whatever the peer wrote */
	uint8_t rejected;         /* of REJ_RECEIVED: the message that was refused: 0 REQ, 1 REP, 2 other */
	struct roci_cm_bytes ari; /* of REJ_RECEIVED; of SIDR_REP_RECEIVED */
	uint8_t sidr_status;      /* enum roci_cm_sidr_status */
	uint32_t sidr_qpn, sidr_qkey;
};
/* Takes the next event. False when there is none. */
bool roci_cm_next_event(struct roci_cm *cm, struct roci_cm_event *ev);

/* ---- listeners ---- */

struct roci_cm_listen {
	uint64_t service_id;
	uint64_t service_mask; /* bits that must agree; 0 is taken as all */
	/* Address to which the request must come. All zeros: any; ::ffff:0.0.0.0: any IPv4. An IP CM header that names
	 * other addresses than the datagram is meant for no listener. */
	uint8_t gid[16];
	bool v6_only;     /* with the zero gid: IPv6 only (RDMA_OPTION_ID_AFONLY) */
	uint32_t ifindex; /* 0: any */
	unsigned backlog; /* requests that the consumer has not taken yet; 0: 1024 */
	void *user;
};
/* Of several listeners the most specific address wins. -EADDRINUSE: the same service, mask and address is listened to
 * already (sharing, as SO_REUSEADDR allows, is the consumer's to sort out); -ENOMEM. */
int roci_cm_listen(struct roci_cm *cm, const struct roci_cm_listen *params, struct roci_listener **out);
/* Waiting requests, and those in events not yet told, are rejected (REJ 28). Connections already told live on. */
void roci_listener_destroy(struct roci_listener *listener, uint64_t now);
void roci_listener_set_user(struct roci_listener *listener, void *user);
/* 0: 1024. */
void roci_listener_set_backlog(struct roci_listener *listener, uint64_t now, unsigned backlog);

/* ---- connections ---- */

/* A starting PSN is where the receiver of the REQ or REP begins to transmit (IBTA 12.7, Starting PSN): our own is the
 * first that we expect, the peer's the first that we send. */
struct roci_cm_connect {
	uint64_t service_id;
	struct roci_cm_path path;
	uint32_t qpn, starting_psn, qkey;
	enum roci_cm_transport transport;
	uint8_t responder_resources; /* RDMA READs and atomics that we serve at once */
	uint8_t initiator_depth;     /* that we want to have outstanding */
	uint8_t retry_count, rnr_retry_count;
	uint8_t ack_timeout; /* 5-bit; 0: from path.packet_life, twice the way */
	bool flow_control, srq;
	struct roci_cm_ece ece;
	struct roci_cm_bytes private; /* copied; at most ROCI_CM_REQ_PRIVATE, the IP CM header included */
	void *user;
};
/* Sends a REQ. -EINVAL: a field does not fit; -ENOMEM. */
int roci_conn_connect(struct roci_cm *cm, uint64_t now, const struct roci_cm_connect *params, struct roci_conn **out);

struct roci_cm_accept {
	uint32_t qpn, starting_psn, qkey;
	uint8_t responder_resources, initiator_depth; /* at most what the peer's REQ offers, as the consumer knows it */
	uint8_t rnr_retry_count, target_ack_delay;
	bool flow_control, srq;
	struct roci_cm_ece ece;
	struct roci_cm_bytes private;
};
/* Answers REQ_RECEIVED with a REP. -EINVAL: another state, or a field does not fit. */
int roci_conn_accept(struct roci_conn *conn, uint64_t now, const struct roci_cm_accept *params);

/* Answers REP_RECEIVED with an RTU. -EINVAL: another state. */
int roci_conn_establish(struct roci_conn *conn, uint64_t now, struct roci_cm_bytes private);

/* Passive side: data came on the QP before the RTU (IBTA 12.9.6, rdma_notify()): ROCI_CM_ESTABLISHED follows. -EINVAL:
 * another state; -EISCONN: it is established already. */
int roci_conn_notify(struct roci_conn *conn, uint64_t now);

/* Refuses after REQ_RECEIVED or REP_RECEIVED, or withdraws a REQ or REP of ours. The connection is over. -EINVAL. */
int roci_conn_reject(struct roci_conn *conn, uint64_t now, enum roci_cm_reason reason, struct roci_cm_bytes ari,
		     struct roci_cm_bytes private);

/* In an established connection sends DREQ; after DREQ_RECEIVED answers DREP. -EINVAL: neither, so the connection is not
 * there yet or over already. */
int roci_conn_disconnect(struct roci_conn *conn, uint64_t now, struct roci_cm_bytes private);

/* The consumer lets go in any state: no event follows, the handle is dead. The peer is told what it needs: REJ 28 for a
 * REQ or REP that waits for an answer from either side, REJ 4 for a REQ of ours, DREQ or DREP for a connection. What
 * must linger (retransmissions, TIMEWAIT) does so out of sight. */
void roci_conn_destroy(struct roci_conn *conn, uint64_t now);

void roci_conn_set_user(struct roci_conn *conn, void *user);
void *roci_conn_user(const struct roci_conn *conn);
/* The consumer has fetched REQ_RECEIVED: it does not count against the backlog any longer. accept(), reject() and
 * destroy() imply it. */
void roci_conn_fetched(struct roci_conn *conn, uint64_t now);

enum roci_conn_state {
	ROCI_CONN_CLOSED, /* over: rejected, timed out, TIMEWAIT past */
	ROCI_CONN_REQ_SENT,
	ROCI_CONN_REQ_WAITING, /* received, but the backlog is full: the consumer does not know it yet */
	ROCI_CONN_REQ_RECEIVED,
	ROCI_CONN_REP_SENT,
	ROCI_CONN_REP_RECEIVED,
	ROCI_CONN_ESTABLISHED,
	ROCI_CONN_DREQ_SENT,
	ROCI_CONN_DREQ_RECEIVED,
	ROCI_CONN_TIMEWAIT,
	ROCI_CONN_STATES
};
enum roci_conn_state roci_conn_state(const struct roci_conn *conn);
const char *roci_conn_state_str(unsigned state); /* never NULL */

/* What both sides know: what rdma_init_qp_attr() and rdma_get_* need. Grows as messages come and go. */
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
	uint8_t ack_timeout;                  /* `timeout` of our QP, 5-bit */
	bool remote_srq, flow_control;
};
const struct roci_conn_info *roci_conn_info(const struct roci_conn *conn);

/* ---- SIDR: the QPN and Q_Key of a datagram service (IBTA 12.11) ---- */

enum roci_cm_sidr_status {
	ROCI_SIDR_SUCCESS = 0,
	ROCI_SIDR_UNSUPPORTED = 1, /* no such service */
	ROCI_SIDR_REJECT = 2,
	ROCI_SIDR_NO_QP = 3,
	ROCI_SIDR_REDIRECT = 4,
	ROCI_SIDR_UNSUPPORTED_VERSION = 5,
};
const char *roci_cm_sidr_status_str(unsigned status); /* never NULL */

struct roci_cm_resolve {
	uint64_t service_id;
	struct roci_cm_path path;
	struct roci_cm_bytes private; /* at most ROCI_CM_SIDR_REQ_PRIVATE, the IP CM header included */
	uint64_t interval_ns;         /* between retransmissions, 0: the standard's */
	uint8_t max_retries;          /* 0: config's */
	void *user;
};
/* Sends a SIDR_REQ. -EINVAL, -ENOMEM. */
int roci_sidr_resolve(struct roci_cm *cm, uint64_t now, const struct roci_cm_resolve *params, struct roci_sidr **out);

struct roci_cm_sidr_answer {
	enum roci_cm_sidr_status status;
	uint32_t qpn, qkey;
	struct roci_cm_bytes info, private;
};
/* Answers SIDR_REQ_RECEIVED. The handle stays until roci_sidr_destroy(); duplicates are answered alike for a while
 * after that. -EINVAL: answered already, or a field does not fit. */
int roci_sidr_answer(struct roci_sidr *sidr, uint64_t now, const struct roci_cm_sidr_answer *answer);
/* The consumer lets go: no event follows. An unanswered request is rejected (status 2). */
void roci_sidr_destroy(struct roci_sidr *sidr, uint64_t now);
void roci_sidr_set_user(struct roci_sidr *sidr, void *user);
/* As roci_conn_fetched(). */
void roci_sidr_fetched(struct roci_sidr *sidr, uint64_t now);

#endif
