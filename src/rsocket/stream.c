/* SPDX-License-Identifier: BSD-2-Clause */
/* A stream's messages: sending, receiving, credits. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "rsocket/rsocket.h"

#define MAX_TRANSFER 65536
#define POLL_BATCH   16
#define CM_POLLS     64         /* between two checks of the event channel */
#define RECV_WR      UINT64_MAX /* wr_id of receives; the wr_id of a send is its message */

/* ---- what can be done ---- */

bool rs_stream_can_send(const struct rs *rs)
{
	return rs->state == RS_CONNECTED && rs->writable && rs->send.sq_room && rs->send.room &&
	       rs->send.messages != rs->send.allowed && rs->send.targets[rs->send.target].length;
}

bool rs_stream_can_send_ctrl(const struct rs *rs)
{
	return rs->state == RS_CONNECTED && rs->send.ctrl_used < RS_CTRL_SLOTS;
}

bool rs_stream_has_data(const struct rs *rs)
{
	return rs->recv.first != rs->recv.last;
}

bool rs_stream_send_is_decided(const struct rs *rs)
{
	return rs_stream_can_send(rs) || (rs->state == RS_CONNECTED && !rs->writable) ||
	       (rs->state != RS_CONNECTED && rs->state != RS_CONNECTING);
}

bool rs_stream_recv_is_decided(const struct rs *rs)
{
	return rs_stream_has_data(rs) || (rs->state == RS_CONNECTED && !rs->readable) ||
	       (rs->state != RS_CONNECTED && rs->state != RS_CONNECTING);
}

/* ---- posting ---- */

int rs_stream_post_recv(struct rs *rs)
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

/* Copies to the ring of the send buffer. Returns the number of SGEs. */
static int copy_out(struct rs *rs, const uint8_t *buf, uint32_t len, struct ibv_sge sges[2])
{
	uint32_t to_end = rs->options.sbuf_size - rs->send.offset, first = len < to_end ? len : to_end;
	memcpy(rs->send.buf + rs->send.offset, buf, first);
	memcpy(rs->send.buf, buf + first, len - first);
	sges[0] = (struct ibv_sge){(uintptr_t)rs->send.buf + rs->send.offset, first, rs->send.mr->lkey};
	sges[1] = (struct ibv_sge){(uintptr_t)rs->send.buf, len - first, rs->send.mr->lkey};
	rs->send.offset = (rs->send.offset + len) % rs->options.sbuf_size;
	return len > first ? 2 : 1;
}

int rs_stream_post_data(struct rs *rs, const uint8_t *buf, uint32_t len, uint32_t msg, uint64_t addr, uint32_t key,
			bool imm)
{
	struct ibv_sge sges[2];
	int count = copy_out(rs, buf, len, sges);
	rs->send.room -= len;
	rs->send.sq_room--;
	return post(rs, sges, count, msg, addr, key, imm, len <= rs->options.inline_size);
}

/* The peer may write to the entry at any time: each field is read once. */
static struct rs_sge fetch_target(const volatile struct rs_sge *entry)
{
	return (struct rs_sge){.addr = entry->addr, .key = entry->key, .length = entry->length};
}

/* Begins with small messages, so that the peer reads them while larger ones are on their way. */
uint32_t rs_stream_send(struct rs *rs, const uint8_t *buf, uint32_t len)
{
	uint32_t done = 0, chunk = 2048;
	while (done < len && rs_stream_can_send(rs)) {
		struct rs_sge *entry = &rs->send.targets[rs->send.target], target = fetch_target(entry);
		uint32_t now = len - done < chunk ? len - done : chunk;
		now = now < rs->send.room ? now : rs->send.room;
		now = now < target.length ? now : target.length;
		if (!now)
			break; /* the peer has taken it back */
		chunk = chunk < MAX_TRANSFER ? 2 * chunk : chunk;
		entry->addr = target.addr + now;
		entry->length = target.length - now;
		if (now == target.length)
			rs->send.target = (rs->send.target + 1) % RS_TARGETS;
		rs->send.messages++;
		if (rs_stream_post_data(rs, buf + done, now, rs_msg(RS_OP_DATA, now), target.addr, target.key, true))
			break;
		done += now;
	}
	return done;
}

int rs_stream_post_ctrl(struct rs *rs, enum rs_ctrl ctrl)
{
	rs->send.ctrl_used++;
	return post(rs, NULL, 0, rs_msg(RS_OP_CTRL, ctrl), 0, 0, true, false);
}

static bool credits_are_due(const struct rs *rs)
{
	return rs->recv.freed >= rs->options.rbuf_size / 2 || (int16_t)(rs->recv.messages - rs->recv.granted) >= 0;
}

void rs_stream_give_credits(struct rs *rs)
{
	if (!credits_are_due(rs) || !rs_stream_can_send_ctrl(rs))
		return;
	rs->send.ctrl_used++;
	rs->recv.granted = (uint16_t)(rs->recv.messages + rs->options.rq_size / 2);
	uint32_t half = rs->options.rbuf_size / 2,
		 msg = rs_msg(RS_OP_SGL, (uint16_t)(rs->recv.messages + rs->options.rq_size));
	if (rs->recv.freed < half) {
		post(rs, NULL, 0, msg, 0, 0, true, false);
		return;
	}
	struct rs_sge target = {(uintptr_t)rs->recv.buf + rs->recv.next_half, rs->recv.mr->rkey, half};
	struct ibv_sge sge = {(uintptr_t)&target, sizeof(target), 0};
	rs->recv.freed -= half;
	rs->recv.next_half = (rs->recv.next_half + half) % (2 * half);
	uint64_t addr = rs->recv.peer_targets.addr + rs->recv.peer_target * sizeof(struct rs_sge);
	rs->recv.peer_target = (rs->recv.peer_target + 1) % rs->recv.peer_targets.length;
	post(rs, &sge, 1, msg, addr, rs->recv.peer_targets.key, true, true);
}

/* ---- completions ---- */

static void received_ctrl(struct rs *rs, uint32_t ctrl)
{
	if (ctrl == RS_CTRL_SHUTDOWN && rs->writable)
		rs->readable = false;
	else if (ctrl == RS_CTRL_SHUTDOWN || ctrl == RS_CTRL_DISCONNECT)
		rs->state = RS_DISCONNECTED;
}

/* The peer has written `len` bytes. More messages than its credits, or more bytes than were free, are an error. */
static void received_data(struct rs *rs, uint32_t len)
{
	unsigned next = (rs->recv.last + 1) % (rs->options.rq_size + 1);
	if (next == rs->recv.first || !len || len > rs_ring_size(rs) - rs->recv.unread) {
		rs->state = RS_ERROR;
		rs->err = EPROTO;
		return;
	}
	rs->recv.lengths[rs->recv.last] = len;
	rs->recv.last = next;
	rs->recv.unread += len;
}

static void received(struct rs *rs, uint32_t msg)
{
	switch (rs_msg_op(msg)) {
	case RS_OP_SGL: rs->send.allowed = (uint16_t)rs_msg_value(msg); break;
	case RS_OP_CTRL: received_ctrl(rs, rs_msg_value(msg)); break;
	case RS_OP_DATA: received_data(rs, rs_msg_value(msg)); break;
	case RS_OP_IOMAP_SGL: rs->recv.messages++; break; /* it used a credit; its data is in place */
	default: break;
	}
}

static void sent(struct rs *rs, uint32_t msg)
{
	switch (rs_msg_op(msg)) {
	case RS_OP_SGL:
	case RS_OP_CTRL: rs->send.ctrl_used--; break;
	case RS_OP_IOMAP_SGL:
		rs->send.sq_room++;
		rs->send.room += sizeof(struct rs_iomap);
		break;
	default:
		rs->send.sq_room++;
		rs->send.room += rs_msg_value(msg);
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
		rs_stream_post_recv(rs);
	}
}

void rs_stream_progress(struct rs *rs)
{
	struct ibv_wc wcs[POLL_BATCH];
	int count = 0;
	/* Events first: the CQ then has all data that arrived before the end of the connection. It is a system call, so
	 * a program that polls makes it only now and then. */
	if (rs->state != RS_CONNECTED || rs->polls++ % CM_POLLS == 0)
		rs_conn_take_events(rs);
	if (rs->id && rs->id->recv_cq) {
		while ((count = ibv_poll_cq(rs->id->recv_cq, POLL_BATCH, wcs)) > 0) {
			for (int i = 0; i < count; i++)
				completed(rs, &wcs[i]);
			pthread_cond_broadcast(&rs->progressed);
		}
	}
	if (rs->state == RS_CONNECTED) {
		rs_stream_give_credits(rs);
		rs_iomap_send(rs);
	}
}
