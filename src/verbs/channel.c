/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion channels: which CQs have events that wait, first come first served. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "verbs/objects.h"

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	if (!vb_is_context(context))
		return vb_null(EINVAL);
	struct vb_channel *ch = calloc(1, sizeof(*ch));
	if (!ch)
		return vb_null(ENOMEM);
	ch->channel.fd = vb_bell_create();
	if (ch->channel.fd < 0) {
		int err = errno;
		free(ch);
		return vb_null(err);
	}
	ch->channel.context = context;
	ch->tail = &ch->head;
	pthread_mutex_init(&ch->lock, NULL);
	return &ch->channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
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

static void append(struct vb_channel *ch, struct vb_cq *cq)
{
	cq->next = NULL;
	*ch->tail = cq;
	ch->tail = &cq->next;
}

static void take_head(struct vb_channel *ch)
{
	ch->head = ch->head->next;
	if (!ch->head)
		ch->tail = &ch->head;
}

void vb_channel_push(struct vb_cq *cq)
{
	struct vb_channel *ch = (struct vb_channel *)cq->cq.channel;
	if (!ch)
		return;
	pthread_mutex_lock(&ch->lock);
	if (!cq->waiting++)
		append(ch, cq);
	vb_bell_ring(ch->channel.fd);
	pthread_mutex_unlock(&ch->lock);
}

void vb_channel_purge(struct vb_cq *cq)
{
	struct vb_channel *ch = (struct vb_channel *)cq->cq.channel;
	pthread_mutex_lock(&ch->lock);
	if (cq->waiting) {
		struct vb_cq **p = &ch->head;
		while (*p != cq)
			p = &(*p)->next;
		*p = cq->next;
		if (ch->tail == &cq->next)
			ch->tail = p;
		cq->waiting = 0;
		if (!ch->head)
			vb_bell_hush(ch->channel.fd);
	}
	pthread_mutex_unlock(&ch->lock);
}

/* The CQ of the oldest event, or NULL. A CQ with more events goes to the end of the queue. */
static struct vb_cq *pop(struct vb_channel *ch)
{
	pthread_mutex_lock(&ch->lock);
	struct vb_cq *cq = ch->head;
	if (cq) {
		take_head(ch);
		cq->comp_delivered++;
		if (--cq->waiting)
			append(ch, cq);
		if (!ch->head)
			vb_bell_hush(ch->channel.fd);
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
		if (vb_bell_wait(channel->fd))
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
