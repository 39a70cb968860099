/* SPDX-License-Identifier: BSD-2-Clause */
#include "endpoint.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

struct endpoint endpoint_open(const struct arguments *a, unsigned requests)
{
	struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP}, *found;
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = requests, .max_recv_wr = requests, .max_send_sge = 1, .max_recv_sge = 1},
		.sq_sig_all = 1, /* every request completes visibly */
	};
	struct endpoint ep = {0};

	if (!a->host) {
		hints.ai_flags = RAI_PASSIVE;
		hints.ai_family = AF_INET6; /* "::": every address, also the ones of IPv4 */
	}
	if (rdma_getaddrinfo(a->host, a->port, &hints, &found))
		die("rdma_getaddrinfo: cannot find %s port %s: %s", a->host ? a->host : "an address for", a->port,
		    reason(errno));
	if (a->host) {
		check(rdma_create_ep(&ep.id, found, NULL, &init), "rdma_create_ep");
	} else {
		check(rdma_create_ep(&ep.listener, found, NULL, &init), "rdma_create_ep");
		check(rdma_listen(ep.listener, 1), "rdma_listen");
		printf("waiting for the other side on port %s\n", a->port);
		check(rdma_get_request(ep.listener, &ep.id), "rdma_get_request");
	}
	rdma_freeaddrinfo(found);
	return ep;
}

void endpoint_connect(const struct endpoint *ep)
{
	struct rdma_conn_param param = {
		.responder_resources = 4, .initiator_depth = 4, .retry_count = 6, .rnr_retry_count = 7};

	if (ep->listener)
		check(rdma_accept(ep->id, &param), "rdma_accept");
	else if (rdma_connect(ep->id, &param))
		die("rdma_connect: %s%s", strerror(errno),
		    errno == ECONNREFUSED ? ": does the other side run there, on this port?" : "");
	printf("connected\n");
}

/* An event of the connection manager, which can only be the end. */
static _Noreturn void connection_ended(struct rdma_cm_id *id, const char *what)
{
	struct rdma_cm_event *event;

	check(rdma_get_cm_event(id->channel, &event), "rdma_get_cm_event");
	die("while waiting for %s: %s; the other side has gone", what, rdma_event_str(event->event));
}

/* Sleeps until the CQ may have a completion. Both descriptors matter: when the peer dies, a receive just stays where it
 * is, and only the connection manager tells. Returns whether it did. */
static bool sleep_on(struct rdma_cm_id *id, struct ibv_comp_channel *channel)
{
	struct pollfd fds[] = {{.fd = channel->fd, .events = POLLIN}, {.fd = id->channel->fd, .events = POLLIN}};
	struct ibv_cq *cq;
	void *context;

	check(poll(fds, 2, -1) < 0 && errno != EINTR ? -1 : 0, "poll");
	if (fds[0].revents) {
		check(ibv_get_cq_event(channel, &cq, &context), "ibv_get_cq_event");
		ibv_ack_cq_events(cq, 1);
	}
	return fds[1].revents != 0;
}

/* Returns true with the next completion, or false when the connection ends and no completion came before that. */
static bool wait_for(struct rdma_cm_id *id, struct ibv_comp_channel *channel, struct ibv_cq *cq, struct ibv_wc *wc)
{
	bool ended = false;
	int n;

	while ((n = ibv_poll_cq(cq, 1, wc)) == 0 && !ended) {
		check(ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
		n = ibv_poll_cq(cq, 1, wc); /* one may have come before the CQ was armed: nobody would wake us for it */
		if (n)
			break;
		ended = sleep_on(id, channel);
	}
	if (n < 0)
		die("ibv_poll_cq failed");
	return n > 0;
}

static struct ibv_wc next(struct rdma_cm_id *id, struct ibv_comp_channel *channel, struct ibv_cq *cq, const char *what)
{
	struct ibv_wc wc;

	if (!wait_for(id, channel, cq, &wc))
		connection_ended(id, what);
	check_completion(&wc, what);
	return wc;
}

struct ibv_wc endpoint_receive(const struct endpoint *ep, const char *what)
{
	return next(ep->id, ep->id->recv_cq_channel, ep->id->recv_cq, what);
}

struct ibv_wc endpoint_sent(const struct endpoint *ep, const char *what)
{
	return next(ep->id, ep->id->send_cq_channel, ep->id->send_cq, what);
}

void endpoint_sent_last(const struct endpoint *ep, const char *what)
{
	struct ibv_wc wc;

	if (wait_for(ep->id, ep->id->send_cq_channel, ep->id->send_cq, &wc))
		check_completion(&wc, what);
}

void endpoint_close(struct endpoint *ep)
{
	rdma_disconnect(ep->id); /* fails if the peer was faster: then there is nothing to do */
	rdma_destroy_ep(ep->id);
	if (ep->listener)
		rdma_destroy_ep(ep->listener);
}
