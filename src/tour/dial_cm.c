/* SPDX-License-Identifier: BSD-2-Clause */
/* Connects by rdma_cm: it finds the device and the route, carries the request, and takes the QP through its states. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "tour/clock.h"
#include "tour/dial.h"
#include "tour/stop.h"

#define RESOLVE_TIMEOUT_MS 3000
#define CONNECT_TIMEOUT_NS UINT64_C(15000000000)

/* Takes the next event of the id, whatever it is. The caller acknowledges it. */
static int next_event(struct dial *d, struct rdma_cm_event **event, struct failure *f)
{
	uint64_t deadline_ns = tour_now_ns() + CONNECT_TIMEOUT_NS;

	while (rdma_get_cm_event(d->channel, event)) {
		struct pollfd fds[] = {{.fd = d->channel->fd, .events = POLLIN},
				       {.fd = tour_stop_fd(), .events = POLLIN}};
		uint64_t now = tour_now_ns();
		if (errno != EAGAIN && errno != EINTR)
			return fail_call(f, "rdma_get_cm_event", errno);
		if (tour_stopped())
			return fail(f, -EINTR, "interrupted");
		if (now >= deadline_ns)
			return fail(f, -ETIMEDOUT, "%s did not answer within %u s", d->address,
				    (unsigned)(CONNECT_TIMEOUT_NS / 1000000000u));
		poll(fds, 2, (int)((deadline_ns - now) / 1000000u + 1));
	}
	return 0;
}

/* The answer is no: a REJ, or of a datagram service (UD) a SIDR REP, whose status numbers mean other things. */
static int rejected(struct dial *d, const struct rdma_cm_event *event, const void *data, size_t len, struct failure *f)
{
	int status = event->status;

	if (!hello_get_offer(data, len, &d->offer) && d->offer.status != HELLO_OK)
		return dial_check_offer(d, f);
	d->offer = (struct hello_offer){0};
	if (event->event == RDMA_CM_EVENT_UNREACHABLE)
		return fail(f, -ECONNREFUSED,
			    "%s has no such service, SIDR status %d: is `roci serve` running there, on this port?",
			    d->address, status);
	fail(f, -ECONNREFUSED, "%s rejected the connection, reason %d: is `roci serve` running there, on this port?",
	     d->address, status);
	f->reject = status;
	return -ECONNREFUSED;
}

static const char *event_text(enum rdma_cm_event_type type)
{
	switch (type) {
	case RDMA_CM_EVENT_ADDR_ERROR: return "has no address that an RDMA device here reaches";
	case RDMA_CM_EVENT_ROUTE_ERROR: return "cannot be reached: no route";
	case RDMA_CM_EVENT_UNREACHABLE: return "does not answer: is `roci serve` running there? is UDP port 4791 open?";
	case RDMA_CM_EVENT_CONNECT_ERROR: return "could not be connected";
	case RDMA_CM_EVENT_DISCONNECTED: return "disconnected at once";
	default: return NULL;
	}
}

/* Waits for an event of this type. Others that are no failure are passed over. */
static int expect(struct dial *d, enum rdma_cm_event_type wanted, struct failure *f)
{
	for (;;) {
		struct rdma_cm_event *event;
		int err = next_event(d, &event, f);
		const char *text;
		if (err)
			return err;
		if (event->event == wanted) {
			rdma_ack_cm_event(event);
			return 0;
		}
		text = event_text(event->event);
		if (text && event->status)
			fail(f, event->status, "%s %s (%s, status %d: %s)", d->address, text,
			     rdma_event_str(event->event), event->status,
			     event->status < 0 ? strerror(-event->status) : "of the connection manager");
		else if (text)
			fail(f, -EIO, "%s %s (%s)", d->address, text, rdma_event_str(event->event));
		rdma_ack_cm_event(event);
		if (text)
			return -EIO;
	}
}

/* Finds the far end's address. The caller frees *address with freeaddrinfo(). */
static int find_host(struct dial *d, const struct dial_target *target, struct addrinfo **address, struct failure *f)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	char port[8];
	int err;

	snprintf(port, sizeof(port), "%u", target->port);
	err = getaddrinfo(target->host, port, &hints, address);
	if (err)
		return fail(f, -ENOENT, "%s: %s", target->host, gai_strerror(err));
	getnameinfo((*address)->ai_addr, (*address)->ai_addrlen, d->address, sizeof(d->address), NULL, 0,
		    NI_NUMERICHOST);
	return 0;
}

/* Finds device and route. UC needs rdma_create_ep(): it alone makes an id for another type of QP than the port space's
 * own. It does the two steps itself. */
static int open_id(struct dial *d, const struct addrinfo *to, enum tour_qp type, struct failure *f)
{
	struct rdma_addrinfo uc = {.ai_family = to->ai_family,
				   .ai_port_space = RDMA_PS_IB,
				   .ai_qp_type = IBV_QPT_UC,
				   .ai_dst_addr = to->ai_addr,
				   .ai_dst_len = to->ai_addrlen};
	int err;

	if (type == TOUR_UC) {
		if (rdma_create_ep(&d->id, &uc, NULL, NULL)) {
			d->id = NULL;
			return fail(f, -errno, "%s has no address or route that an RDMA device here reaches: %s",
				    d->address, strerror(errno));
		}
		return rdma_migrate_id(d->id, d->channel) ? fail_call(f, "rdma_migrate_id", errno) : 0;
	}
	/* rdma_cm has a space of ports for each kind of service: TCP for RC, UDP for UD, IB for any other. */
	if (rdma_create_id(d->channel, &d->id, NULL, type == TOUR_UD ? RDMA_PS_UDP : RDMA_PS_TCP)) {
		d->id = NULL;
		return fail_call(f, "rdma_create_id", errno);
	}
	if (rdma_resolve_addr(d->id, NULL, to->ai_addr, RESOLVE_TIMEOUT_MS))
		return fail_call(f, "rdma_resolve_addr", errno);
	err = expect(d, RDMA_CM_EVENT_ADDR_RESOLVED, f);
	if (!err && rdma_resolve_route(d->id, RESOLVE_TIMEOUT_MS))
		err = fail_call(f, "rdma_resolve_route", errno);
	return err ? err : expect(d, RDMA_CM_EVENT_ROUTE_RESOLVED, f);
}

static int take_offer(struct dial *d, struct endpoint *e, const struct rdma_cm_event *event, struct failure *f)
{
	bool ud = e->type == TOUR_UD;
	const void *data = ud ? event->param.ud.private_data : event->param.conn.private_data;
	size_t len = ud ? event->param.ud.private_data_len : event->param.conn.private_data_len;
	const char *text = event_text(event->event);

	if (event->event == RDMA_CM_EVENT_REJECTED || (ud && event->event == RDMA_CM_EVENT_UNREACHABLE && len))
		return rejected(d, event, data, len, f);
	if (event->event != RDMA_CM_EVENT_ESTABLISHED)
		return fail(f, event->status, "%s %s (%s, status %d)", d->address, text ? text : "is not connected",
			    rdma_event_str(event->event), event->status);
	if (hello_get_offer(data, len, &d->offer))
		return fail(f, -EPROTO, "%s accepted, but is no `roci serve` of this version", d->address);
	if (!ud)
		return 0;
	e->ah = ibv_create_ah(e->pd, (struct ibv_ah_attr *)&event->param.ud.ah_attr);
	e->peer_qpn = event->param.ud.qp_num;
	e->peer_qkey = event->param.ud.qkey;
	return e->ah ? 0 : fail_call(f, "ibv_create_ah", errno);
}

static int connect_id(struct dial *d, struct endpoint *e, const struct hello_request *request, struct failure *f)
{
	uint8_t bytes[HELLO_REQUEST_BYTES];
	struct rdma_conn_param param = {
		.private_data = bytes,
		.private_data_len = sizeof(bytes),
		.responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = 7,
		.rnr_retry_count = 7,
	};
	struct rdma_cm_event *event;
	int err;

	hello_put_request(bytes, request);
	if (rdma_connect(d->id, &param)) /* iWARP makes the TCP connection here */
		return fail(f, -errno, "%s: rdma_connect(): %s; is `roci serve` running there?", d->address,
			    strerror(errno));
	err = next_event(d, &event, f);
	if (err)
		return err;
	err = take_offer(d, e, event, f);
	rdma_ack_cm_event(event);
	return err ? err : dial_check_offer(d, f);
}

static int connect_by(struct dial *d, const struct dial_target *target, const struct addrinfo *to, struct endpoint *e,
		      const struct endpoint_wish *wish, struct hello_request *request, struct failure *f)
{
	int err = open_id(d, to, wish->type, f);

	if (err)
		return err;
	d->device = d->id->verbs->device->name;
	if (target->device && strcmp(d->device, target->device))
		return fail(f, -ENODEV,
			    "%s is reached by %s, not by %s; rdma_cm takes the device that the route leads to",
			    d->address, d->device, target->device);
	request->caps = d->caps = device_caps(d->id->verbs) | TOUR_CAP_CM_UC;
	err = endpoint_create(e, d->id->verbs, d->id, wish, f);
	if (!err)
		err = endpoint_post_slots(e, f);
	return err ? err : connect_id(d, e, request, f);
}

int dial_cm(struct dial *d, const struct dial_target *target, struct endpoint *e, const struct endpoint_wish *wish,
	    struct hello_request *request, struct failure *f)
{
	struct addrinfo *to = NULL;
	int err;

	*d = (struct dial){.fd = -1};
	*e = (struct endpoint){0};
	d->channel = rdma_create_event_channel();
	if (!d->channel)
		return fail_call(f, "rdma_create_event_channel", errno);
	fcntl(d->channel->fd, F_SETFL, fcntl(d->channel->fd, F_GETFL) | O_NONBLOCK);
	err = find_host(d, target, &to, f);
	if (!err)
		err = connect_by(d, target, to, e, wish, request, f);
	if (to)
		freeaddrinfo(to);
	return err;
}
