/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion channels: a queue of the CQs that have events. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/why.h"
#include "verbs/cq.h"
#include "verbs/event_fd.h"

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	if (!vb_is_context(context))
		return vb_null(EINVAL);
	struct vb_channel *ch = calloc(1, sizeof(*ch));
	if (!ch)
		return vb_null(ENOMEM);
	ch->channel.fd = vb_event_fd_create();
	if (ch->channel.fd < 0) {
		int err = errno;
		free(ch);
		return vb_null(err);
	}
	ch->channel.context = context;
	ch->nonblocking = true;
	roci_list_init(&ch->cqs);
	pthread_mutex_init(&ch->lock, NULL);
	vb_context_get(context);
	return &ch->channel;
}

VERB_DEFINE(1, ibv_destroy_comp_channel, struct ibv_comp_channel *, channel)
{
	if (!channel)
		return EINVAL;
	struct vb_channel *ch = (struct vb_channel *)channel;
	pthread_mutex_lock(&ch->lock);
	int users = channel->refcnt;
	pthread_mutex_unlock(&ch->lock);
	if (users > 0)
		return ROCI_REFUSE(EBUSY, "CQs have the channel: %d", users);
	close(channel->fd);
	vb_context_put(channel->context);
	pthread_mutex_destroy(&ch->lock);
	free(ch);
	return 0;
}

void vb_channel_count(struct ibv_comp_channel *channel, int change)
{
	if (!channel)
		return;
	struct vb_channel *ch = (struct vb_channel *)channel;
	pthread_mutex_lock(&ch->lock);
	channel->refcnt += change;
	pthread_mutex_unlock(&ch->lock);
}

/* The channel's lock is held, as for the next. */
static void signal_event(struct vb_channel *ch)
{
	vb_event_fd_signal(ch->channel.fd);
	ch->signaled = true;
}

/* After events were taken: the descriptor is readable exactly while there are more. It is not where the thread that
 * takes them was the one that queued them. */
static void settle(struct vb_channel *ch)
{
	bool empty = roci_list_empty(&ch->cqs);
	if (empty && ch->signaled) {
		vb_event_fd_clear(ch->channel.fd);
		ch->signaled = false;
	} else if (!empty && !ch->signaled) {
		signal_event(ch);
	}
}

void vb_channel_push(struct vb_cq *cq)
{
	struct vb_channel *ch = (struct vb_channel *)cq->cq.channel;
	if (!ch)
		return;
	pthread_mutex_lock(&ch->lock);
	if (!cq->events++)
		roci_list_append(&ch->cqs, &cq->in_channel);
	if (!roci_device_awaits(vb_context(cq->cq.context)->dev, ch->channel.fd))
		signal_event(ch);
	pthread_mutex_unlock(&ch->lock);
}

void vb_channel_purge(struct vb_cq *cq)
{
	struct vb_channel *ch = (struct vb_channel *)cq->cq.channel;
	pthread_mutex_lock(&ch->lock);
	if (cq->events) {
		roci_list_remove(&cq->in_channel);
		cq->events = 0;
		settle(ch);
	}
	pthread_mutex_unlock(&ch->lock);
}

/* Where somebody was in the middle of the list, it is made again of the CQs that have events. */
void vb_channel_reset(struct vb_channel *ch, struct roci_list *cqs)
{
	if (!pthread_mutex_trylock(&ch->lock)) {
		pthread_mutex_unlock(&ch->lock);
		return;
	}
	pthread_mutex_init(&ch->lock, NULL);
	roci_list_init(&ch->cqs);
	for (struct roci_list *l = cqs->next; l != cqs; l = l->next) {
		struct vb_cq *cq = roci_container_of(l, struct vb_cq, object);
		if (cq->cq.channel != &ch->channel)
			continue;
		roci_list_init(&cq->in_channel);
		if (cq->events)
			roci_list_append(&ch->cqs, &cq->in_channel);
	}
}

/* Returns the CQ of the oldest event, or NULL. A CQ with more events goes to the end of the queue. */
static struct vb_cq *pop(struct vb_channel *ch)
{
	struct vb_cq *cq = NULL;
	pthread_mutex_lock(&ch->lock);
	struct roci_list *first = roci_list_take_first(&ch->cqs);
	if (first) {
		cq = roci_container_of(first, struct vb_cq, in_channel);
		cq->comp_delivered++;
		if (--cq->events)
			roci_list_append(&ch->cqs, first);
		settle(ch);
	}
	pthread_mutex_unlock(&ch->lock);
	return cq;
}

/* Device lock held. */
static bool has_event(void *arg)
{
	struct vb_channel *ch = arg;
	pthread_mutex_lock(&ch->lock);
	bool has = !roci_list_empty(&ch->cqs);
	pthread_mutex_unlock(&ch->lock);
	return has;
}

/* A program that drains a non-blocking channel shall know at once that it is empty. One that waits is asked before it
 * sleeps only: that is a system call. */
static bool returns_at_once(struct vb_channel *ch)
{
	if (atomic_load_explicit(&ch->nonblocking, memory_order_relaxed)) {
		int flags = fcntl(ch->channel.fd, F_GETFL);
		atomic_store_explicit(&ch->nonblocking, flags < 0 || (flags & O_NONBLOCK), memory_order_relaxed);
	}
	return atomic_load_explicit(&ch->nonblocking, memory_order_relaxed);
}

/* As vb_event_fd_wait(), and drives meanwhile. */
static int wait_event(struct vb_channel *ch)
{
	struct roci_device *dev = vb_context(ch->channel.context)->dev;
	if (!dev || returns_at_once(ch))
		return vb_event_fd_wait(ch->channel.fd);
	int err = roci_device_wait(dev, ch->channel.fd, has_event, ch);
	if (err == -ENODEV)
		return vb_event_fd_wait(ch->channel.fd);
	if (err == -EINTR && !vb_event_fd_interrupted())
		return 0;
	if (err == -EAGAIN)
		atomic_store_explicit(&ch->nonblocking, true, memory_order_relaxed);
	errno = -err;
	return err ? -1 : 0;
}

ALSO_1_0(ibv_get_cq_event);
int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	if (!channel || !cq || !cq_context) {
		roci_verbs_refused("ibv_get_cq_event", EINVAL);
		return -1;
	}
	struct vb_cq *got;
	while (!(got = pop((struct vb_channel *)channel))) {
		if (wait_event((struct vb_channel *)channel))
			return -1;
	}
	*cq = &got->cq;
	*cq_context = got->cq.cq_context;
	return 0;
}

ALSO_1_0(ibv_ack_cq_events);
void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	if (!cq || !nevents)
		return;
	pthread_mutex_lock(&cq->mutex);
	cq->comp_events_completed += nevents;
	pthread_cond_signal(&cq->cond);
	pthread_mutex_unlock(&cq->mutex);
}
