/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections, from both sides: rdma_connect(), rdma_accept(), rdma_reject(), rdma_establish(), rdma_disconnect(). */
#include <stdio.h>

#include "device/cm_host.h"
#include "device/say.h"
#include "rdmacm/address.h"
#include "rdmacm/device.h"
#include "rdmacm/manager.h"
#include "verbs/range.h"
#include "wire/packet.h"

#define DEFAULT_RETRIES 7
#define MAX_RETRIES     7 /* fields of 3 bits */

static uint8_t min_u8(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

/* The program's parameters, or the defaults. -EINVAL: more than the device's limits. */
static int choose_params(const struct cma_id *id, const struct rdma_conn_param *given, struct rdma_conn_param *out)
{
	struct cma_limits limits = cma_device_limits();
	if (id->id.ps == RDMA_PS_TCP && !id->id.qp && !given)
		return CMA_REFUSE(-EINVAL, "conn_param is NULL, and the id has no QP: one of them must give qp_num");
	*out = (struct rdma_conn_param){.responder_resources = RDMA_MAX_RESP_RES,
					.initiator_depth = RDMA_MAX_INIT_DEPTH,
					.retry_count = DEFAULT_RETRIES,
					.rnr_retry_count = DEFAULT_RETRIES};
	if (given)
		*out = *given;
	if (id->id.qp) {
		out->qp_num = id->id.qp->qp_num;
		out->srq = id->id.qp->srq != NULL;
	}
	out->retry_count = min_u8(out->retry_count, MAX_RETRIES);
	out->rnr_retry_count = min_u8(out->rnr_retry_count, MAX_RETRIES);
	if (cma_is_ud(id))
		return 0;
	if (out->responder_resources == RDMA_MAX_RESP_RES)
		out->responder_resources = limits.responder_resources;
	if (out->initiator_depth == RDMA_MAX_INIT_DEPTH)
		out->initiator_depth = limits.initiator_depth;
	if (out->responder_resources > limits.responder_resources || out->initiator_depth > limits.initiator_depth)
		return CMA_REFUSE(-EINVAL, "responder_resources %u, initiator_depth %u: at most %u and %u",
				  out->responder_resources, out->initiator_depth, limits.responder_resources,
				  limits.initiator_depth);
	return 0;
}

/* -EINVAL: the private data are longer than `room`, or not in memory. Some programs leave these fields uninitialised:
 * they get a line, and no crash. */
static int check_private_data(const struct rdma_conn_param *param, size_t room)
{
	unsigned len = param->private_data_len;
	if (len > room)
		roci_device_say(
			"roci: private_data_len of struct rdma_conn_param is %u, at most %zu bytes fit; is it set?\n",
			len, room);
	else if (len && !roci_verbs_may_read(param->private_data, len))
		roci_device_say("roci: private_data of struct rdma_conn_param is no buffer of %u bytes; is it set?\n",
				len);
	else
		return 0;
	return CMA_REFUSE(-EINVAL, "private_data_len %u: at most %zu bytes, in memory that can be read", len, room);
}

/* ---- the active side ---- */

struct request_data {
	uint8_t bytes[ROCI_CM_SIDR_REQ_PRIVATE];
	unsigned len;
};

/* The IP CM header, the connect data of rdma_getaddrinfo(), the program's private data. -EINVAL: more than `room`. */
static int fill_request(const struct cma_id *id, const struct rdma_conn_param *param, unsigned room,
			struct request_data *out)
{
	const struct rdma_addr *addr = &id->id.route.addr;
	size_t before = ROCI_CM_IP_BYTES + id->connect_len;
	int err = before > room ? CMA_REFUSE(-EINVAL, "ai_connect_len %zu: at most %u bytes", id->connect_len,
					     room - ROCI_CM_IP_BYTES)
				: check_private_data(param, room - before);
	if (err)
		return err;
	union ibv_gid src, dst;
	cma_addr_to_gid(&addr->src_addr, &src);
	cma_addr_to_gid(&addr->dst_addr, &dst);
	struct roci_cm_ip ip = {.src_port = cma_addr_port(&addr->src_addr),
				.ipv4 = addr->dst_addr.sa_family == AF_INET};
	memcpy(ip.src, src.raw, 16);
	memcpy(ip.dst, dst.raw, 16);
	roci_cm_ip_build(&ip, out->bytes);
	uint8_t *p = out->bytes + ROCI_CM_IP_BYTES;
	if (id->connect_len)
		p = mempcpy(p, id->connect_data, id->connect_len);
	if (param->private_data_len)
		memcpy(p, param->private_data, param->private_data_len);
	out->len = (unsigned)(before + param->private_data_len);
	return 0;
}

static void fill_path(const struct cma_id *id, struct roci_cm_path *path)
{
	struct roci_gid_entry gid;
	*path = (struct roci_cm_path){
		.ifindex = cma_gid_entry(id, &gid) ? gid.ifindex : 0,
		.flow_label = ntohl(id->path.flow_label) & 0xfffff,
		.pkey = CMA_PKEY,
		.traffic_class = id->tos,
		.hop_limit = id->path.hop_limit,
		.sl = id->path.sl,
		.mtu = id->path.mtu,
		.rate = id->path.rate,
		.packet_life = id->path.packet_life_time,
	};
	memcpy(path->sgid, id->path.sgid.raw, 16);
	memcpy(path->dgid, id->path.dgid.raw, 16);
}

static uint64_t service_of(const struct cma_id *id)
{
	return roci_cm_service_id((enum roci_port_space)id->id.ps, cma_addr_port(&id->id.route.addr.dst_addr));
}

static int connect_datagram(struct cma_id *id, const struct rdma_conn_param *param)
{
	struct request_data data;
	int err = fill_request(id, param, ROCI_CM_SIDR_REQ_PRIVATE, &data);
	if (err)
		return err;
	struct roci_cm_resolve ask = {.service_id = service_of(id), .private = {data.bytes, data.len}, .user = id};
	fill_path(id, &ask.path);
	struct roci_cm *cm = cma_lock_cm(id);
	if (!cm)
		return -ENODEV;
	err = roci_sidr_resolve(cm, roci_now(), &ask, &id->sidr);
	cma_unlock_cm(id);
	return err;
}

static int connect_connected(struct cma_id *id, const struct rdma_conn_param *param)
{
	struct request_data data;
	int err = fill_request(id, param, ROCI_CM_REQ_PRIVATE, &data);
	if (err)
		return err;
	enum ibv_qp_type type = id->id.qp ? id->id.qp->qp_type : id->id.qp_type;
	struct roci_cm_connect ask = {
		.service_id = service_of(id),
		.qpn = param->qp_num,
		.starting_psn = id->psn = roci_random32() & ROCI_PSN_MASK,
		.transport = type == IBV_QPT_UC ? ROCI_CM_UC : ROCI_CM_RC,
		.responder_resources = param->responder_resources,
		.initiator_depth = param->initiator_depth,
		.retry_count = param->retry_count,
		.rnr_retry_count = param->rnr_retry_count,
		.ack_timeout = id->ack_timeout_set ? id->ack_timeout : 0,
		.flow_control = param->flow_control,
		.srq = param->srq,
		.ece = {id->local_ece.vendor_id, id->local_ece.options},
		.private = {data.bytes, data.len},
		.user = id,
	};
	fill_path(id, &ask.path);
	id->responder_resources = param->responder_resources;
	struct roci_cm *cm = cma_lock_cm(id);
	if (!cm)
		return -ENODEV;
	err = roci_conn_connect(cm, roci_now(), &ask, &id->conn);
	cma_unlock_cm(id);
	return err;
}

int rdma_connect(struct rdma_cm_id *rid, struct rdma_conn_param *given)
{
	if (!rid)
		return cma_error(EINVAL);
	struct cma_id *id = cma_id(rid);
	struct rdma_conn_param param;
	int err = choose_params(id, given, &param);
	if (!err && id->state != CMA_ROUTE_RESOLVED)
		err = CMA_REFUSE(-EINVAL, "the id is %s; rdma_connect() comes after RDMA_CM_EVENT_ROUTE_RESOLVED",
				 cma_state_name(id));
	if (err)
		return cma_error(err);
	err = cma_is_ud(id) ? connect_datagram(id, &param) : connect_connected(id, &param);
	if (err)
		return cma_error(err);
	id->state = CMA_CONNECT;
	return cma_complete(id);
}

/* For programs that modify their QP themselves, after RDMA_CM_EVENT_CONNECT_RESPONSE. */
int rdma_establish(struct rdma_cm_id *rid)
{
	if (!rid)
		return cma_error(EINVAL);
	if (rid->qp)
		return cma_error(CMA_REFUSE(EINVAL, "the id has a QP: rdma_cm establishes the connection itself"));
	return cma_result(cma_establish(cma_id(rid)));
}

int cma_establish(struct cma_id *id)
{
	if (!cma_lock_cm(id))
		return -ENODEV;
	/* Another thread may destroy the id while this one processes its event. */
	int err = id->conn ? roci_conn_establish(id->conn, roci_now(), (struct roci_cm_bytes){0}) : -EINVAL;
	if (!err)
		roci_cm_host_established(id->dev, id->conn);
	if (err == -EINVAL)
		roci_verbs_why("the id is %s; rdma_establish() comes after RDMA_CM_EVENT_CONNECT_RESPONSE",
			       cma_state_name(id));
	cma_unlock_cm(id);
	return err;
}

/* ---- the passive side ---- */

static int accept_datagram(struct cma_id *id, const struct rdma_conn_param *param)
{
	int err = check_private_data(param, ROCI_CM_SIDR_REP_PRIVATE);
	if (err)
		return err;
	struct roci_cm_sidr_answer answer = {
		.status = ROCI_SIDR_SUCCESS,
		.qpn = param->qp_num,
		.qkey = id->qkey ? id->qkey : RDMA_UDP_QKEY,
		.private = {param->private_data, param->private_data_len},
	};
	if (!cma_lock_cm(id))
		return -ENODEV;
	err = roci_sidr_answer(id->sidr, roci_now(), &answer);
	if (!err)
		cma_request_answered(id);
	cma_unlock_cm(id);
	return err;
}

static int accept_connected(struct cma_id *id, const struct rdma_conn_param *param)
{
	int err = check_private_data(param, ROCI_CM_REP_PRIVATE);
	if (err)
		return err;
	if (!cma_is_alive(id))
		return -ENODEV;
	if (id->id.qp) {
		err = cma_qp_to_rtr(id, param->responder_resources);
		if (!err)
			err = cma_qp_to_rts(id, param->initiator_depth);
		if (err)
			return err;
	}
	struct roci_cm_accept answer = {
		.qpn = param->qp_num,
		.starting_psn = id->psn,
		.responder_resources = param->responder_resources,
		.initiator_depth = param->initiator_depth,
		.rnr_retry_count = param->rnr_retry_count,
		.flow_control = param->flow_control,
		.srq = param->srq,
		.ece = {id->local_ece.vendor_id, id->local_ece.options},
		.private = {param->private_data, param->private_data_len},
	};
	cma_lock_cm(id);
	err = roci_conn_accept(id->conn, roci_now(), &answer);
	id->accepted = !err; /* under the lock: the next event must see it */
	if (!err)
		cma_request_answered(id);
	cma_unlock_cm(id);
	if (err)
		cma_qp_to_err(id);
	return err;
}

/* The parameters of the request, within the device's limits. */
static void params_of_request(const struct cma_id *id, struct rdma_conn_param *param)
{
	struct cma_limits limits = cma_device_limits();
	*param = id->request;
	param->responder_resources = min_u8(param->responder_resources, limits.responder_resources);
	param->initiator_depth = min_u8(param->initiator_depth, limits.initiator_depth);
	if (id->id.qp) {
		param->qp_num = id->id.qp->qp_num;
		param->srq = id->id.qp->srq != NULL;
	}
}

static int choose_accept(const struct cma_id *id, const struct rdma_conn_param *given, struct rdma_conn_param *param)
{
	int err = choose_params(id, given, param);
	if (err)
		return err;
	if (!given) {
		params_of_request(id, param);
		return 0;
	}
	/* "The maximum" means: as much as the request offers. */
	if (given->responder_resources == RDMA_MAX_RESP_RES)
		param->responder_resources = min_u8(param->responder_resources, id->request.responder_resources);
	if (given->initiator_depth == RDMA_MAX_INIT_DEPTH)
		param->initiator_depth = min_u8(param->initiator_depth, id->request.initiator_depth);
	return 0;
}

int rdma_accept(struct rdma_cm_id *rid, struct rdma_conn_param *given)
{
	if (!rid)
		return cma_error(EINVAL);
	struct cma_id *id = cma_id(rid);
	struct rdma_conn_param param;
	if (!id->passive || id->accepted)
		return cma_error(CMA_REFUSE(
			EINVAL, "the id is %s; rdma_accept() takes the id of RDMA_CM_EVENT_CONNECT_REQUEST, once",
			id->accepted ? "accepted already" : cma_state_name(id)));
	int err = choose_accept(id, given, &param);
	if (err)
		return cma_error(err);
	if (cma_is_ud(id)) {
		err = accept_datagram(id, &param);
		id->accepted = !err;
		return cma_result(err);
	}
	err = accept_connected(id, &param);
	return err ? cma_error(err) : cma_complete(id);
}

static int reject(struct cma_id *id, enum roci_cm_reason reason, struct roci_cm_bytes private)
{
	unsigned room = cma_is_ud(id) ? ROCI_CM_SIDR_REP_PRIVATE : ROCI_CM_REJ_PRIVATE;
	if ((private.len && !private.data) || private.len > room)
		return CMA_REFUSE(-EINVAL, "private_data %p, private_data_len %u: at most %u bytes", private.data,
				  (unsigned)private.len, room);
	int err;
	if (!cma_lock_cm(id))
		return -ENODEV;
	if (id->conn)
		err = roci_conn_reject(id->conn, roci_now(), reason, (struct roci_cm_bytes){0}, private);
	else if (id->sidr && id->passive)
		err = roci_sidr_answer(id->sidr, roci_now(),
				       &(struct roci_cm_sidr_answer){.status = ROCI_SIDR_REJECT, .private = private});
	else
		err = CMA_REFUSE(-EINVAL, "the id is %s; rdma_reject() takes the id of RDMA_CM_EVENT_CONNECT_REQUEST",
				 cma_state_name(id));
	if (!err && id->passive)
		cma_request_answered(id);
	cma_unlock_cm_last(id);
	return err;
}

int rdma_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
	struct roci_cm_bytes private = {private_data, private_data_len};
	return id ? cma_result(reject(cma_id(id), ROCI_REJ_CONSUMER_DEFINED, private)) : cma_error(EINVAL);
}

int rdma_reject_ece(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
	struct roci_cm_bytes private = {private_data, private_data_len};
	return id ? cma_result(reject(cma_id(id), ROCI_REJ_VENDOR_OPTION, private)) : cma_error(EINVAL);
}

/* ---- both ---- */

int rdma_notify(struct rdma_cm_id *rid, enum ibv_event_type event)
{
	if (!rid)
		return cma_error(EINVAL);
	if (!cma_id(rid)->conn || event != IBV_EVENT_COMM_EST)
		return cma_error(CMA_REFUSE(EINVAL,
					    "event %d, and the id is %s: IBV_EVENT_COMM_EST of a connection is allowed",
					    (int)event, cma_state_name(cma_id(rid))));
	if (!cma_lock_cm(cma_id(rid)))
		return cma_error(ENODEV);
	int err = roci_conn_notify(cma_id(rid)->conn, roci_now());
	cma_unlock_cm(cma_id(rid));
	return cma_result(err);
}

int rdma_disconnect(struct rdma_cm_id *rid)
{
	if (!rid || !cma_id(rid)->conn)
		return cma_error(CMA_REFUSE(EINVAL, "the id has no connection"));
	struct cma_id *id = cma_id(rid);
	cma_qp_to_err(id);
	if (!cma_lock_cm(id))
		return cma_error(ENODEV);
	/* -EINVAL: it is disconnected already, or never connected. No error: both sides may disconnect at once. */
	int err = roci_conn_disconnect(id->conn, roci_now(), (struct roci_cm_bytes){0});
	if (id->disconnected) /* the peer knows, and the answer to it may wait */
		cma_unlock_cm(id);
	else
		cma_unlock_cm_disconnected(id);
	if (err || (rid->event && rid->event->event == RDMA_CM_EVENT_DISCONNECTED))
		return 0;
	return cma_complete(id);
}
