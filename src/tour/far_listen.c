/* SPDX-License-Identifier: BSD-2-Clause */
#include "tour/far_listen.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 64

union socket_address {
	struct sockaddr any;
	struct sockaddr_in in4;
	struct sockaddr_in6 in6;
};

static uint32_t far_caps(const struct far *far, struct ibv_context *verbs)
{
	return device_caps(verbs) | (far->listeners[TOUR_UC] ? TOUR_CAP_CM_UC : 0);
}

static void print_address(struct session *s, const struct sockaddr *a)
{
	socklen_t len = a->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
	char text[64];

	if (getnameinfo(a, len, text, sizeof(text), NULL, 0, NI_NUMERICHOST))
		snprintf(text, sizeof(text), "?");
	snprintf(s->address, sizeof(s->address), "%s", strncmp(text, "::ffff:", 7) ? text : text + 7);
}

/* Says whether the session is up, or why not. */
static void report_offer(struct far *far, struct session *s, const struct hello_offer *offer)
{
	struct tour_refusal r;

	if (offer->status == HELLO_OK) {
		far_report(far, s, FAR_CONNECTED, NULL);
		return;
	}
	r = tour_refuse(s->request.op, s->request.qp, s->way, s->request.caps, offer->caps);
	far_report(far, s, FAR_REFUSED,
		   *s->failure.text                             ? s->failure.text
		   : offer->status == HELLO_REFUSED && r.reason ? r.reason
								: hello_status_str(offer->status));
}

/* ---- by rdma_cm ---- */

static void reject(struct rdma_cm_id *id, const struct hello_offer *offer)
{
	uint8_t bytes[HELLO_OFFER_BYTES];

	hello_put_offer(bytes, offer);
	rdma_reject(id, bytes, sizeof(bytes));
}

static int accept_id(struct session *s, const struct hello_offer *offer)
{
	uint8_t bytes[HELLO_OFFER_BYTES];
	struct rdma_conn_param param = {
		.private_data = bytes,
		.private_data_len = sizeof(bytes),
		.responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = 7,
		.rnr_retry_count = 7,
		.qp_num = s->id->qp->qp_num,
	};

	hello_put_offer(bytes, offer);
	return rdma_accept(s->id, &param) ? fail_call(&s->failure, "rdma_accept", errno) : 0;
}

/* Whether the type of QP that the request names is that of the connection: a near end may say anything. */
static bool same_type(const struct far *far, const struct rdma_cm_id *listener, enum tour_qp qp)
{
	return far->listeners[qp] == listener;
}

static void request_id(struct far *far, struct rdma_cm_id *listener, struct rdma_cm_id *id, const uint8_t *data,
		       size_t len)
{
	struct session *s = far_new_session(far, TOUR_CM);
	struct hello_offer offer;
	enum hello_status status;

	if (!s) {
		far_session_refusal(HELLO_BUSY, far_caps(far, id->verbs), ibv_get_device_name(id->verbs->device),
				    &offer);
		reject(id, &offer);
		rdma_destroy_id(id);
		return;
	}
	s->id = id;
	id->context = s;
	print_address(s, rdma_get_peer_addr(id));
	status = hello_get_request(data, len, &s->request);
	if (status == HELLO_OK && !same_type(far, listener, s->request.qp))
		status = HELLO_BAD_REQUEST;
	if (status == HELLO_OK) {
		far_session_open(s, id->verbs, far_caps(far, id->verbs), far->options.embedded, &offer);
		if (offer.status == HELLO_OK && accept_id(s, &offer))
			offer.status = HELLO_FAILED;
	} else {
		far_session_refusal(status, 0, ibv_get_device_name(id->verbs->device), &offer);
	}
	if (offer.status != HELLO_OK) {
		report_offer(far, s, &offer);
		reject(id, &offer);
		far_session_close(s);
		return;
	}
	s->state = s->request.qp == TOUR_UD ? SESSION_UP : SESSION_CONNECTING;
	if (s->state == SESSION_UP)
		report_offer(far, s, &offer);
}

static void take_request(struct far *far, struct rdma_cm_event *event)
{
	/* a copy: the event ends before the id may */
	uint8_t data[HELLO_REQUEST_BYTES] = {0};
	bool ud = event->id->ps == RDMA_PS_UDP;
	const void *from = ud ? event->param.ud.private_data : event->param.conn.private_data;
	size_t len = ud ? event->param.ud.private_data_len : event->param.conn.private_data_len;
	struct rdma_cm_id *id = event->id, *listener = event->listen_id;

	if (len > sizeof(data))
		len = sizeof(data);
	if (len)
		memcpy(data, from, len);
	rdma_ack_cm_event(event);
	id->context = NULL;
	request_id(far, listener, id, data, len);
}

static void take_session_event(struct far *far, struct rdma_cm_event *event)
{
	struct session *s = event->id->context;
	enum rdma_cm_event_type type = event->event;
	int status = event->status;

	rdma_ack_cm_event(event);
	if (!s)
		return;
	switch (type) {
	case RDMA_CM_EVENT_ESTABLISHED:
		if (s->state == SESSION_CONNECTING) {
			s->state = SESSION_UP;
			far_report(far, s, FAR_CONNECTED, NULL);
		}
		return;
	case RDMA_CM_EVENT_DISCONNECTED: s->ended = ""; break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT: return;
	default: fail(&s->failure, -EIO, "%s, status %d", rdma_event_str(type), status); s->ended = s->failure.text;
	}
	far_end_session(far, s);
}

void far_take_cm_events(struct far *far)
{
	struct rdma_cm_event *event;

	while (!rdma_get_cm_event(far->channel, &event)) {
		if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
			take_request(far, event);
		else
			take_session_event(far, event);
	}
}

/* Without bind_address: IPv6's any address, which takes IPv4 as well, where there is IPv6. */
static int local_address(const struct far *far, union socket_address *a, bool ipv6, uint16_t port, struct failure *f)
{
	struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICHOST, .ai_socktype = SOCK_STREAM}, *list;
	int err;

	hints.ai_family = far->options.bind_address ? AF_UNSPEC : ipv6 ? AF_INET6 : AF_INET;
	err = getaddrinfo(far->options.bind_address, "0", &hints, &list);
	if (err)
		return fail(f, -EINVAL, "%s is not an address of this machine: %s", far->options.bind_address,
			    gai_strerror(err));
	*a = (union socket_address){0};
	memcpy(a, list->ai_addr, list->ai_addrlen);
	a->in4.sin_port = htons(port); /* at the same place in both */
	freeaddrinfo(list);
	return 0;
}

static int listen_by(struct far *far, enum tour_qp type, union socket_address a)
{
	static const enum rdma_port_space spaces[] = {
		[TOUR_RC] = RDMA_PS_TCP, [TOUR_UC] = RDMA_PS_IB, [TOUR_UD] = RDMA_PS_UDP};
	struct rdma_addrinfo passive = {
		.ai_flags = RAI_PASSIVE,
		.ai_family = a.any.sa_family,
		.ai_qp_type = IBV_QPT_UC,
		.ai_port_space = RDMA_PS_IB,
		.ai_src_len = sizeof(a),
		.ai_src_addr = &a.any,
	};
	struct rdma_cm_id *id = NULL;
	bool failed;

	if (type == TOUR_UC)
		failed = rdma_create_ep(&id, &passive, NULL, NULL) || rdma_migrate_id(id, far->channel);
	else
		failed = rdma_create_id(far->channel, &id, NULL, spaces[type]) || rdma_bind_addr(id, &a.any);
	failed = failed || rdma_listen(id, BACKLOG);
	far->listeners[type] = id;
	if (!failed)
		return 0;
	int err = -errno;
	if (id)
		rdma_destroy_id(id);
	far->listeners[type] = NULL;
	return err;
}

static void add_lack(struct far *far, const char *what, int err)
{
	size_t len = strlen(far->lacks);

	snprintf(far->lacks + len, sizeof(far->lacks) - len, "%s%s (%s)", len ? ", " : "", what, strerror(-err));
}

static bool all_iwarp(void)
{
	int count = 0;
	struct ibv_context **list = rdma_get_devices(&count);
	bool all = list && count;

	for (int i = 0; i < count; i++)
		all = all && device_is_iwarp(list[i]);
	if (list)
		rdma_free_devices(list);
	return all;
}

static int listen_cm(struct far *far, struct failure *f)
{
	static const char *const names[] = {"RC by rdma_cm", "UC by rdma_cm", "UD by rdma_cm"};
	union socket_address a;

	far->channel = rdma_create_event_channel();
	if (!far->channel) {
		add_lack(far, "rdma_cm", -errno);
		return 0;
	}
	fcntl(far->channel->fd, F_SETFL, fcntl(far->channel->fd, F_GETFL) | O_NONBLOCK);
	/* The kernel's rdma_cm would have an iWARP device listen for UC and UD, too, on the port that RC has. */
	for (int type = 0; type < (all_iwarp() ? TOUR_UC : TOUR_QPS); type++) {
		int err = local_address(far, &a, true, far->port, f);
		if (err)
			return err;
		err = listen_by(far, (enum tour_qp)type, a);
		if (err && err != -EADDRINUSE && !far->options.bind_address &&
		    !local_address(far, &a, false, far->port, f))
			err = listen_by(far, (enum tour_qp)type, a); /* a host without IPv6 */
		if (err == -EADDRINUSE && type == TOUR_RC)
			return fail(f, err,
				    "port %u of rdma_cm: another program listens there already; choose another "
				    "--port",
				    far->port);
		/* The kernel's rdma_cm listens without a device; that of roci0 is the device, which says why it is
		 * none. */
		if (err && type == TOUR_RC && far->options.embedded)
			return fail(f, err, "RC by rdma_cm: %s", strerror(-err));
		if (err)
			add_lack(far, names[type], err);
	}
	return 0;
}

/* ---- by socket ---- */

static int fail_tcp(struct failure *f, uint16_t port, int err)
{
	return fail(f, err, "TCP port %u: %s", port,
		    err == -EADDRINUSE ? "another program listens there already; choose another --port"
				       : strerror(-err));
}

/* If no port is given, finds a free one, and takes that below it for rdma_cm. */
static int bind_tcp(struct far *far, struct failure *f)
{
	uint16_t port = far->options.port ? tour_tcp_port(far->options.port) : 0;
	union socket_address a;
	socklen_t len = sizeof(a);
	int one = 1, err = 0;

	for (int ipv6 = 1; ipv6 >= 0; ipv6--) {
		err = local_address(far, &a, ipv6, port, f);
		if (err)
			return err;
		far->tcp = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (far->tcp < 0)
			continue;
		setsockopt(far->tcp, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		if (!bind(far->tcp, &a.any, a.any.sa_family == AF_INET6 ? sizeof(a.in6) : sizeof(a.in4)) &&
		    !getsockname(far->tcp, &a.any, &len)) {
			far->port = (uint16_t)(ntohs(a.in4.sin_port) - 1);
			return 0;
		}
		err = -errno;
		close(far->tcp);
		far->tcp = -1;
	}
	return fail_tcp(f, port, err);
}

static void send_offer(struct session *s, const struct hello_offer *offer)
{
	uint8_t bytes[HELLO_OFFER_BYTES];

	hello_put_offer(bytes, offer);
	/* a fresh socket has room for it, so this is all or an error */
	if (send(s->fd, bytes, sizeof(bytes), MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)sizeof(bytes))
		s->ended = "its socket takes no offer";
}

void far_accept(struct far *far)
{
	union socket_address a;
	socklen_t len = sizeof(a);
	int fd, one = 1;

	while ((fd = accept4(far->tcp, &a.any, &len, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
		struct session *s = far_new_session(far, TOUR_SOCKET);
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
		if (s) {
			s->fd = fd;
			s->state = SESSION_HELLO;
			print_address(s, &a.any);
		} else {
			struct session none = {.fd = fd};
			struct hello_offer offer;
			far_session_refusal(HELLO_BUSY, 0, NULL, &offer);
			send_offer(&none, &offer);
			close(fd);
		}
		len = sizeof(a);
	}
}

static void open_bare(struct far *far, struct session *s)
{
	union socket_address own;
	socklen_t len = sizeof(own);
	struct hello_offer offer;

	if (getsockname(s->fd, &own.any, &len) || device_open(far->options.device, &own.any, &s->port, &s->failure))
		far_session_refusal(HELLO_FAILED, 0, NULL, &offer);
	else
		far_session_open(s, s->port.verbs, far_caps(far, s->port.verbs), far->options.embedded, &offer);
	send_offer(s, &offer);
	report_offer(far, s, &offer);
	if (offer.status == HELLO_OK)
		s->state = SESSION_UP;
	else
		s->ended = "";
}

void far_read_socket(struct far *far, struct session *s)
{
	ssize_t n = read(s->fd, s->hello + s->hello_len, sizeof(s->hello) - s->hello_len);
	enum hello_status status;
	struct hello_offer offer;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) { /* who says nothing at all only looks whether somebody listens: `roci doctor` */
		bool silent = s->state == SESSION_UP || !s->hello_len;
		s->ended = silent ? "" : "it closed the connection before it made a request";
		return;
	}
	if (s->state != SESSION_HELLO) {
		s->ended = "it sent more than a request";
		return;
	}
	s->hello_len += (size_t)n;
	if (far->options.wants && far->options.wants(s->hello, s->hello_len)) {
		far->options.adopt(far->options.context, s->fd, s->number, s->address, s->hello, s->hello_len);
		s->fd = -1;
		far_session_close(s);
		return;
	}
	if (hello_is_incomplete(s->hello, s->hello_len))
		return;
	status = hello_get_request(s->hello, s->hello_len, &s->request);
	if (status == HELLO_OK) {
		open_bare(far, s);
		return;
	}
	far_session_refusal(status, 0, NULL, &offer);
	send_offer(s, &offer);
	report_offer(far, s, &offer);
	s->ended = "";
}

/* ---- both ---- */

/* TCP comes last: whoever finds it finds all of it. */
int far_listen(struct far *far, struct failure *f)
{
	int err = bind_tcp(far, f);

	if (!err)
		err = listen_cm(far, f);
	if (!err && listen(far->tcp, BACKLOG))
		err = fail_tcp(f, tour_tcp_port(far->port), -errno);
	return err;
}

void far_stop_listening(struct far *far)
{
	for (unsigned i = 0; i < TOUR_QPS; i++) {
		if (far->listeners[i])
			rdma_destroy_id(far->listeners[i]);
	}
	if (far->channel)
		rdma_destroy_event_channel(far->channel);
	if (far->tcp >= 0)
		close(far->tcp);
}
