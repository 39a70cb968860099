/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of sessions: who gets a thread, which data connection belongs to whom, and what happens when one ends. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>

#include <openssl/crypto.h>

#include "mover/fd_limit.h"
#include "mover/receiver.h"

#define ENTRY_FDS 3 /* the temporary file, its journal, the file that is compared */

/* From a session's thread */

void listener_session_over(struct receiver *r)
{
	struct listener *l = r->reg.listener;

	if (r->s.control.conn.state == CONNECTION_NONE) /* it failed before it could accept */
		connection_reject(r->s.control.conn.id, PROTO_REJECT_BUSY);
	if (r->reg.trusted)
		listener_use_up_ticket(r);
	pthread_mutex_lock(&l->lock);
	r->reg.over = true;
	r->reg.published = false;
	if (r->reg.trusted && l->options->once && !l->ended) {
		l->ended = true;
		l->status = r->s.status;
	}
	pthread_mutex_unlock(&l->lock);
	/* Report the end only now: a sender that is started on hearing of it finds a free place. */
	if (r->reg.trusted) {
		session_ended(&r->s);
	} else if (r->s.status != MOVER_INTERRUPTED) {
		bool evicted = atomic_load(&r->reg.superseded) && !*r->reg.identity;
		char text[400];

		snprintf(text, sizeof(text), "a connection was not let in: %s",
			 evicted ? "others came before it had proved a ticket" : r->s.text);
		session_warn(&r->s, text);
	}
	eventfd_write(l->over_fd, 1);
}

uint16_t listener_reserve_fds(struct receiver *r, uint16_t entries)
{
	struct listener *l = r->reg.listener;
	unsigned share;

	pthread_mutex_lock(&l->lock);
	share = l->free_fds / 2 / ENTRY_FDS; /* the other half is for sessions that come later */
	r->reg.fds = (entries < share ? entries : share) * ENTRY_FDS;
	l->free_fds -= r->reg.fds;
	pthread_mutex_unlock(&l->lock);
	if (share < FD_LIMIT_MIN_ENTRIES)
		share = FD_LIMIT_MIN_ENTRIES;
	return (uint16_t)(entries < share ? entries : share);
}

void listener_publish(struct receiver *r)
{
	pthread_mutex_lock(&r->reg.listener->lock);
	r->reg.published = true;
	pthread_mutex_unlock(&r->reg.listener->lock);
}

struct rdma_cm_id *listener_take_arrival(struct receiver *r, unsigned index)
{
	struct rdma_cm_id *id;

	pthread_mutex_lock(&r->reg.listener->lock);
	id = r->reg.arrivals[index];
	r->reg.arrivals[index] = NULL;
	pthread_mutex_unlock(&r->reg.listener->lock);
	return id;
}

/* From the listener's thread */

static void reject(struct rdma_cm_id *id, enum proto_reject reason)
{
	connection_reject(id, reason);
	rdma_destroy_id(id);
}

/* With the lock: makes a session end, for another to take its place. */
static void supersede(struct receiver *r)
{
	atomic_store(&r->reg.superseded, true);
	eventfd_write(r->reg.wake_fd, 1);
}

void listener_data_request(struct listener *l, struct rdma_cm_id *id, const struct proto_request *request)
{
	struct receiver *r;
	bool taken = false;

	pthread_mutex_lock(&l->lock);
	for (r = l->sessions; r; r = r->reg.next)
		if (r->reg.id == request->session && r->reg.published)
			break;
	if (r && CRYPTO_memcmp(r->reg.token, request->token, SECURE_TOKEN_BYTES) == 0 &&
	    request->index < r->s.lanes.count && !r->reg.arrivals[request->index] &&
	    rdma_migrate_id(id, r->s.channel) == 0) {
		r->reg.arrivals[request->index] = id;
		eventfd_write(r->reg.wake_fd, 1);
		taken = true;
	}
	pthread_mutex_unlock(&l->lock);
	if (!taken)
		reject(id, PROTO_REJECT_UNKNOWN);
}

static struct receiver *new_session(struct listener *l, struct rdma_cm_id *id)
{
	struct receiver *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->reg.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r->reg.listener = l;
	r->tree = l->tree;
	if (r->reg.wake_fd < 0 || getrandom(&r->reg.id, sizeof(r->reg.id), 0) != sizeof(r->reg.id) ||
	    session_init(&r->s, &receiver_role, &l->options->common, &l->events, l->sessions_so_far + 1))
		goto err_destroy;
	r->reg.id |= 1; /* not zero */
	r->s.control.conn.id = id;
	id->context = &r->s.control.conn;
	if (rdma_migrate_id(id, r->s.channel))
		goto err_keep_id;
	return r;
err_keep_id:
	r->s.control.conn.id = NULL;
err_destroy:
	receiver_destroy(r);
	return NULL;
}

/* A connection that has proved nothing costs a thread, queues and memory too, for some seconds. So their number is
 * limited, and a new one evicts the oldest: peers without a ticket cannot keep out those that have one. */
static void evict_oldest(struct listener *l)
{
	struct receiver *oldest = NULL;
	unsigned untrusted = 0;

	pthread_mutex_lock(&l->lock);
	for (struct receiver *r = l->sessions; r; r = r->reg.next) { /* the newest first */
		if (*r->reg.identity || r->reg.over || atomic_load(&r->reg.superseded))
			continue;
		untrusted++;
		oldest = r;
	}
	if (untrusted >= LISTENER_MAX_UNTRUSTED)
		supersede(oldest);
	pthread_mutex_unlock(&l->lock);
}

void listener_start_session(struct listener *l, struct rdma_cm_id *id)
{
	/* of the untrusted ones, half may be on their way out */
	unsigned max = listener_max_sessions(l) + 2 * LISTENER_MAX_UNTRUSTED;
	const char *device = l->options->common.device;
	struct receiver *r;

	if (device && strcmp(device, id->verbs->device->name)) {
		reject(id, PROTO_REJECT_DEVICE);
		return;
	}
	evict_oldest(l);
	r = l->session_count < max ? new_session(l, id) : NULL;
	if (!r) {
		reject(id, PROTO_REJECT_BUSY);
		return;
	}
	pthread_mutex_lock(&l->lock);
	r->reg.next = l->sessions;
	l->sessions = r;
	pthread_mutex_unlock(&l->lock);
	l->session_count++;
	l->sessions_so_far++;
	if (pthread_create(&r->reg.thread, NULL, receiver_thread, r) == 0)
		return;
	pthread_mutex_lock(&l->lock);
	l->sessions = r->reg.next;
	pthread_mutex_unlock(&l->lock);
	l->session_count--;
	connection_reject(id, PROTO_REJECT_BUSY);
	receiver_destroy(r);
}

/* Removes the first session that is over from the list, and returns it; NULL if there is none. */
static struct receiver *remove_over(struct listener *l)
{
	struct receiver **at = &l->sessions, *r;

	pthread_mutex_lock(&l->lock);
	while ((r = *at) && !r->reg.over)
		at = &r->reg.next;
	if (r) {
		*at = r->reg.next;
		l->free_fds += r->reg.fds;
	}
	pthread_mutex_unlock(&l->lock);
	return r;
}

void listener_reap_sessions(struct listener *l)
{
	struct receiver *r;
	eventfd_t count;

	eventfd_read(l->over_fd, &count);
	while ((r = remove_over(l))) {
		pthread_join(r->reg.thread, NULL);
		for (unsigned i = 0; i < MOVER_MAX_QPS; i++)
			if (r->reg.arrivals[i])
				rdma_destroy_id(r->reg.arrivals[i]);
		receiver_destroy(r);
		l->session_count--;
	}
}

void listener_end_sessions(struct listener *l)
{
	pthread_mutex_lock(&l->lock);
	for (struct receiver *r = l->sessions; r; r = r->reg.next)
		supersede(r);
	pthread_mutex_unlock(&l->lock);
	while (l->session_count) {
		poll(&(struct pollfd){.fd = l->over_fd, .events = POLLIN}, 1, 1000);
		listener_reap_sessions(l);
	}
}
