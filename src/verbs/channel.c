/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion channels: a queue of the CQs that have events. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

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
	roci_list_init(&ch->cqs);
	pthread_mutex_init(&ch->lock, NULL);
	return &ch->channel;
}

VERB_DEFINE(1, ibv_destroy_comp_channel, struct ibv_comp_channel *, channel)
{
	if (!channel)
		return EINVAL;
	struct vb_channel *ch = (struct vb_channel *)channel;
	pthread_mutex_lock(&ch->lock);
	bool busy = channel->refcnt > 0;
	pthread_mutex_unlock(&ch->lock);
	if (busy)
		return EBUSY;
	close(channel->fd);
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

void vb_channel_push(struct vb_cq *cq)
{
	struct vb_channel *ch = (struct vb_channel *)cq->cq.channel;
	if (!ch)
		return;
	pthread_mutex_lock(&ch->lock);
	if (!cq->events++)
		roci_list_append(&ch->cqs, &cq->in_channel);
	vb_event_fd_signal(ch->channel.fd);
	pthread_mutex_unlock(&ch->lock);
}

void vb_channel_purge(struct vb_cq *cq)
{
	struct vb_channel *ch = (struct vb_channel *)cq->cq.channel;
	pthread_mutex_lock(&ch->lock);
	if (cq->events) {
		roci_list_remove(&cq->in_channel);
		cq->events = 0;
		if (roci_list_empty(&ch->cqs))
			vb_event_fd_clear(ch->channel.fd);
	}
	pthread_mutex_unlock(&ch->lock);
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
		if (roci_list_empty(&ch->cqs))
			vb_event_fd_clear(ch->channel.fd);
	}
	pthread_mutex_unlock(&ch->lock);
	return cq;
}

ALSO_1_0(ibv_get_cq_event);
int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	if (!channel || !cq || !cq_context) {
		errno = EINVAL;
		return -1;
	}
	struct vb_cq *got;
	while (!(got = pop((struct vb_channel *)channel))) {
		if (vb_event_fd_wait(channel->fd))
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
