/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asynchronous events: a queue per context, from the engine to ibv_get_async_event(). An event counts as delivered when
 * the program fetches it, in a counter of the object that it is about. Destroying the object waits until the program
 * has acknowledged all of those.
 */
#ifndef ROCI_VERBS_ASYNC_H
#define ROCI_VERBS_ASYNC_H

#include <pthread.h>
#include <stdint.h>

#include "engine/types.h"
#include "engine/list.h"

struct vb_context;

struct vb_async_queue {
	pthread_mutex_t lock; /* the list, the async_fd's state, and the counters of delivered events */
	struct roci_list events;
};

void vb_async_init(struct vb_async_queue *q);
void vb_async_fini(struct vb_async_queue *q);
/* Queues an event about `user`, the vb_cq, vb_srq or vb_qp. Device lock held. */
void vb_async_push(enum roci_async_type type, void *user);
/* Queues an event about the port. One GID_CHANGE that is not delivered yet stands for all: many programs never fetch
 * events. Device lock held. */
void vb_async_push_port(enum roci_async_type type, struct vb_context *ctx);
/* Removes the events about `user` that were not delivered. Device lock not held; no new ones can come. */
void vb_async_purge(struct vb_async_queue *q, const void *user);
/* In a forked child: the thread that had the lock is not there. */
void vb_async_reset(struct vb_async_queue *q);
void vb_async_reset_acks(pthread_mutex_t *lock, pthread_cond_t *cond);
/* Waits until *acked equals *delivered, as every destroy function must. (It is larger where a forked child acknowledges
 * what its parent had fetched, which it need not.) The thread may be cancelled here: the object then has no `engine`
 * any more, and can be destroyed by another call. */
void vb_async_wait_acks(pthread_mutex_t *lock, pthread_cond_t *cond, const uint32_t *acked, const uint32_t *delivered);

#endif
