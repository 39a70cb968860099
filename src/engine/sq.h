/* SPDX-License-Identifier: BSD-2-Clause */
/* Send queue: a ring of work requests, each with the packets it becomes. In the queue of a UD QP a destination stands
 * in front of each (roci_swqe_dest()). */
#ifndef ROCI_ENGINE_SQ_H
#define ROCI_ENGINE_SQ_H

#include "engine/engine.h"
#include "engine/mr.h"

struct roci_swqe {
	uint64_t wr_id;
	uint64_t length;      /* payload bytes of the message (READ: bytes to fetch) */
	uint64_t cum_bytes;   /* window bytes of the QP before this request, see requester.h */
	uint64_t remote_addr; /* bind: of the region */
	uint32_t rkey;        /* bind: the window's new one */
	uint32_t imm;         /* immediate data, or rkey to invalidate; bind: key of the region */
	union {
		uint32_t first_psn; /* from its start until it completes */
		uint32_t cq_place;  /* then: see has_cqe */
	};
	uint32_t packets; /* PSNs it takes; 0 for local operations */
	uint8_t opcode;   /* enum roci_wr_opcode */
	uint8_t flags;    /* enum roci_send_flags; SIGNALED also where the QP signals all */
	uint8_t status;   /* enum roci_wc_status, when done */
	bool done;        /* needs nothing more from the network */
	bool has_cqe;     /* its completion was put into the CQ, at cq_place */
	uint8_t num_sge;  /* inline data: unused */
	uint16_t longer;  /* payload bytes of its full packets, see plpmtu.h; 0: as the path MTU says */
	union {
		struct {
			uint64_t compare_add, swap;
		} atomic;
		struct {
			uint32_t len, feth;
		} flush;
		struct {
			uint64_t len;
			uint32_t mw_key, access;
		} bind; /* a part of it, see roci_swqe_bind() */
		struct {
			uint32_t far_from; /* packets from this one on are asked for as far_read.h has it */
			uint16_t piece;    /* packets that one request asks for at most, see requester.h */
		} read;
	};
	struct roci_sge sges[]; /* or inline data */
};

_Static_assert(sizeof(struct roci_swqe) == 72, "each place in each send queue has one: a longer one costs memory");

/* Where a datagram goes. */
struct roci_swqe_dest {
	struct roci_av av;
	uint32_t qpn, qkey;
};
_Static_assert(sizeof(struct roci_swqe_dest) % _Alignof(struct roci_swqe) == 0, "it stands in front of one");

struct roci_sq {
	char *ring; /* owned, mask + 1 strides */
	uint32_t stride, mask;
	uint32_t before;  /* bytes in front of each request: its destination, of a UD QP */
	uint32_t freed;   /* oldest request whose slot is not free again; all five are free-running until
			     roci_sq_restart() */
	uint32_t head;    /* oldest request not completed */
	uint32_t next;    /* request of the next packet to send */
	uint32_t started; /* first request never started; next <= started <= tail */
	uint32_t tail;
	uint32_t max_wr, max_sge, max_inline;
};

/* Grants as much inline data as the SGEs take, even where less was asked for: adapters and Soft-RoCE do so, and
 * programs (rdma_xclient) rely on it. sq->max_inline says how much. -ENOMEM. */
int roci_sq_init(struct roci_sq *sq, bool has_dest, uint32_t max_wr, uint32_t max_sge, uint32_t max_inline);
void roci_sq_fini(struct roci_sq *sq);
/* The queue has nothing: it goes on with its first slot, which is in a cache more likely than the others. */
static inline void roci_sq_restart(struct roci_sq *sq)
{
	sq->freed = sq->head = sq->next = sq->started = sq->tail = 0;
}
static inline struct roci_swqe *roci_sq_at(const struct roci_sq *sq, uint32_t i)
{
	return (struct roci_swqe *)(void *)(sq->ring + sq->before + (size_t)(i & sq->mask) * sq->stride);
}
/* Of a work request in the queue of a UD QP. */
static inline struct roci_swqe_dest *roci_swqe_dest(const struct roci_swqe *w)
{
	return (struct roci_swqe_dest *)(uintptr_t)w - 1;
}
/* Of a BIND_MW. */
static inline struct roci_bind roci_swqe_bind(const struct roci_swqe *w)
{
	return (struct roci_bind){.addr = w->remote_addr,
				  .len = w->bind.len,
				  .mw_key = w->bind.mw_key,
				  .mr_key = w->imm,
				  .access = w->bind.access,
				  .rkey = w->rkey};
}
/* -EINVAL: too many SGEs, too much inline or message data. */
int roci_sq_check(const struct roci_sq *sq, const struct roci_send_wr *wr);
/* Copies *wr, which roci_sq_check() accepts, and its inline data to the tail. -ENOMEM: no slot is free. */
int roci_sq_post(struct roci_sq *sq, const struct roci_send_wr *wr, bool sig_all);

/* True where the responder answers with data. */
static inline bool roci_swqe_fetches(const struct roci_swqe *w)
{
	return w->opcode == ROCI_WR_RDMA_READ || w->opcode == ROCI_WR_ATOMIC_CMP_AND_SWP ||
	       w->opcode == ROCI_WR_ATOMIC_FETCH_AND_ADD;
}
/* True where the responder answers with a response of its own, not just an ACK. */
static inline bool roci_swqe_needs_response(const struct roci_swqe *w)
{
	return roci_swqe_fetches(w) || w->opcode == ROCI_WR_ATOMIC_WRITE || w->opcode == ROCI_WR_FLUSH;
}
static inline bool roci_swqe_is_local(const struct roci_swqe *w)
{
	return w->opcode == ROCI_WR_LOCAL_INV || w->opcode == ROCI_WR_BIND_MW;
}
/* Completion opcode of a work request. */
enum roci_wc_opcode roci_swqe_wc_opcode(const struct roci_swqe *w);

#endif
