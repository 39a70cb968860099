/* SPDX-License-Identifier: BSD-2-Clause */
#include "mover/connection.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "mover/clock.h"

#define RESOLVE_TIMEOUT_MS 3000
#define READ_DEPTH         16
#define REJ_NO_RESOURCES   3 /* IBTA 12.6.7.2 */
#define RETRY_NS           20000000u

static int negative_errno(int result)
{
	return result == 0 ? 0 : errno ? -errno : -EIO;
}

int connection_resolve(struct connection *conn, struct rdma_event_channel *channel, struct sockaddr *source,
		       struct sockaddr *destination)
{
	int err = negative_errno(rdma_create_id(channel, &conn->id, conn, RDMA_PS_TCP));
	if (err) {
		conn->id = NULL;
		return err;
	}
	conn->state = CONNECTION_RESOLVING_ADDRESS;
	return negative_errno(rdma_resolve_addr(conn->id, source, destination, RESOLVE_TIMEOUT_MS));
}

int connection_create_qp(struct connection *conn, struct ibv_pd *pd, struct ibv_cq *cq,
			 const struct connection_size *size)
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
	return negative_errno(rdma_create_qp(conn->id, pd, &attr));
}

/* READs that may be under way: what the device can do, up to READ_DEPTH. */
static void read_depth(const struct connection *conn, struct rdma_conn_param *param)
{
	struct ibv_device_attr attr;
	if (ibv_query_device(conn->id->verbs, &attr))
		return;
	param->responder_resources = (uint8_t)(attr.max_qp_rd_atom < READ_DEPTH ? attr.max_qp_rd_atom : READ_DEPTH);
	param->initiator_depth =
		(uint8_t)(attr.max_qp_init_rd_atom < READ_DEPTH ? attr.max_qp_init_rd_atom : READ_DEPTH);
}

static void failed(struct connection *conn, int err)
{
	conn->state = CONNECTION_FAILED;
	conn->err = err ? err : -EIO;
	conn->failed_ns = mover_now_ns();
}

int connection_connect(struct connection *conn, const struct proto_request *request)
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
	read_depth(conn, &param);
	conn->state = CONNECTION_CONNECTING;
	conn->asked_ns = mover_now_ns();
	err = negative_errno(rdma_connect(conn->id, &param));
	if (err && connection_is_iwarp(conn->id)) { /* siw makes the TCP connection before it returns */
		failed(conn, err);
		return 0;
	}
	return err;
}

int connection_accept(struct connection *conn, const void *answer, size_t len)
{
	struct rdma_conn_param param = {
		.private_data = answer,
		.private_data_len = (uint8_t)len,
		.retry_count = 7,
		.rnr_retry_count = 7,
	};
	int err;

	read_depth(conn, &param);
	err = negative_errno(rdma_accept(conn->id, &param));
	if (!err)
		conn->state = CONNECTION_CONNECTING;
	return err;
}

void connection_reject(struct rdma_cm_id *id, enum proto_reject reason)
{
	uint8_t bytes[PROTO_REJECT_BYTES];
	proto_put_reject(bytes, reason);
	rdma_reject(id, bytes, sizeof(bytes));
}

static void established(struct connection *conn, const struct rdma_conn_param *param)
{
	size_t len = param->private_data ? param->private_data_len : 0;

	conn->state = CONNECTION_UP;
	conn->answer_ns = mover_now_ns() - conn->asked_ns;
	conn->answer_len = (uint8_t)(len < PROTO_ANSWER_BYTES ? len : PROTO_ANSWER_BYTES);
	if (len)
		memcpy(conn->answer, param->private_data, conn->answer_len);
}

bool connection_event(struct connection *conn, const struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		conn->state = CONNECTION_RESOLVING_ROUTE;
		if (rdma_resolve_route(conn->id, RESOLVE_TIMEOUT_MS))
			failed(conn, -errno);
		return true;
	case RDMA_CM_EVENT_ROUTE_RESOLVED: conn->state = CONNECTION_RESOLVED; return true;
	case RDMA_CM_EVENT_ESTABLISHED: established(conn, &event->param.conn); return true;
	case RDMA_CM_EVENT_REJECTED:
		failed(conn, event->status);
		conn->rejected = true;
		conn->reject = proto_get_reject(event->param.conn.private_data, event->param.conn.private_data_len);
		return true;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE: failed(conn, event->status); return true;
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_DEVICE_REMOVAL: conn->state = CONNECTION_DOWN; return true;
	default: return false;
	}
}

bool connection_is_crowded(const struct connection *conn)
{
	return conn->state == CONNECTION_FAILED && conn->rejected && !conn->reject && conn->err == REJ_NO_RESOURCES;
}

bool connection_may_retry(const struct connection *conn)
{
	return connection_is_crowded(conn) && mover_now_ns() - conn->failed_ns > RETRY_NS;
}

void connection_disconnect(struct connection *conn)
{
	if (conn->id && conn->id->qp && (conn->state == CONNECTION_UP || conn->state == CONNECTION_CONNECTING))
		rdma_disconnect(conn->id);
}

void connection_destroy(struct connection *conn)
{
	if (conn->id) {
		if (conn->id->qp)
			rdma_destroy_qp(conn->id);
		rdma_destroy_id(conn->id);
	}
	*conn = (struct connection){0};
}

bool connection_is_iwarp(const struct rdma_cm_id *id)
{
	return id->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
}

bool connection_is_roci(const struct ibv_device *device)
{
	return strncmp(device->name, "roci", 4) == 0;
}

bool connection_is_rxe(const struct ibv_device *device)
{
	char real[PATH_MAX];
	if (connection_is_roci(device) || device->transport_type == IBV_TRANSPORT_IWARP)
		return false;
	/* a soft device has no bus above it; sysfs puts it among the virtual ones */
	return strncmp(device->name, "rxe", 3) == 0 ||
	       (realpath(device->ibdev_path, real) && strstr(real, "/virtual/"));
}

const char *connection_path(const struct ibv_device *device)
{
	if (connection_is_roci(device))
		return "roci0 over udp";
	if (device->transport_type == IBV_TRANSPORT_IWARP)
		return "iwarp";
	return connection_is_rxe(device) ? "rxe" : "rnic";
}
