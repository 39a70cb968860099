/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Results of librdmacm's functions: the errors of their manual pages; connections without queue pairs (the program
 * gives QP numbers), with private data of every length and with ECE. cm_api_process.c has the rest.
 *
 *     cm_api ADDRESS
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <rdma/rdma_verbs.h>

#include "checks.h"
#include "cm_api.h"

#define TIMEOUT_MS 20000

/* Room for private data after the IP CM header. The receiver gets all of it, also beyond the length. */
#define REQ_ROOM 56
#define REP_ROOM 196
#define REJ_ROOM 148

unsigned failures;

/* ---- errors ---- */

static void ids(void)
{
	struct rdma_event_channel *channel = new_channel();
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	FAILS(rdma_create_id(channel, &id, NULL, 0), EINVAL);
	FAILS(rdma_create_id(channel, NULL, NULL, RDMA_PS_TCP), EINVAL);
	FAILS(rdma_destroy_id(NULL), EINVAL);
	FAILS(rdma_get_cm_event(channel, NULL), EINVAL);
	FAILS(rdma_ack_cm_event(NULL), EINVAL);
	MUST(fcntl(channel->fd, F_SETFL, O_NONBLOCK));
	FAILS(rdma_get_cm_event(channel, &event), EAGAIN);
	rdma_destroy_event_channel(channel);
}

/* Calls in the wrong state, or on an id of the wrong kind. */
static void states(void)
{
	struct rdma_event_channel *channel = new_channel();
	struct rdma_cm_id *id = new_id(channel, RDMA_PS_TCP);
	struct rdma_conn_param param = {.qp_num = 77};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
	struct ibv_ece ece = {.vendor_id = 1};
	int mask;

	FAILS(rdma_resolve_route(id, RESOLVE_MS), EINVAL);
	FAILS(rdma_connect(id, &param), EINVAL);
	FAILS(rdma_accept(id, &param), EINVAL);
	FAILS(rdma_reject(id, NULL, 0), EINVAL);
	FAILS(rdma_disconnect(id), EINVAL);
	FAILS(rdma_establish(id), EINVAL);
	FAILS(rdma_notify(id, IBV_EVENT_COMM_EST), EINVAL);
	FAILS(rdma_init_qp_attr(id, &attr, &mask), EINVAL);
	FAILS(rdma_resolve_addr(id, NULL, NULL, RESOLVE_MS), EINVAL);
	FAILS(rdma_resolve_addr(id, NULL, &(struct sockaddr){.sa_family = AF_UNIX}, RESOLVE_MS), EAFNOSUPPORT);
	FAILS(rdma_join_multicast(id, address, NULL), EINVAL);
	FAILS(rdma_leave_multicast(id, address), EADDRNOTAVAIL);
	FAILS(rdma_set_local_ece(id, NULL), EINVAL);
	FAILS(rdma_set_local_ece(id, &(struct ibv_ece){0}), EINVAL);
	FAILS(rdma_set_local_ece(id, &(struct ibv_ece){.vendor_id = 1, .comp_mask = 1}), EINVAL);
	FAILS(rdma_set_local_ece(id, &(struct ibv_ece){.vendor_id = 1 << 24}), EINVAL);
	FAILS(rdma_get_remote_ece(id, NULL), EINVAL);
	CHECK(rdma_get_remote_ece(id, &ece) == 0 && ece.vendor_id == 0);
	MUST(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}

static void ports(void)
{
	struct rdma_event_channel *channel = new_channel();
	struct rdma_cm_id *first = new_id(channel, RDMA_PS_TCP), *second = new_id(channel, RDMA_PS_TCP),
			  *datagram = new_id(channel, RDMA_PS_UDP);
	struct sockaddr_in foreign = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr("192.0.2.1")};

	set_port(0);
	FAILS(rdma_bind_addr(first, NULL), EINVAL);
	FAILS(rdma_bind_addr(first, (struct sockaddr *)&foreign), EADDRNOTAVAIL);
	CHECK(rdma_bind_addr(first, address) == 0 && rdma_get_src_port(first) != 0);
	FAILS(rdma_bind_addr(first, address), EINVAL);
	set_port(ntohs(rdma_get_src_port(first)));
	FAILS(rdma_bind_addr(second, address), EADDRINUSE);
	CHECK(rdma_bind_addr(datagram, address) == 0); /* another port space */
	CHECK(rdma_listen(first, 1) == 0);
	FAILS(rdma_listen(first, 1), EINVAL);
	FAILS(rdma_resolve_addr(first, NULL, address, RESOLVE_MS), EINVAL);
	MUST(rdma_destroy_id(first));
	CHECK(rdma_bind_addr(second, address) == 0); /* it is free again */
	MUST(rdma_destroy_id(second));
	MUST(rdma_destroy_id(datagram));
	rdma_destroy_event_channel(channel);
}

static void options(void)
{
	struct rdma_event_channel *channel = new_channel();
	struct rdma_cm_id *id = new_id(channel, RDMA_PS_TCP);
	uint8_t tos = 32, timeout = 32;
	int on = 1;

	FAILS(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, NULL, 1), EINVAL);
	FAILS(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, 4), EINVAL);
	FAILS(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1), EINVAL);
	FAILS(rdma_set_option(id, RDMA_OPTION_ID, 77, &on, sizeof(on)), ENOSYS);
	FAILS(rdma_set_option(id, 77, RDMA_OPTION_ID_TOS, &tos, 1), ENOSYS);
	CHECK(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, 1) == 0);
	CHECK(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof(on)) == 0);
	MUST(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}

/* A QP in a group is busy, as in the kernel. rdma_destroy_qp() takes it out. */
static void groups(void)
{
	struct sockaddr *group = a_group();
	struct rdma_cm_id *id = new_id(NULL, RDMA_PS_UDP);
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_UD, .cap = {1, 1, 1, 1, 0}};

	set_port(0);
	MUST(rdma_bind_addr(id, address));
	struct ibv_pd *pd = ibv_alloc_pd(id->verbs);
	MUST(!pd);
	MUST(rdma_create_qp(id, pd, &attr));
	MUST(rdma_join_multicast(id, group, NULL));
	CHECK(ibv_destroy_qp(id->qp) == EBUSY);
	CHECK(rdma_leave_multicast(id, group) == 0);
	MUST(rdma_join_multicast(id, group, NULL));
	rdma_destroy_qp(id);
	CHECK(ibv_dealloc_pd(pd) == 0); /* the QP is gone */
	CHECK(rdma_leave_multicast(id, group) == 0);
	MUST(rdma_destroy_id(id));
}

/* ---- connections ---- */

/* Checks that `room` bytes arrived: the first `len` as they were sent, the others zero. */
static int arrived(const struct rdma_cm_event *event, const char *data, size_t len, size_t room)
{
	const struct rdma_conn_param *param = &event->param.conn;
	char whole[256] = {0};

	memcpy(whole, data, len);
	return param->private_data_len == room && !memcmp(param->private_data, whole, room);
}

static void accepted(void)
{
	static const char data[256] = "private";
	struct ibv_ece ece = {.vendor_id = 0x123456, .options = 0x789abcde};
	struct rdma_conn_param param = {.qp_num = 5000, .private_data = data, .private_data_len = REQ_ROOM + 1};
	struct rdma_cm_event *event;
	struct rdma_cm_id *other;
	struct sides s;

	begin(&s);
	FAILS(rdma_connect(s.client, &param), EINVAL);
	param.private_data_len = REQ_ROOM;
	/* as in a structure that was not initialised */
	param.private_data = NULL;
	FAILS(rdma_connect(s.client, &param), EINVAL);
	param.private_data = (void *)0x4242;
	FAILS(rdma_connect(s.client, &param), EINVAL);
	param.private_data = data;
	CHECK(rdma_set_local_ece(s.client, &ece) == 0);
	MUST(rdma_connect(s.client, &param));
	FAILS(rdma_connect(s.client, &param), EINVAL);

	take_request(&s);
	CHECK(s.request->param.conn.qp_num == 5000);
	CHECK(arrived(s.request, data, REQ_ROOM, REQ_ROOM));
	memset(&ece, 0, sizeof(ece));
	CHECK(rdma_get_remote_ece(s.server, &ece) == 0 && ece.vendor_id == 0x123456 && ece.options == 0x789abcde);
	ece.options = 7;
	CHECK(rdma_set_local_ece(s.server, &ece) == 0);
	rdma_ack_cm_event(s.request);
	param.qp_num = 6000;
	param.private_data_len = REP_ROOM + 1;
	FAILS(rdma_accept(s.server, &param), EINVAL);
	param.private_data_len = 7;
	param.private_data = (void *)0x4242;
	FAILS(rdma_accept(s.server, &param), EINVAL);
	param.private_data = data;
	MUST(rdma_accept(s.server, &param));
	FAILS(rdma_accept(s.server, &param), EINVAL);

	event = next(s.client_channel, RDMA_CM_EVENT_CONNECT_RESPONSE);
	CHECK(event->param.conn.qp_num == 6000);
	CHECK(arrived(event, data, 7, REP_ROOM));
	rdma_ack_cm_event(event);
	CHECK(rdma_get_remote_ece(s.client, &ece) == 0 && ece.vendor_id == 0x123456 && ece.options == 7);
	MUST(rdma_establish(s.client));
	pass(s.server_channel, RDMA_CM_EVENT_ESTABLISHED);
	CHECK(rdma_disconnect(s.server) == 0);
	pass(s.client_channel, RDMA_CM_EVENT_DISCONNECTED);
	/* The answer may wait while there is another event to take; but not for the program to take it. */
	other = new_id(s.client_channel, RDMA_PS_TCP);
	MUST(rdma_resolve_addr(other, NULL, address, RESOLVE_MS));
	CHECK(rdma_disconnect(s.client) == 0);
	event = next(s.server_channel, RDMA_CM_EVENT_DISCONNECTED);
	CHECK(event->status == 0);
	rdma_ack_cm_event(event);
	MUST(rdma_destroy_id(other));
	CHECK(rdma_disconnect(s.client) == 0); /* no error, although the other side has disconnected already */
	end(&s);
}

/* reason: the expected status of the event. */
static void rejected(int (*reject)(struct rdma_cm_id *id, const void *data, uint8_t len), int reason)
{
	static const char data[256] = "no";
	struct rdma_conn_param param = {.qp_num = 5001};
	struct rdma_cm_event *event;
	struct sides s;

	begin(&s);
	MUST(rdma_connect(s.client, &param));
	take_request(&s);
	rdma_ack_cm_event(s.request);
	FAILS(reject(s.server, data, REJ_ROOM + 1), EINVAL);
	CHECK(reject(s.server, data, 2) == 0);
	FAILS(reject(s.server, data, 2), EINVAL);
	FAILS(rdma_accept(s.server, &param), EINVAL);
	event = next(s.client_channel, RDMA_CM_EVENT_REJECTED);
	CHECK(event->status == reason);
	CHECK(arrived(event, data, 2, REJ_ROOM));
	rdma_ack_cm_event(event);
	end(&s);
}

/* The events of an id move with it to another channel. */
static void migrated(void)
{
	struct rdma_conn_param param = {.qp_num = 5002};
	struct rdma_event_channel *other = new_channel();
	struct sides s;

	begin(&s);
	MUST(rdma_connect(s.client, &param));
	take_request(&s);
	rdma_ack_cm_event(s.request);
	MUST(rdma_reject(s.server, NULL, 0));
	MUST(poll(&(struct pollfd){.fd = s.client_channel->fd, .events = POLLIN}, 1, TIMEOUT_MS) != 1);
	CHECK(rdma_migrate_id(s.client, other) == 0 && s.client->channel == other);
	CHECK(poll(&(struct pollfd){.fd = s.client_channel->fd, .events = POLLIN}, 1, 0) == 0);
	pass(other, RDMA_CM_EVENT_REJECTED);
	end(&s);
	rdma_destroy_event_channel(other);
}

static int edge(int epoll_fd)
{
	struct epoll_event event;

	return epoll_wait(epoll_fd, &event, 1, TIMEOUT_MS) == 1;
}

/* A client that asks for a connection. Its own events have an edge each. */
static struct rdma_cm_id *ask(struct rdma_event_channel *channel, int epoll_fd)
{
	struct rdma_conn_param param = {.qp_num = 5003};
	struct rdma_cm_id *id = new_id(channel, RDMA_PS_TCP);

	MUST(rdma_resolve_addr(id, NULL, address, RESOLVE_MS));
	CHECK(edge(epoll_fd));
	MUST(rdma_resolve_route(id, RESOLVE_MS));
	CHECK(edge(epoll_fd));
	MUST(rdma_connect(id, &param));
	return id;
}

/* A program may wait for edges, and take its events later, or one for an edge: each event has one that is no older. */
static void edges(void)
{
	struct rdma_event_channel *channel = new_channel(), *server_channel = new_channel();
	struct rdma_cm_id *listener = new_id(server_channel, RDMA_PS_TCP), *ids[2];
	struct epoll_event on_edge = {.events = EPOLLIN | EPOLLET};
	int epoll_fd = epoll_create1(0);

	MUST(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, channel->fd, &on_edge));
	set_port(PORT);
	MUST(rdma_bind_addr(listener, address));
	MUST(rdma_listen(listener, 1));
	for (int i = 0; i < 2; i++) {
		struct rdma_cm_event *request;
		struct rdma_cm_id *asked;

		ids[i] = ask(channel, epoll_fd);
		request = next(server_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
		asked = request->id;
		rdma_ack_cm_event(request);
		MUST(rdma_reject(asked, NULL, 0));
		CHECK(edge(epoll_fd));
		MUST(rdma_destroy_id(asked));
	}
	for (int i = 0; i < 2; i++) {
		pass(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
		pass(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
		pass(channel, RDMA_CM_EVENT_REJECTED);
	}
	CHECK(poll(&(struct pollfd){.fd = channel->fd, .events = POLLIN}, 1, 0) == 0);
	for (int i = 0; i < 2; i++)
		MUST(rdma_destroy_id(ids[i]));
	MUST(rdma_destroy_id(listener));
	rdma_destroy_event_channel(channel);
	rdma_destroy_event_channel(server_channel);
	close(epoll_fd);
}

/* Asks for a connection. Each has a QP of its own: else it would end the one before. */
static struct rdma_cm_id *dial(struct rdma_event_channel *channel)
{
	static uint32_t qpn = 5100;
	struct rdma_conn_param param = {.qp_num = qpn++};
	struct rdma_cm_id *id = new_id(channel, RDMA_PS_TCP);

	MUST(rdma_resolve_addr(id, NULL, address, RESOLVE_MS));
	pass(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	MUST(rdma_resolve_route(id, RESOLVE_MS));
	pass(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	MUST(rdma_connect(id, &param));
	return id;
}

/* Fetches a request. Returns its id. */
static struct rdma_cm_id *fetch(struct rdma_event_channel *channel)
{
	struct rdma_cm_event *request = next(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	struct rdma_cm_id *id = request->id;

	rdma_ack_cm_event(request);
	return id;
}

/* A program that answers each request before it looks for the next event gets those that came meanwhile at once: what
 * came behind them is behind them. */
static void in_turn(void)
{
	struct rdma_event_channel *channel = new_channel(), *server_channel = new_channel();
	struct rdma_cm_id *listener = new_id(server_channel, RDMA_PS_TCP), *ids[6];
	struct rdma_conn_param param = {.qp_num = 6004};

	set_port(PORT);
	MUST(rdma_bind_addr(listener, address));
	MUST(rdma_listen(listener, 16));
	ids[0] = dial(channel);
	ids[1] = fetch(server_channel);
	MUST(rdma_accept(ids[1], &param));
	pass(channel, RDMA_CM_EVENT_CONNECT_RESPONSE);
	MUST(rdma_establish(ids[0]));
	pass(server_channel, RDMA_CM_EVENT_ESTABLISHED);
	for (int i = 0; i < 8; i++) {
		ids[2] = dial(channel);
		ids[3] = fetch(server_channel);
		MUST(rdma_reject(ids[3], NULL, 0));
		pass(channel, RDMA_CM_EVENT_REJECTED);
		MUST(rdma_destroy_id(ids[2]));
		MUST(rdma_destroy_id(ids[3]));
	}
	ids[2] = dial(channel);
	ids[3] = dial(channel);
	MUST(rdma_disconnect(ids[0]));
	ids[4] = fetch(server_channel);
	ids[5] = fetch(server_channel);
	pass(server_channel, RDMA_CM_EVENT_DISCONNECTED);
	for (int i = 0; i < 6; i++)
		MUST(rdma_destroy_id(ids[i]));
	MUST(rdma_destroy_id(listener));
	rdma_destroy_event_channel(channel);
	rdma_destroy_event_channel(server_channel);
}

/* ---- rdma_getaddrinfo(), rdma_create_ep() ---- */

/* The family of the hints counts, with and without RAI_FAMILY. */
static void families(void)
{
	static const int all[] = {AF_INET, AF_INET6};

	for (int i = 0; i < 4; i++) {
		struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE | (i < 2 ? 0 : RAI_FAMILY),
					      .ai_family = all[i % 2],
					      .ai_port_space = RDMA_PS_TCP},
				     *res = NULL;
		CHECK(rdma_getaddrinfo(NULL, "7471", &hints, &res) == 0);
		for (struct rdma_addrinfo *r = res; r; r = r->ai_next) {
			CHECK(r->ai_family == hints.ai_family && r->ai_src_addr->sa_family == hints.ai_family);
			if (r->ai_src_addr->sa_family == AF_INET6)
				CHECK(IN6_IS_ADDR_UNSPECIFIED(&((struct sockaddr_in6 *)r->ai_src_addr)->sin6_addr));
		}
		CHECK(res);
		rdma_freeaddrinfo(res);
		/* An address of the other family. */
		hints.ai_flags = RAI_NUMERICHOST;
		CHECK(rdma_getaddrinfo(hints.ai_family == AF_INET ? "::1" : "127.0.0.1", "7471", &hints, &res) != 0);
	}
}

/* Without a PD, an endpoint that listens keeps the PD of the device that its address belongs to. */
static void endpoint_pd(void)
{
	set_port(0);
	struct rdma_addrinfo info = {
		.ai_flags = RAI_PASSIVE,
		.ai_port_space = RDMA_PS_TCP,
		.ai_qp_type = IBV_QPT_RC,
		.ai_src_addr = address,
		.ai_src_len = sizeof(struct sockaddr_storage),
	};
	struct ibv_qp_init_attr attr = {.cap = {1, 1, 1, 1, 0}};
	struct rdma_cm_id *id;

	MUST(rdma_create_ep(&id, &info, NULL, &attr));
	CHECK(id->verbs && id->pd && id->pd->context == id->verbs);
	if (id->pd) {
		struct ibv_mr *mr = rdma_reg_msgs(id, &attr, sizeof(attr));
		CHECK(mr && !rdma_dereg_mr(mr));
	}
	rdma_destroy_ep(id);
}

int main(int argc, char **argv)
{
	if (argc == 2 && inet_pton(AF_INET, argv[1], &((struct sockaddr_in *)address)->sin_addr) == 1)
		address->sa_family = AF_INET;
	else if (argc == 2 && inet_pton(AF_INET6, argv[1], &((struct sockaddr_in6 *)address)->sin6_addr) == 1)
		address->sa_family = AF_INET6;
	else
		return 2;
	cancelled();
	ids();
	states();
	ports();
	options();
	groups();
	accepted();
	rejected(rdma_reject, 28);     /* consumer defined */
	rejected(rdma_reject_ece, 35); /* vendor option not supported */
	migrated();
	edges();
	in_turn();
	families();
	endpoint_pd();
	interrupted();
	forked();
	printf("%u failures\n", failures);
	return failures != 0;
}
