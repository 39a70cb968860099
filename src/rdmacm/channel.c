/* SPDX-License-Identifier: BSD-2-Clause */
#include "rdmacm/channel.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "device/sys.h"
#include "rdmacm/id.h"
#include "rdmacm/manager.h"
#include "verbs/event_fd.h"

static pthread_mutex_t cma_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t acked = PTHREAD_COND_INITIALIZER;    /* an event was acknowledged; with cma_lock */
static struct roci_list unshown = ROCI_LIST_INIT(unshown); /* channels whose descriptors still get an edge; cma_lock */

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
	roci_list_init(&ch->events);
	roci_list_init(&ch->unshown);
	return &ch->channel;
}

void cma_channel_after_fork(void)
{
	pthread_mutex_init(&cma_lock, NULL);
	pthread_cond_init(&acked, NULL);
}

/*
 * A program may destroy a channel while its event thread still waits on it, in order to end that thread (rping does).
 * With the kernel's rdma_cm the thread then sleeps for ever in its system call, or its next call fails, but nothing
 * crashes. So the memory of the last destroyed channels stays valid.
 */
#define DESTROYED_CHANNELS 64
static struct cma_channel *destroyed[DESTROYED_CHANNELS]; /* ring; cma_lock */
static unsigned next_destroyed;

void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	if (!channel)
		return;
	struct cma_channel *ch = (struct cma_channel *)channel;
	pthread_mutex_lock(&cma_lock);
	roci_sys_close(channel->fd); /* no cancellation point */
	channel->fd = -1;
	roci_list_remove(&ch->unshown);
	free(destroyed[next_destroyed]);
	destroyed[next_destroyed] = ch;
	next_destroyed = (next_destroyed + 1) % DESTROYED_CHANNELS;
	pthread_mutex_unlock(&cma_lock);
}

int cma_channel_wait(struct cma_channel *ch)
{
	if (!vb_event_fd_wait(ch->channel.fd))
		return 0;
	if (errno != EBADF)
		return -1;
	/* The thread that destroyed the channel is perhaps about to end the process: give it time. */
	nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
	return cma_error(CMA_REFUSE(EBADF, "the event channel was destroyed meanwhile"));
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
	ev->count = &id->events;
	return ev;
}

/* cma_lock held, as for the next. The descriptor is readable as long as there are events, and gets an edge after each:
 * a program may wait for edges, and take one event for an edge. Events that came while it could not wait share one, as
 * they do with the kernel. */
static void signal_events(struct cma_channel *ch)
{
	vb_event_fd_signal(ch->channel.fd);
	ch->signaled = true;
}

static void append(struct cma_channel *ch, struct cma_event *ev)
{
	roci_list_append(&ch->events, &ev->queued);
	atomic_fetch_add_explicit(&ch->count, 1, memory_order_relaxed);
}

static void removed(struct cma_channel *ch)
{
	if (atomic_fetch_sub_explicit(&ch->count, 1, memory_order_relaxed) > 1 || !ch->signaled)
		return;
	vb_event_fd_clear(ch->channel.fd);
	ch->signaled = false;
}

/* Returns the channel. */
static struct cma_channel *queue(struct cma_event *ev)
{
	struct cma_channel *ch = (struct cma_channel *)ev->owner->id.channel;
	ev->event.id->channel = &ch->channel; /* the new id of a request uses its listener's channel */
	append(ch, ev);
	return ch;
}

void cma_event_push(struct cma_event *ev)
{
	pthread_mutex_lock(&cma_lock);
	signal_events(queue(ev));
	pthread_mutex_unlock(&cma_lock);
}

void cma_event_push_unshown(struct cma_event *ev)
{
	pthread_mutex_lock(&cma_lock);
	struct cma_channel *ch = queue(ev);
	if (roci_list_empty(&ch->unshown))
		roci_list_append(&unshown, &ch->unshown);
	pthread_mutex_unlock(&cma_lock);
}

/* The program may have taken them meanwhile. */
void cma_channel_show(void)
{
	struct roci_list *first;
	pthread_mutex_lock(&cma_lock);
	while ((first = roci_list_take_first(&unshown))) {
		struct cma_channel *ch = roci_container_of(first, struct cma_channel, unshown);
		if (!roci_list_empty(&ch->events))
			signal_events(ch);
	}
	pthread_mutex_unlock(&cma_lock);
}

int cma_event_post(struct cma_id *id, enum rdma_cm_event_type type, int status)
{
	struct cma_event *ev = cma_event_new(id, type, status);
	if (!ev)
		return -ENOMEM;
	cma_event_push(ev);
	return 0;
}

bool cma_channel_has_events(const struct rdma_event_channel *channel)
{
	const struct cma_channel *ch = (const struct cma_channel *)channel;
	return ch && atomic_load_explicit(&ch->count, memory_order_relaxed);
}

struct cma_event *cma_channel_pop(struct cma_channel *ch)
{
	struct cma_event *ev = NULL;
	pthread_mutex_lock(&cma_lock);
	atomic_fetch_add_explicit(&ch->looks, 1, memory_order_relaxed);
	struct roci_list *first = roci_list_take_first(&ch->events);
	if (first) {
		removed(ch);
		ev = cma_event_of(first);
		ev->count->delivered++;
	}
	pthread_mutex_unlock(&cma_lock);
	return ev;
}

bool cma_channel_begin_turn(struct cma_channel *ch, struct cma_turn *turn)
{
	*turn = (struct cma_turn){pthread_self(), atomic_load_explicit(&ch->looks, memory_order_relaxed)};
	return atomic_exchange_explicit(&ch->in_turn, false, memory_order_relaxed);
}

void cma_channel_end_turn(struct cma_channel *ch, const struct cma_turn *turn)
{
	if (pthread_equal(turn->thread, pthread_self()) &&
	    turn->looks == atomic_load_explicit(&ch->looks, memory_order_relaxed))
		atomic_store_explicit(&ch->in_turn, true, memory_order_relaxed);
}

/* Moves the queued events of `id` (of `count` only, if not NULL) to the list `out`, in order. cma_lock held. */
static void extract(struct cma_id *id, const struct cma_event_count *count, struct roci_list *out)
{
	struct cma_channel *ch = (struct cma_channel *)id->id.channel;
	for (struct roci_list *queued = ch->events.next, *next; queued != &ch->events; queued = next) {
		struct cma_event *ev = cma_event_of(queued);
		next = queued->next;
		if (ev->owner == id && (!count || ev->count == count)) {
			roci_list_remove(queued);
			roci_list_append(out, queued);
			removed(ch);
		}
	}
}

static void unlock(void *lock)
{
	pthread_mutex_unlock(lock);
}

/* cma_lock held. The thread may be cancelled. A forked child does not wait for threads of its parent. */
static void wait_acks(const struct cma_id *id, const struct cma_event_count *count)
{
	pthread_cleanup_push(unlock, &cma_lock);
	while (count->delivered != count->acked && cma_is_alive(id))
		pthread_cond_wait(&acked, &cma_lock);
	pthread_cleanup_pop(0);
}

void cma_channel_move(struct cma_id *id, struct cma_channel *to)
{
	struct roci_list events = ROCI_LIST_INIT(events), *queued;
	pthread_mutex_lock(&cma_lock);
	wait_acks(id, &id->events);
	extract(id, NULL, &events);
	id->id.channel = &to->channel;
	while ((queued = roci_list_take_first(&events))) {
		struct cma_event *ev = cma_event_of(queued);
		ev->event.id->channel = &to->channel; /* the id of a request moves with its listener */
		append(to, ev);
		signal_events(to);
	}
	pthread_mutex_unlock(&cma_lock);
}

void cma_channel_extract(struct cma_id *id, struct cma_event_count *count, struct roci_list *out)
{
	pthread_mutex_lock(&cma_lock);
	wait_acks(id, count);
	extract(id, count, out);
	pthread_mutex_unlock(&cma_lock);
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	if (!event)
		return cma_error(EINVAL);
	struct cma_event *ev = (struct cma_event *)event;
	pthread_mutex_lock(&cma_lock);
	ev->count->acked++;
	pthread_cond_broadcast(&acked);
	pthread_mutex_unlock(&cma_lock);
	free(ev);
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
