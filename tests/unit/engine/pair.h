/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two engines and a wire: packets go from one to the other as structs, through a filter that may drop them. For tests
 * of single rules; tests/sim is for everything at once.
 */
#ifndef ROCI_TESTS_PAIR_H
#define ROCI_TESTS_PAIR_H

#include "../test.h" /* IWYU pragma: export */

#include "engine/engine.h"

#define PAIR_MTU    256
#define PAIR_MEMORY 65536

struct pair;

struct pair_side {
	struct pair *pair;
	unsigned taken_back;     /* calls of roci_take_back_fn */
	unsigned windows_closed; /* calls of roci_close_window_fn */
	struct roci_span closed; /* the last one's bytes */
	bool watched;
	unsigned completed_before; /* if watched: completions that the program could see before the first of them */
	struct roci_engine *e;
	struct roci_cq *cq;
	struct roci_qp *qp;
	struct roci_srq *srq; /* NULL: the QP receives for itself */
	struct roci_mr *mr;
	uint32_t key, recv_key; /* of `memory`: for requests, for receives */
	_Alignas(64) uint8_t memory[PAIR_MEMORY];
};

/* Side 0 is behind a NAT, which changes where its packets come from, and lets in what goes there. */
struct pair_place {
	uint8_t gid[16];
	uint16_t port;
};
#define PAIR_TOKEN UINT64_C(0x123456789abcdef0)

struct pair {
	uint64_t now;
	enum roci_qp_type type;
	struct pair_side side[2];
	/* False drops the packet; `from` is the sender's index. */
	bool (*filter)(struct pair *p, int from, const struct roci_packet *pkt);
	unsigned sent[2], dropped;
	unsigned copied[2];              /* packets sent with copy_payload, see struct roci_tx_packet */
	uint16_t port[2];                /* UDP port of a side's packets; 0: as the engine says */
	bool congested;                  /* what arrives met congestion */
	bool local;                      /* the sides are processes of one host: payload stays with its sender */
	bool gone;                       /* local: payload cannot be had any more */
	bool unmapped;                   /* local: its place is not mapped any more */
	bool unreadable;                 /* local: nor is it where it comes from */
	unsigned count;                  /* for filters */
	const struct roci_tx_packet *tx; /* for filters: the current packet, as it was sent */
	struct pair_place nat;           /* port 0: none */
	unsigned nat_lost;               /* packets that the NAT did not let in */
};

/* Attributes; see pair_defaults(). */
struct pair_options {
	enum roci_qp_type type;
	unsigned timeout, retry_cnt, rnr_retry, min_rnr_timer, max_rd_atomic;
	uint32_t access; /* of the QPs */
	uint32_t mr_access;
	uint32_t psn;
	uint32_t path_mtu; /* enum ibv_mtu; 0: PAIR_MTU */
	uint32_t srq_pd;   /* not 0: side 1 receives from an SRQ of this PD, in which its memory is registered, too */
	bool sig_all;
	bool local;            /* the QPs are local to each other, see engine.h */
	uint8_t traffic_class; /* of both sides' packets */
	struct pair_place nat; /* port 0: none. Both sides know of it */
	bool ipv6;             /* the addresses are */
	uint64_t secret;       /* not 0: of side 0, see struct roci_qp_init; side 1 has the next one */
};
struct pair_options pair_defaults(void);

struct pair *pair_create(const struct pair_options *o);
void pair_free(struct pair *p);
/* Takes the packets to the other side. */
void pair_carry(struct pair *p, int from, const struct roci_tx_batch *batch);
/* Takes one batch of side `from` to the other. False where there was none. */
bool pair_turn(struct pair *p, int from);
/* Expires the timers of one side, and takes all that it has to send to the other, which does not answer yet. */
void pair_drain(struct pair *p, int from);
/* Side 0 sends for 10 ms, then side 1 answers, and the answer takes 10 ms. */
void pair_round_trip(struct pair *p);
/* Moves packets until neither side sends any; the time does not change. */
void pair_run(struct pair *p);
/* Moves packets and time, from deadline to deadline, until nothing is pending or `until`. */
void pair_run_until(struct pair *p, uint64_t until);

/* Posts on side `s`: `len` bytes at `offset` of its memory, to `remote` in the other one's. */
int pair_send(struct pair *p, int s, enum roci_wr_opcode op, uint64_t wr_id, uint32_t offset, uint32_t len,
	      uint32_t remote);
int pair_recv(struct pair *p, int s, uint64_t wr_id, uint32_t offset, uint32_t len);
/* A packet arrives at side `to`, with the addresses and the port of its peer. Of `pkt` are op, P_Key and QPN filled in.
 */
void pair_inject(struct pair *p, int to, struct roci_packet pkt);
/* The next completion of side `s` must be this. */
void pair_expect(struct pair *p, int s, uint64_t wr_id, enum roci_wc_status status);
void pair_expect_nothing(struct pair *p, int s);

#endif
