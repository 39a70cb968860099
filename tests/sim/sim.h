/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The simulator: two or three engines, a virtual clock, a hostile network, random programs of work requests, and a
 * model of what memory and completions must be. The program's seed determines everything.
 *
 *     program.c, workload.c, fault.c   draw a program: hosts, QPs, work requests, mistakes made on purpose
 *     states.c                         QPs on their way to RTS, and their earlier lives
 *     app.c                            plays the application: posts, polls, acts
 *     host.c                           drives one engine, as src/device would
 *     clock.c, network.c               time, and packets in flight
 *     pressure.c                       allocations that fail
 *     ring.c                           the local path between hosts, in place of the network
 *     forger.c                         peers that change their UDP port, and an attacker who guesses
 *     attack.c                         what guessing costs
 *     model.c, check.c, monitor.c      what must be: memory, completions, packets
 *     coverage.c                       what occurred
 */
#ifndef ROCI_SIM_H
#define ROCI_SIM_H

#include <setjmp.h>
#include <stdio.h>

#include "engine/engine.h"
#include "rng.h"

#define SIM_MAX_HOSTS    3
#define SIM_MAX_PAIRS    6
#define SIM_MAX_QPS      (2 * SIM_MAX_PAIRS)
#define SIM_MAX_CQS      4 /* of a host */
#define SIM_MAX_RQS      (SIM_MAX_QPS + SIM_MAX_HOSTS)
#define SIM_MAX_MRS      1024
#define SIM_MAX_WRS      64 /* of a QP */
#define SIM_MAX_SGE      6
#define SIM_MAX_MWS      2 /* of a QP's target */
#define SIM_MAX_ACTIONS  16
#define SIM_ARENA_BYTES  (16u << 20) /* memory of a host */
#define SIM_PACKET_BYTES (ROCI_MAX_HEADER_BYTES + ROCI_MAX_PAYLOAD + 8)
#define SIM_WORDS        8 /* the atomic words of a target */

#define BIT(status) (1u << (status))
#define US          1000ull
#define MS          1000000ull

struct sim;
struct sim_qp;

struct sim_mr {
	struct sim_host *host;
	struct roci_mr *mr; /* NULL once destroyed */
	uint32_t off, len;  /* in the host's arena */
	uint32_t used;      /* handed out by sim_pool_take() */
	uint64_t iova;
	uint32_t key, pd, access;
};

/* Local buffers come from a chain of MRs, so that a list of SGEs crosses regions. */
struct sim_pool {
	struct sim_host *host;
	struct sim_mr *cur;
	uint32_t pd, access;
};

/* A piece of a host's arena, and the MR that it is named by. */
struct sim_piece {
	struct sim_mr *mr;
	uint32_t off, len;
};

/* A memory window that the peer of its owner uses. */
struct sim_mw {
	struct roci_mw *mw;
	int type;
	uint32_t key; /* with which it will be or was last bound */
	bool bound;   /* as the program stands while it is drawn */
	uint32_t off, len, access;
	struct sim_mr *mr;
	int bind_wr;     /* of the owner's QP; -1: never */
	int last_use_wr; /* of the user's QP; -1: never */
};

/* Mistakes made on purpose; one at most per pair. */
enum sim_fault {
	SIM_FAULT_NONE,
	SIM_FAULT_RKEY,       /* no such key */
	SIM_FAULT_VARIANT,    /* right index, wrong low 8 bits */
	SIM_FAULT_BOUNDS,     /* past the end */
	SIM_FAULT_ACCESS,     /* the MR lacks the right */
	SIM_FAULT_PD,         /* the MR is of another PD */
	SIM_FAULT_QP_ACCESS,  /* the QP lacks the right */
	SIM_FAULT_MISALIGNED, /* atomic */
	SIM_FAULT_RECV_SHORT, /* the message is longer than the buffer */
	SIM_FAULT_RECV_LKEY,  /* the receive's lkey is wrong */
	SIM_FAULT_SEND_LKEY,  /* the local lkey is wrong */
	SIM_FAULT_READ_LKEY,  /* READ or atomic into memory without LOCAL_WRITE */
	SIM_FAULT_INV_KEY,    /* SEND_WITH_INV of no window */
	SIM_FAULT_BIND,       /* BIND_MW outside of the MR */
	SIM_FAULT_LOCAL_INV,  /* LOCAL_INV of no window */
	SIM_FAULT_NO_RECV,    /* the receive is never posted */
	SIM_FAULT_OVERRUN,    /* a CQ too small; belongs to no work request */
	SIM_FAULTS
};

enum sim_action_kind {
	SIM_ACT_ERR,     /* QP to ERR */
	SIM_ACT_RESET,   /* QP to RESET */
	SIM_ACT_DESTROY, /* QP destroyed */
	SIM_ACT_SQD,     /* QP to SQD; back to RTS after a while */
	SIM_ACT_RTS,
	SIM_ACT_DEREG,       /* the peer's target MR destroyed while it is in use */
	SIM_ACT_DEREG_LOCAL, /* the MR of a work request's local data */
	SIM_ACT_LATE_RTS,    /* connected, but ready to send only now */
	SIM_ACTIONS
};

struct sim_action {
	enum sim_action_kind kind;
	struct sim_qp *qp;
	unsigned trigger; /* when qp has posted this many */
	uint64_t delay_ns;
	bool scheduled;
};

struct sim_wr {
	enum roci_wr_opcode opcode;
	unsigned flags, index;
	uint32_t len; /* bytes moved */
	uint32_t imm; /* or the key to invalidate */
	bool signaled, consumes_recv;
	uint32_t packets, psn_off; /* PSNs that it takes; offset from the QP's first */

	unsigned num_sge;
	struct sim_piece pieces[SIM_MAX_SGE]; /* local memory */
	uint32_t bad_lkey;                    /* xor-ed into the last SGE's lkey */
	uint8_t *inline_data;                 /* what was posted inline */
	bool from_read;                       /* sends what an earlier READ fetched */

	uint32_t target_off; /* remote memory, in the peer's arena */
	bool target_words;   /* of the atomic words */
	uint64_t remote_addr;
	uint32_t rkey;
	uint64_t compare_add, swap;
	uint8_t raw[8]; /* ATOMIC_WRITE without SGE */
	uint32_t flush_len;
	uint32_t feth;
	struct sim_counter *counter;

	struct sim_qp *ud_dest;
	uint32_t qkey;
	struct sim_mw *mw;
	uint32_t bind_off, bind_len, bind_access, bind_key;

	struct sim_qp *after_qp; /* may be posted when after_wr of after_qp has succeeded */
	unsigned after_wr;

	enum sim_fault fault;
	uint32_t must; /* BIT(status): it has to fail, with one of these */
	uint32_t may;  /* it may fail with one of these */

	bool posted, ok, failed, executed;
	uint8_t deliveries;    /* UD */
	unsigned lost_before;  /* monitor: the QP's losses when it was first sent */
	uint32_t responses;    /* monitor: how many of them were delivered */
	bool finished_on_wire; /* monitor: so all */
};

struct sim_recv {
	unsigned num_sge;
	struct sim_piece pieces[SIM_MAX_SGE];
	uint32_t len, bad_lkey;
	bool posted, done, failed;
};

/* A receive queue: of a QP, or shared. */
struct sim_rq {
	struct sim *sim;
	struct sim_host *host;
	struct roci_srq *srq; /* NULL: qp's own */
	struct sim_qp *qp;
	unsigned id, cap, max_sge, planned, posted, polled;
	uint32_t pd, sharer_pd; /* of the receives; of the QPs that share it */
	bool early;             /* post as soon as there is room */
	bool never_rnr;         /* every receive is there before the first send */
	bool shortened;         /* UD: some are too short for some messages */
	bool datagrams;         /* shared, also by UD */
	bool scheduled;
	bool limit_armed;
	uint64_t gap_ns;
	struct sim_recv *recvs;
	struct sim_pool pool;
};

enum sim_poll { SIM_POLL_EAGER, SIM_POLL_LAZY, SIM_POLL_EVENT };

struct sim_cq {
	struct sim_host *host;
	struct roci_cq *cq;
	unsigned need; /* entries that can wait at once */
	enum sim_poll mode;
	bool may_overrun, dead;
	bool poll_scheduled, armed, solicited_only, event_seen, wanted_seen, unsure;
	uint64_t lag_ns;
};

/* A word that several QPs add to. */
struct sim_counter {
	struct sim_host *host;
	struct sim_mr *mr;
	uint32_t off;
	uint64_t initial;
	unsigned planned, count;
	struct {
		uint64_t orig, add;
	} seen[SIM_MAX_QPS * SIM_MAX_WRS];
};

#define SIM_SEEN_REQUEST  1
#define SIM_SEEN_RESPONSE 2
#define SIM_SEEN_END      4 /* a message's last packet was sent */

struct sim_qp {
	struct sim *sim;
	struct sim_host *host;
	struct sim_qp *peer;
	unsigned id;
	enum roci_qp_type type;
	struct roci_qp *qp;            /* NULL once destroyed */
	enum roci_qp_state state_seen; /* coverage.c */
	uint32_t qpn, pd, qkey, sq_psn, access;
	struct sim_cq *send_cq, *recv_cq;
	struct sim_rq *rq;
	struct roci_av av;
	bool moved;    /* it sends from moved_port now, and not as av says */
	bool repathed; /* its path was changed, and with it its port */
	uint16_t moved_port;
	struct roci_qp_cap cap;
	bool sq_sig_all;
	uint32_t mtu;     /* bytes */
	uint32_t segment; /* payload bytes that a packet has at most: mtu, or any number */
	uint32_t longer;  /* the same of a SEND or WRITE that is longer than mtu; 0: as segment says */
	uint32_t mtu_num; /* enum ibv_mtu */
	uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer, max_rd, max_dest_rd;

	/* what this QP may touch at its peer */
	bool disjoint; /* every work request has a range of its own */
	struct sim_mr *target, *words;
	struct sim_pool target_pool, local_pool;
	struct sim_mw mws[SIM_MAX_MWS];
	unsigned num_mw;
	uint32_t budget, max_len;

	struct sim_wr *wrs;
	unsigned num_wr;
	enum sim_fault fault; /* among wrs */
	int fault_wr;

	/* the application */
	uint64_t gap_ns;
	bool started, send_scheduled, post_after_failure;
	unsigned posted, done;
	bool failed; /* a work request completed in error */
	int failed_wr;
	uint32_t failed_status;
	bool late, was_late; /* in RTR still, or at the start */
	bool gone;           /* reset or destroyed, or its CQ overran */
	bool purged;
	bool recv_lost;    /* in a CQ that overran */
	bool moved_to_err; /* by us */
	bool sqd;
	uint64_t sqd_since;
	unsigned sqd_started;   /* monitor */
	bool asked_for_parts;   /* monitor: as far_read.h has it */
	bool peer_fault_posted; /* the peer has posted what puts us into ERR */
	bool recv_failed, recv_flushed;
	bool error_unexplained; /* seen to be in error; the reason must still show */
	bool dereg;             /* our target vanished midway */
	bool dereg_local;       /* some of our own memory vanished midway */
	bool sq_drained_wanted, sq_drained_seen, last_wqe_seen;

	/* the model */
	unsigned executed;    /* messages that the peer has executed for certain */
	unsigned recv_cursor; /* the peer's next work request that may consume a receive */
	unsigned recv_next;   /* own RQ: the next receive to complete */

	/* the monitor; PSNs are offsets from sq_psn */
	uint32_t total_packets;
	uint32_t sent_next;      /* all before were sent at least once */
	uint32_t delivered_next; /* all before were delivered to the peer */
	uint8_t *seen;           /* per packet: SIM_SEEN_ */
	uint64_t resent;
	unsigned lost;     /* packets of this QP or its peer */
	uint64_t rnr_naks; /* in a row about rnr_off */
	uint32_t rnr_off;
	uint64_t quiet_until; /* an RNR NAK forbids to send from quiet_off on */
	uint32_t quiet_off;
	bool quiet_unsure;
};

struct sim_host {
	struct sim *sim;
	unsigned id;
	struct roci_engine *engine;
	uint8_t gid[16];
	uint8_t *mem, *shadow; /* what is, and what must be */
	uint32_t used;
	struct sim_cq cqs[SIM_MAX_CQS];
	unsigned num_cq;
	uint32_t pds[2];
	uint64_t lag_ns; /* how late the driver may be */
	bool dirty, pump_scheduled;
	uint64_t timer_at; /* for which a timer event is in flight */
	unsigned timer_generation;
	unsigned spins;
	uint64_t spin_time;
	uint16_t ip_id;
	int64_t clock_ahead_ns;                       /* of the virtual time */
	uint64_t clock_newest;                        /* the latest time that it had before it was changed */
	uint64_t clock_stands_until, clock_stands_at; /* until that virtual time, at that time of its own */
};

/* Rates are in 1/1000. */
struct sim_net {
	unsigned loss, dup, reorder, corrupt, ce, burst;
	unsigned stray; /* packets from nowhere */
	unsigned forge; /* packets of somebody who guesses */
	unsigned move;  /* packets at which their sender changes its UDP port */
	unsigned burst_left[SIM_MAX_HOSTS];
	uint64_t delay_ns, jitter_ns, reorder_ns;
	uint64_t ns_per_kb, queue_ns; /* 0: no limit of bandwidth */
	uint64_t last_arrival[SIM_MAX_HOSTS][SIM_MAX_HOSTS], next_free[SIM_MAX_HOSTS];
	bool lossy;
};

enum sim_event_kind {
	SIM_EV_PACKET,
	SIM_EV_TIMER,
	SIM_EV_PUMP,
	SIM_EV_SEND,
	SIM_EV_RECV,
	SIM_EV_POLL,
	SIM_EV_ACTION,
	SIM_EV_RING,
	SIM_EV_CLOCK,
	SIM_EV_CLOCK_GOES
};

struct sim_event {
	uint64_t at, seq;
	enum sim_event_kind kind;
	void *obj;
	unsigned from; /* host of a packet; generation of a timer */
	struct sim_packet *packet;
	struct sim_event *next_free;
};

/* The UDP payload in flight and what its IP header said. */
struct sim_packet {
	uint8_t sgid[16], dgid[16];
	uint16_t src_port, ip_id;
	uint8_t traffic_class, hop_limit;
	bool damaged; /* the network changed bits: the ICRC must tell */
	bool stray;   /* intact, but for no QP of this host: must change nothing */
	uint32_t len;
	uint8_t bytes[SIM_PACKET_BYTES];
	struct sim_packet *next_free;
};

/* What an attacker forges, see attack.c. */
enum sim_forgery {
	SIM_FORGE_SEND,
	SIM_FORGE_WRITE_IMM,
	SIM_FORGE_PORT,
	SIM_FORGE_ACK,
	SIM_FORGE_NAK,
	SIM_FORGE_READ_RESPONSE,
	SIM_FORGE_MIDDLE, /* of all packets that are outstanding */
	SIM_FORGE_CNP,
	SIM_FORGE_HELLO, /* wire/nat.h */
	SIM_FORGE_CHALLENGE,
	SIM_FORGERIES
};
#define SIM_KNOWLEDGES 3
#define SIM_DISTANCES  24

struct sim_tries {
	uint64_t count, hits;
};

#define SIM_STATUSES 32

/* How often each occurred, see coverage.c. */
struct sim_covered {
	uint64_t opcodes[256], syndromes[256];                 /* of packets that were sent */
	uint64_t statuses[2][SIM_STATUSES];                    /* of work requests; of receives */
	uint64_t events[SIM_STATUSES];                         /* by enum roci_async_type */
	uint64_t moves[3][ROCI_QPS_ERR + 1][ROCI_QPS_ERR + 1]; /* of RC, UC, UD: from, to */
};

/* Numbers of type uint64_t only: those of several processes are added up. */
struct sim_stats {
	uint64_t programs, failed, packets, lost, duplicated, reordered, damaged, marked;
	uint64_t retransmits, timeouts, rnr, naks, work_requests, receives, errors, faults, strays, forged, refused,
		bytes;
	struct sim_tries tries[SIM_FORGERIES][SIM_KNOWLEDGES][SIM_DISTANCES];
	struct sim_covered covered;
};

struct sim {
	uint64_t seed, now;
	bool verbose, watch, big;
	bool rings;    /* RC goes by the local path: --rings */
	bool attacked; /* by the attacker of attack.c */
	bool memory;   /* allocations fail: --memory */
	bool clocks;   /* clocks leap and stand: --clocks */
	bool longer;   /* packets that are longer than the path MTU: --longer */
	bool spoiled;  /* with success: the program ends */
	bool far; /* round trips of milliseconds, peers that tell what is missing: one seed in seven, none of which has
		     a name */
	bool flushes; /* has FLUSHes: one seed in five, none of which has a name */
	bool walks; /* QPs went through all states before: one seed in 13, none of which has a name; so the next two */
	bool mixed; /* shared receive queues also for UD, windows and FLUSH for all */
	bool earlier; /* packets of earlier connections are still under way */
	jmp_buf fail;
	char reason[512];
	struct rng plan, app, netrng;
	struct rng forger, attacker;
	struct rng memory_rng, clocks_rng;
	struct rng extra, more; /* for what was added later, so that the named seeds keep their meaning */
	struct sim_stats stats;

	struct sim_net net;
	bool retry_legal; /* timeouts shorter than the round trip */
	unsigned num_hosts, num_qps, num_rqs, num_mrs, num_actions;
	struct sim_host hosts[SIM_MAX_HOSTS];
	struct sim_qp qps[SIM_MAX_QPS];
	struct sim_rq rqs[SIM_MAX_RQS];
	struct sim_mr mrs[SIM_MAX_MRS];
	struct sim_action actions[SIM_MAX_ACTIONS];
	struct sim_counter counter;
	bool kick;
	uint64_t progress_at, patience_ns;

	struct sim_event **heap;
	unsigned heap_len, heap_cap;
	uint64_t seq;
	struct sim_event *event; /* under way; NULL: none */
	struct sim_event *free_events;
	struct sim_packet *free_packets;
	uint8_t *scratch;
	size_t scratch_used;
	struct roci_tx_batch batch;
};

/* ---- run.c ---- */
/* Runs the program of `seed`. Returns false where it failed. */
bool sim_run(struct sim *sim, uint64_t seed);

/* ---- main.c ---- */
/* Ends the program in failure: the seed is printed with the reason. */
_Noreturn void sim_fail(struct sim *sim, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void sim_trace(struct sim *sim, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#define sim_check(sim, cond, ...)                                                                                      \
	do {                                                                                                           \
		if (!(cond))                                                                                           \
			sim_fail(sim, __VA_ARGS__);                                                                    \
	} while (0)

/* ---- clock.c ---- */
void sim_schedule(struct sim *sim, uint64_t at, enum sim_event_kind kind, void *obj);
/* The earlier timer events of `host` have no effect. */
void sim_schedule_timer(struct sim *sim, uint64_t at, struct sim_host *host);
void sim_schedule_packet(struct sim *sim, uint64_t at, struct sim_host *to, unsigned from, struct sim_packet *packet);
/* Takes the earliest event and sets the clock. The caller gives it back with sim_event_free(). NULL: none left. */
struct sim_event *sim_next_event(struct sim *sim);
void sim_event_free(struct sim *sim, struct sim_event *ev);
struct sim_packet *sim_packet_alloc(struct sim *sim);
void sim_packet_free(struct sim *sim, struct sim_packet *packet);
void sim_clock_reset(struct sim *sim);
/* With --clocks: draws when clocks of hosts leap, or stand. */
void sim_clocks_start(struct sim *sim);
void sim_clock_step(struct sim *sim, struct sim_host *host);
void sim_clock_goes(struct sim *sim, struct sim_host *host);
/* The time as the host's clock has it, and the virtual time when that clock says `at`, not before now. */
uint64_t sim_host_now(const struct sim_host *host);
uint64_t sim_host_when(const struct sim_host *host, uint64_t at);
/* True where the host's clock was set back: its engine knows a later time. */
bool sim_host_is_back(const struct sim_host *host);

/* ---- pressure.c ---- */
void sim_pressure_reset(struct sim *sim);
/* Allocations fail by chance from now on, or no more. */
void sim_pressure_by_chance(bool on);
void sim_pressure_begin(unsigned fail_in);
bool sim_pressure_end(struct sim *sim, int err);
/* Nothing is left of what was allocated. */
void sim_pressure_check(struct sim *sim);
/* The result of a call, which is repeated until each of its allocations has failed once. */
#define SIM_PRESSED(sim, call)                                                                                         \
	({                                                                                                             \
		unsigned fail_in_ = 0;                                                                                 \
		int result_;                                                                                           \
		do {                                                                                                   \
			sim_pressure_begin(++fail_in_);                                                                \
			result_ = (call);                                                                              \
		} while (sim_pressure_end(sim, result_));                                                              \
		result_;                                                                                               \
	})
/* The simulator's own memory, which never fails; as realloc(). */
void *sim_own_memory(void *old, size_t len);

/* ---- memory.c ---- */
/* Zeroed pages, for ever. */
void *sim_own_pages(size_t len);
/* Zeroed memory that lives as long as the program. */
void *sim_alloc(struct sim *sim, size_t len);
void sim_memory_reset(struct sim *sim);
/* A fresh MR of `len` bytes filled with noise. */
struct sim_mr *sim_mr_new(struct sim *sim, struct sim_host *host, uint32_t pd, uint32_t len, uint32_t access);
/* `len` bytes of one MR of the pool, for one user. */
struct sim_piece sim_pool_take(struct sim *sim, struct sim_pool *pool, uint32_t len);
/* Splits `len` bytes into at most `max_sge` pieces; returns how many. */
unsigned sim_pool_take_list(struct sim *sim, struct sim_pool *pool, uint32_t len, unsigned max_sge,
			    struct sim_piece *pieces);
uint32_t sim_new_key(struct sim *sim, struct sim_host *host);
uint64_t sim_mr_addr(const struct sim_mr *mr, uint32_t off);
void sim_gather(const uint8_t *arena, const struct sim_piece *pieces, unsigned n, uint32_t len, uint8_t *out);
void sim_scatter(uint8_t *arena, const struct sim_piece *pieces, unsigned n, uint32_t len, const uint8_t *in);

/* ---- program.c, workload.c, fault.c ---- */
void sim_program_draw(struct sim *sim);
void sim_program_setup(struct sim *sim);
void sim_program_teardown(struct sim *sim);
void sim_workload_draw(struct sim *sim, struct sim_qp *a, struct sim_qp *b);
void sim_recvs_draw(struct sim *sim);
void sim_fault_draw(struct sim *sim, struct sim_qp *a, struct sim_qp *b);
const char *sim_fault_str(enum sim_fault fault);

/* ---- states.c ---- */
/* RESET to RTR. */
void sim_connect(struct sim *sim, struct sim_qp *qp);
/* As if both had found that packets of qp->longer bytes arrive. */
void sim_agree_longer(struct sim_qp *qp);
/* RTR to RTS. */
void sim_ready_to_send(struct sim *sim, struct sim_qp *qp);
/* What the QP did before it is connected; it is in RESET again. */
void sim_live_before(struct sim *sim, struct sim_qp *qp);
/* An earlier connection of `a` and its peer. Both are in RESET again, and packets are under way. */
void sim_live_earlier(struct sim *sim, struct sim_qp *a);

/* ---- app.c ---- */
void sim_app_start(struct sim *sim);
void sim_app_run(struct sim *sim);
void sim_app_send(struct sim *sim, struct sim_qp *qp);
void sim_app_recv(struct sim *sim, struct sim_rq *rq);
void sim_app_action(struct sim *sim, struct sim_action *act);
/* True where qp's next work request will rightly never be posted. */
bool sim_app_stuck(const struct sim_qp *qp);

/* ---- host.c ---- */
/* The engine was called: run its host now, or later where the driver is slow. */
void sim_host_touch(struct sim_host *host);
/* Posts *wr as a driver does that sends short messages to peers of the host at once. False: it has to be posted. Else
 * sim_host_sent_promptly() comes next, which takes the packets away. */
bool sim_host_send_promptly(struct sim_host *host, struct roci_qp *qp, const struct roci_send_wr *wr);
void sim_host_sent_promptly(struct sim_host *host);
void sim_host_pump(struct sim_host *host);
void sim_host_receive(struct sim_host *host, struct sim_packet *packet);
void sim_host_timer(struct sim_host *host, unsigned generation);
void sim_cq_poll(struct sim_cq *cq);
bool sim_cq_empty(const struct sim_cq *cq);
void sim_host_events(struct sim_host *host);
/* Drops the pending events. */
void sim_host_discard(struct sim_host *host);

/* ---- network.c ---- */
void sim_net_draw(struct sim *sim);
void sim_net_send(struct sim *sim, struct sim_host *from, const struct roci_tx_packet *tx,
		  const struct roci_span *spans);

/* A packet of an earlier connection arrives in so many ns. */
void sim_net_late(struct sim *sim, struct sim_host *from, const struct roci_tx_packet *tx,
		  const struct roci_span *spans, uint64_t delay_ns);

/* It arrives now. */
void sim_net_at_once(struct sim *sim, struct sim_host *from, const struct roci_tx_packet *tx,
		     const struct roci_span *spans);

/* A packet to `to` was lost: a requester may rightly miss an answer now. */
void sim_count_loss(struct sim *sim, struct sim_qp *to);

/* ---- ring.c ---- */
void sim_rings_setup(struct sim *sim);
void sim_ring_send(struct sim *sim, struct sim_host *from, const struct roci_tx_packet *tx,
		   const struct roci_span *spans);
void sim_ring_look(struct sim *sim, void *ring);
/* The host has deregistered this memory. */
void sim_rings_revoke(struct sim_host *host, const void *base, uint64_t len);

/* ---- forger.c ---- */
#define SIM_FORGED_BYTES 16
/* A forged packet: header, payload, and the UDP port that it claims to come from. */
struct sim_forged {
	uint8_t header[ROCI_MAX_HEADER_BYTES], payload[SIM_FORGED_BYTES];
	unsigned header_len, payload_len;
	uint16_t port;
};
void sim_forger_draw(struct sim *sim);
/* The port that the next packet of `qp` leaves from, which the engine sends from `port`. */
uint16_t sim_forger_port(struct sim *sim, struct sim_qp *qp, uint16_t port);
/* False: nothing is forged for `to` now. */
bool sim_forger_spray(struct sim *sim, struct sim_qp *to, struct sim_forged *out);

/* ---- attack.c ---- */
/* A packet has come to `host`: perhaps a forged one comes behind it. Does not return where that has an effect. */
void sim_attack(struct sim *sim, struct sim_host *host, const struct roci_rx *behind);
/* Prints what a forgery costs. Returns false where one is too cheap. */
bool sim_attack_report(const struct sim_stats *stats);

/* ---- coverage.c ---- */
void sim_cover_packet(struct sim *sim, const struct roci_packet *pkt);
void sim_cover_completion(struct sim *sim, const struct roci_cqe *cqe, bool receive);
void sim_cover_event(struct sim *sim, enum roci_async_type type);
/* Looks which QPs have another state than before. */
void sim_cover_states(struct sim *sim);
/* roci_qp_modify(), counted. */
int sim_modify(struct sim *sim, struct sim_qp *qp, const struct roci_qp_attr *attr, unsigned mask);
/* Prints what occurred. Returns false where something that can occur did not. */
bool sim_cover_report(const struct sim_covered *covered);

/* ---- model.c ---- */
/* The bytes that a work request sends, as the model has them. */
void sim_wr_data(const struct sim_qp *qp, const struct sim_wr *wr, uint8_t *out);
/* The peer has executed the work requests before `upto`. */
void sim_model_execute(struct sim_qp *qp, unsigned upto);
void sim_model_final(struct sim *sim);
/* UC: the peer has executed this one. */
void sim_model_execute_one(struct sim_qp *qp, struct sim_wr *wr);
/* The last byte of a WRITE must become visible last. */
void sim_model_watch(struct sim *sim, struct sim_host *host);

/* ---- check.c ---- */
void sim_check_cqe(struct sim_cq *cq, const struct roci_cqe *cqe);
/* A work request took effect, whether or not a completion said so. */
void sim_succeed(struct sim_qp *qp, struct sim_wr *wr);

/* ---- quiet.c ---- */
void sim_check_async(struct sim *sim, const struct roci_event *ev);
/* Nothing is in flight and no timer runs: what is not done now never will be. */
void sim_check_quiet(struct sim *sim);
/* Every QP is in error: nothing may be left in the queues. */
void sim_check_flushed(struct sim *sim);
struct sim_qp *sim_find_qp(struct sim *sim, uint32_t qpn);
/* True where QP may be in error, by what the application has seen. */
bool sim_err_legit(const struct sim_qp *qp);
/* True where QP is in error. */
bool sim_in_error(const struct sim_qp *qp);
/* `cq` has overrun, on purpose: its QPs are in error, and their further completions are not checked. */
void sim_cq_died(struct sim_cq *cq);

/* Payload bytes of the packets of *wr, but the last. */
static inline uint32_t sim_segment(const struct sim_qp *qp, const struct sim_wr *wr)
{
	bool carries = wr->opcode <= ROCI_WR_SEND_WITH_IMM || wr->opcode == ROCI_WR_SEND_WITH_INV;

	return qp->longer && carries && wr->len > qp->mtu ? qp->longer : qp->segment;
}

/* ---- monitor.c ---- */
void sim_monitor_setup(struct sim *sim);
void sim_monitor_sent(struct sim *sim, struct sim_host *from, const struct roci_packet *pkt);
void sim_monitor_delivered(struct sim *sim, struct sim_host *to, const struct roci_packet *pkt);

#endif
