/* SPDX-License-Identifier: BSD-2-Clause */
/* Asynchronous events: from the engine to ibv_get_async_event(). */
#include <errno.h>
#include <stdlib.h>

#include "verbs/objects.h"

struct vb_async_event {
	struct vb_async_event *next;
	struct ibv_async_event event;
	void *element;
	uint32_t *delivered; /* of the element */
};

void vb_async_init(struct vb_async_queue *q)
{
	pthread_mutex_init(&q->lock, NULL);
	q->head = NULL;
	q->tail = &q->head;
}

void vb_async_fini(struct vb_async_queue *q)
{
	while (q->head) {
		struct vb_async_event *e = q->head;
		q->head = e->next;
		free(e);
	}
	pthread_mutex_destroy(&q->lock);
}

static void push(struct ibv_context *context, const struct vb_async_event *what)
{
	struct vb_async_queue *q = &vb_context(context)->async;
	/* An event that memory does not suffice for is lost; its cause also shows as a completion or a state. */
	struct vb_async_event *e = malloc(sizeof(*e));
	if (!e)
		return;
	*e = *what;
	e->next = NULL;
	pthread_mutex_lock(&q->lock);
	*q->tail = e;
	q->tail = &e->next;
	vb_bell_ring(context->async_fd);
	pthread_mutex_unlock(&q->lock);
}

static void on_async(enum roci_async_type type, void *user)
{
	struct vb_async_event e = {.event.event_type = (enum ibv_event_type)type, .element = user};
	if (type == ROCI_EVENT_CQ_ERR) {
		struct vb_cq *cq = user;
		e.event.element.cq = &cq->cq;
		e.delivered = &cq->async_delivered;
		push(cq->cq.context, &e);
	} else if (type == ROCI_EVENT_SRQ_LIMIT_REACHED) {
		struct vb_srq *srq = user;
		e.event.element.srq = &srq->srq;
		e.delivered = &srq->delivered;
		push(srq->srq.context, &e);
	} else {
		struct vb_qp *qp = user;
		e.event.element.qp = &qp->ex.qp_base;
		e.delivered = &qp->delivered;
		push(qp->ex.qp_base.context, &e);
	}
}

void vb_on_event(const struct roci_event *ev)
{
	if (ev->kind == ROCI_EV_COMPLETION)
		vb_channel_push(ev->user);
	else
		on_async(ev->type, ev->user);
}

void vb_async_purge(struct vb_async_queue *q, const void *element)
{
	pthread_mutex_lock(&q->lock);
	bool had = q->head;
	struct vb_async_event **p = &q->head;
	int fd = VB_CONTAINER(q, struct vb_context, async)->vctx.context.async_fd;
	while (*p) {
		struct vb_async_event *e = *p;
		if (e->element == element) {
			*p = e->next;
			free(e);
		} else {
			p = &e->next;
		}
	}
	q->tail = p;
	if (had && !q->head)
		vb_bell_hush(fd);
	pthread_mutex_unlock(&q->lock);
}

static struct vb_async_event *pop(struct ibv_context *context)
{
	struct vb_async_queue *q = &vb_context(context)->async;
	pthread_mutex_lock(&q->lock);
	struct vb_async_event *e = q->head;
	if (e) {
		q->head = e->next;
		if (!q->head) {
			q->tail = &q->head;
			vb_bell_hush(context->async_fd);
		}
		++*e->delivered;
	}
	pthread_mutex_unlock(&q->lock);
	return e;
}

ALSO_1_0(ibv_get_async_event);
int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	if (!vb_is_context(context) || !event) {
		errno = EINVAL;
		return -1;
	}
	struct vb_async_event *e;
	while (!(e = pop(context))) {
		if (vb_bell_wait(context->async_fd))
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
	default: break; /* events of the port and the device count for nothing */
	}
}

void vb_wait_acks(pthread_mutex_t *lock, pthread_cond_t *cond, const uint32_t *acked, const uint32_t *delivered)
{
	pthread_mutex_lock(lock);
	while (*acked != *delivered)
		pthread_cond_wait(cond, lock);
	pthread_mutex_unlock(lock);
}
