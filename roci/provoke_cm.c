/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections of rdma_cm that are made, fail or end: client and server are in this process. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "provoke.h"
#include "provoke_ends.h"
#include "wire/packet.h"

/* ---- rejections ---- */

/* True if the client's next event is a rejection for this reason. */
static bool sees_reject(struct ends *e, int reason)
{
	int status;

	return ends_next("client", e->client_events, &status, NULL) == RDMA_CM_EVENT_REJECTED && status == reason;
}

static bool rejected(struct ends *e)
{
	return !ends_connect(e) && ends_requested(e) && !rdma_reject(e->server, NULL, 0) && sees_reject(e, 28);
}

static bool rejected_ece(struct ends *e)
{
	return !ends_connect(e) && ends_requested(e) && !rdma_reject_ece(e->server, NULL, 0) && sees_reject(e, 35);
}

static bool nobody_listens(struct ends *e)
{
	rdma_destroy_id(e->listener);
	e->listener = NULL;
	return !ends_connect(e) && sees_reject(e, 8);
}

/* Another client's request fills the backlog of 1. */
static bool backlog_full(struct ends *e)
{
	struct ends other = {.client_events = e->client_events, .address = e->address};
	bool came = !rdma_create_id(e->client_events, &other.client, NULL, RDMA_PS_TCP) && !ends_connect(&other) &&
		    !ends_connect(e) && sees_reject(e, 3);

	other.client_events = NULL;
	ends_close(&other);
	return came;
}

/* ---- events ---- */

static bool resolved(struct ends *e)
{
	return ends_resolve(e);
}

static bool requested(struct ends *e)
{
	return !ends_connect(e) && ends_requested(e);
}

static bool established(struct ends *e)
{
	return ends_establish(e);
}

static bool disconnected(struct ends *e)
{
	return ends_establish(e) && !rdma_disconnect(e->server) &&
	       ends_expect("client", e->client_events, RDMA_CM_EVENT_DISCONNECTED, NULL);
}

/* TimeWait begins when both sides have heard of the end. */
static bool timewait(struct ends *e)
{
	return disconnected(e) && !rdma_disconnect(e->client) &&
	       ends_expect("client", e->client_events, RDMA_CM_EVENT_TIMEWAIT_EXIT, NULL);
}

/* The client brings a queue pair of its own: here only its number, since no packet follows. */
static bool response(struct ends *e)
{
	struct rdma_conn_param param = {.retry_count = 7, .qp_num = 0x123};

	return ends_resolve(e) && !rdma_connect(e->client, &param) && ends_requested(e) && ends_accept(e) &&
	       ends_expect("client", e->client_events, RDMA_CM_EVENT_CONNECT_RESPONSE, NULL);
}

static bool connect_error(struct ends *e)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	return !ends_connect(e) && ends_requested(e) && !ibv_modify_qp(e->client->qp, &attr, IBV_QP_STATE) &&
	       ends_accept(e) && ends_expect("client", e->client_events, RDMA_CM_EVENT_CONNECT_ERROR, NULL);
}

/* An address of this host where no socket has the port: the kernel answers by ICMP. */
static bool unreachable(struct ends *e)
{
	e->address.sin_addr.s_addr = htonl(0x7f000003);
	return !ends_connect(e) && ends_expect("client", e->client_events, RDMA_CM_EVENT_UNREACHABLE, NULL);
}

/* A socket of our own takes the port, before the device does: answers could not arrive. */
static bool address_error(struct ends *e)
{
	struct sockaddr_in port = {
		.sin_family = AF_INET, .sin_port = htons(ROCI_UDP_PORT), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool came = false;

	e->address = port;
	e->address.sin_addr.s_addr = htonl(0x7f000003);
	if (fd < 0 || bind(fd, (struct sockaddr *)&port, sizeof(port)))
		printf("  the port cannot be taken: %s. Does another process use RDMA?\n", strerror(errno));
	else
		came = ends_open_client(e) &&
		       !rdma_resolve_addr(e->client, NULL, (struct sockaddr *)&e->address, 2000) &&
		       ends_expect("client", e->client_events, RDMA_CM_EVENT_ADDR_ERROR, NULL);
	if (fd >= 0)
		close(fd);
	return came;
}

/* Joins groups of 239.255.0.0/16 until one is refused; `most` is more than any device has room for. */
static bool join_until(struct ends *e, int type, unsigned most)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_UD, .cap = {.max_send_wr = 1, .max_recv_wr = 1}};
	struct rdma_cm_id *id;
	int seen = -1, status = 0;

	if (rdma_create_id(e->client_events, &id, NULL, RDMA_PS_UDP))
		return false;
	if (!rdma_resolve_addr(id, NULL, (struct sockaddr *)&e->address, 2000) &&
	    ends_expect("client", e->client_events, RDMA_CM_EVENT_ADDR_RESOLVED, NULL) &&
	    !rdma_create_qp(id, NULL, &init)) {
		for (unsigned i = 1; seen != type && i <= most; i++) {
			struct sockaddr_in group = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xefff0000 + i)};
			struct rdma_cm_event *event;

			if (rdma_join_multicast(id, (struct sockaddr *)&group, NULL) ||
			    rdma_get_cm_event(e->client_events, &event))
				break;
			seen = (int)event->event;
			status = event->status;
			if (seen == type)
				printf("  client: %s, status %d, for group %u\n", rdma_event_str(event->event), status,
				       i);
			rdma_ack_cm_event(event);
		}
	}
	if (id->qp)
		rdma_destroy_qp(id);
	rdma_destroy_id(id);
	return seen == type;
}

static bool joined(struct ends *e)
{
	return join_until(e, RDMA_CM_EVENT_MULTICAST_JOIN, 1);
}

static bool join_error(struct ends *e)
{
	return join_until(e, RDMA_CM_EVENT_MULTICAST_ERROR, 5000);
}

/* ---- calls that are refused ---- */

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
	{"IB_CM_REJ_NO_RESOURCES",
	 "The server listens with a backlog of 1, and does not call rdma_get_cm_event(). A first client fills the "
	 "backlog, and\na second one waits for its turn in vain.",
	 backlog_full},
	{"IB_CM_REJ_INVALID_SERVICE_ID", "The client connects to a port where the server listens no more.",
	 nobody_listens},
	{"IB_CM_REJ_CONSUMER_DEFINED", "The server calls rdma_reject().", rejected},
	{"IB_CM_REJ_VENDOR_OPTION_NOT_SUPPORTED", "The server calls rdma_reject_ece().", rejected_ece},
	{"RDMA_CM_EVENT_ADDR_RESOLVED", "The client resolves the server's address and route.", resolved},
	{"RDMA_CM_EVENT_ADDR_ERROR",
	 "A socket that is not RDMA's has UDP port 4791 of 127.0.0.1, and the client asks for 127.0.0.3.",
	 address_error},
	{"RDMA_CM_EVENT_ROUTE_RESOLVED", "The client resolves the server's address and route.", resolved},
	{"RDMA_CM_EVENT_CONNECT_REQUEST", "The client connects.", requested},
	{"RDMA_CM_EVENT_CONNECT_RESPONSE",
	 "The client connects without a queue pair of rdma_create_qp(), and the server accepts.", response},
	{"RDMA_CM_EVENT_CONNECT_ERROR",
	 "The client moves its queue pair to ERR while it connects, and the server accepts.", connect_error},
	{"RDMA_CM_EVENT_UNREACHABLE", "The client connects to 127.0.0.3, where nobody has UDP port 4791.", unreachable},
	{"RDMA_CM_EVENT_REJECTED", "The server calls rdma_reject().", rejected},
	{"RDMA_CM_EVENT_ESTABLISHED", "The client connects, and the server accepts.", established},
	{"RDMA_CM_EVENT_DISCONNECTED", "The server accepts, and calls rdma_disconnect().", disconnected},
	{"RDMA_CM_EVENT_MULTICAST_JOIN", "A datagram id of the client joins a group.", joined},
	{"RDMA_CM_EVENT_MULTICAST_ERROR", "A datagram id of the client joins one group after the other.", join_error},
	{"RDMA_CM_EVENT_TIMEWAIT_EXIT", "Both ends call rdma_disconnect(), and the client waits.", timewait},
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
		/* It takes the port before the server does. */
		came = (cases[i].run == address_error || ends_open(&e)) && cases[i].run(&e);
		ends_close(&e);
		return came;
	}
	return false;
}
