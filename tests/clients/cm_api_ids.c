/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm_api.h"

#include <arpa/inet.h>
#include <poll.h>

#include "checks.h"

#define TIMEOUT_MS 20000

static struct sockaddr_storage storage;
struct sockaddr *const address = (struct sockaddr *)&storage;

void set_port(unsigned port)
{
	if (address->sa_family == AF_INET)
		((struct sockaddr_in *)address)->sin_port = htons((uint16_t)port);
	else
		((struct sockaddr_in6 *)address)->sin6_port = htons((uint16_t)port);
}

struct rdma_event_channel *new_channel(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();

	MUST(!channel);
	return channel;
}

struct rdma_cm_id *new_id(struct rdma_event_channel *channel, enum rdma_port_space space)
{
	struct rdma_cm_id *id;

	MUST(rdma_create_id(channel, &id, NULL, space));
	return id;
}

struct rdma_cm_event *next(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct pollfd ready = {.fd = channel->fd, .events = POLLIN};
	struct rdma_cm_event *event;

	MUST(poll(&ready, 1, TIMEOUT_MS) != 1);
	MUST(rdma_get_cm_event(channel, &event));
	if (event->event != type) {
		printf("event %s, expected %s\n", rdma_event_str(event->event), rdma_event_str(type));
		exit(1);
	}
	return event;
}

void pass(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	rdma_ack_cm_event(next(channel, type));
}

struct sockaddr *a_group(void)
{
	static struct sockaddr_in group4 = {.sin_family = AF_INET};
	static struct sockaddr_in6 group6 = {.sin6_family = AF_INET6};

	MUST(inet_pton(AF_INET, "239.1.2.3", &group4.sin_addr) != 1);
	MUST(inet_pton(AF_INET6, "ff15::1:2:3", &group6.sin6_addr) != 1);
	return address->sa_family == AF_INET ? (struct sockaddr *)&group4 : (struct sockaddr *)&group6;
}

void begin(struct sides *s)
{
	s->client_channel = new_channel();
	s->server_channel = new_channel();
	s->listener = new_id(s->server_channel, RDMA_PS_TCP);
	s->client = new_id(s->client_channel, RDMA_PS_TCP);
	set_port(PORT);
	MUST(rdma_bind_addr(s->listener, address));
	MUST(rdma_listen(s->listener, 1));
	MUST(rdma_resolve_addr(s->client, NULL, address, RESOLVE_MS));
	pass(s->client_channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	MUST(rdma_resolve_route(s->client, RESOLVE_MS));
	pass(s->client_channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

void take_request(struct sides *s)
{
	s->request = next(s->server_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	s->server = s->request->id;
	CHECK(s->request->listen_id == s->listener);
}

void end(struct sides *s)
{
	MUST(rdma_destroy_id(s->client));
	MUST(rdma_destroy_id(s->server));
	MUST(rdma_destroy_id(s->listener));
	rdma_destroy_event_channel(s->client_channel);
	rdma_destroy_event_channel(s->server_channel);
}
