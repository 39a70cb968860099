/* SPDX-License-Identifier: BSD-2-Clause */
/* Ids: making, moving and destroying them. */
#include <stdlib.h>

#include "rdmacm/device.h"
#include "rdmacm/manager.h"

const char *cma_state_name(const struct cma_id *id)
{
	static const char *const names[] = {
		[CMA_IDLE] = "new: it has no address",
		[CMA_BOUND] = "bound to an address",
		[CMA_ADDR_RESOLVED] = "at the address: its route is not resolved",
		[CMA_ROUTE_RESOLVED] = "at the route: it can connect",
		[CMA_LISTEN] = "listening",
		[CMA_CONNECT] = "connecting, connected or disconnected",
	};

	return names[id->state];
}

struct cma_id *cma_id_new(struct roci_device *dev, struct rdma_event_channel *channel, void *context,
			  enum rdma_port_space ps, enum ibv_qp_type qp_type)
{
	struct cma_id *id = calloc(1, sizeof(*id));
	if (!id)
		return NULL;
	id->dev = dev;
	id->id.channel = channel;
	id->id.context = context;
	id->id.ps = ps;
	id->id.qp_type = qp_type;
	roci_list_init(&id->mcasts);
	return id;
}

int cma_id_create(struct rdma_event_channel *channel, struct cma_id **out, void *context, enum rdma_port_space ps,
		  enum ibv_qp_type qp_type)
{
	struct rdma_event_channel *own = NULL;
	if (!cma_device())
		return -errno;
	if (!channel) {
		own = rdma_create_event_channel();
		if (!own)
			return -errno;
	}
	struct cma_id *id = cma_id_new(cma_roci_device(), channel ? channel : own, context, ps, qp_type);
	if (!id) {
		rdma_destroy_event_channel(own);
		return -ENOMEM;
	}
	id->sync = own != NULL;
	*out = id;
	return 0;
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context, enum rdma_port_space ps)
{
	enum ibv_qp_type type;
	switch (ps) {
	case RDMA_PS_TCP:
	case RDMA_PS_IB: type = IBV_QPT_RC; break;
	case RDMA_PS_UDP:
	case RDMA_PS_IPOIB: type = IBV_QPT_UD; break;
	default:
		return cma_error(
			CMA_REFUSE(EINVAL, "ps 0x%x: RDMA_PS_TCP, UDP, IB and IPOIB are allowed", (unsigned)ps));
	}
	struct cma_id *made = NULL;
	if (!id)
		return cma_error(EINVAL);
	int err = cma_id_create(channel, &made, context, ps, type);
	if (err)
		return cma_error(err);
	*id = &made->id;
	return 0;
}

void cma_forget_event(struct cma_id *id)
{
	if (!id->id.event)
		return;
	rdma_ack_cm_event(id->id.event);
	id->id.event = NULL;
}

/* The errno of a synchronous call whose event reports a failure. */
static int event_error(const struct rdma_cm_event *event)
{
	if (event->event == RDMA_CM_EVENT_REJECTED)
		return ECONNREFUSED;
	return event->status < 0 ? -event->status : EHOSTUNREACH;
}

int cma_complete(struct cma_id *id)
{
	if (!id->sync)
		return 0;
	cma_forget_event(id);
	if (rdma_get_cm_event(id->id.channel, &id->id.event))
		return -1;
	if (!id->id.event->status)
		return 0;
	roci_verbs_why("the event was %s with status %d", rdma_event_str(id->id.event->event), id->id.event->status);
	return cma_error_in("a synchronous call of rdma_cm", event_error(id->id.event));
}

/* Frees an event that no one will fetch, and the id of a request, which has no owner now. */
static void free_event(struct cma_event *ev)
{
	if (ev->event.event == RDMA_CM_EVENT_CONNECT_REQUEST)
		rdma_destroy_id(ev->event.id);
	free(ev);
}

int rdma_destroy_id(struct rdma_cm_id *rid)
{
	if (!rid)
		return cma_error(EINVAL);
	struct cma_id *id = cma_id(rid);
	cma_forget_event(id);
	cma_mcast_leave_all(id);
	cma_release(id); /* no more events of it come */
	struct roci_list events = ROCI_LIST_INIT(events), *queued;
	cma_channel_extract(id, &id->events, &events);
	while ((queued = roci_list_take_first(&events)))
		free_event(cma_event_of(queued));
	if (id->sync)
		rdma_destroy_event_channel(rid->channel);
	free(id->qp_init_attr);
	free(id->connect_data);
	free(id);
	return 0;
}

int rdma_migrate_id(struct rdma_cm_id *rid, struct rdma_event_channel *channel)
{
	if (!rid)
		return cma_error(EINVAL);
	if (cma_id(rid)->sync && !channel)
		return cma_error(CMA_REFUSE(EINVAL, "channel is NULL, and the id is synchronous already"));
	struct cma_id *id = cma_id(rid);
	bool was_sync = id->sync;
	struct rdma_event_channel *from = rid->channel, *to = channel ? channel : rdma_create_event_channel();
	if (!to)
		return -1;
	cma_forget_event(id);
	cma_channel_move(id, (struct cma_channel *)to);
	id->sync = !channel;
	if (was_sync)
		rdma_destroy_event_channel(from);
	return 0;
}
