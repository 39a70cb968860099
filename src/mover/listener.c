/* SPDX-License-Identifier: BSD-2-Clause */
/* mover_recv(): listens, and hands each connect request on. Whatever takes longer happens in the session's own thread.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "mover/connection.h"
#include "mover/fd_limit.h"
#include "mover/gcm_wide.h"
#include "mover/listener.h"
#include "mover/stop.h"
#include "mover/tree.h"

#define BACKLOG 64

static void handle_event(struct listener *l, struct rdma_cm_event *event)
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
	if (wrong) {
		connection_reject(id, PROTO_REJECT_VERSION);
		rdma_destroy_id(id);
	} else if (request.data) {
		listener_data_request(l, id, &request);
	} else {
		listener_start_session(l, id, &request);
	}
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
			handle_event(l, event);
		listener_reap_sessions(l);
		ended = listener_has_ended(l);
	}
}

static int bind_and_listen(struct listener *l)
{
	const struct mover_recv_options *o = l->options;
	struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICHOST, .ai_socktype = SOCK_STREAM}, *list;
	char port[8];
	int err;

	snprintf(port, sizeof(port), "%u", o->port);
	hints.ai_family = o->common.bind_address ? AF_UNSPEC : AF_INET6; /* and IPv4 with it */
	err = getaddrinfo(o->common.bind_address, port, &hints, &list);
	if (err) {
		hints.ai_family = AF_INET;
		err = o->common.bind_address ? err : getaddrinfo(NULL, port, &hints, &list);
	}
	if (err) {
		snprintf(l->text, sizeof(l->text), "%s is not an address: %s", o->common.bind_address,
			 gai_strerror(err));
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

static void report_listening(struct listener *l)
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
	events_emit(&l->events, &(struct mover_event){
					.type = MOVER_LISTENING,
					.device = l->options->common.device ? l->options->common.device : device,
					.address = address,
					.port = ntohs(rdma_get_src_port(l->id)),
				});
	if (list)
		rdma_free_devices(list);
}

static bool open_tree(struct listener *l)
{
	int err = l->options->dir ? mover_tree_open(l->options->dir, &l->tree) : 0;

	if (l->tree && l->options->keep)
		mover_tree_keep_existing(l->tree);
	if (!err)
		return true;
	l->status = MOVER_LOCAL_IO;
	snprintf(l->text, sizeof(l->text), "cannot use the folder %s: %s", l->options->dir, strerror(-err));
	return false;
}

static void run(struct listener *l)
{
	int err = mover_secure_try();

	if (err) {
		l->status = MOVER_FAILED;
		snprintf(l->text, sizeof(l->text), "%s", err == -ENOTSUP ? SECURE_LACKS : "out of memory");
		return;
	}
	if (!open_tree(l) || open_channel(l) || bind_and_listen(l))
		return;
	report_listening(l);
	gcm_wide_load();
	listen_loop(l);
	if (l->options->once && !l->ended)
		l->status = MOVER_INTERRUPTED;
	/* Those that are left see mover_stop(). With `once` they are all untrusted. */
	listener_end_sessions(l);
}

enum mover_status mover_recv(const struct mover_recv_options *options, mover_event_fn *event, void *context)
{
	struct listener l = {.options = options, .over_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};

	mover_stop_fd();
	l.free_fds = fd_limit_raise();
	events_init(&l.events, event, context);
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
	if (l.status != MOVER_OK && *l.text) /* it never listened; sessions report their own end */
		events_emit(&l.events, &(struct mover_event){.type = MOVER_ENDED, .status = l.status, .text = l.text});
	mover_ticket_forget(&l.ticket);
	pthread_mutex_destroy(&l.lock);
	events_destroy(&l.events);
	if (l.over_fd >= 0)
		close(l.over_fd);
	return l.status;
}
