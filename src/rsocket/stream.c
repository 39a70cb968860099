/* SPDX-License-Identifier: BSD-2-Clause */
/* A stream's messages: sending, receiving, credits, and waiting for progress. */
#include <poll.h>
#include <stdlib.h>

#include "rsocket/rsocket.h"

#define MAX_TRANSFER 65536
#define POLL_BATCH   16
#define CM_TURNS     64
#define RECV_WR      UINT64_MAX /* wr_id of receives; those of sends are messages */

/* ---- what can be done ---- */

bool rs_can_send(const struct rs *rs)
{
	return rs->state == RS_CONNECTED && rs->writable && rs->sq_avail && rs->sbuf_avail && rs->sent != rs->allowed &&
	       rs->targets[rs->target].length;
}

bool rs_can_send_ctrl(const struct rs *rs)
{
	return rs->state == RS_CONNECTED && rs->ctrl_used < RS_CTRL_SLOTS;
}

bool rs_has_data(const struct rs *rs)
{
	return rs->first != rs->last;
}

bool rs_send_is_decided(const struct rs *rs)
{
	return rs_can_send(rs) || (rs->state == RS_CONNECTED && !rs->writable) ||
	       (rs->state != RS_CONNECTED && rs->state != RS_CONNECTING);
}

bool rs_recv_is_decided(const struct rs *rs)
{
	return rs_has_data(rs) || (rs->state == RS_CONNECTED && !rs->readable) ||
	       (rs->state != RS_CONNECTED && rs->state != RS_CONNECTING);
}

/* ---- posting ---- */

int rs_post_recv(struct rs *rs)
{
	struct ibv_recv_wr wr = {.wr_id = RECV_WR}, *bad;
	return -ibv_post_recv(rs->id->qp, &wr, &bad);
}

static int post(struct rs *rs, struct ibv_sge *sges, int count, uint32_t msg, uint64_t addr, uint32_t key, bool imm,
		bool is_inline)
{
	struct ibv_send_wr wr =
				   {
					   .wr_id = msg,
					   .sg_list = sges,
					   .num_sge = count,
					   .opcode = imm ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE,
					   .send_flags = is_inline ? IBV_SEND_INLINE : 0,
					   .imm_data = htonl(msg),
					   .wr.rdma = {.remote_addr = addr, .rkey = key},
				   },
			   *bad;
	int err = -ibv_post_send(rs->id->qp, &wr, &bad);
	if (err && rs->state == RS_CONNECTED) {
		rs->state = RS_ERROR;
		rs->err = EIO;
	}
	return err;
}

/* Copies to the ring of the send buffer, which has room. Returns the number of SGEs. */
static int copy_out(struct rs *rs, const uint8_t *buf, uint32_t len, struct ibv_sge sges[2])
{
	uint32_t to_end = rs->sbuf_size - rs->sbuf_offset, first = len < to_end ? len : to_end;
	memcpy(rs->sbuf + rs->sbuf_offset, buf, first);
	memcpy(rs->sbuf, buf + first, len - first);
	sges[0] = (struct ibv_sge){(uintptr_t)rs->sbuf + rs->sbuf_offset, first, rs->smr->lkey};
	sges[1] = (struct ibv_sge){(uintptr_t)rs->sbuf, len - first, rs->smr->lkey};
	rs->sbuf_offset = (rs->sbuf_offset + len) % rs->sbuf_size;
	return len > first ? 2 : 1;
}

int rs_post_data(struct rs *rs, const uint8_t *buf, uint32_t len, uint32_t msg, uint64_t addr, uint32_t key, bool imm)
{
	struct ibv_sge sges[2];
	int count = copy_out(rs, buf, len, sges);
	rs->sbuf_avail -= len;
	rs->sq_avail--;
	return post(rs, sges, count, msg, addr, key, imm, len <= rs->inline_size);
}

/* Grows from small to large, so that the peer reads the beginning while the rest is on its way. */
uint32_t rs_send_some(struct rs *rs, const uint8_t *buf, uint32_t len)
{
	uint32_t done = 0, chunk = 2048;
	while (done < len && rs_can_send(rs)) {
		struct rs_sge *target = &rs->targets[rs->target];
		uint32_t now = len - done < chunk ? len - done : chunk;
		now = now < rs->sbuf_avail ? now : rs->sbuf_avail;
		now = now < target->length ? now : target->length;
		chunk = chunk < MAX_TRANSFER ? 2 * chunk : chunk;
		uint64_t addr = target->addr;
		target->addr += now;
		target->length -= now;
		if (!target->length)
			rs->target = (rs->target + 1) % RS_TARGETS;
		rs->sent++;
		uint32_t key = target->key;
		if (rs_post_data(rs, buf + done, now, rs_msg(RS_OP_DATA, now), addr, key, true))
			break;
		done += now;
	}
	return done;
}

int rs_post_ctrl(struct rs *rs, enum rs_ctrl ctrl)
{
	rs->ctrl_used++;
	return post(rs, NULL, 0, rs_msg(RS_OP_CTRL, ctrl), 0, 0, true, false);
}

static bool owes_credits(const struct rs *rs)
{
	return rs->rbuf_avail >= rs->rbuf_size / 2 || (int16_t)(rs->received - rs->granted) >= 0;
}

void rs_give_credits(struct rs *rs)
{
	if (!owes_credits(rs) || !rs_can_send_ctrl(rs))
		return;
	rs->ctrl_used++;
	rs->granted = (uint16_t)(rs->received + rs->rq_size / 2);
	uint32_t half = rs->rbuf_size / 2, msg = rs_msg(RS_OP_SGL, (uint16_t)(rs->received + rs->rq_size));
	if (rs->rbuf_avail < half) {
		post(rs, NULL, 0, msg, 0, 0, true, false);
		return;
	}
	struct rs_sge target = {(uintptr_t)rs->rbuf + rs->rbuf_free, rs->rmr->rkey, half};
	struct ibv_sge sge = {(uintptr_t)&target, sizeof(target), 0};
	rs->rbuf_avail -= half;
	rs->rbuf_free = (rs->rbuf_free + half) % (2 * half);
	uint64_t addr = rs->peer_targets.addr + rs->peer_target * sizeof(struct rs_sge);
	rs->peer_target = (rs->peer_target + 1) % rs->peer_targets.length;
	post(rs, &sge, 1, msg, addr, rs->peer_targets.key, true, true);
}

/* ---- completions ---- */

static void received_ctrl(struct rs *rs, uint32_t ctrl)
{
	if (ctrl == RS_CTRL_SHUTDOWN && rs->writable)
		rs->readable = false;
	else if (ctrl == RS_CTRL_SHUTDOWN || ctrl == RS_CTRL_DISCONNECT)
		rs->state = RS_DISCONNECTED;
}

/* The peer says how much it has written: no more messages than its credits, no more bytes than the buffer has free. */
static void received_data(struct rs *rs, uint32_t len)
{
	unsigned next = (rs->last + 1) % (rs->rq_size + 1);
	if (next == rs->first || !len || len > rs_ring_size(rs) - rs->unread) {
		rs->state = RS_ERROR;
		rs->err = EPROTO;
		return;
	}
	rs->messages[rs->last] = len;
	rs->last = next;
	rs->unread += len;
}

static void received(struct rs *rs, uint32_t msg)
{
	switch (rs_msg_op(msg)) {
	case RS_OP_SGL: rs->allowed = (uint16_t)rs_msg_value(msg); break;
	case RS_OP_CTRL: received_ctrl(rs, rs_msg_value(msg)); break;
	case RS_OP_DATA: received_data(rs, rs_msg_value(msg)); break;
	case RS_OP_IOMAP_SGL: rs->received++; break; /* it took a credit; its data is where it belongs already */
	default: break;
	}
}

static void sent(struct rs *rs, uint32_t msg)
{
	switch (rs_msg_op(msg)) {
	case RS_OP_SGL:
	case RS_OP_CTRL: rs->ctrl_used--; break;
	case RS_OP_IOMAP_SGL:
		rs->sq_avail++;
		rs->sbuf_avail += sizeof(struct rs_iomap);
		break;
	default:
		rs->sq_avail++;
		rs->sbuf_avail += rs_msg_value(msg);
		break;
	}
}

static void completed(struct rs *rs, const struct ibv_wc *wc)
{
	if (wc->wr_id != RECV_WR)
		sent(rs, (uint32_t)wc->wr_id);
	if (wc->status != IBV_WC_SUCCESS) {
		if (rs->state == RS_CONNECTED) {
			rs->state = RS_ERROR;
			rs->err = wc->status == IBV_WC_RETRY_EXC_ERR ? ETIMEDOUT : EIO;
		}
		return;
	}
	if (wc->wr_id == RECV_WR) {
		received(rs, ntohl(wc->imm_data));
		rs_post_recv(rs);
	}
}

void rs_progress(struct rs *rs)
{
	struct ibv_wc wcs[POLL_BATCH];
	int count = 0;
	/* Before the CQ: what arrived before the connection ended is there when that is told. A system call, so not at
	 * every turn of a program that polls. */
	if (rs->state != RS_CONNECTED || rs->turns++ % CM_TURNS == 0)
		rs_cm_events(rs);
	if (rs->id && rs->id->recv_cq) {
		while ((count = ibv_poll_cq(rs->id->recv_cq, POLL_BATCH, wcs)) > 0) {
			for (int i = 0; i < count; i++)
				completed(rs, &wcs[i]);
			pthread_cond_broadcast(&rs->moved);
		}
	}
	if (rs->state == RS_CONNECTED) {
		rs_give_credits(rs);
		rs_send_maps(rs);
	}
}

/* ---- waiting ---- */

void rs_take_cq_events(struct rs *rs)
{
	struct ibv_cq *cq;
	void *context;
	unsigned count = 0;
	if (!rs->id || !rs->id->recv_cq_channel)
		return;
	while (!ibv_get_cq_event(rs->id->recv_cq_channel, &cq, &context))
		count++;
	if (count)
		ibv_ack_cq_events(rs->id->recv_cq, count);
}

void rs_arm(struct rs *rs)
{
	rs->turns = 0; /* what comes next may be a sleep on both descriptors */
	if (rs->id && rs->id->recv_cq)
		ibv_req_notify_cq(rs->id->recv_cq, 0);
}

/* Sleeps on both descriptors with the lock released. */
static int sleep_on_descriptors(struct rs *rs, uint64_t deadline)
{
	struct pollfd fds[2] = {{.fd = rs->channel->fd, .events = POLLIN}, {.fd = -1, .events = POLLIN}};
	uint64_t now = roci_now(), left = deadline > now ? deadline - now : 0;
	if (rs->id && rs->id->recv_cq_channel)
		fds[1].fd = rs->id->recv_cq_channel->fd;
	if (!left)
		return -ETIMEDOUT;
	pthread_mutex_unlock(&rs->lock);
	int err = poll(fds, 2, deadline == RS_NEVER ? -1 : (int)((left + 999999) / 1000000)) < 0 ? -errno : 0;
	pthread_mutex_lock(&rs->lock);
	rs_take_cq_events(rs);
	return err;
}

/* One of the threads that wait sleeps on the descriptors; the others on what it finds. */
int rs_wait_until(struct rs *rs, uint64_t deadline, bool (*done)(const struct rs *rs))
{
	for (;;) {
		rs_progress(rs);
		if (done(rs))
			return 0;
		if (!deadline)
			return -EAGAIN;
		if (rs->leader) {
			pthread_cond_wait(&rs->moved, &rs->lock);
			continue;
		}
		rs->leader = true;
		rs_arm(rs);
		rs_progress(rs);
		int err = done(rs) ? 0 : sleep_on_descriptors(rs, deadline);
		rs->leader = false;
		pthread_cond_broadcast(&rs->moved);
		if (err)
			return err;
	}
}

int rs_wait(struct rs *rs, bool nonblock, bool (*done)(const struct rs *rs))
{
	return rs_wait_until(rs, nonblock ? 0 : RS_NEVER, done);
}
