/* SPDX-License-Identifier: BSD-2-Clause */
/* Asynchronous events, see verbs/async.h. */
#include <errno.h>
#include <stdlib.h>

#include "verbs/cq.h"
#include "verbs/event_fd.h"
#include "verbs/qp.h"

struct async_event {
	struct roci_list queued; /* node */
	struct ibv_async_event event;
	const void *user;
	uint32_t *delivered; /* of the object; NULL: the port */
};

static struct async_event *event_of(struct roci_list *queued)
{
	return roci_container_of(queued, struct async_event, queued);
}

void vb_async_init(struct vb_async_queue *q)
{
	pthread_mutex_init(&q->lock, NULL);
	roci_list_init(&q->events);
}

void vb_async_fini(struct vb_async_queue *q)
{
	struct roci_list *queued;
	while ((queued = roci_list_take_first(&q->events)))
		free(event_of(queued));
	pthread_mutex_destroy(&q->lock);
}

/* Where somebody was in the middle of the queue, it is not known what is in it. */
void vb_async_reset(struct vb_async_queue *q)
{
	if (pthread_mutex_trylock(&q->lock))
		vb_async_init(q);
	else
		pthread_mutex_unlock(&q->lock);
}

void vb_async_reset_acks(pthread_mutex_t *lock, pthread_cond_t *cond)
{
	pthread_mutex_init(lock, NULL);
	pthread_cond_init(cond, NULL);
}

static void push(struct ibv_context *context, const struct async_event *event)
{
	struct vb_async_queue *q = &vb_context(context)->async;
	/* Without memory the event is lost. Its cause also shows as a completion or a state. */
	struct async_event *e = malloc(sizeof(*e));
	if (!e)
		return;
	*e = *event;
	pthread_mutex_lock(&q->lock);
	roci_list_append(&q->events, &e->queued);
	vb_event_fd_signal(context->async_fd);
	pthread_mutex_unlock(&q->lock);
}

void vb_async_push(enum roci_async_type type, void *user)
{
	struct async_event e = {.event.event_type = (enum ibv_event_type)type, .user = user};
	if (type == ROCI_EVENT_CQ_ERR) {
		struct vb_cq *cq = user;
		e.event.element.cq = &cq->cq;
		e.delivered = &cq->async_delivered;
		push(cq->cq.context, &e);
	} else if (type == ROCI_EVENT_SRQ_LIMIT_REACHED) {
		struct vb_srq *srq = user;
		e.event.element.srq = &srq->srq;
		e.delivered = &srq->async_delivered;
		push(srq->srq.context, &e);
	} else {
		struct vb_qp *qp = user;
		e.event.element.qp = &qp->ex.qp_base;
		e.delivered = &qp->async_delivered;
		push(qp->ex.qp_base.context, &e);
	}
}

static bool is_queued(struct vb_async_queue *q, enum ibv_event_type type)
{
	bool found = false;
	pthread_mutex_lock(&q->lock);
	for (struct roci_list *queued = q->events.next; queued != &q->events; queued = queued->next)
		found |= event_of(queued)->event.event_type == type;
	pthread_mutex_unlock(&q->lock);
	return found;
}

void vb_async_push_port(enum roci_async_type type, struct vb_context *ctx)
{
	struct async_event e = {.event = {.event_type = (enum ibv_event_type)type, .element.port_num = VB_PORT}};
	if (type != ROCI_EVENT_GID_CHANGE || !is_queued(&ctx->async, IBV_EVENT_GID_CHANGE))
		push(&ctx->vctx.context, &e);
}

void vb_async_purge(struct vb_async_queue *q, const void *user)
{
	int fd = roci_container_of(q, struct vb_context, async)->vctx.context.async_fd;
	pthread_mutex_lock(&q->lock);
	bool signaled = !roci_list_empty(&q->events);
	for (struct roci_list *queued = q->events.next, *next; queued != &q->events; queued = next) {
		struct async_event *e = event_of(queued);
		next = queued->next;
		if (e->user == user) {
			roci_list_remove(queued);
			free(e);
		}
	}
	if (signaled && roci_list_empty(&q->events))
		vb_event_fd_clear(fd);
	pthread_mutex_unlock(&q->lock);
}

static struct async_event *pop(struct ibv_context *context)
{
	struct vb_async_queue *q = &vb_context(context)->async;
	struct async_event *e = NULL;
	pthread_mutex_lock(&q->lock);
	struct roci_list *queued = roci_list_take_first(&q->events);
	if (queued) {
		if (roci_list_empty(&q->events))
			vb_event_fd_clear(context->async_fd);
		e = event_of(queued);
		if (e->delivered)
			++*e->delivered;
	}
	pthread_mutex_unlock(&q->lock);
	return e;
}

ALSO_1_0(ibv_get_async_event);
int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	if (!vb_is_context(context) || !event) {
		roci_verbs_refused("ibv_get_async_event", EINVAL);
		return -1;
	}
	struct async_event *e;
	while (!(e = pop(context))) {
		if (vb_event_fd_wait(context->async_fd))
			return -1;
	}
	*event = e->event;
	free(e);
	return 0;
}

static void ack(pthread_mutex_t *lock, pthread_cond_t *cond, uint32_t *acked)
{
	pthread_mutex_lock(lock);
	++*acked;
	pthread_cond_signal(cond);
	pthread_mutex_unlock(lock);
}

ALSO_1_0(ibv_ack_async_event);
void ibv_ack_async_event(struct ibv_async_event *event)
{
	if (!event)
		return;
	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR: {
		struct ibv_cq *cq = event->element.cq;
		ack(&cq->mutex, &cq->cond, &cq->async_events_completed);
		break;
	}
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED: {
		struct ibv_qp *qp = event->element.qp;
		ack(&qp->mutex, &qp->cond, &qp->events_completed);
		break;
	}
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED: {
		struct ibv_srq *srq = event->element.srq;
		ack(&srq->mutex, &srq->cond, &srq->events_completed);
		break;
	}
	default: break; /* events of the port and of the device are not counted */
	}
}

static void unlock(void *lock)
{
	pthread_mutex_unlock(lock);
}

void vb_async_wait_acks(pthread_mutex_t *lock, pthread_cond_t *cond, const uint32_t *acked, const uint32_t *delivered)
{
	pthread_mutex_lock(lock);
	pthread_cleanup_push(unlock, lock);
	while ((int32_t)(*delivered - *acked) > 0)
		pthread_cond_wait(cond, lock);
	pthread_cleanup_pop(1);
}
