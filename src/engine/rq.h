/* SPDX-License-Identifier: BSD-2-Clause */
/* Receive queue: a ring of posted receives, owned by a QP or shared (SRQ). */
#ifndef ROCI_ENGINE_RQ_H
#define ROCI_ENGINE_RQ_H

#include "engine/engine.h"
#include "engine/event.h"

struct roci_rwqe {
	uint64_t wr_id;
	uint32_t num_sge;
	struct roci_sge sges[]; /* max_sge of the queue */
};

struct roci_rq {
	char *ring; /* owned; mask + 1 strides; NULL where max_wr is 0 */
	uint32_t stride, mask;
	uint32_t head, tail; /* free-running */
	uint32_t max_wr, max_sge;
};

struct roci_srq {
	struct roci_engine *e;
	struct roci_list all; /* in e->srqs */
	struct roci_rq rq;
	uint32_t pd;
	uint32_t limit; /* armed when not 0 */
	unsigned users;
	unsigned number; /* for captures */
	struct roci_event_source event;
};

int roci_rq_init(struct roci_rq *rq, uint32_t max_wr, uint32_t max_sge);
void roci_rq_fini(struct roci_rq *rq);
/* -ENOMEM: full; -EINVAL: too many SGEs. */
int roci_rq_post(struct roci_rq *rq, const struct roci_recv_wr *wr);
static inline uint32_t roci_rq_count(const struct roci_rq *rq)
{
	return rq->tail - rq->head;
}
static inline struct roci_rwqe *roci_rq_at(const struct roci_rq *rq, uint32_t i)
{
	return (struct roci_rwqe *)(void *)(rq->ring + (size_t)(i & rq->mask) * rq->stride);
}
/* Moves the oldest receive to `out`, which has room for max_sge. False: empty. */
bool roci_rq_take(struct roci_rq *rq, struct roci_rwqe *out);
/* The same from an SRQ; raises its limit event. */
bool roci_srq_take(struct roci_srq *srq, struct roci_rwqe *out);

#endif
