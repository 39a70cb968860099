/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections of rdma_cm that fail or end: client and server are in this process. */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include <rdma/rdma_cma.h>

#include "provoke.h"

/* The two ends: one channel each. */
struct ends {
	struct rdma_event_channel *client_events, *server_events;
	struct rdma_cm_id *client, *listener, *server;
	struct sockaddr_in address;
};

/* Takes the next event of a channel, and tells it. Returns its type, or -1; *status and *id are its. */
static int next_event(const char *who, struct rdma_event_channel *channel, int *status, struct rdma_cm_id **id)
{
	struct pollfd fd = {.fd = channel->fd, .events = POLLIN};
	struct rdma_cm_event *event;
	int type;

	if (poll(&fd, 1, PROVOKE_WAIT_MS) != 1 || rdma_get_cm_event(channel, &event))
		return -1;
	type = (int)event->event;
	*status = event->status;
	if (id)
		*id = event->id;
	printf("  %s: %s, status %d\n", who, rdma_event_str(event->event), event->status);
	rdma_ack_cm_event(event);
	return type;
}

static bool expect(const char *who, struct rdma_event_channel *channel, int type, struct rdma_cm_id **id)
{
	int status;

	return next_event(who, channel, &status, id) == type;
}

static bool listens(struct ends *e)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	e->server_events = rdma_create_event_channel();
	e->client_events = rdma_create_event_channel();
	if (!e->server_events || !e->client_events ||
	    rdma_create_id(e->server_events, &e->listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(e->listener, (struct sockaddr *)&any) || rdma_listen(e->listener, 1))
		return false;
	e->address = any;
	e->address.sin_port = rdma_get_src_port(e->listener);
	return !rdma_create_id(e->client_events, &e->client, NULL, RDMA_PS_TCP);
}

static int connect_client(struct ends *e)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct rdma_conn_param param = {.retry_count = 7};

	if (rdma_resolve_addr(e->client, NULL, (struct sockaddr *)&e->address, 2000) ||
	    !expect("client", e->client_events, RDMA_CM_EVENT_ADDR_RESOLVED, NULL) ||
	    rdma_resolve_route(e->client, 2000) ||
	    !expect("client", e->client_events, RDMA_CM_EVENT_ROUTE_RESOLVED, NULL) ||
	    rdma_create_qp(e->client, NULL, &init))
		return -1;
	return rdma_connect(e->client, &param);
}

static void close_ends(struct ends *e)
{
	if (e->client && e->client->qp)
		rdma_destroy_qp(e->client);
	if (e->client)
		rdma_destroy_id(e->client);
	if (e->server && e->server->qp)
		rdma_destroy_qp(e->server);
	if (e->server)
		rdma_destroy_id(e->server);
	if (e->listener)
		rdma_destroy_id(e->listener);
	if (e->client_events)
		rdma_destroy_event_channel(e->client_events);
	if (e->server_events)
		rdma_destroy_event_channel(e->server_events);
}

/* The server rejects the request. True if the client sees the reason. */
static bool rejected_by(struct ends *e, int (*reject)(struct rdma_cm_id *, const void *, uint8_t), int reason)
{
	int status;

	if (connect_client(e) || !expect("server", e->server_events, RDMA_CM_EVENT_CONNECT_REQUEST, &e->server) ||
	    reject(e->server, NULL, 0))
		return false;
	return next_event("client", e->client_events, &status, NULL) == RDMA_CM_EVENT_REJECTED && status == reason;
}

static bool rejected(struct ends *e)
{
	return rejected_by(e, rdma_reject, 28);
}

static bool rejected_ece(struct ends *e)
{
	return rejected_by(e, rdma_reject_ece, 35);
}

static bool disconnected(struct ends *e)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct rdma_conn_param param = {.retry_count = 7};

	return !connect_client(e) && expect("server", e->server_events, RDMA_CM_EVENT_CONNECT_REQUEST, &e->server) &&
	       !rdma_create_qp(e->server, NULL, &init) && !rdma_accept(e->server, &param) &&
	       expect("client", e->client_events, RDMA_CM_EVENT_ESTABLISHED, NULL) &&
	       expect("server", e->server_events, RDMA_CM_EVENT_ESTABLISHED, NULL) && !rdma_disconnect(e->server) &&
	       expect("client", e->client_events, RDMA_CM_EVENT_DISCONNECTED, NULL);
}

static bool refused(const char *call, int result, int want)
{
	int err = result ? errno : 0;

	printf("  %s answers %d, %s (%s)\n", call, err, strerrorname_np(err), strerror(err));
	return err == want;
}

/* 192.0.2.0/24 is for documents: no host has an address of it. */
static bool bind_foreign(struct ends *e)
{
	struct sockaddr_in foreign = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xc0000201)};

	return refused("rdma_bind_addr()", rdma_bind_addr(e->client, (struct sockaddr *)&foreign), EADDRNOTAVAIL);
}

static bool bind_twice(struct ends *e)
{
	return refused("rdma_bind_addr()", rdma_bind_addr(e->client, (struct sockaddr *)&e->address), EADDRINUSE);
}

static bool connect_early(struct ends *e)
{
	struct rdma_conn_param param = {.retry_count = 7};

	return refused("rdma_connect()", rdma_connect(e->client, &param), EINVAL);
}

static bool qp_early(struct ends *e)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC};

	return refused("rdma_create_qp()", rdma_create_qp(e->client, NULL, &init), EINVAL);
}

static const struct {
	const char *name, *story;
	bool (*run)(struct ends *e);
} cases[] = {
	{"IB_CM_REJ_CONSUMER_DEFINED", "The server calls rdma_reject().", rejected},
	{"IB_CM_REJ_VENDOR_OPTION_NOT_SUPPORTED", "The server calls rdma_reject_ece().", rejected_ece},
	{"RDMA_CM_EVENT_DISCONNECTED", "The server accepts, and calls rdma_disconnect().", disconnected},
	{"rdma_bind_addr: EADDRNOTAVAIL", "An id is bound to 192.0.2.1, which no host has.", bind_foreign},
	{"rdma_bind_addr: EADDRINUSE", "A second id is bound to the address and port of a listener.", bind_twice},
	{"rdma_create_qp: EINVAL", "rdma_create_qp() is called before rdma_resolve_addr().", qp_early},
	{"rdma_connect: EINVAL", "rdma_connect() is called before rdma_resolve_addr().", connect_early},
};

bool provoke_cm(struct provoke *p, const struct explanation *row, bool *known)
{
	*known = false;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ends e = {NULL};
		bool came;

		if (strcmp(cases[i].name, row->name))
			continue;
		*known = true;
		if (!p)
			return false;
		puts(cases[i].story);
		came = listens(&e) && cases[i].run(&e);
		close_ends(&e);
		return came;
	}
	return false;
}
