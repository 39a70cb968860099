/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues (cq.c, cq_ex.c) and completion channels (channel.c). */
#ifndef ROCI_VERBS_CQ_H
#define ROCI_VERBS_CQ_H

#include "engine/cq.h"
#include "verbs/context.h"
#include "verbs/wallclock.h"

struct vb_channel {
	struct ibv_comp_channel channel;
	pthread_mutex_t lock; /* the list, the descriptor's state, channel.refcnt, and the CQs' fields that say so */
	struct roci_list cqs; /* CQs with events, in the order of delivery */
	bool signaled;        /* the descriptor is readable */
	/* The program made the descriptor non-blocking when it was last looked at, or nobody has looked yet. Not
	 * guarded. */
	_Atomic bool nonblocking;
};

struct vb_cq {
	union {
		struct ibv_cq cq;
		struct ibv_cq_ex ex;
	};
	struct roci_list object; /* node of its context */
	struct roci_cq *engine;
	pthread_mutex_t consumer; /* held to poll, purge or resize */

	struct roci_list in_channel; /* node; the channel's lock, as for the next two */
	unsigned events;             /* to be delivered */
	uint32_t comp_delivered;
	uint32_t async_delivered; /* the async queue's lock */

	/* Between ibv_start_poll() and ibv_end_poll(). */
	_Atomic pthread_t poller; /* who holds `consumer`; 0: nobody */
	struct roci_cqe cqe;      /* what the read functions return */
	bool wallclock_read;      /* since ibv_start_poll() */
	struct vb_wallclock wallclock;
};

/* Whether the program has completions of the QP to poll, or of others in the same CQs. */
static inline bool vb_qp_has_completions(const struct ibv_qp *qp)
{
	return !roci_cq_is_empty(((const struct vb_cq *)qp->recv_cq)->engine) ||
	       !roci_cq_is_empty(((const struct vb_cq *)qp->send_cq)->engine);
}

/* True for a CQ of this device; false for NULL. */
static inline bool vb_is_cq(const struct ibv_cq *cq)
{
	return cq && vb_is_context(cq->context);
}

/* Fills in the functions of struct ibv_cq_ex. */
void vb_cq_ex_init(struct vb_cq *cq);
/* Whether the calling thread is between ibv_start_poll() and ibv_end_poll(), and so holds the consumer lock. */
static inline bool vb_cq_is_polled_here(const struct vb_cq *cq)
{
	return atomic_load_explicit(&cq->poller, memory_order_relaxed) == pthread_self();
}

/* Locks and unlocks the consumer locks of both CQs, which may be the same, or NULL. A thread may do so between
 * ibv_start_poll() and ibv_end_poll(), as programs that destroy a QP because of its completion do; but not two at once
 * between those of one CQ each, where both want both. */
void vb_cq_lock_consumers(struct vb_cq *a, struct vb_cq *b);
void vb_cq_unlock_consumers(struct vb_cq *a, struct vb_cq *b);

/* Queues a completion event of the CQ, if it has a channel. Device lock held. */
void vb_channel_push(struct vb_cq *cq);
/* Removes the CQ's events that were not delivered. The CQ has a channel. */
void vb_channel_purge(struct vb_cq *cq);
/* In a forked child. */
void vb_cq_reset(struct vb_cq *cq);
/* Likewise, for the channel of the context's CQs. */
void vb_channel_reset(struct vb_channel *ch, struct roci_list *cqs);
/* Counts a CQ of the channel, or (-1) one less. `channel` may be NULL. */
void vb_channel_count(struct ibv_comp_channel *channel, int change);

/* ---- entries of struct verbs_context ---- */

struct ibv_cq_ex *vb_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr);
int vb_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
int vb_req_notify_cq(struct ibv_cq *cq, int solicited_only);

#endif
