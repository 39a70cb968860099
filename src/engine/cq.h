/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queue: a ring with one producer (the engine, under the driver's lock) and one consumer at a time.
 */
#ifndef ROCI_ENGINE_CQ_H
#define ROCI_ENGINE_CQ_H

#include <stdatomic.h>

#include "engine/engine.h"
#include "engine/event.h"
#include "engine/list.h"

struct roci_cq {
	struct roci_engine *e;
	struct roci_list all;  /* in e->cqs */
	struct roci_cqe *ring; /* owned, mask + 1 entries */
	uint32_t mask;
	enum { CQ_DISARMED, CQ_ARMED_SOLICITED, CQ_ARMED_ANY } armed;
	unsigned users; /* QP queues that complete here */
	void *user;
	unsigned number; /* for captures */
	struct roci_event_source event;
	_Atomic bool overrun;
	_Alignas(64) _Atomic uint32_t tail; /* written by the producer */
	_Alignas(64) _Atomic uint32_t head; /* written by the consumer */
};

/* The place of the next entry; free-running. */
static inline uint32_t roci_cq_tail(const struct roci_cq *cq)
{
	return atomic_load_explicit(&cq->tail, memory_order_relaxed);
}
/* Whether the entry at `place` was not polled yet. False also where a purge has moved it. */
static inline bool roci_cq_waits(const struct roci_cq *cq, uint32_t place)
{
	uint32_t head = atomic_load_explicit(&cq->head, memory_order_acquire);

	return place - head < roci_cq_tail(cq) - head; /* place may be any number of entries old */
}
/* Whether there is nothing to poll. For the consumer and for others, who may see it a moment late. */
static inline bool roci_cq_is_empty(const struct roci_cq *cq)
{
	return atomic_load_explicit(&cq->head, memory_order_relaxed) ==
	       atomic_load_explicit(&cq->tail, memory_order_acquire);
}
/* Adds an entry. A full queue overruns: the entry is lost, the CQ is dead, and ROCI_EVENT_CQ_ERR is raised. */
void roci_cq_push(struct roci_cq *cq, const struct roci_cqe *cqe, bool solicited);

#endif
