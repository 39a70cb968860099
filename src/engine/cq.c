/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/cq.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "engine/internal.h"
#include "engine/why.h"

static uint32_t ring_size(unsigned entries)
{
	uint32_t size = 1;

	while (size < entries)
		size *= 2;
	return size;
}

int roci_cq_create(struct roci_engine *e, unsigned entries, void *user, struct roci_cq **out)
{
	struct roci_cq *cq;

	if (entries < 1 || entries > ROCI_MAX_CQE)
		return -EINVAL;
	cq = aligned_alloc(64, sizeof(*cq));
	if (!cq)
		return -ENOMEM;
	*cq = (struct roci_cq){.e = e, .mask = ring_size(entries) - 1, .user = user, .number = ++e->cq_number};
	cq->ring = calloc(cq->mask + 1, sizeof(*cq->ring));
	if (!cq->ring) {
		free(cq);
		return -ENOMEM;
	}
	roci_event_source_init(&cq->event, user);
	roci_list_append(&e->cqs, &cq->all);
	*out = cq;
	return 0;
}

int roci_cq_destroy(struct roci_cq *cq)
{
	if (cq->users)
		return ROCI_REFUSE(-EBUSY, "queues of QPs use the CQ: %u", cq->users);
	roci_event_source_fini(&cq->event);
	roci_list_remove(&cq->all);
	free(cq->ring);
	free(cq);
	return 0;
}

unsigned roci_cq_capacity(const struct roci_cq *cq)
{
	return cq->mask + 1;
}

int roci_cq_resize(struct roci_cq *cq, unsigned entries)
{
	uint32_t head = atomic_load(&cq->head), tail = atomic_load(&cq->tail);
	struct roci_cqe *ring;
	uint32_t size;

	if (entries < 1 || entries > ROCI_MAX_CQE || tail - head > entries)
		return ROCI_REFUSE(-EINVAL, "cqe %u: 1 to %u are allowed, and %u completions wait", entries,
				   ROCI_MAX_CQE, tail - head);
	size = ring_size(entries);
	ring = calloc(size, sizeof(*ring));
	if (!ring)
		return -ENOMEM;
	for (uint32_t i = head; i != tail; i++)
		ring[i & (size - 1)] = cq->ring[i & cq->mask];
	free(cq->ring);
	cq->ring = ring;
	cq->mask = size - 1;
	return 0;
}

unsigned roci_cq_poll(struct roci_cq *cq, struct roci_cqe *out, unsigned max)
{
	uint32_t head = atomic_load_explicit(&cq->head, memory_order_relaxed);
	uint32_t ready = atomic_load_explicit(&cq->tail, memory_order_acquire) - head;

	if (max > ready)
		max = ready;
	for (unsigned i = 0; i < max; i++)
		out[i] = cq->ring[(head + i) & cq->mask];
	atomic_store_explicit(&cq->head, head + max, memory_order_release);
	return max;
}

bool roci_cq_overrun(const struct roci_cq *cq)
{
	return cq->overrun;
}

void roci_cq_arm(struct roci_cq *cq, bool solicited_only)
{
	if (!solicited_only)
		cq->armed = CQ_ARMED_ANY;
	else if (cq->armed == CQ_DISARMED)
		cq->armed = CQ_ARMED_SOLICITED;
}

/* The entries that stay move to higher places, never to lower ones: roci_cq_waits() must not find another entry at the
 * place of one that is gone. */
void roci_cq_purge(struct roci_cq *cq, uint32_t qpn)
{
	uint32_t head = atomic_load(&cq->head), tail = atomic_load(&cq->tail), kept = tail;

	for (uint32_t i = tail; i-- != head;)
		if (cq->ring[i & cq->mask].qpn != qpn)
			cq->ring[--kept & cq->mask] = cq->ring[i & cq->mask];
	atomic_store(&cq->head, kept);
}

/* IBTA 11.6.3, CQ error: the queue is lost, and with it all QPs that complete there. */
static void overrun(struct roci_cq *cq)
{
	if (cq->overrun)
		return;
	cq->overrun = true;
	ROCI_WHY_TELL("a CQ of %u entries has overflowed: its QPs go to ERR; poll more often, or create it larger",
		      cq->mask + 1);
	cq->e->cq_overrun = true;
	roci_event_async(cq->e, &cq->event, ROCI_EVENT_CQ_ERR);
}

void roci_cq_push(struct roci_cq *cq, const struct roci_cqe *cqe, bool solicited)
{
	uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);

	if (cq->overrun || tail - atomic_load_explicit(&cq->head, memory_order_acquire) > cq->mask) {
		overrun(cq);
		return;
	}
	cq->ring[tail & cq->mask] = *cqe;
	cq->ring[tail & cq->mask].timestamp_ns = cq->e->now;
	atomic_store_explicit(&cq->tail, tail + 1, memory_order_release);
	/* IBTA 11.4.2.2: an unsuccessful completion counts as a solicited one. */
	if (cq->armed == CQ_ARMED_ANY ||
	    (cq->armed == CQ_ARMED_SOLICITED && (solicited || cqe->status != ROCI_WC_SUCCESS))) {
		cq->armed = CQ_DISARMED;
		roci_event_completion(cq->e, &cq->event);
	}
}
