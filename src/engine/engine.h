/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine: RoCEv2 transports RC, UC and UD as a state machine. It uses no socket, clock, thread or random number.
 * The driver (src/device, or tests/sim) gives it packets and the time, takes packets from it, and asks when to call
 * again.
 *
 *     roci_engine_rx()        one parsed, ICRC-checked packet in
 *     roci_engine_timers()    the time in
 *     roci_engine_tx()        a batch of packets out; then, when they are sent, roci_engine_tx_done()
 *     roci_engine_deadline()  when to call roci_engine_timers() again
 *     roci_engine_next_event()  completion and async events out
 *
 * Every call needs the driver's lock, but roci_cq_poll(), which needs only that one thread at a time consumes a CQ.
 * Functions that return int return 0 or a negative errno. Objects are allocated when created; nothing is allocated per
 * packet or per work request. Times are nanoseconds of one monotonic clock. A time that is older than
 * that of an earlier call counts as the same time.
 */
#ifndef ROCI_ENGINE_ENGINE_H
#define ROCI_ENGINE_ENGINE_H

#include <stdatomic.h>

#include "engine/limits.h" /* IWYU pragma: export */
#include "engine/types.h"
#include "wire/packet.h"
#include "wire/icrc.h"
#include "wire/record.h"
#include "wire/nat.h"

struct roci_engine;
struct roci_cq;
struct roci_mr;
struct roci_mw;
struct roci_srq;
struct roci_qp;

#define ROCI_NEVER UINT64_MAX

/* ---- engine ---- */

/* Returns NULL when out of memory. */
struct roci_engine *roci_engine_create(void);
/* Destroys the engine and all objects that are left in it. */
void roci_engine_destroy(struct roci_engine *e);

/* A received packet: parsed, ICRC verified, addresses in GID form. */
struct roci_rx {
	struct roci_packet pkt;
	uint8_t sgid[16], dgid[16]; /* sender, receiver (a multicast GID for UD multicast) */
	uint16_t src_port;          /* UDP source port */
	uint8_t traffic_class;      /* the IP header's byte, ECN in its low two bits */
	uint8_t hop_limit;
	bool congested; /* too much waits at the link: treated like an ECN mark */
	uint16_t local; /* it came from that process of this host (roci_av.local): addresses and port say nothing. 0:
			   wire */
};
void roci_engine_rx(struct roci_engine *e, uint64_t now, const struct roci_rx *rx);
/* The same for a packet of `len` bytes of payload from a process of this host, with the headers of a packet, unparsed.
 * True where it was a short SEND that the QP waits for, and was executed. False: nothing was done. */
bool roci_engine_rx_promptly(struct roci_engine *e, uint64_t now, uint16_t local, const uint8_t *header,
			     unsigned header_len, const uint8_t *payload, uint32_t len);
/* A packet with this BTH will come to roci_engine_rx() soon: has what it will touch first fetched into the cache.
 * Nothing is believed of the packet, which need not be parsed yet. */
void roci_engine_expect(const struct roci_engine *e, const uint8_t *bth);

#define ROCI_TX_BATCH     64
#define ROCI_TX_SPANS     512
#define ROCI_TX_RUN_BYTES 65000 /* a link may send packets of one length as one message, not longer than this */

/* One packet to send: header bytes (BTH and extended headers), then payload spans, then pad; the link adds pad and
 * ICRC. Spans and av stay valid until roci_engine_tx_done() or the next call that changes the QP or its memory.
 *
 * The program may write to the payload at any time, because peers READ memory that it uses. The link reads the payload
 * twice: for the ICRC, and to send it. If the bytes change in between, the receiver drops the packet. */
struct roci_tx_packet {
	const struct roci_av *av;
	uint32_t payload_len;
	uint16_t first_span, span_count; /* in the batch's spans[] */
	/* Copy the payload before sealing: this packet was lost once, or only a timeout would repair its loss. */
	bool copy_payload;
	bool whole;     /* lost where it is too long for one IP packet */
	bool soft_roce; /* seal this FLUSH as Soft-RoCE does: roci_icrc_soft_roce_flush() */
	uint8_t header_len;
	uint8_t header[ROCI_MAX_HEADER_BYTES];
};
struct roci_tx_batch {
	unsigned count, span_count;
	struct roci_tx_packet packets[ROCI_TX_BATCH];
	struct roci_span spans[ROCI_TX_SPANS];
};
/* Fills *batch with packets that are ready to go. Returns batch->count; 0: nothing is ready. */
unsigned roci_engine_tx(struct roci_engine *e, uint64_t now, struct roci_tx_batch *batch);
/* Whether roci_engine_tx() or roci_engine_tx_done() has something to do. */
bool roci_engine_has_tx(const struct roci_engine *e);
/* The last batch was sent or lost: completes the requests that need no acknowledgement. */
void roci_engine_tx_done(struct roci_engine *e, uint64_t now);

void roci_engine_timers(struct roci_engine *e, uint64_t now);
/* When roci_engine_timers() has work; ROCI_NEVER: not at all. May be early, never late. */
uint64_t roci_engine_deadline(const struct roci_engine *e);

struct roci_event {
	enum { ROCI_EV_COMPLETION, ROCI_EV_ASYNC } kind;
	enum roci_async_type type; /* of ROCI_EV_ASYNC */
	void *user;                /* of the CQ, QP or SRQ */
};
/* Whether one is pending. */
bool roci_engine_has_event(const struct roci_engine *e);
/* Takes the next pending event. Returns false when there is none. */
bool roci_engine_next_event(struct roci_engine *e, struct roci_event *ev);

/* The path to `dgid` has changed: one IP packet takes `bytes` of UDP payload there now. Longer ones go in fragments,
 * and requests that begin from now on make none. */
void roci_engine_path_carries(struct roci_engine *e, const uint8_t dgid[16], uint32_t bytes);

/* What peers and the network did since the engine was created. For people: nothing in the engine depends on it. */
struct roci_engine_stats {
	uint64_t rx_packets, tx_packets;
	uint64_t rx_no_qp, rx_wrong_state, rx_wrong_type, rx_wrong_source, rx_bad_pkey, rx_bad_qkey, rx_malformed;
	uint64_t rx_wrong_port; /* from another UDP port than the peer's, see peer_port.h */
	uint64_t rx_far;        /* answers about packets that are neither the oldest nor the newest, see far_answer.h */
	uint64_t rx_duplicate, rx_out_of_order, rx_no_wqe;
	uint64_t naks_sent, naks_received, rnr_sent, rnr_received, retransmits, timeouts, probes, cnp_received,
		cnp_refused;  /* CNPs that nobody but a forger sends, see cnp.h */
	uint64_t peers_lost;  /* see roci_qp_keepalive() */
	uint64_t peers_moved; /* see roci_qp_cross_nat() */
	uint64_t black_holes; /* paths, see black_hole.h */
};
const struct roci_engine_stats *roci_engine_stats(const struct roci_engine *e);
/* The counters go to *to, and count on there. It must live as long as the engine. */
void roci_engine_count_in(struct roci_engine *e, struct roci_engine_stats *to);

/* Who records a capture. Called under the driver's lock, with a record that has all but its time and its process. */
struct roci_trace {
	void (*record)(struct roci_trace *trace, struct roci_record *record);
};
/* NULL: nobody, as at first. */
void roci_engine_trace(struct roci_engine *e, struct roci_trace *trace);

/* ---- peers on the same host ----
 *
 * An RC QP whose address vector has `local` set when it goes to RTR has a peer that reaches memory without packets of
 * limited size: each of its messages is one packet. Its peer must have decided likewise. */

/* The memory of a peer that holds the payload of a received packet. The driver knows what is in it. */
struct roci_far;

#define ROCI_LOCAL_INLINE 4096 /* bytes of payload that the link carries itself at most; for the engine's window */

/* Copies the payload of a packet to `count` spans, which have room for exactly that. `last`: the last bytes must become
 * visible last, as by roci_copy_last(). Returns 0; -EFAULT: the program has taken the memory of `to` away (munmap(2),
 * mprotect(2)); or another negative errno: the payload cannot be had, so the packet counts as lost. */
typedef int roci_fetch_fn(void *driver, const struct roci_far *far, const struct roci_span *to, unsigned count,
			  bool last);
/* A QP whose peer is QP `dest_qpn` of `local` fails, or is reset: when this returns, nobody fetches payload of its
 * packets any more. Called before the program sees a completion that says so, since then it may use its memory for
 * something else. */
typedef void roci_take_back_fn(void *driver, uint16_t local, uint32_t dest_qpn);
/* A memory window on these bytes ends: when this returns, nobody fetches the payload of a READ response there any more.
 */
typedef void roci_close_window_fn(void *driver, const void *base, uint64_t len);
/* Whether a peer can read these bytes of this process: false where the program has taken them away. Asked before
 * payload that a peer is to fetch is offered again. */
typedef bool roci_may_read_fn(void *driver, const struct roci_span *spans, unsigned count);
struct roci_local_calls {
	roci_fetch_fn *fetch;
	roci_may_read_fn *may_read;
	roci_take_back_fn *take_back;
	roci_close_window_fn *close_window;
};
/* *calls must live as long as the engine. */
void roci_engine_fetch_by(struct roci_engine *e, const struct roci_local_calls *calls, void *driver);

/* How much memory packets may take that came before an older one; 0: some 2.5 MB, as at first. Where paths are long, it
 * bounds what peers have in flight. */
void roci_engine_early_memory(struct roci_engine *e, uint64_t bytes);

/* How much of what comes from one peer the link's buffer takes while nobody reads it; 0: nobody knows, as at first. UC
 * senders are told (uc_flow.h). */
void roci_engine_receive_room(struct roci_engine *e, uint64_t bytes);

/* Where the connected QP with this number sends to; NULL: there is none. */
const struct roci_av *roci_engine_peer_of(const struct roci_engine *e, uint32_t qpn);
/* Whether a QP still has that roci_av.local. */
bool roci_engine_uses_local(const struct roci_engine *e, uint16_t local);

/* ---- completion queues ---- */

/* `entries`: 1..ROCI_MAX_CQE. At least that many fit; roci_cq_capacity() says how many. -EINVAL, -ENOMEM. */
int roci_cq_create(struct roci_engine *e, unsigned entries, void *user, struct roci_cq **out);
int roci_cq_destroy(struct roci_cq *cq); /* -EBUSY while a QP uses it */
unsigned roci_cq_capacity(const struct roci_cq *cq);
/* Keeps the entries that were not polled; -EINVAL where they would not fit. No thread may consume meanwhile. */
int roci_cq_resize(struct roci_cq *cq, unsigned entries);
/* Consumer side: takes up to `max` entries, oldest first. Returns how many. */
unsigned roci_cq_poll(struct roci_cq *cq, struct roci_cqe *out, unsigned max);
/* True after an overflow: the CQ is dead (ROCI_EVENT_CQ_ERR was raised) and its QPs are in error. */
bool roci_cq_overrun(const struct roci_cq *cq);
/* The next entry (with solicited_only: the next solicited or failed one) raises one ROCI_EV_COMPLETION. A request for
 * any entry replaces one for a solicited entry, but not the other way round. */
void roci_cq_arm(struct roci_cq *cq, bool solicited_only);
/* Drops the entries of a QP that were not polled: it is reset or destroyed. No thread may consume meanwhile. */
void roci_cq_purge(struct roci_cq *cq, uint32_t qpn);

/* ---- memory ---- */

struct roci_mr_attr {
	uint32_t pd;
	uint32_t key;  /* becomes lkey and rkey; drawn at random by the caller; low 8 bits are the variant */
	void *base;    /* first byte in this process */
	uint64_t iova; /* the address of that byte in work requests, also the peer's */
	uint64_t len;  /* bytes; iova + len must not wrap */
	uint32_t access;
};
/* -EEXIST: the upper 24 bits of the key are in use, draw another. -EINVAL: bad access combination or range. */
int roci_mr_create(struct roci_engine *e, const struct roci_mr_attr *attr, struct roci_mr **out);
/* Replaces pd, base/iova/len, access (key unchanged). -EBUSY while memory windows are bound. */
int roci_mr_change(struct roci_mr *mr, const struct roci_mr_attr *attr);
int roci_mr_destroy(struct roci_mr *mr); /* -EBUSY while memory windows are bound */
uint32_t roci_mr_key(const struct roci_mr *mr);

/* `type`: 1, or 2 for type 2B, which is bound to a QP. */
int roci_mw_create(struct roci_engine *e, uint32_t pd, int type, uint32_t key, struct roci_mw **out);
int roci_mw_destroy(struct roci_mw *mw); /* invalidates */
uint32_t roci_mw_rkey(const struct roci_mw *mw);
/* The key that a bind to `rkey` gives a window with `key`. Adapters and Soft-RoCE take the low 8 bits and no more. */
static inline uint32_t roci_key_with_variant(uint32_t key, uint32_t rkey)
{
	return (key & ~0xffu) | (rkey & 0xffu);
}

/* ---- receive queues ---- */

struct roci_recv_wr {
	uint64_t wr_id;
	const struct roci_sge *sges;
	unsigned num_sge;
};

/* Its receives are checked against `pd`, not against the PD of the QP. -EINVAL beyond ROCI_MAX_SRQ_WR, ROCI_MAX_SGE. */
int roci_srq_create(struct roci_engine *e, uint32_t pd, unsigned max_wr, unsigned max_sge, void *user,
		    struct roci_srq **out);
int roci_srq_destroy(struct roci_srq *srq); /* -EBUSY while a QP uses it */
/* max_wr: 0 for no change; limit: -1 for no change. -EINVAL where the queued receives do not fit, or limit > max_wr. */
int roci_srq_modify(struct roci_srq *srq, unsigned max_wr, long limit);
void roci_srq_query(const struct roci_srq *srq, unsigned *max_wr, unsigned *max_sge, unsigned *limit);
int roci_srq_post(struct roci_srq *srq, const struct roci_recv_wr *wr); /* -ENOMEM full, -EINVAL too many SGEs */

/* ---- queue pairs ---- */

struct roci_qp_cap {
	uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline; /* as struct ibv_qp_cap */
};

struct roci_qp_init {
	uint32_t qpn; /* unique; chosen by the driver */
	/* RC: random bits, which prove to this QP that its peer sent a RANGES packet (ranges.h). 0: none are asked for.
	 */
	uint64_t secret;
	enum roci_qp_type type;
	uint32_t pd;
	struct roci_cq *send_cq, *recv_cq;
	struct roci_srq *srq; /* or NULL */
	struct roci_qp_cap cap;
	bool sq_sig_all;
	void *user;
};
/* On success init->cap holds what was granted, never less than was asked for. -EINVAL, -ENOMEM, -EEXIST (qpn). */
int roci_qp_create(struct roci_engine *e, struct roci_qp_init *init, struct roci_qp **out);
/* Queued work requests get no completions. Completions that were not polled stay, unless roci_cq_purge() is called. */
void roci_qp_destroy(struct roci_qp *qp);

struct roci_qp_attr {
	struct roci_av av;
	uint32_t qkey, rq_psn, sq_psn, dest_qpn, access;
	uint32_t path_mtu; /* enum ibv_mtu: 1..5 */
	uint16_t pkey_index;
	uint8_t en_sqd_async_notify, sq_draining;
	uint8_t max_rd_atomic, max_dest_rd_atomic;
	uint8_t min_rnr_timer, port_num, timeout, retry_cnt, rnr_retry, path_mig_state;
	enum roci_qp_state state, cur_state;
};
/* Follows the state table of IBTA 11.2.5.2: required and optional attributes of each transition. -EINVAL and -ENOMEM
 * leave the QP as it was. */
int roci_qp_modify(struct roci_qp *qp, uint64_t now, const struct roci_qp_attr *attr, unsigned mask);
void roci_qp_query(const struct roci_qp *qp, struct roci_qp_attr *attr, struct roci_qp_cap *cap);
enum roci_qp_state roci_qp_state(const struct roci_qp *qp);
uint32_t roci_qp_number(const struct roci_qp *qp); /* its QPN */

/* ---- one end of a connection is behind a NAT (nat.h) ---- */

/* Without terms->port this end is the one behind the NAT. Packets will go to terms->port of the QP's address, their
 * ICRCs cover what the hidden end sees, and the QP follows a peer that moves. Of an RC or UC QP in INIT: the next call
 * of roci_qp_modify(), to RTR, makes it so, or forgets it where it fails. -EINVAL, -ENOMEM. */
int roci_qp_cross_nat(struct roci_qp *qp, const struct roci_nat_terms *terms);
/* The terms as they are now, and the address that packets go to. False: no such QP, or it crosses no NAT. */
bool roci_engine_nat_terms(const struct roci_engine *e, uint32_t qpn, struct roci_nat_terms *terms, uint8_t gid[16]);
/* What the ICRC of a packet to the QP covers, where its peer is behind a NAT; NULL: the addresses that it came with. */
const struct roci_flow *roci_engine_nat_flow(const struct roci_engine *e, uint32_t qpn);
/* A HELLO came, for which the ICRC was checked with the addresses in it. True where the peer of its QP has moved. */
bool roci_engine_rx_hello(struct roci_engine *e, uint64_t now, const struct roci_rx *rx);
/* Changes *av, which a QP behind a NAT sends by, where the host sends to the same address from another one by now.
 * True: it did. */
typedef bool roci_rehome_fn(void *driver, struct roci_av *av);
/* Asks for each QP that is behind a NAT. One that has another address says HELLO from there. */
void roci_engine_rehome(struct roci_engine *e, uint64_t now, roci_rehome_fn *rehome, void *driver);
/* What the engine makes cookies with: unpredictable in production. */
void roci_engine_nat_key(struct roci_engine *e, const struct roci_nat_key *key);

struct roci_send_wr {
	uint64_t wr_id;
	enum roci_wr_opcode opcode;
	unsigned flags; /* enum roci_send_flags */
	uint32_t imm;   /* immediate data in network byte order, or rkey to invalidate (SEND_WITH_INV, LOCAL_INV) */
	uint64_t remote_addr; /* RDMA, atomics */
	uint32_t rkey;
	uint64_t compare_add, swap;
	const struct roci_sge
		*sges; /* with ROCI_SEND_INLINE: addr is a pointer, lkey is ignored, data is copied at once */
	unsigned num_sge;
	uint8_t atomic_write_data[8]; /* ROCI_WR_ATOMIC_WRITE, when num_sge is 0 */
	struct {
		uint64_t len;  /* bytes from remote_addr on */
		uint32_t feth; /* ROCI_FETH_* of wire/packet.h */
	} flush;
	const struct roci_av *av; /* UD; copied */
	uint32_t remote_qpn, remote_qkey;
	struct {
		struct roci_mw *mw;
		struct roci_mr *mr; /* NULL with len 0: unbind */
		uint64_t addr, len;
		uint32_t access;
		uint32_t rkey; /* the new one, chosen by the caller for both types */
	} bind;
};
/* -EINVAL: bad opcode for the type or state, too many SGEs, too much inline. */
int roci_qp_check_send(const struct roci_qp *qp, const struct roci_send_wr *wr);
/* As roci_qp_check_send(), or -ENOMEM: queue full. */
int roci_qp_post_send(struct roci_qp *qp, const struct roci_send_wr *wr);
/* Posts *wr, which roci_qp_check_send() accepts, where it is a short SEND to a peer of this host that may go at once:
 * *batch has its packet then, and an acknowledgement before it where the QP owes one. False: nothing was done. */
bool roci_qp_send_promptly(struct roci_qp *qp, uint64_t now, const struct roci_send_wr *wr,
			   struct roci_tx_batch *batch);
int roci_qp_post_recv(struct roci_qp *qp, const struct roci_recv_wr *wr);
/* Whether the send queue takes `count` more requests. The slot of a request is free when its completion was polled, so
 * a CQ with room for a full queue does not overrun. The slot of an unsignaled request is free when the request
 * completes. */
bool roci_qp_send_room(struct roci_qp *qp, unsigned count);

/* Where the driver publishes for peers of the host what the QP lets them do: from now on *state is ROCI_PUBLISHED and
 * the QP's access flags, without ROCI_ACCESS_REMOTE_READ where max_dest_rd_atomic is 0, in states RTR, RTS, SQD and
 * SQE, and 0 in others. NULL: nowhere. ROCI_PUBLISHED_NEW: nothing came from the peer yet, and a program may wait for
 * the event that says so (IBV_EVENT_COMM_EST): see roci_qp_direct_done(). */
#define ROCI_PUBLISHED     UINT32_C(0x80000000)
#define ROCI_PUBLISHED_NEW UINT32_C(0x40000000)
void roci_qp_publish(struct roci_qp *qp, _Atomic uint32_t *state);

/* A request that the driver may execute by itself, on the memory of a peer of the host. */
struct roci_direct {
	bool read; /* READ; else WRITE */
	uint16_t local;
	uint32_t qpn, dest_qpn, rkey;
	uint64_t remote_addr, len;
	unsigned span_count;
	struct roci_span spans[ROCI_MAX_SGE]; /* this side's memory */
};
/* Whether *wr, which roci_qp_check_send() accepts, may be executed like that: everything before it is done, and nothing
 * about it is wrong on this side. If so, fills *out. */
bool roci_qp_direct_begin(struct roci_qp *qp, const struct roci_send_wr *wr, struct roci_direct *out);
/* It was executed: completes it. The next call after roci_qp_direct_begin(). first: the peer was ROCI_PUBLISHED_NEW; it
 * gets a packet that has no effect but the event. */
void roci_qp_direct_done(struct roci_qp *qp, const struct roci_send_wr *wr, bool first);

/* Turns keepalive on: when nothing came from the peer of this RC QP in RTS for `interval_ns`, a keepalive probe is sent
 * (keepalive.h). After five probes without an answer, a second apart, the QP fails with ROCI_EVENT_QP_FATAL. 0: off, as
 * in a new QP. */
void roci_qp_keepalive(struct roci_qp *qp, uint64_t now, uint64_t interval_ns);
/* Whether the QP failed because keepalive got no answer; false where there is no such QP. */
bool roci_engine_peer_lost(const struct roci_engine *e, uint32_t qpn);

/* When the connection of this QP was made, the peer's program answered within answer_ns, 0: not known. Until a round
 * trip is measured, a shorter silence does not count as a loss. Of use in RTR and RTS; nothing happens where there is
 * no such QP. */
void roci_engine_answered(struct roci_engine *e, uint32_t qpn, uint64_t answer_ns);

/* The values of sgid_index that connected QPs have: bit i is index i, of at most ROCI_MAX_GIDS. */
uint32_t roci_engine_sgids(const struct roci_engine *e);

/* UD multicast: packets to `gid` reach the attached QPs. -EINVAL: not a UD QP; -ENOMEM: limits.h. */
int roci_qp_attach_mcast(struct roci_qp *qp, const uint8_t gid[16]);
int roci_qp_detach_mcast(struct roci_qp *qp, const uint8_t gid[16]);

#endif
