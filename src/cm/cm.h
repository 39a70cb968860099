/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The InfiniBand communication manager (IBTA vol. 1, chapter 12) as a state machine, pure like the engine: no socket,
 * clock, thread or randomness of its own. Its driver (src/device/cm_host.h, tests/sim_cm) moves MADs, time and events:
 *
 *     roci_cm_rx()          one MAD of QP1 in
 *     roci_cm_timers()      the time in
 *     roci_cm_tx()          one MAD out, until there is none
 *     roci_cm_deadline()    when to call roci_cm_timers() again
 *     roci_cm_next_event()  one event out, until there is none
 *
 * After every call that takes `now`, the driver empties roci_cm_next_event() before it calls rx() or timers() again,
 * and empties tx() soon after. Every call needs the driver's lock. Functions that return int return 0 or a negative
 * errno. `now` is in nanoseconds of one monotonic clock. Memory is allocated when a listener, connection or SIDR
 * exchange is created (also for a REQ that a listener takes), and never per packet.
 *
 * Every exchange ends, with an answer or with ROCI_CM_..._ERROR after max_retries unanswered retransmissions.
 *
 * Connections are in conn.h, SIDR exchanges in sidr.h; this header includes both.
 */
#ifndef ROCI_CM_CM_H
#define ROCI_CM_CM_H

#include "cm/cm_ip.h"
#include "cm/conn.h" /* IWYU pragma: export */
#include "cm/sidr.h" /* IWYU pragma: export */
#include "cm/types.h"

#define ROCI_CM_NEVER UINT64_MAX

/* ---- the manager ---- */

/* 0 in a field after `context` stands for its default. */
struct roci_cm_config {
	/* Local communication ids are id_base | (random & id_mask). The driver puts its slot of the host's registry
	 * into the base, so that every process of the host knows whose an id is. */
	uint32_t id_base, id_mask;
	uint32_t (*random)(void *context); /* unpredictable in production, seeded in tests */
	void *context;
	uint64_t ca_guid;
	uint8_t response_timeout; /* 5-bit time: the peer is to answer within. 20: 4.3 s */
	uint8_t mra_timeout;      /* 5-bit time: the wait that our MRA asks for. 22: 17 s */
	uint8_t max_retries;      /* 4 bits. 15 */
	uint8_t dreq_retries;     /* of a DREQ. 5: about 16 s; waiting longer gains its sender nothing */
	uint64_t first_retry_ns;  /* to the first retransmission; then doubled, up to the standard's. 500 ms */
	uint64_t backlog_wait_ns; /* a request waits so long for a full backlog, then REJ 3. 2 s */
	uint64_t pace_ns;         /* between reported requests while the last one has no answer (backlog.h). 1 s */
	uint64_t pending_ns;      /* a request waits so long for a listener to appear (pending.h). 400 ms */
	unsigned max_waiting;     /* requests that wait for a backlog, of all listeners together. 16384 */
};

/* NULL: out of memory. */
struct roci_cm *roci_cm_create(const struct roci_cm_config *config);
/* Sends nothing. Frees everything, also connections that the consumer still has. */
void roci_cm_destroy(struct roci_cm *cm);

/* The consumer ends: does what destroying each of its connections and exchanges would send, but frees nothing before
 * roci_cm_destroy(), because a thread that has not noticed yet may still use and destroy them. */
void roci_cm_disconnect_all(struct roci_cm *cm, uint64_t now);

/* Receives one MAD; a malformed one is counted and dropped. The GIDs are those of the datagram's IP header. */
void roci_cm_rx(struct roci_cm *cm, uint64_t now, const uint8_t mad[ROCI_CM_MAD_BYTES], const uint8_t sgid[16],
		const uint8_t dgid[16], uint32_t ifindex);

/* The same with a message that a HELLO brought (wire/nat.h), from an end behind a NAT which has proved that it gets
 * what is sent to nat->port of sgid. */
void roci_cm_rx_nat(struct roci_cm *cm, uint64_t now, const uint8_t mad[ROCI_CM_MAD_BYTES], const uint8_t sgid[16],
		    const uint8_t dgid[16], uint32_t ifindex, const struct roci_nat_terms *nat);

/* ---- path MTU ---- */

/* An MTU probe for this path MTU (enum ibv_mtu) came, of the REQ with transaction ID `tid`, which comes behind it
 * (wire/mtu_probe.h). A REQ whose path MTU is larger than that of every probe that came of it is rejected with REJ 26.
 * A REQ of ours that is rejected like that is sent again with the smaller one. */
void roci_cm_mtu_probed(struct roci_cm *cm, uint64_t tid, uint8_t mtu);

/* ---- NAT ---- */

/* A CHALLENGE came from `sgid`: this end is behind a NAT, and the exchange `id` of ours sends with this cookie from now
 * on, its last message at once. Ignored where the token is not that of the exchange. */
void roci_cm_challenged(struct roci_cm *cm, uint32_t id, uint64_t token, uint64_t cookie, const uint8_t sgid[16]);

/* The connection with QP `qpn` of `gid`, if one of its ends is behind a NAT. */
bool roci_cm_find_nat(const struct roci_cm *cm, const uint8_t gid[16], uint32_t qpn, struct roci_nat_terms *out);
/* This end, which is behind a NAT, sends from another address from now on. */
void roci_cm_rehome(struct roci_cm *cm, const uint8_t old[16], const uint8_t gid[16]);
/* The peer of the connection with this token, which is behind a NAT, has proved that it gets what is sent to nat->port
 * of gid. */
void roci_cm_moved(struct roci_cm *cm, const uint8_t gid[16], const struct roci_nat_terms *nat);

/* The network says that a message of ours to `dgid` did not arrive: ICMP, which anyone can send. `mad` is the beginning
 * of the message, as far as it is quoted. A request that is quoted with its transaction ID and local ID, and was not
 * answered yet, fails with `err` when that happens a second time: the first message may have come a moment before the
 * listener. Anything else is ignored. */
void roci_cm_unreachable(struct roci_cm *cm, uint64_t now, const uint8_t *mad, size_t len, const uint8_t dgid[16],
			 int err);

/* A MAD to send from sgid to dgid: UD SEND Only to QP1, Q_Key 0x80010000. */
struct roci_cm_tx {
	uint8_t sgid[16], dgid[16];
	uint32_t ifindex; /* 0: the sgid's own */
	uint32_t flow_label;
	uint8_t traffic_class, hop_limit, sl;
	/* With a port it goes there, and its ICRC covers what this says. With a cookie it goes in a HELLO. */
	struct roci_nat_terms nat;
	uint8_t mad[ROCI_CM_MAD_BYTES];
};
/* Whether there is a MAD to send. */
bool roci_cm_has_tx(const struct roci_cm *cm);
/* Takes the next MAD to send. False: there is none. */
bool roci_cm_tx(struct roci_cm *cm, uint64_t now, struct roci_cm_tx *out);

/* Does what is due at `now`. */
void roci_cm_timers(struct roci_cm *cm, uint64_t now);
/* When roci_cm_timers() has work; ROCI_CM_NEVER: no work. May be early, never late. */
uint64_t roci_cm_deadline(const struct roci_cm *cm);

/* Ends the connections whose peer is known to be dead although no message says so. `dead` is asked about each that is
 * established or about to be. Where it returns true, the consumer gets ROCI_CM_DREQ_RECEIVED. */
typedef bool roci_cm_peer_dead_fn(void *context, const uint8_t gid[16], const struct roci_conn_info *info);
void roci_cm_disconnect_dead(struct roci_cm *cm, uint64_t now, roci_cm_peer_dead_fn *dead, void *context);

/* Offers the requests that wait for a listener (pending.h), as their senders sent them. `forward` returns true where it
 * gave a request to another process; then this manager forgets it. */
typedef bool roci_cm_forward_fn(void *context, const struct roci_cm_tx *request);
void roci_cm_forward_pending(struct roci_cm *cm, roci_cm_forward_fn *forward, void *context);
/* Requests that wait for a listener. */
unsigned roci_cm_pending_count(const struct roci_cm *cm);

/* ---- events ---- */

enum roci_cm_event_kind {
	ROCI_CM_REQ_RECEIVED,      /* a new conn; the user is the listener's. peer, path, private (92) */
	ROCI_CM_REP_RECEIVED,      /* peer, private (196): answer with establish() or reject() */
	ROCI_CM_ESTABLISHED,       /* passive: the RTU came. private (224; none after roci_conn_notify()) */
	ROCI_CM_REJ_RECEIVED,      /* reason, ari, private (148): the connection is closed */
	ROCI_CM_REQ_ERROR,         /* -ETIMEDOUT: the REQ was not answered: closed; roci_cm_unreachable() */
	ROCI_CM_REP_ERROR,         /* -ETIMEDOUT: the RTU did not come: closed */
	ROCI_CM_DREQ_RECEIVED,     /* private (220): answer with disconnect() */
	ROCI_CM_DREP_RECEIVED,     /* private (224; none where both sides sent a DREQ): TimeWait begins */
	ROCI_CM_DREQ_ERROR,        /* -ETIMEDOUT: the DREQ was not answered: TimeWait begins */
	ROCI_CM_TIMEWAIT_EXIT,     /* the QPN may be used again */
	ROCI_CM_SIDR_REQ_RECEIVED, /* a new sidr; the user is the listener's. path, private (216) */
	ROCI_CM_SIDR_REP_RECEIVED, /* sidr_status; qpn, qkey when it is 0; private (136) */
	ROCI_CM_SIDR_ERROR,        /* -ETIMEDOUT: the SIDR_REQ was not answered; roci_cm_unreachable() */
	ROCI_CM_EVENT_KINDS
};

/* Pointers are valid until the next call on the manager or the object. */
struct roci_cm_event {
	enum roci_cm_event_kind kind;
	int status;                     /* 0; of the ..._ERROR kinds a negative errno */
	void *user;                     /* of the conn or sidr; of the listener for ..._REQ_RECEIVED */
	struct roci_listener *listener; /* of ..._REQ_RECEIVED */
	struct roci_conn *conn;
	struct roci_sidr *sidr;
	uint64_t service_id;             /* of ..._REQ_RECEIVED */
	const struct roci_cm_peer *peer; /* of REQ_RECEIVED, REP_RECEIVED */
	const struct roci_cm_path *path; /* of every kind: from our side */
	bool has_ip;                     /* of ..._REQ_RECEIVED: `ip` is valid; `private` still has its bytes */
	struct roci_cm_ip ip;
	struct roci_cm_bytes private;
	uint16_t reason;          /* of REJ_RECEIVED: enum roci_cm_reason, or whatever the peer wrote */
	uint8_t rejected;         /* of REJ_RECEIVED: which message was rejected: 0 REQ, 1 REP, 2 other */
	struct roci_cm_bytes ari; /* of REJ_RECEIVED, SIDR_REP_RECEIVED */
	uint8_t sidr_status;      /* enum roci_cm_sidr_status */
	uint32_t sidr_qpn, sidr_qkey;
};
/* Whether there is an event to take. */
bool roci_cm_has_event(const struct roci_cm *cm);
/* Takes the next event. False: there is none. */
bool roci_cm_next_event(struct roci_cm *cm, struct roci_cm_event *ev);

/* ---- listeners ---- */

struct roci_cm_listen {
	uint64_t service_id;
	uint64_t service_mask; /* bits of the service id that must agree; 0 stands for all */
	/* Address to which the request must come. All zeros: any; ::ffff:0.0.0.0: any IPv4. */
	uint8_t gid[16];
	bool v6_only;     /* with the zero gid: IPv6 only (RDMA_OPTION_ID_AFONLY) */
	uint32_t ifindex; /* 0: any */
	unsigned backlog; /* requests that the consumer has not fetched yet; 0: 1024 */
	void *user;
};
/* Of several listeners that fit a request, the one with the most specific address gets it. -EADDRINUSE: there is a
 * listener for the same service, mask and address (sharing by SO_REUSEADDR is the consumer's affair); -ENOMEM. */
int roci_cm_listen(struct roci_cm *cm, const struct roci_cm_listen *params, struct roci_listener **out);
/* True where a listener has this address, and not the wildcard. */
bool roci_cm_listens_at(const struct roci_cm *cm, const uint8_t gid[16]);
/* Rejects (REJ 28) the requests that were not reported yet. Connections that the consumer knows live on. */
void roci_listener_destroy(struct roci_listener *listener, uint64_t now);

#endif
