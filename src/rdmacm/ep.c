/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoints: synchronous ids with a QP, made from the answer of rdma_getaddrinfo(). */
#include <stdlib.h>
#include <string.h>

#include "rdmacm/id.h"

#define RESOLVE_TIMEOUT_MS 2000

static int save_qp_attr(struct cma_id *id, struct ibv_pd *pd, const struct ibv_qp_init_attr *attr)
{
	if (pd) /* else it stays the default of the device that the id is bound to */
		id->id.pd = pd;
	if (!attr)
		return 0;
	id->qp_init_attr = malloc(sizeof(*attr));
	if (!id->qp_init_attr)
		return cma_error(ENOMEM);
	*id->qp_init_attr = *attr;
	id->qp_init_attr->qp_type = id->id.qp_type;
	return 0;
}

static int make_passive(struct cma_id *id, const struct rdma_addrinfo *res, struct ibv_pd *pd,
			const struct ibv_qp_init_attr *attr)
{
	if (rdma_bind_addr(&id->id, res->ai_src_addr))
		return -1;
	return save_qp_attr(id, pd, attr);
}

static int save_connect_data(struct cma_id *id, const struct rdma_addrinfo *res)
{
	if (!res->ai_connect_len)
		return 0;
	id->connect_data = malloc(res->ai_connect_len);
	if (!id->connect_data)
		return cma_error(ENOMEM);
	memcpy(id->connect_data, res->ai_connect, res->ai_connect_len);
	id->connect_len = res->ai_connect_len;
	return 0;
}

static int make_active(struct cma_id *id, const struct rdma_addrinfo *res, struct ibv_pd *pd,
		       struct ibv_qp_init_attr *attr)
{
	if (rdma_resolve_addr(&id->id, res->ai_src_addr, res->ai_dst_addr, RESOLVE_TIMEOUT_MS))
		return -1;
	if (res->ai_route_len) {
		if (rdma_set_option(&id->id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, res->ai_route, res->ai_route_len) ||
		    cma_complete(id))
			return -1;
	} else if (rdma_resolve_route(&id->id, RESOLVE_TIMEOUT_MS)) {
		return -1;
	}
	if (attr) {
		attr->qp_type = id->id.qp_type;
		if (rdma_create_qp(&id->id, pd, attr))
			return -1;
	}
	return save_connect_data(id, res);
}

int rdma_create_ep(struct rdma_cm_id **out, struct rdma_addrinfo *res, struct ibv_pd *pd,
		   struct ibv_qp_init_attr *qp_init_attr)
{
	struct cma_id *id;
	if (!out || !res)
		return cma_error(EINVAL);
	int err = cma_id_create(NULL, &id, NULL, res->ai_port_space, res->ai_qp_type);
	if (err)
		return cma_error(err);
	bool failed = res->ai_flags & RAI_PASSIVE ? make_passive(id, res, pd, qp_init_attr)
						  : make_active(id, res, pd, qp_init_attr);
	if (failed) {
		err = errno;
		rdma_destroy_ep(&id->id);
		return cma_error(err);
	}
	*out = &id->id;
	return 0;
}

void rdma_destroy_ep(struct rdma_cm_id *id)
{
	if (!id)
		return;
	rdma_destroy_qp(id);
	rdma_destroy_srq(id);
	rdma_destroy_id(id);
}

/* Makes the QP of a request's id, if rdma_create_ep() was given attributes for it. */
static int create_request_qp(struct cma_id *listen, struct rdma_cm_id *id)
{
	if (!listen->qp_init_attr)
		return 0;
	struct ibv_qp_init_attr attr = *listen->qp_init_attr; /* a copy, because the call writes the real sizes there */
	return rdma_create_qp(id, listen->id.pd, &attr);
}

int rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **id)
{
	if (!listen || !id)
		return cma_error(EINVAL);
	if (!cma_id(listen)->sync)
		return cma_error(
			CMA_REFUSE(EINVAL, "the id has an event channel: rdma_get_cm_event() brings its requests"));
	cma_forget_event(cma_id(listen));
	struct rdma_cm_event *event;
	if (rdma_get_cm_event(listen->channel, &event))
		return -1;
	int err = event->status < 0 ? -event->status : event->status;
	if (!err && event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		err = EINVAL;
	if (err) {
		listen->event = event;
		roci_verbs_why("the event was %s with status %d", rdma_event_str(event->event), event->status);
		return cma_error(err);
	}
	if (create_request_qp(cma_id(listen), event->id)) {
		err = errno;
		listen->event = event;
		rdma_reject(event->id, NULL, 0);
		rdma_destroy_id(event->id);
		return cma_error(err);
	}
	event->id->event = event;
	*id = event->id;
	return 0;
}
