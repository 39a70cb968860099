/* SPDX-License-Identifier: BSD-2-Clause */
#include "mover/link.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define RESOLVE_TIMEOUT_MS 3000
#define READ_DEPTH         16

static int negative_errno(int result)
{
	return result == 0 ? 0 : errno ? -errno : -EIO;
}

int link_resolve(struct link *link, struct rdma_event_channel *channel, struct sockaddr *source,
		 struct sockaddr *destination)
{
	int err = negative_errno(rdma_create_id(channel, &link->id, link, RDMA_PS_TCP));
	if (err) {
		link->id = NULL;
		return err;
	}
	link->state = LINK_RESOLVING_ADDRESS;
	return negative_errno(rdma_resolve_addr(link->id, source, destination, RESOLVE_TIMEOUT_MS));
}

int link_create_qp(struct link *link, struct ibv_pd *pd, struct ibv_cq *cq, const struct link_size *size)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = size->sends,
			.max_recv_wr = size->receives,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};
	return negative_errno(rdma_create_qp(link->id, pd, &attr));
}

/* READs that may be under way: what the device can do, up to READ_DEPTH. */
static void read_depth(const struct link *link, struct rdma_conn_param *param)
{
	struct ibv_device_attr attr;
	if (ibv_query_device(link->id->verbs, &attr))
		return;
	param->responder_resources = (uint8_t)(attr.max_qp_rd_atom < READ_DEPTH ? attr.max_qp_rd_atom : READ_DEPTH);
	param->initiator_depth =
		(uint8_t)(attr.max_qp_init_rd_atom < READ_DEPTH ? attr.max_qp_init_rd_atom : READ_DEPTH);
}

static void failed(struct link *link, int err)
{
	link->state = LINK_FAILED;
	link->err = err ? err : -EIO;
}

int link_connect(struct link *link, const struct proto_request *request)
{
	uint8_t private_data[PROTO_PRIVATE_BYTES];
	struct rdma_conn_param param = {
		.private_data = private_data,
		.private_data_len = sizeof(private_data),
		.retry_count = 7,
		.rnr_retry_count = 7,
	};
	int err;

	proto_put_request(private_data, request);
	read_depth(link, &param);
	link->state = LINK_CONNECTING;
	err = negative_errno(rdma_connect(link->id, &param));
	if (err && link_is_iwarp(link->id)) { /* siw makes the TCP connection before it returns */
		failed(link, err);
		return 0;
	}
	return err;
}

int link_accept(struct link *link)
{
	struct rdma_conn_param param = {.retry_count = 7, .rnr_retry_count = 7};
	int err;

	read_depth(link, &param);
	err = negative_errno(rdma_accept(link->id, &param));
	if (!err)
		link->state = LINK_CONNECTING;
	return err;
}

void link_reject(struct rdma_cm_id *id, enum proto_reject reason)
{
	uint8_t bytes[PROTO_REJECT_BYTES];
	proto_put_reject(bytes, reason);
	rdma_reject(id, bytes, sizeof(bytes));
}

bool link_event(struct link *link, const struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		link->state = LINK_RESOLVING_ROUTE;
		if (rdma_resolve_route(link->id, RESOLVE_TIMEOUT_MS))
			failed(link, -errno);
		return true;
	case RDMA_CM_EVENT_ROUTE_RESOLVED: link->state = LINK_RESOLVED; return true;
	case RDMA_CM_EVENT_ESTABLISHED: link->state = LINK_UP; return true;
	case RDMA_CM_EVENT_REJECTED:
		failed(link, event->status);
		link->rejected = true;
		link->reject = proto_get_reject(event->param.conn.private_data, event->param.conn.private_data_len);
		return true;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE: failed(link, event->status); return true;
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_DEVICE_REMOVAL: link->state = LINK_DOWN; return true;
	default: return false;
	}
}

void link_disconnect(struct link *link)
{
	if (link->id && link->id->qp && (link->state == LINK_UP || link->state == LINK_CONNECTING))
		rdma_disconnect(link->id);
}

void link_destroy(struct link *link)
{
	if (link->id) {
		if (link->id->qp)
			rdma_destroy_qp(link->id);
		rdma_destroy_id(link->id);
	}
	*link = (struct link){0};
}

bool link_is_iwarp(const struct rdma_cm_id *id)
{
	return id->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
}

bool link_is_rxe(const struct ibv_device *device)
{
	char real[PATH_MAX];
	if (strncmp(device->name, "roci", 4) == 0 || device->transport_type == IBV_TRANSPORT_IWARP)
		return false;
	/* a soft device has no bus above it; sysfs puts it among the virtual ones */
	return strncmp(device->name, "rxe", 3) == 0 ||
	       (realpath(device->ibdev_path, real) && strstr(real, "/virtual/"));
}

const char *link_path(const struct ibv_device *device)
{
	if (strncmp(device->name, "roci", 4) == 0)
		return "roci0 over udp";
	if (device->transport_type == IBV_TRANSPORT_IWARP)
		return "iwarp";
	return link_is_rxe(device) ? "rxe" : "rnic";
}
