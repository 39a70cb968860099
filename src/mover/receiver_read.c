/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "mover/receiver.h"
#include "mover/wr_id.h"

#define RXE_READS      4 /* under way, of all windows */
#define RXE_READ_BYTES (64u << 10)

static bool begin_read(struct receiver *r, struct descriptor *descriptor, struct recv_window *w)
{
	struct session *s = &r->s;
	int err = 0;

	/* In iWARP the peer learns a key of the buffer that is read into (RFC 5040 s.4.4). So that key too is made for
	 * one use. */
	if (s->dev.iwarp)
		err = window_grant(&s->pool, w->window, descriptor->grant.len,
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (err) {
		session_fail_errno(s, err, SESSION_NO_MEMORY);
		return false;
	}
	session_step(s, "READ", "window %u: %u bytes on QP %u", descriptor->grant.window, descriptor->grant.len,
		     descriptor->d.lane);
	w->state = RECV_WINDOW_GRANTED;
	w->claimed = w->asking = true;
	descriptor->reading = true;
	descriptor->asked = 0;
	descriptor->window = w->window->index;
	return true;
}

/* The next READ of a window. */
static bool post_read(struct receiver *r, struct descriptor *descriptor, uint32_t len)
{
	struct session *s = &r->s;
	struct recv_window *w = &r->windows.list[descriptor->window];
	struct ibv_sge sge = {(uintptr_t)w->window->bytes + descriptor->asked, len, window_lkey(&s->pool, w->window)};
	struct ibv_send_wr *bad, wr = {
					 .wr_id = wr_id_make(WR_WINDOW, descriptor->d.lane, w->window->index),
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_RDMA_READ,
					 .send_flags = IBV_SEND_SIGNALED,
					 .wr.rdma = {.remote_addr = descriptor->grant.addr + descriptor->asked,
						     .rkey = descriptor->grant.rkey},
				 };
	int err = ibv_post_send(s->lanes.conns[descriptor->d.lane].id->qp, &wr, &bad);

	if (err) {
		session_fail(s, MOVER_LOST, "the connection broke: %s", strerror(err));
		return false;
	}
	descriptor->asked += len;
	w->reads++;
	r->reads.under_way++;
	return true;
}

/* Posts READs of a window. Soft-RoCE answers a READ as fast as it can, and each overrun of the network's queues costs a
 * timeout; so it gets a few short ones at a time. Returns whether all of the window has been asked for. */
static bool post_reads(struct receiver *r, struct descriptor *descriptor)
{
	struct recv_window *w = &r->windows.list[descriptor->window];
	bool gently = r->s.dev.rxe;

	while (descriptor->asked < descriptor->grant.len && (!gently || r->reads.under_way < RXE_READS)) {
		uint32_t left = descriptor->grant.len - descriptor->asked;

		if (!post_read(r, descriptor, gently && left > RXE_READ_BYTES ? RXE_READ_BYTES : left))
			return false;
	}
	w->asking = descriptor->asked < descriptor->grant.len;
	return !w->asking;
}

void read_done(struct receiver *r, unsigned window)
{
	struct recv_window *w = &r->windows.list[window];

	w->reads--;
	r->reads.under_way--;
	if (!w->reads && !w->asking)
		w->state = RECV_WINDOW_ARRIVED;
}

/* At once, so that the sender can revoke its key and fill the window again. */
static bool announce_read(struct receiver *r, struct descriptor *descriptor)
{
	struct proto_descriptor d = {
		.seq = descriptor->d.seq, .window = descriptor->grant.window, .lane = descriptor->d.lane};
	struct cursor_out *out = session_begin(&r->s, PROTO_FIN);

	if (!out)
		return false;
	session_step(&r->s, "FIN", "window %u has been read", d.window);
	proto_put_descriptor(out, &d);
	session_send(&r->s);
	descriptor->announced = true;
	return true;
}

bool read_pump(struct receiver *r)
{
	const struct descriptors *all = &r->descriptors;
	bool any = false;

	for (uint64_t seq = all->done; seq < all->received && r->s.status == MOVER_OK; seq++) {
		struct descriptor *descriptor = &r->descriptors.ring[seq % PROTO_MAX_DESCRIPTORS];
		struct recv_window *w;

		if (!descriptor->d.bytes)
			continue;
		if (!descriptor->reading && !r->s.lanes.conns[descriptor->d.lane].greeted)
			break;
		if (!descriptor->reading) {
			w = windows_free(r);
			if (!w || !begin_read(r, descriptor, w))
				break;
			any = true;
		}
		w = &r->windows.list[descriptor->window];
		if (w->asking && !post_reads(r, descriptor))
			break;
		if (!descriptor->announced && w->state == RECV_WINDOW_ARRIVED)
			any |= announce_read(r, descriptor);
	}
	return any;
}
