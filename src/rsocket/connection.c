/* SPDX-License-Identifier: BSD-2-Clause */
/* A stream's connection: its QP and buffers, the private data of both sides, and its end. */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/device.h"
#include "rsocket/rsocket.h"

#define SHUTDOWN_TIMEOUT_NS 30000000000u /* without progress */

static bool host_is_big_endian(void)
{
	return htobe32(1) == 1;
}

static int create_buffers(struct rs *rs)
{
	struct ibv_pd *pd = rs->id->pd;
	size_t targets_size =
		RS_TARGETS * sizeof(struct rs_sge) + (size_t)rs->options.iomap_size * sizeof(struct rs_iomap);
	rs->recv.lengths = calloc(rs->options.rq_size + 1, sizeof(*rs->recv.lengths));
	rs->send.buf = calloc(1, rs->options.sbuf_size);
	rs->recv.buf = calloc(1, rs->options.rbuf_size);
	rs->send.targets = calloc(1, targets_size);
	if (!rs->recv.lengths || !rs->send.buf || !rs->recv.buf || !rs->send.targets)
		return -ENOMEM;
	rs->send.maps = (struct rs_iomap *)(rs->send.targets + RS_TARGETS);
	rs->send.mr = ibv_reg_mr(pd, rs->send.buf, rs->options.sbuf_size, IBV_ACCESS_LOCAL_WRITE);
	rs->recv.mr =
		ibv_reg_mr(pd, rs->recv.buf, rs->options.rbuf_size, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	rs->send.targets_mr =
		ibv_reg_mr(pd, rs->send.targets, targets_size, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!rs->send.mr || !rs->recv.mr || !rs->send.targets_mr)
		return -errno;
	rs->send.room = rs->options.sbuf_size;
	rs->send.sq_room = rs->options.sq_size - RS_CTRL_SLOTS;
	/* The private data names the first half; the second is named later. */
	rs->recv.next_half = rs->recv.freed = rs->options.rbuf_size / 2;
	rs->recv.granted = (uint16_t)(rs->options.rq_size / 2);
	return 0;
}

/* The peer's control messages use receives, but no credits. */
static uint32_t recv_room(const struct rs *rs)
{
	return rs->options.rq_size + RS_CTRL_SLOTS;
}

int rs_conn_create_cq(struct rdma_cm_id *id, uint32_t size)
{
	id->recv_cq_channel = ibv_create_comp_channel(id->verbs);
	if (!id->recv_cq_channel)
		return -errno;
	int err = rs_set_nonblocking(id->recv_cq_channel->fd);
	if (err)
		return err;
	id->recv_cq = ibv_create_cq(id->verbs, (int)size, id, id->recv_cq_channel, 0);
	return id->recv_cq ? 0 : -errno;
}

/* rdma_destroy_qp() destroys only a CQ that rdma_create_qp() has made. This one is ours. */
void rs_conn_destroy_qp(struct rdma_cm_id *id)
{
	rdma_destroy_qp(id);
	if (id->recv_cq)
		ibv_destroy_cq(id->recv_cq);
	id->recv_cq = NULL;
	if (id->recv_cq_channel)
		ibv_destroy_comp_channel(id->recv_cq_channel);
	id->recv_cq_channel = NULL;
}

int rs_conn_create_qp(struct rs *rs)
{
	int err = rs_conn_create_cq(rs->id, rs->options.sq_size + recv_room(rs));
	if (err)
		return err;
	struct ibv_qp_init_attr attr = {
		.qp_context = rs,
		.send_cq = rs->id->recv_cq,
		.recv_cq = rs->id->recv_cq,
		.cap = {.max_send_wr = rs->options.sq_size,
			.max_recv_wr = recv_room(rs),
			.max_send_sge = 2,
			.max_recv_sge = 1,
			.max_inline_data = rs->options.inline_size},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	if (rdma_create_qp(rs->id, NULL, &attr))
		return -errno;
	rs->options.inline_size = attr.cap.max_inline_data;
	err = create_buffers(rs);
	for (uint32_t i = 0; !err && i < recv_room(rs); i++)
		err = rs_stream_post_recv(rs);
	return err;
}

void rs_conn_fill_data(const struct rs *rs, struct rs_conn_data *data)
{
	*data = (struct rs_conn_data){
		.version = RS_VERSION,
		.flags = RS_CONN_FLAG_IOMAP | (host_is_big_endian() ? RS_CONN_FLAG_NET : 0),
		.credits = htobe16((uint16_t)rs->options.rq_size),
		.iomap_size = (uint8_t)((rs->options.iomap_size + 7) / 8),
		.target_sgl = {.addr = htobe64((uintptr_t)rs->send.targets),
			       .key = htobe32(rs->send.targets_mr->rkey),
			       .length = htobe32(RS_TARGETS)},
		.data_buf = {.addr = htobe64((uintptr_t)rs->recv.buf),
			     .key = htobe32(rs->recv.mr->rkey),
			     .length = htobe32(rs->options.rbuf_size / 2)},
	};
}

static struct rs_sge sge_of_wire(const struct rs_sge *sge)
{
	return (struct rs_sge){.addr = be64toh(sge->addr), .key = be32toh(sge->key), .length = be32toh(sge->length)};
}

int rs_conn_take_data(struct rs *rs, const struct rdma_conn_param *param)
{
	struct rs_conn_data data;
	if (param->private_data_len < sizeof(data))
		return -EPROTO;
	memcpy(&data, param->private_data, sizeof(data));
	/* A peer of the other byte order would have to swap the entries of our lists. It does not. */
	if (data.version != RS_VERSION || host_is_big_endian() != !!(data.flags & RS_CONN_FLAG_NET))
		return -EPROTO;
	rs->recv.peer_targets = sge_of_wire(&data.target_sgl);
	if (!rs->recv.peer_targets.length)
		return -EPROTO;
	rs->recv.peer_target = 1 % rs->recv.peer_targets.length;
	if (data.flags & RS_CONN_FLAG_IOMAP) {
		rs->recv.peer_maps = rs->recv.peer_targets;
		rs->recv.peer_maps.addr += (uint64_t)rs->recv.peer_targets.length * sizeof(struct rs_sge);
		rs->recv.peer_maps.length = data.iomap_size * 8u;
	}
	rs->send.targets[0] = sge_of_wire(&data.data_buf);
	rs->send.allowed = be16toh(data.credits);
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
		return; /* the passive side is connected already */
	int err = rs_conn_take_data(rs, &event->param.conn);
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

void rs_conn_take_events(struct rs *rs)
{
	struct rdma_cm_event *event;
	if (rs->state == RS_LISTENING || !rs->channel || rs->sleeping)
		return; /* raccept(), or the thread that sleeps, fetches the events */
	while (!rdma_get_cm_event(rs->channel, &event)) {
		cm_event(rs, event);
		rdma_ack_cm_event(event);
	}
}

static bool ctrl_is_decided(const struct rs *rs)
{
	return rs_stream_can_send_ctrl(rs) || rs->state != RS_CONNECTED;
}

static bool sends_are_done(const struct rs *rs)
{
	return rs->state != RS_CONNECTED ||
	       (rs->send.sq_room == rs->options.sq_size - RS_CTRL_SLOTS && !rs->send.ctrl_used);
}

/* Waits for done(rs), as long as the peer takes data. Signals do not end it: without the rest of the stream the peer
 * would have a truncated one. */
static int wait_with_progress(struct rs *rs, bool (*done)(const struct rs *rs))
{
	uint64_t deadline = roci_now() + SHUTDOWN_TIMEOUT_NS;
	uint32_t left = rs->options.sq_size - rs->send.sq_room;
	int err;
	while ((err = rs_wait_until(rs, deadline, done))) {
		if (err == -ETIMEDOUT && rs->options.sq_size - rs->send.sq_room < left) {
			left = rs->options.sq_size - rs->send.sq_room;
			deadline = roci_now() + SHUTDOWN_TIMEOUT_NS;
		} else if (err != -EINTR) {
			break;
		}
	}
	return err;
}

int rs_conn_shutdown(struct rs *rs, int how)
{
	if (rs->state != RS_CONNECTED && rs->state != RS_DISCONNECTED)
		return -ENOTCONN;
	if (rs->owner != getpid())
		return -ENODEV; /* what a forked child posts never completes */
	bool announced = !rs->writable;
	if (how != SHUT_WR)
		rs->readable = false;
	rs->writable &= how == SHUT_RD;
	rs_wake(rs);
	if (rs->writable)
		return 0; /* writing goes on, so the peer is not told */
	enum rs_ctrl ctrl = rs->readable ? RS_CTRL_SHUTDOWN : RS_CTRL_DISCONNECT;
	if (rs->state != RS_CONNECTED || (announced && ctrl == RS_CTRL_SHUTDOWN))
		return 0;
	int err = wait_with_progress(rs, ctrl_is_decided);
	if (!err && rs->state == RS_CONNECTED)
		err = rs_stream_post_ctrl(rs, ctrl);
	if (!err)
		err = wait_with_progress(rs, sends_are_done);
	if (ctrl == RS_CTRL_DISCONNECT && rs->state == RS_CONNECTED)
		rs->state = RS_DISCONNECTED;
	rs_wake(rs);
	return err;
}
