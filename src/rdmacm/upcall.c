/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events of the connection manager become events of ids. Runs under the device's lock, in the thread that drives the
 * device at that moment, so it only copies and queues.
 */
#include <stdlib.h>
#include <string.h>

#include "device/cm_host.h"
#include "rdmacm/address.h"
#include "rdmacm/manager.h"
#include "wire/packet.h"

static void copy_private(struct cma_event *ev, struct roci_cm_bytes bytes, bool cut_ip, const void **data, uint8_t *len)
{
	unsigned skip = cut_ip ? ROCI_CM_IP_BYTES : 0;
	if (bytes.len <= skip)
		return;
	*len = (uint8_t)(bytes.len - skip);
	memcpy(ev->private_data, (const uint8_t *)bytes.data + skip, *len);
	*data = ev->private_data;
}

static void fill_conn(struct cma_event *ev, const struct roci_cm_event *from)
{
	struct rdma_conn_param *param = &ev->event.param.conn;
	copy_private(ev, from->private, from->has_ip, &param->private_data, &param->private_data_len);
	if (!from->peer)
		return;
	param->responder_resources = from->peer->responder_resources;
	param->initiator_depth = from->peer->initiator_depth;
	param->flow_control = from->peer->flow_control;
	param->retry_count = from->peer->retry_count;
	param->rnr_retry_count = from->peer->rnr_retry_count;
	param->srq = from->peer->srq;
	param->qp_num = from->peer->qpn;
}

/* For rdma_get_remote_ece(), after the event. */
static void keep_ece(struct cma_id *id, const struct roci_cm_event *from)
{
	id->remote_ece = (struct ibv_ece){.vendor_id = from->peer->ece.vendor_id, .options = from->peer->ece.options};
}

static void fill_ud(struct cma_event *ev, const struct roci_cm_event *from)
{
	struct rdma_ud_param *param = &ev->event.param.ud;
	copy_private(ev, from->private, from->has_ip, &param->private_data, &param->private_data_len);
	cma_path_ah(ev->owner, from->path, &param->ah_attr);
	param->qp_num = from->sidr_qpn;
	param->qkey = from->sidr_qkey;
}

/* Without memory the program misses the event. The peer then retransmits, or times out. */
static void report(struct cma_id *id, enum rdma_cm_event_type type, int status, const struct roci_cm_event *from)
{
	if (id->passive && !id->accepted)
		return; /* the accept will fail */
	struct cma_event *ev = cma_event_new(id, type, status);
	if (!ev)
		return;
	if (cma_is_ud(id))
		fill_ud(ev, from);
	else
		fill_conn(ev, from);
	cma_event_push_unshown(ev);
}

/* ---- requests ---- */

/* The addresses of a new id, from our side: those of the IP CM header, or else of the datagram. */
static void set_addresses(struct cma_id *id, const struct cma_id *listener, const struct roci_cm_event *from)
{
	struct rdma_addr *addr = &id->id.route.addr;
	const struct roci_cm_path *path = from->path;
	bool ipv4 = from->has_ip && from->ip.ipv4;
	const uint8_t *local = from->has_ip ? from->ip.dst : path->sgid,
		      *remote = from->has_ip ? from->ip.src : path->dgid;
	cma_addr_from_gid(local, ipv4, path->ifindex, &addr->src_addr);
	cma_addr_from_gid(remote, ipv4, path->ifindex, &addr->dst_addr);
	cma_addr_set_port(&addr->src_addr, cma_addr_port(&listener->id.route.addr.src_addr));
	cma_addr_set_port(&addr->dst_addr, from->has_ip ? from->ip.src_port : 0);
	memcpy(addr->addr.ibaddr.dgid.raw, path->dgid, 16);
}

static enum ibv_qp_type type_of(const struct cma_id *listener, const struct roci_cm_event *from)
{
	if (from->sidr)
		return IBV_QPT_UD;
	return from->peer && from->peer->transport == ROCI_CM_UC ? IBV_QPT_UC : listener->id.qp_type;
}

/* The id of a request, on its listener's channel. NULL: no memory, or no such address here. */
static struct cma_id *request_id(const struct cma_id *listener, const struct roci_cm_event *from)
{
	struct cma_id *id =
		cma_id_new(listener->dev, NULL, listener->id.context, listener->id.ps, type_of(listener, from));
	if (!id)
		return NULL;
	set_addresses(id, listener, from);
	if (cma_bind_gid(id, from->path->sgid, from->path->ifindex)) {
		free(id);
		return NULL;
	}
	id->state = CMA_CONNECT;
	id->passive = true;
	id->tos = from->path->traffic_class;
	id->ack_timeout = listener->ack_timeout;
	id->ack_timeout_set = listener->ack_timeout_set;
	/* Chosen already here, because a program may modify its QP to RTS before it accepts. */
	id->psn = roci_random32() & ROCI_PSN_MASK;
	id->conn = from->conn;
	id->sidr = from->sidr;
	if (from->peer) {
		id->responder_resources = from->peer->responder_resources;
		keep_ece(id, from);
	}
	return id;
}

/* Rejects a request that gets no id. A REJ message also carries the reason. */
static void refuse(const struct roci_cm_event *from, enum roci_cm_reason reason)
{
	const struct roci_cm_bytes none = {0};
	if (from->conn) {
		roci_conn_reject(from->conn, roci_now(), reason, none, none);
		roci_conn_destroy(from->conn, roci_now());
	} else if (from->sidr) {
		roci_sidr_destroy(from->sidr, roci_now());
	}
}

/* The peer chooses the kind of message, REQ or SIDR_REQ: it may not fit the type of the listener. */
static void request(struct cma_id *listener, const struct roci_cm_event *from)
{
	if (cma_is_ud(listener) != (from->sidr != NULL)) {
		refuse(from, ROCI_REJ_INVALID_TRANSPORT_TYPE);
		return;
	}
	struct cma_id *id = request_id(listener, from);
	struct cma_event *ev = id ? cma_event_new(listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0) : NULL;
	if (!ev) {
		free(id);
		refuse(from, ROCI_REJ_NO_RESOURCES);
		return;
	}
	if (from->conn)
		roci_conn_set_user(from->conn, id);
	else
		roci_sidr_set_user(from->sidr, id);
	ev->event.id = &id->id;
	ev->event.listen_id = &listener->id;
	if (cma_is_ud(id)) {
		copy_private(ev, from->private, from->has_ip, &ev->event.param.ud.private_data,
			     &ev->event.param.ud.private_data_len);
	} else {
		fill_conn(ev, from);
		id->request = ev->event.param.conn;
		id->request.private_data = NULL;
		id->request.private_data_len = 0;
	}
	cma_event_push_unshown(ev);
}

/* ---- the rest ---- */

/* Reported once: DREQ, DREP or the timeout of a DREQ, whichever is first. */
static void disconnected(struct cma_id *id, const struct roci_cm_event *from)
{
	if (id->disconnected)
		return;
	id->disconnected = true;
	report(id, RDMA_CM_EVENT_DISCONNECTED, from->status, &(struct roci_cm_event){.path = from->path});
}

static void sidr_answered(struct cma_id *id, const struct roci_cm_event *from)
{
	if (from->sidr_status == ROCI_SIDR_SUCCESS)
		report(id, RDMA_CM_EVENT_ESTABLISHED, 0, from);
	else
		report(id, RDMA_CM_EVENT_UNREACHABLE, from->sidr_status, from);
}

void cma_upcall(const struct roci_cm_event *from)
{
	struct cma_id *id = from->user;
	if (!id)
		return;
	switch (from->kind) {
	case ROCI_CM_REQ_RECEIVED:
	case ROCI_CM_SIDR_REQ_RECEIVED: request(id, from); break;
	case ROCI_CM_REP_RECEIVED:
		keep_ece(id, from);
		report(id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, from);
		break;
	case ROCI_CM_ESTABLISHED:
		roci_cm_host_established(id->dev, from->conn);
		report(id, RDMA_CM_EVENT_ESTABLISHED, 0, &(struct roci_cm_event){.path = from->path});
		break;
	case ROCI_CM_REJ_RECEIVED: report(id, RDMA_CM_EVENT_REJECTED, from->reason, from); break;
	case ROCI_CM_REQ_ERROR:
	case ROCI_CM_REP_ERROR:
	case ROCI_CM_SIDR_ERROR: report(id, RDMA_CM_EVENT_UNREACHABLE, from->status, from); break;
	case ROCI_CM_DREQ_RECEIVED:
	case ROCI_CM_DREP_RECEIVED:
	case ROCI_CM_DREQ_ERROR: disconnected(id, from); break;
	case ROCI_CM_TIMEWAIT_EXIT:
		report(id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0, &(struct roci_cm_event){.path = from->path});
		break;
	case ROCI_CM_SIDR_REP_RECEIVED: sidr_answered(id, from); break;
	case ROCI_CM_EVENT_KINDS: break;
	}
}
