/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of sessions: who gets a thread, which data connection belongs to whom, and what happens when one ends. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>

#include "mover/clock.h"
#include "mover/fd_limit.h"
#include "mover/receiver.h"

#define REFUSED_QUIET_NS 10000000000u /* between two warnings */

/* Says that a connection was not let in; at most once in ten seconds, because strangers can cause it. */
static void warn_refused(struct listener *l, const char *why)
{
	uint64_t now = mover_now_ns();
	unsigned others;
	bool silent;
	char text[400];

	pthread_mutex_lock(&l->lock);
	silent = l->refused_at && now - l->refused_at < REFUSED_QUIET_NS;
	others = l->refused_count;
	l->refused_count = silent ? others + 1 : 0;
	l->refused_at = silent ? l->refused_at : now;
	pthread_mutex_unlock(&l->lock);
	if (silent)
		return;
	if (others)
		snprintf(text, sizeof(text), "%u connections were not let in; the last: %s", others + 1, why);
	else
		snprintf(text, sizeof(text), "a connection was not let in: %s", why);
	events_emit(&l->events, &(struct mover_event){.type = MOVER_WARNING, .text = text});
}

/* From a session's thread */

void listener_session_over(struct receiver *r)
{
	struct listener *l = r->reg.listener;
	uint64_t wait_ns = 0;

	if (r->s.control.conn.state == CONNECTION_NONE) /* it failed before it could accept */
		connection_reject(r->s.control.conn.id, PROTO_REJECT_BUSY);
	if (r->reg.trusted)
		listener_use_up_ticket(r);
	pthread_mutex_lock(&l->lock);
	r->reg.over = true;
	if (r->reg.trusted && l->options->once && !l->ended)
		wait_ns = listener_once_over(r);
	pthread_mutex_unlock(&l->lock);
	/* Report the end only now: a sender that is started on hearing of it finds a free place. */
	if (r->reg.trusted) {
		session_ended(&r->s);
	} else if (r->s.status != MOVER_INTERRUPTED) {
		warn_refused(l, r->s.text);
	}
	if (wait_ns)
		events_emit(&l->events, &(struct mover_event){
						.type = MOVER_RECONNECTING,
						.text = "waiting for the sender to connect again",
						.left_ns = wait_ns,
					});
	eventfd_write(l->over_fd, 1);
}

uint16_t listener_reserve_fds(struct receiver *r, uint16_t entries)
{
	struct listener *l = r->reg.listener;
	unsigned before;

	pthread_mutex_lock(&l->lock);
	before = l->free_fds;
	entries = fd_limit_share(&l->free_fds, entries);
	r->reg.fds = before - l->free_fds;
	pthread_mutex_unlock(&l->lock);
	return entries;
}

bool listener_take_arrival(struct receiver *r, unsigned index, uint64_t least_ns, struct arrival *arrival)
{
	bool taken;

	pthread_mutex_lock(&r->reg.listener->lock);
	*arrival = r->reg.arrivals[index];
	taken = arrival->id && mover_now_ns() - arrival->at >= least_ns;
	if (taken)
		r->reg.arrivals[index].id = NULL;
	pthread_mutex_unlock(&r->reg.listener->lock);
	return taken;
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

/* With the lock: the session with that number that is not over, or NULL. An eavesdropper may begin others with the same
 * number: they are newer. */
static struct receiver *find_session(struct listener *l, uint64_t number)
{
	struct receiver *found = NULL;

	for (struct receiver *r = l->sessions; r; r = r->reg.next)
		if (r->reg.number == number && !r->reg.over)
			found = r;
	return found;
}

void listener_data_request(struct listener *l, struct rdma_cm_id *id, const struct proto_request *request)
{
	struct receiver *r;
	bool taken = false;

	pthread_mutex_lock(&l->lock);
	r = find_session(l, request->session);
	if (r && request->index < MOVER_MAX_QPS && !r->reg.arrivals[request->index].id &&
	    rdma_migrate_id(id, r->s.channel) == 0) {
		struct arrival *arrival = &r->reg.arrivals[request->index];

		arrival->id = id;
		arrival->at = mover_now_ns();
		memcpy(arrival->token, request->token, sizeof(arrival->token));
		eventfd_write(r->reg.wake_fd, 1);
		taken = true;
	}
	pthread_mutex_unlock(&l->lock);
	if (!taken)
		reject(id, PROTO_REJECT_UNKNOWN);
}

static struct receiver *new_session(struct listener *l, struct rdma_cm_id *id, uint64_t number)
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
	if (l->options->to_stdout)
		r->s.report.stream = MOVER_STDOUT;
	r->reg.id |= 1; /* not zero */
	r->reg.number = number ? number : r->reg.id;
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

static bool in_handshake(struct receiver *r)
{
	return !*r->reg.identity && !r->reg.over && !atomic_load(&r->reg.superseded);
}

/* A connection that has not finished the handshake costs a thread, queues and memory too, for some seconds. So their
 * number is limited. */
static void make_room(struct listener *l, const struct admission_place *next)
{
	struct admission_place places[LISTENER_MAX_SESSIONS(0)];
	struct receiver *who[LISTENER_MAX_SESSIONS(0)];
	unsigned count = 0;
	uint32_t random = 0;
	int place;

	(void)!getrandom(&random, sizeof(random), 0);
	pthread_mutex_lock(&l->lock);
	for (struct receiver *r = l->sessions; r && count < LISTENER_MAX_SESSIONS(0); r = r->reg.next) {
		if (!in_handshake(r))
			continue;
		places[count] = r->reg.place;
		who[count++] = r;
	}
	place = admission_choose(places, count, next, random);
	if (place >= 0)
		supersede(who[place]);
	pthread_mutex_unlock(&l->lock);
}

static bool has_room(const struct listener *l, bool proved)
{
	/* of those in the handshake, half may be on their way out */
	unsigned limit = LISTENER_MAX_SESSIONS(listener_max_sessions(l));

	return l->session_count < (proved ? limit : limit - 2 * ADMISSION_MAX);
}

void listener_start_session(struct listener *l, struct rdma_cm_id *id, const struct proto_request *request)
{
	struct admission_place place = {.proved = listener_knows(l, request)};
	const char *device = l->options->common.device;
	struct receiver *r;

	if (device && strcmp(device, id->verbs->device->name)) {
		reject(id, PROTO_REJECT_DEVICE);
		return;
	}
	if (!place.proved && !l->options->open) {
		reject(id, PROTO_REJECT_TICKET);
		warn_refused(l, "it did not prove that it knows the ticket");
		return;
	}
	admission_address(rdma_get_peer_addr(id), place.from);
	make_room(l, &place);
	r = has_room(l, place.proved) ? new_session(l, id, request->session) : NULL;
	if (!r) {
		reject(id, PROTO_REJECT_BUSY);
		return;
	}
	r->reg.place = place;
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
			if (r->reg.arrivals[i].id)
				rdma_destroy_id(r->reg.arrivals[i].id);
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
