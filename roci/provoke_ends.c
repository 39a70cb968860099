/* SPDX-License-Identifier: BSD-2-Clause */
#include "provoke_ends.h"

#include <poll.h>
#include <stdio.h>

#include "provoke.h"

int ends_next(const char *who, struct rdma_event_channel *channel, int *status, struct rdma_cm_id **id)
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

bool ends_expect(const char *who, struct rdma_event_channel *channel, int type, struct rdma_cm_id **id)
{
	int status;

	return ends_next(who, channel, &status, id) == type;
}

bool ends_requested(struct ends *e)
{
	return ends_expect("server", e->server_events, RDMA_CM_EVENT_CONNECT_REQUEST, &e->server);
}

bool ends_open_client(struct ends *e)
{
	e->client_events = rdma_create_event_channel();
	return e->client_events && !rdma_create_id(e->client_events, &e->client, NULL, RDMA_PS_TCP);
}

bool ends_open(struct ends *e)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	e->server_events = rdma_create_event_channel();
	if (!e->server_events || rdma_create_id(e->server_events, &e->listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(e->listener, (struct sockaddr *)&any) || rdma_listen(e->listener, 1))
		return false;
	e->address = any;
	e->address.sin_port = rdma_get_src_port(e->listener);
	return ends_open_client(e);
}

bool ends_resolve(struct ends *e)
{
	return !rdma_resolve_addr(e->client, NULL, (struct sockaddr *)&e->address, 2000) &&
	       ends_expect("client", e->client_events, RDMA_CM_EVENT_ADDR_RESOLVED, NULL) &&
	       !rdma_resolve_route(e->client, 2000) &&
	       ends_expect("client", e->client_events, RDMA_CM_EVENT_ROUTE_RESOLVED, NULL);
}

static int make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
	};

	return rdma_create_qp(id, NULL, &init);
}

int ends_connect(struct ends *e)
{
	struct rdma_conn_param param = {.retry_count = 7};

	return !ends_resolve(e) || make_qp(e->client) ? -1 : rdma_connect(e->client, &param);
}

bool ends_accept(struct ends *e)
{
	struct rdma_conn_param param = {.retry_count = 7};

	return !make_qp(e->server) && !rdma_accept(e->server, &param);
}

bool ends_establish(struct ends *e)
{
	return !ends_connect(e) && ends_requested(e) && ends_accept(e) &&
	       ends_expect("client", e->client_events, RDMA_CM_EVENT_ESTABLISHED, NULL) &&
	       ends_expect("server", e->server_events, RDMA_CM_EVENT_ESTABLISHED, NULL);
}

static void destroy(struct rdma_cm_id *id)
{
	if (id && id->qp)
		rdma_destroy_qp(id);
	if (id)
		rdma_destroy_id(id);
}

void ends_close(struct ends *e)
{
	destroy(e->client);
	destroy(e->server);
	destroy(e->listener);
	if (e->client_events)
		rdma_destroy_event_channel(e->client_events);
	if (e->server_events)
		rdma_destroy_event_channel(e->server_events);
}
