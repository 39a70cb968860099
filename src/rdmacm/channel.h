/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event channels: queues of events with a descriptor that a program can poll. Destroying an id waits until the program
 * has acknowledged the events that were delivered of it.
 */
#ifndef ROCI_RDMACM_CHANNEL_H
#define ROCI_RDMACM_CHANNEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/list.h"
#include "rdmacm/public.h"

struct cma_id;
struct cma_mcast;

/* cma_lock, of channel.c, guards all queues of events, the channel of an id, and the counters of delivered and
 * acknowledged events. Order: the device's lock, then this one. */

/* In a forked child: no other thread has the lock, or will acknowledge an event. */
void cma_channel_after_fork(void);

#define CMA_MAX_PRIVATE_DATA 256

/* Of an id, or of one of its multicast groups; cma_lock. */
struct cma_event_count {
	uint32_t delivered, acked;
};

struct cma_event {
	struct rdma_cm_event event;    /* the program's pointer; first, so that a cast leads back */
	struct roci_list queued;       /* node of the channel; cma_lock */
	struct cma_id *owner;          /* of a connect request: the listener */
	struct cma_event_count *count; /* the owner's, or the group's */
	struct cma_mcast *mcast;       /* the group, or NULL */
	uint8_t private_data[CMA_MAX_PRIVATE_DATA];
};

struct cma_channel {
	struct rdma_event_channel channel; /* the program's pointer */
	struct roci_list events;
	atomic_uint count;   /* of them; for readers without cma_lock */
	atomic_uint looks;   /* of the program for an event */
	atomic_bool in_turn; /* struct cma_turn: the last request was answered so */
	/* cma_lock: */
	bool signaled;            /* the descriptor is readable */
	struct roci_list unshown; /* node: it has events that were queued without an edge; else alone */
};

/*
 * Whether a program answers a request before it looks for the next event, in the thread that fetched it. Then it hands
 * none to another thread, so it may have many at once (cm/backlog.h). Of the id of a request: its fetch.
 */
struct cma_turn {
	pthread_t thread;
	unsigned looks;
};

static inline struct cma_event *cma_event_of(struct roci_list *queued)
{
	return roci_container_of(queued, struct cma_event, queued);
}

/* A new event of `id`, not queued yet; free() it if it never is. NULL: out of memory. */
struct cma_event *cma_event_new(struct cma_id *id, enum rdma_cm_event_type type, int status);
/* Queues it on its owner's channel, whose descriptor gets an edge. */
void cma_event_push(struct cma_event *ev);
/* Likewise, but the edge comes with the next cma_channel_show(), which must follow before the device is unlocked: one
 * for all events that one turn brings. */
void cma_event_push_unshown(struct cma_event *ev);
void cma_channel_show(void);
/* Both at once, for events without data. 0 or -ENOMEM. */
int cma_event_post(struct cma_id *id, enum rdma_cm_event_type type, int status);

/* Removes the oldest event of the channel and counts it as delivered. NULL: there is none. */
struct cma_event *cma_channel_pop(struct cma_channel *ch);
/* The program has taken a request from the channel. Returns whether it has answered the one before in its turn. */
bool cma_channel_begin_turn(struct cma_channel *ch, struct cma_turn *turn);
/* The program answers that request. `ch`: its id's channel. */
void cma_channel_end_turn(struct cma_channel *ch, const struct cma_turn *turn);
/* Whether the program has events to take there. False for NULL. Needs no lock. */
bool cma_channel_has_events(const struct rdma_event_channel *channel);
/* Waits for an event: 0. Or -1 with errno: EAGAIN: the descriptor does not block; EINTR; EBADF: the channel is closed.
 */
int cma_channel_wait(struct cma_channel *ch);
/* Waits until all delivered events of the id are acknowledged. Then moves the queued ones to channel `to`, which
 * becomes the id's. */
void cma_channel_move(struct cma_id *id, struct cma_channel *to);
/* Waits until all delivered events of `count`, which is the id's or one of its groups', are acknowledged. Then moves
 * the queued ones to the list `out`; the caller frees them. */
void cma_channel_extract(struct cma_id *id, struct cma_event_count *count, struct roci_list *out);

#endif
