/* SPDX-License-Identifier: BSD-2-Clause */
/* mover_recv(): listens, starts a thread for each session, and keeps the tickets. A peer's connect request gets here no
 * further than into a table; whatever takes longer happens in the session's own thread. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include <openssl/crypto.h>

#include "mover/descriptors.h"
#include "mover/listener.h"
#include "mover/stop.h"

#define MAX_UNPROVED      32 /* connections that have not proved a ticket */
#define BACKLOG           64
#define ENTRY_DESCRIPTORS 3 /* the temporary file, its journal, the file that is compared */

/* Sessions that end */

/* Called last by a session's thread. */
void listener_over(struct receiver *r)
{
	struct listener *l = r->listener;

	if (r->s.control.link.state == LINK_NONE) /* it failed before it could accept */
		link_reject(r->s.control.link.id, PROTO_REJECT_BUSY);
	if (r->trusted)
		listener_use_up(l, r);
	pthread_mutex_lock(&l->lock);
	r->over = true;
	r->takes_lanes = false;
	if (r->trusted && l->options->once && !l->ended) {
		l->ended = true;
		l->status = r->s.status;
	}
	pthread_mutex_unlock(&l->lock);
	/* whoever hears of the end finds its place free */
	if (r->trusted) {
		session_ended(&r->s);
	} else if (r->s.status != MOVER_INTERRUPTED) {
		bool pushed_out = atomic_load(&r->superseded) && !*r->identity;
		char text[400];
		snprintf(text, sizeof(text), "a connection was not let in: %s",
			 pushed_out ? "others came before it had proved a ticket" : r->s.text);
		session_warn(&r->s, text);
	}
	eventfd_write(l->over_fd, 1);
}

/* Data connections */

void listener_publish(struct receiver *r)
{
	struct listener *l = r->listener;
	pthread_mutex_lock(&l->lock);
	r->takes_lanes = true;
	pthread_mutex_unlock(&l->lock);
}

struct rdma_cm_id *listener_arrival(struct receiver *r, unsigned index)
{
	struct rdma_cm_id *id;
	pthread_mutex_lock(&r->listener->lock);
	id = r->arrivals[index];
	r->arrivals[index] = NULL;
	pthread_mutex_unlock(&r->listener->lock);
	return id;
}

static void turn_away(struct rdma_cm_id *id, enum proto_reject reason)
{
	link_reject(id, reason);
	rdma_destroy_id(id);
}

static void data_request(struct listener *l, struct rdma_cm_id *id, const struct proto_request *request)
{
	struct receiver *r;
	bool taken = false;

	pthread_mutex_lock(&l->lock);
	for (r = l->sessions; r; r = r->next)
		if (r->id == request->session && r->takes_lanes)
			break;
	if (r && CRYPTO_memcmp(r->token, request->token, SECURE_TOKEN_BYTES) == 0 && request->index < r->s.lane_count &&
	    !r->arrivals[request->index] && rdma_migrate_id(id, r->s.channel) == 0) {
		r->arrivals[request->index] = id;
		eventfd_write(r->wake_fd, 1);
		taken = true;
	}
	pthread_mutex_unlock(&l->lock);
	if (!taken)
		turn_away(id, PROTO_REJECT_UNKNOWN);
}

/* Sessions */

static struct receiver *new_session(struct listener *l, struct rdma_cm_id *id)
{
	struct receiver *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r->listener = l;
	r->tree = l->tree;
	if (r->wake_fd < 0 || getrandom(&r->id, sizeof(r->id), 0) != sizeof(r->id) ||
	    session_init(&r->s, &receiver_role, &l->options->common, &l->teller, l->sessions_so_far + 1))
		goto err_destroy;
	r->id |= 1; /* not zero */
	r->s.control.link.id = id;
	id->context = &r->s.control.link;
	if (rdma_migrate_id(id, r->s.channel))
		goto err_keep_id;
	return r;
err_keep_id:
	r->s.control.link.id = NULL;
err_destroy:
	receiver_destroy(r);
	return NULL;
}

/* Who has proved nothing costs a thread, queues and memory as well, for some seconds: so there are so many of them, and
 * when one more comes the oldest has to go. So nobody without a ticket can keep out those who have one. */
static void push_out_oldest(struct listener *l)
{
	struct receiver *oldest = NULL;
	unsigned unproved = 0;

	pthread_mutex_lock(&l->lock);
	for (struct receiver *r = l->sessions; r; r = r->next) { /* the newest first */
		if (*r->identity || r->over || atomic_load(&r->superseded))
			continue;
		unproved++;
		oldest = r;
	}
	if (unproved >= MAX_UNPROVED) {
		atomic_store(&oldest->superseded, true);
		eventfd_write(oldest->wake_fd, 1);
	}
	pthread_mutex_unlock(&l->lock);
}

static void control_request(struct listener *l, struct rdma_cm_id *id)
{
	unsigned most = listener_most_sessions(l) + 2 * MAX_UNPROVED; /* of them half on their way out */
	const char *device = l->options->common.device;
	struct receiver *r;

	if (device && strcmp(device, id->verbs->device->name)) {
		turn_away(id, PROTO_REJECT_DEVICE);
		return;
	}
	push_out_oldest(l);
	r = l->session_count < most ? new_session(l, id) : NULL;
	if (!r) {
		turn_away(id, PROTO_REJECT_BUSY);
		return;
	}
	pthread_mutex_lock(&l->lock);
	r->next = l->sessions;
	l->sessions = r;
	pthread_mutex_unlock(&l->lock);
	l->session_count++;
	l->sessions_so_far++;
	if (pthread_create(&r->thread, NULL, receiver_thread, r) == 0)
		return;
	pthread_mutex_lock(&l->lock);
	l->sessions = r->next;
	pthread_mutex_unlock(&l->lock);
	l->session_count--;
	link_reject(id, PROTO_REJECT_BUSY);
	receiver_destroy(r);
}

/* Takes sessions that are over out of the list. */
static void bury(struct listener *l)
{
	struct receiver **at = &l->sessions, *r;
	eventfd_t count;

	eventfd_read(l->over_fd, &count);
	pthread_mutex_lock(&l->lock);
	while ((r = *at)) {
		if (!r->over) {
			at = &r->next;
			continue;
		}
		*at = r->next;
		l->free_descriptors += r->descriptors;
		pthread_mutex_unlock(&l->lock);
		pthread_join(r->thread, NULL);
		for (unsigned i = 0; i < MOVER_MAX_QPS; i++)
			if (r->arrivals[i])
				rdma_destroy_id(r->arrivals[i]);
		receiver_destroy(r);
		l->session_count--;
		pthread_mutex_lock(&l->lock);
		at = &l->sessions;
	}
	pthread_mutex_unlock(&l->lock);
}

/* Listening */

static void take_event(struct listener *l, struct rdma_cm_event *event)
{
	struct rdma_cm_id *id = event->id;
	struct proto_request request;
	int wrong;

	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
		rdma_ack_cm_event(event);
		return;
	}
	wrong = proto_get_request(event->param.conn.private_data, event->param.conn.private_data_len, &request);
	rdma_ack_cm_event(event);
	id->context = NULL;
	if (wrong)
		turn_away(id, PROTO_REJECT_VERSION);
	else if (request.data)
		data_request(l, id, &request);
	else
		control_request(l, id);
}

static void listen_loop(struct listener *l)
{
	bool ended = false;

	while (!mover_stopped() && !ended) {
		struct pollfd fds[] = {
			{.fd = l->channel->fd, .events = POLLIN},
			{.fd = l->over_fd, .events = POLLIN},
			{.fd = mover_stop_fd(), .events = POLLIN},
		};
		struct rdma_cm_event *event;

		poll(fds, 3, 1000);
		while (rdma_get_cm_event(l->channel, &event) == 0)
			take_event(l, event);
		bury(l);
		pthread_mutex_lock(&l->lock);
		ended = l->ended;
		pthread_mutex_unlock(&l->lock);
	}
}

/* Sessions that are left: all of them see mover_stop(). With `once` nobody else has been trusted. */
static void end_sessions(struct listener *l)
{
	pthread_mutex_lock(&l->lock);
	for (struct receiver *r = l->sessions; r; r = r->next) {
		atomic_store(&r->superseded, true);
		eventfd_write(r->wake_fd, 1);
	}
	pthread_mutex_unlock(&l->lock);
	while (l->session_count) {
		poll(&(struct pollfd){.fd = l->over_fd, .events = POLLIN}, 1, 1000);
		bury(l);
	}
}

static int bind_and_listen(struct listener *l)
{
	const struct mover_recv_options *o = l->options;
	struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICHOST, .ai_socktype = SOCK_STREAM}, *list;
	char port[8];
	int err;

	snprintf(port, sizeof(port), "%u", o->port);
	hints.ai_family = o->common.bind_address ? AF_UNSPEC : AF_INET6; /* which means IPv4 as well */
	err = getaddrinfo(o->common.bind_address, port, &hints, &list);
	if (err) {
		hints.ai_family = AF_INET;
		err = o->common.bind_address ? err : getaddrinfo(NULL, port, &hints, &list);
	}
	if (err) {
		snprintf(l->text, sizeof(l->text), "%s is no address: %s", o->common.bind_address, gai_strerror(err));
		l->status = MOVER_USAGE;
		return -EINVAL;
	}
	err = rdma_bind_addr(l->id, list->ai_addr);
	if (err && !o->common.bind_address) { /* a host without IPv6 */
		struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(o->port)};
		err = rdma_bind_addr(l->id, (struct sockaddr *)&any);
	}
	freeaddrinfo(list);
	if (!err)
		err = rdma_listen(l->id, BACKLOG);
	if (!err)
		return 0;
	l->status = errno == ENODEV || errno == EADDRNOTAVAIL ? MOVER_NO_DEVICE : MOVER_FAILED;
	snprintf(l->text, sizeof(l->text), "port %u%s%s: %s", o->port, o->common.bind_address ? " of " : "",
		 o->common.bind_address ? o->common.bind_address : "",
		 errno == EADDRINUSE ? "another program listens there already" : strerror(errno));
	return -errno;
}

static int open_channel(struct listener *l)
{
	int devices = 0;
	struct ibv_context **list = rdma_get_devices(&devices);

	if (list)
		rdma_free_devices(list);
	l->channel = devices ? rdma_create_event_channel() : NULL;
	if (!l->channel || rdma_create_id(l->channel, &l->id, NULL, RDMA_PS_TCP)) {
		snprintf(l->text, sizeof(l->text), "no RDMA device");
		l->status = MOVER_NO_DEVICE;
		return -ENODEV;
	}
	fcntl(l->channel->fd, F_SETFL, fcntl(l->channel->fd, F_GETFL) | O_NONBLOCK);
	return 0;
}

static void tell_listening(struct listener *l)
{
	char address[INET6_ADDRSTRLEN] = "";
	struct sockaddr *own = rdma_get_local_addr(l->id);
	int devices = 0;
	struct ibv_context **list = rdma_get_devices(&devices);
	const char *device = l->id->verbs ? l->id->verbs->device->name : devices ? list[0]->device->name : "";

	if (own->sa_family == AF_INET)
		inet_ntop(AF_INET, &((struct sockaddr_in *)own)->sin_addr, address, sizeof(address));
	else
		inet_ntop(AF_INET6, &((struct sockaddr_in6 *)own)->sin6_addr, address, sizeof(address));
	teller_tell(&l->teller, &(struct mover_event){
					.type = MOVER_LISTENING,
					.device = l->options->common.device ? l->options->common.device : device,
					.address = address,
					.port = ntohs(rdma_get_src_port(l->id)),
				});
	if (list)
		rdma_free_devices(list);
}

uint16_t listener_reserve(struct receiver *r, uint16_t entries)
{
	struct listener *l = r->listener;
	unsigned share;

	pthread_mutex_lock(&l->lock);
	share = l->free_descriptors / 2 / ENTRY_DESCRIPTORS; /* the rest for those who come later */
	r->descriptors = (entries < share ? entries : share) * ENTRY_DESCRIPTORS;
	l->free_descriptors -= r->descriptors;
	pthread_mutex_unlock(&l->lock);
	if (share < DESCRIPTORS_LEAST_ENTRIES)
		share = DESCRIPTORS_LEAST_ENTRIES;
	return (uint16_t)(entries < share ? entries : share);
}

static bool open_tree(struct listener *l)
{
	int err = l->options->dir ? mover_tree_open(l->options->dir, &l->tree) : 0;
	if (!err)
		return true;
	l->status = MOVER_LOCAL_IO;
	snprintf(l->text, sizeof(l->text), "%s: %s", l->options->dir, strerror(-err));
	return false;
}

static void run(struct listener *l)
{
	if (!open_tree(l) || open_channel(l) || bind_and_listen(l))
		return;
	tell_listening(l);
	listen_loop(l);
	if (l->options->once && !l->ended)
		l->status = MOVER_INTERRUPTED;
	end_sessions(l);
}

enum mover_status mover_recv(const struct mover_recv_options *options, mover_event_fn *event, void *context)
{
	struct listener l = {.options = options, .over_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};

	mover_stop_fd();
	l.free_descriptors = mover_descriptors();
	teller_init(&l.teller, event, context);
	pthread_mutex_init(&l.lock, NULL);
	if (options->ticket)
		listener_set_ticket(&l, options->ticket);
	run(&l);
	if (l.id)
		rdma_destroy_id(l.id);
	if (l.channel)
		rdma_destroy_event_channel(l.channel);
	if (l.tree)
		mover_tree_close(l.tree);
	if (l.status != MOVER_OK && *l.text) /* it never came to listen; sessions tell of their own end */
		teller_tell(&l.teller, &(struct mover_event){.type = MOVER_ENDED, .status = l.status, .text = l.text});
	mover_ticket_forget(&l.ticket);
	pthread_mutex_destroy(&l.lock);
	teller_destroy(&l.teller);
	if (l.over_fd >= 0)
		close(l.over_fd);
	return l.status;
}
