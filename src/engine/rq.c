/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/rq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/internal.h"
#include "engine/trace.h"
#include "engine/why.h"

int roci_rq_init(struct roci_rq *rq, uint32_t max_wr, uint32_t max_sge)
{
	uint32_t slots = 1;

	*rq = (struct roci_rq){.max_wr = max_wr, .max_sge = max_sge};
	if (!max_wr)
		return 0;
	while (slots < max_wr)
		slots *= 2;
	rq->mask = slots - 1;
	rq->stride = (uint32_t)(sizeof(struct roci_rwqe) + max_sge * sizeof(struct roci_sge));
	rq->ring = calloc(slots, rq->stride);
	return rq->ring ? 0 : -ENOMEM;
}

void roci_rq_fini(struct roci_rq *rq)
{
	free(rq->ring);
	rq->ring = NULL;
}

int roci_rq_post(struct roci_rq *rq, const struct roci_recv_wr *wr)
{
	struct roci_rwqe *w;

	if (wr->num_sge > rq->max_sge)
		return ROCI_REFUSE(-EINVAL, "num_sge %u: the queue has max_recv_sge %u", wr->num_sge, rq->max_sge);
	if (roci_rq_count(rq) >= rq->max_wr)
		return ROCI_REFUSE(-ENOMEM, "the receive queue is full: %u are posted (max_recv_wr)", rq->max_wr);
	w = roci_rq_at(rq, rq->tail);
	w->wr_id = wr->wr_id;
	w->num_sge = wr->num_sge;
	if (wr->num_sge)
		memcpy(w->sges, wr->sges, wr->num_sge * sizeof(*wr->sges));
	rq->tail++;
	return 0;
}

bool roci_rq_take(struct roci_rq *rq, struct roci_rwqe *out)
{
	const struct roci_rwqe *w;

	if (!roci_rq_count(rq))
		return false;
	w = roci_rq_at(rq, rq->head);
	memcpy(out, w, sizeof(*w) + w->num_sge * sizeof(w->sges[0]));
	rq->head++;
	return true;
}

int roci_srq_create(struct roci_engine *e, uint32_t pd, unsigned max_wr, unsigned max_sge, void *user,
		    struct roci_srq **out)
{
	struct roci_srq *srq;

	if (!max_wr || max_wr > ROCI_MAX_SRQ_WR || max_sge > ROCI_MAX_SGE)
		return -EINVAL;
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return -ENOMEM;
	if (roci_rq_init(&srq->rq, max_wr, max_sge)) {
		free(srq);
		return -ENOMEM;
	}
	srq->e = e;
	srq->pd = pd;
	srq->number = ++e->srq_number;
	roci_event_source_init(&srq->event, user);
	roci_list_append(&e->srqs, &srq->all);
	*out = srq;
	return 0;
}

int roci_srq_destroy(struct roci_srq *srq)
{
	if (srq->users)
		return ROCI_REFUSE(-EBUSY, "%u QPs use the SRQ", srq->users);
	roci_event_source_fini(&srq->event);
	roci_list_remove(&srq->all);
	roci_rq_fini(&srq->rq);
	free(srq);
	return 0;
}

static int resize(struct roci_rq *rq, uint32_t max_wr)
{
	struct roci_rq bigger;

	if (max_wr > ROCI_MAX_SRQ_WR || max_wr < roci_rq_count(rq))
		return ROCI_REFUSE(-EINVAL, "max_wr %u: %u to %u are allowed, for so many receives are posted", max_wr,
				   roci_rq_count(rq), ROCI_MAX_SRQ_WR);
	if (roci_rq_init(&bigger, max_wr, rq->max_sge))
		return -ENOMEM;
	while (roci_rq_take(rq, roci_rq_at(&bigger, bigger.tail)))
		bigger.tail++;
	roci_rq_fini(rq);
	*rq = bigger;
	return 0;
}

int roci_srq_modify(struct roci_srq *srq, unsigned max_wr, long limit)
{
	uint32_t bound = max_wr ? max_wr : srq->rq.max_wr;
	int err;

	if (limit > (long)bound || (limit < 0 && srq->limit > bound))
		return ROCI_REFUSE(-EINVAL, "srq_limit %ld: the SRQ has %u entries",
				   limit < 0 ? (long)srq->limit : limit, bound);
	if (max_wr) {
		err = resize(&srq->rq, max_wr);
		if (err)
			return err;
	}
	if (limit >= 0)
		srq->limit = (uint32_t)limit;
	return 0;
}

void roci_srq_query(const struct roci_srq *srq, unsigned *max_wr, unsigned *max_sge, unsigned *limit)
{
	*max_wr = srq->rq.max_wr;
	*max_sge = srq->rq.max_sge;
	*limit = srq->limit;
}

int roci_srq_post(struct roci_srq *srq, const struct roci_recv_wr *wr)
{
	int err = roci_rq_post(&srq->rq, wr);

	if (!err)
		ROCI_TRACE(srq->e, roci_trace_post_srq(srq, wr));
	return err;
}

/* IBTA 10.2.9.1: the limit event fires once, when fewer receives are left than the limit, and disarms. */
bool roci_srq_take(struct roci_srq *srq, struct roci_rwqe *out)
{
	if (!roci_rq_take(&srq->rq, out))
		return false;
	if (srq->limit && roci_rq_count(&srq->rq) < srq->limit) {
		srq->limit = 0;
		roci_event_async(srq->e, &srq->event, ROCI_EVENT_SRQ_LIMIT_REACHED);
	}
	return true;
}
