/* SPDX-License-Identifier: BSD-2-Clause */
/* A stream's connection: its QP and buffers, what both sides tell each other, and its end. */
#include <endian.h>
#include <fcntl.h>
#include <stdlib.h>

#include "rsocket/rsocket.h"

#define TAIL_PATIENCE_NS 30000000000u /* without progress, at the end of a stream */

static bool host_is_big_endian(void)
{
	return htobe32(1) == 1;
}

static int create_buffers(struct rs *rs)
{
	struct ibv_pd *pd = rs->id->pd;
	size_t targets_size = RS_TARGETS * sizeof(struct rs_sge) + (size_t)rs->iomap_size * sizeof(struct rs_iomap);
	rs->messages = calloc(rs->rq_size + 1, sizeof(*rs->messages));
	rs->sbuf = calloc(1, rs->sbuf_size);
	rs->rbuf = calloc(1, rs->rbuf_size);
	rs->targets = calloc(1, targets_size);
	if (!rs->messages || !rs->sbuf || !rs->rbuf || !rs->targets)
		return -ENOMEM;
	rs->peer_maps = (struct rs_iomap *)(rs->targets + RS_TARGETS);
	rs->smr = ibv_reg_mr(pd, rs->sbuf, rs->sbuf_size, IBV_ACCESS_LOCAL_WRITE);
	rs->rmr = ibv_reg_mr(pd, rs->rbuf, rs->rbuf_size, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	rs->targets_mr = ibv_reg_mr(pd, rs->targets, targets_size, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!rs->smr || !rs->rmr || !rs->targets_mr)
		return -errno;
	rs->sbuf_avail = rs->sbuf_size;
	rs->sq_avail = rs->sq_size - RS_CTRL_SLOTS;
	/* The first half goes with the connection request or reply; the second is to be given. */
	rs->rbuf_free = rs->rbuf_avail = rs->rbuf_size / 2;
	rs->granted = (uint16_t)(rs->rq_size / 2);
	return 0;
}

/* The peer's control messages take receives, too, but no credits. */
static uint32_t recv_room(const struct rs *rs)
{
	return rs->rq_size + RS_CTRL_SLOTS;
}

static int set_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);
	return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) ? -errno : 0;
}

int rs_create_cq(struct rdma_cm_id *id, uint32_t size)
{
	id->recv_cq_channel = ibv_create_comp_channel(id->verbs);
	if (!id->recv_cq_channel)
		return -errno;
	int err = set_nonblocking(id->recv_cq_channel->fd);
	if (err)
		return err;
	id->recv_cq = ibv_create_cq(id->verbs, (int)size, id, id->recv_cq_channel, 0);
	return id->recv_cq ? 0 : -errno;
}

/* The CQ is ours to destroy: rdma_destroy_qp() does so only with what rdma_create_qp() has made. */
void rs_destroy_qp(struct rdma_cm_id *id)
{
	rdma_destroy_qp(id);
	if (id->recv_cq)
		ibv_destroy_cq(id->recv_cq);
	id->recv_cq = NULL;
	if (id->recv_cq_channel)
		ibv_destroy_comp_channel(id->recv_cq_channel);
	id->recv_cq_channel = NULL;
}

int rs_create_qp(struct rs *rs)
{
	int err = rs_create_cq(rs->id, rs->sq_size + recv_room(rs));
	if (err)
		return err;
	struct ibv_qp_init_attr attr = {
		.qp_context = rs,
		.send_cq = rs->id->recv_cq,
		.recv_cq = rs->id->recv_cq,
		.cap = {.max_send_wr = rs->sq_size,
			.max_recv_wr = recv_room(rs),
			.max_send_sge = 2,
			.max_recv_sge = 1,
			.max_inline_data = rs->inline_size},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	if (rdma_create_qp(rs->id, NULL, &attr))
		return -errno;
	rs->inline_size = attr.cap.max_inline_data;
	err = create_buffers(rs);
	for (uint32_t i = 0; !err && i < recv_room(rs); i++)
		err = rs_post_recv(rs);
	return err;
}

void rs_conn_data(const struct rs *rs, struct rs_conn_data *data)
{
	*data = (struct rs_conn_data){
		.version = RS_VERSION,
		.flags = RS_CONN_FLAG_IOMAP | (host_is_big_endian() ? RS_CONN_FLAG_NET : 0),
		.credits = htobe16((uint16_t)rs->rq_size),
		.iomap_size = (uint8_t)((rs->iomap_size + 7) / 8),
		.target_sgl = {.addr = htobe64((uintptr_t)rs->targets),
			       .key = htobe32(rs->targets_mr->rkey),
			       .length = htobe32(RS_TARGETS)},
		.data_buf = {.addr = htobe64((uintptr_t)rs->rbuf),
			     .key = htobe32(rs->rmr->rkey),
			     .length = htobe32(rs->rbuf_size / 2)},
	};
}

static struct rs_sge sge_of_wire(const struct rs_sge *sge)
{
	return (struct rs_sge){.addr = be64toh(sge->addr), .key = be32toh(sge->key), .length = be32toh(sge->length)};
}

int rs_take_conn_data(struct rs *rs, const struct rdma_conn_param *param)
{
	struct rs_conn_data data;
	if (param->private_data_len < sizeof(data))
		return -EPROTO;
	memcpy(&data, param->private_data, sizeof(data));
	/* A peer of the other byte order would have to write our lists swapped. */
	if (data.version != RS_VERSION || host_is_big_endian() != !!(data.flags & RS_CONN_FLAG_NET))
		return -EPROTO;
	rs->peer_targets = sge_of_wire(&data.target_sgl);
	if (!rs->peer_targets.length)
		return -EPROTO;
	rs->peer_target = 1 % rs->peer_targets.length;
	if (data.flags & RS_CONN_FLAG_IOMAP) {
		rs->peer_iomap = rs->peer_targets;
		rs->peer_iomap.addr += (uint64_t)rs->peer_targets.length * sizeof(struct rs_sge);
		rs->peer_iomap.length = data.iomap_size * 8u;
	}
	rs->targets[0] = sge_of_wire(&data.data_buf);
	rs->allowed = be16toh(data.credits);
	return 0;
}

static void fail(struct rs *rs, int err)
{
	rs->state = RS_ERROR;
	rs->err = err;
}

static void established(struct rs *rs, const struct rdma_cm_event *event)
{
	if (rs->state != RS_CONNECTING)
		return; /* the passive side has begun already */
	int err = rs_take_conn_data(rs, &event->param.conn);
	if (err) {
		fail(rs, -err);
		return;
	}
	rs->state = RS_CONNECTED;
	rs->readable = rs->writable = true;
}

static void cm_event(struct rs *rs, const struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_ESTABLISHED: established(rs, event); break;
	case RDMA_CM_EVENT_REJECTED: fail(rs, ECONNREFUSED); break;
	case RDMA_CM_EVENT_UNREACHABLE: fail(rs, ETIMEDOUT); break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR: fail(rs, ENETUNREACH); break;
	case RDMA_CM_EVENT_CONNECT_ERROR: fail(rs, ECONNABORTED); break;
	case RDMA_CM_EVENT_DISCONNECTED:
		if (rs->state == RS_CONNECTED)
			rs->state = RS_DISCONNECTED;
		rdma_disconnect(rs->id);
		break;
	default: break;
	}
}

void rs_cm_events(struct rs *rs)
{
	struct rdma_cm_event *event;
	if (rs->state == RS_LISTENING || !rs->channel)
		return; /* raccept() fetches requests */
	while (!rdma_get_cm_event(rs->channel, &event)) {
		cm_event(rs, event);
		rdma_ack_cm_event(event);
	}
}

static bool ctrl_is_decided(const struct rs *rs)
{
	return rs_can_send_ctrl(rs) || rs->state != RS_CONNECTED;
}

static bool sends_are_done(const struct rs *rs)
{
	return rs->state != RS_CONNECTED || (rs->sq_avail == rs->sq_size - RS_CTRL_SLOTS && !rs->ctrl_used);
}

/* A signal does not end it: who gives up here ends a stream whose tail the peer does not have. A peer does that lives
 * and takes nothing. */
static int wait_for_all(struct rs *rs, bool (*done)(const struct rs *rs))
{
	uint64_t deadline = roci_now() + TAIL_PATIENCE_NS;
	uint32_t left = rs->sq_size - rs->sq_avail;
	int err;
	while ((err = rs_wait_until(rs, deadline, done))) {
		if (err == -ETIMEDOUT && rs->sq_size - rs->sq_avail < left) {
			left = rs->sq_size - rs->sq_avail;
			deadline = roci_now() + TAIL_PATIENCE_NS;
		} else if (err != -EINTR) {
			break;
		}
	}
	return err;
}

int rs_shutdown(struct rs *rs, int how)
{
	if (rs->state != RS_CONNECTED && rs->state != RS_DISCONNECTED)
		return -ENOTCONN;
	bool told = !rs->writable;
	if (how != SHUT_WR)
		rs->readable = false;
	if (how == SHUT_RD && rs->writable)
		return 0; /* what is written goes on: the peer need not know */
	rs->writable = false;
	enum rs_ctrl ctrl = rs->readable ? RS_CTRL_SHUTDOWN : RS_CTRL_DISCONNECT;
	if (rs->state != RS_CONNECTED || (told && ctrl == RS_CTRL_SHUTDOWN))
		return 0;
	int err = wait_for_all(rs, ctrl_is_decided);
	if (!err && rs->state == RS_CONNECTED)
		err = rs_post_ctrl(rs, ctrl);
	if (!err)
		err = wait_for_all(rs, sends_are_done);
	if (ctrl == RS_CTRL_DISCONNECT && rs->state == RS_CONNECTED)
		rs->state = RS_DISCONNECTED;
	return err;
}
