/* SPDX-License-Identifier: BSD-2-Clause */
/* rdma_get_cm_event(): processes an event in the program's thread before the program sees it. */
#include "rdmacm/device.h"
#include "rdmacm/manager.h"

/* The peer accepted: moves the QP to RTS and answers with an RTU. A program that modifies its QP itself gets the event
 * unchanged, and does both itself. */
static void process_response(struct cma_id *id, struct rdma_cm_event *event)
{
	if (!id->id.qp)
		return;
	int err = cma_qp_to_rtr(id, RDMA_MAX_RESP_RES);
	if (!err)
		err = cma_qp_to_rts(id, RDMA_MAX_INIT_DEPTH);
	if (!err)
		err = cma_establish(id);
	event->event = RDMA_CM_EVENT_ESTABLISHED;
	if (!err)
		return;
	cma_qp_to_err(id);
	id->connect_error = true;
	event->event = RDMA_CM_EVENT_CONNECT_ERROR;
	event->status = err;
}

/* A request to a synchronous listener gets a synchronous id. False: no memory; the request is rejected. */
static bool process_request(struct cma_id *listener, struct rdma_cm_event *event)
{
	struct cma_id *id = cma_id(event->id);
	cma_request_fetched(id);
	id->id.pd = cma_default_pd();
	if (!listener->sync || !rdma_migrate_id(&id->id, NULL))
		return true;
	rdma_destroy_id(&id->id);
	return false;
}

static void process_join(struct cma_event *ev)
{
	int err = cma_mcast_attach(ev->mcast);
	if (!err)
		return;
	ev->event.event = RDMA_CM_EVENT_MULTICAST_ERROR;
	ev->event.status = err;
}

/* False: the program does not get the event. */
static bool process(struct cma_event *ev)
{
	struct cma_id *id = ev->owner;
	switch (ev->event.event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST: return process_request(id, &ev->event);
	case RDMA_CM_EVENT_CONNECT_RESPONSE: process_response(id, &ev->event); return true;
	case RDMA_CM_EVENT_REJECTED:
		if (id->connect_error)
			return false;
		cma_qp_to_err(id);
		return true;
	case RDMA_CM_EVENT_DISCONNECTED: return !id->connect_error;
	case RDMA_CM_EVENT_MULTICAST_JOIN: process_join(ev); return true;
	default: return true;
	}
}

/* Whether a program calls rdma_cm for the event, most likely at once. */
static bool is_answered(enum rdma_cm_event_type type)
{
	return type == RDMA_CM_EVENT_ADDR_RESOLVED || type == RDMA_CM_EVENT_ROUTE_RESOLVED ||
	       type == RDMA_CM_EVENT_CONNECT_REQUEST;
}

/* The program sleeps soon, unless more has come meanwhile: it looks for itself, since many events that one turn brings
 * cost it less than one for each that the device's thread brings. */
static void took_last(const struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct roci_device *dev = cma_roci_device();
	if (dev)
		roci_device_poll(dev);
	if (!cma_channel_has_events(channel) && !is_answered(type))
		cma_send_waiting();
}

int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	if (!channel || !event)
		return cma_error(EINVAL);
	for (;;) {
		struct cma_event *ev = cma_channel_pop((struct cma_channel *)channel);
		if (!ev) {
			cma_send_waiting();
			if (cma_channel_wait((struct cma_channel *)channel))
				return -1;
			continue;
		}
		if (process(ev)) {
			if (!cma_channel_has_events(channel))
				took_last(channel, ev->event.event);
			*event = &ev->event;
			return 0;
		}
		rdma_ack_cm_event(&ev->event);
	}
}
