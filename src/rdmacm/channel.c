/* SPDX-License-Identifier: BSD-2-Clause */
/* Event channels: queues of events with a descriptor that a program can poll. */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "rdmacm/objects.h"
#include "verbs/event_fd.h"

pthread_mutex_t cma_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t cma_acked = PTHREAD_COND_INITIALIZER;

struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct cma_channel *ch = calloc(1, sizeof(*ch));
	if (!ch) {
		errno = ENOMEM;
		return NULL;
	}
	ch->channel.fd = vb_event_fd_create();
	if (ch->channel.fd < 0) {
		free(ch);
		return NULL;
	}
	ch->tail = &ch->head;
	return &ch->channel;
}

/*
 * A program may end its event thread by destroying the channel under it (rping does, on its way out). With the kernel's
 * rdma_cm the thread blocks in a system call that never returns, or its next one fails: nothing crashes. So the last
 * few channels stay readable after their end.
 */
#define GRAVES 64
static struct cma_channel *graves[GRAVES];
static unsigned next_grave;

void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	if (!channel)
		return;
	struct cma_channel *ch = (struct cma_channel *)channel;
	pthread_mutex_lock(&cma_lock);
	close(channel->fd);
	channel->fd = -1;
	free(graves[next_grave]);
	graves[next_grave] = ch;
	next_grave = (next_grave + 1) % GRAVES;
	pthread_mutex_unlock(&cma_lock);
}

int cma_channel_wait(struct cma_channel *ch)
{
	if (!vb_event_fd_wait(ch->channel.fd))
		return 0;
	if (errno == EBADF) /* let the thread that destroyed it end the process, if that is what it is about */
		nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
	return errno == EBADF ? cma_error(EBADF) : -1;
}

struct cma_event *cma_event_new(struct cma_id *id, enum rdma_cm_event_type type, int status)
{
	struct cma_event *ev = calloc(1, sizeof(*ev));
	if (!ev)
		return NULL;
	ev->event.id = &id->id;
	ev->event.event = type;
	ev->event.status = status;
	ev->owner = id;
	return ev;
}

void cma_event_free(struct cma_event *ev)
{
	free(ev);
}

static void append(struct cma_channel *ch, struct cma_event *ev)
{
	ev->next = NULL;
	*ch->tail = ev;
	ch->tail = &ev->next;
	vb_event_fd_signal(ch->channel.fd);
}

void cma_event_push(struct cma_event *ev)
{
	append((struct cma_channel *)ev->owner->id.channel, ev);
}

int cma_event_post(struct cma_id *id, enum rdma_cm_event_type type, int status)
{
	struct cma_event *ev = cma_event_new(id, type, status);
	if (!ev)
		return -ENOMEM;
	pthread_mutex_lock(&cma_lock);
	cma_event_push(ev);
	pthread_mutex_unlock(&cma_lock);
	return 0;
}

struct cma_event *cma_channel_pop(struct cma_channel *ch)
{
	pthread_mutex_lock(&cma_lock);
	struct cma_event *ev = ch->head;
	if (ev) {
		ch->head = ev->next;
		if (!ch->head) {
			ch->tail = &ch->head;
			vb_event_fd_clear(ch->channel.fd);
		}
		if (ev->mcast)
			ev->mcast->delivered++;
		else
			ev->owner->delivered++;
	}
	pthread_mutex_unlock(&cma_lock);
	return ev;
}

/* Takes the events of `id` (and of `mc` only, if not NULL) out of the queue, in order. cma_lock held. */
static struct cma_event *extract(struct cma_channel *ch, const struct cma_id *id, const struct cma_mcast *mc)
{
	struct cma_event *list = NULL, **end = &list, **p = &ch->head;
	while (*p) {
		struct cma_event *ev = *p;
		if (ev->owner == id && (!mc || ev->mcast == mc)) {
			*p = ev->next;
			ev->next = NULL;
			*end = ev;
			end = &ev->next;
		} else {
			p = &ev->next;
		}
	}
	ch->tail = p;
	if (list && !ch->head)
		vb_event_fd_clear(ch->channel.fd);
	return list;
}

struct cma_event *cma_channel_move(struct cma_id *id, struct cma_channel *to)
{
	pthread_mutex_lock(&cma_lock);
	while (id->delivered != id->acked)
		pthread_cond_wait(&cma_acked, &cma_lock);
	struct cma_event *list = extract((struct cma_channel *)id->id.channel, id, NULL);
	if (to) {
		id->id.channel = &to->channel;
		while (list) {
			struct cma_event *ev = list;
			list = ev->next;
			ev->event.id->channel = &to->channel; /* that of a request is another */
			append(to, ev);
		}
	}
	pthread_mutex_unlock(&cma_lock);
	return list;
}

struct cma_event *cma_channel_purge_mcast(struct cma_id *id, struct cma_mcast *mc)
{
	pthread_mutex_lock(&cma_lock);
	while (mc->delivered != mc->acked)
		pthread_cond_wait(&cma_acked, &cma_lock);
	struct cma_event *list = extract((struct cma_channel *)id->id.channel, id, mc);
	pthread_mutex_unlock(&cma_lock);
	return list;
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	if (!event)
		return cma_error(EINVAL);
	struct cma_event *ev = (struct cma_event *)event;
	pthread_mutex_lock(&cma_lock);
	if (ev->mcast)
		ev->mcast->acked++;
	else
		ev->owner->acked++;
	pthread_cond_broadcast(&cma_acked);
	pthread_mutex_unlock(&cma_lock);
	cma_event_free(ev);
	return 0;
}

const char *rdma_event_str(enum rdma_cm_event_type event)
{
#define NAME(event) [RDMA_CM_EVENT_##event] = "RDMA_CM_EVENT_" #event
	static const char *const names[] = {
		NAME(ADDR_RESOLVED),   NAME(ADDR_ERROR),       NAME(ROUTE_RESOLVED), NAME(ROUTE_ERROR),
		NAME(CONNECT_REQUEST), NAME(CONNECT_RESPONSE), NAME(CONNECT_ERROR),  NAME(UNREACHABLE),
		NAME(REJECTED),        NAME(ESTABLISHED),      NAME(DISCONNECTED),   NAME(DEVICE_REMOVAL),
		NAME(MULTICAST_JOIN),  NAME(MULTICAST_ERROR),  NAME(ADDR_CHANGE),    NAME(TIMEWAIT_EXIT),
	};
#undef NAME
	return (unsigned)event < sizeof(names) / sizeof(names[0]) ? names[event] : "UNKNOWN EVENT";
}
