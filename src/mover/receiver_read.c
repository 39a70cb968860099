/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "mover/receiver.h"
#include "mover/scarce.h"
#include "mover/wr_id.h"

#define RXE_READS      4 /* under way, of all windows */
#define RXE_READ_BYTES (64u << 10)

static bool begin_read(struct receiver *r, struct descriptor *descriptor, struct recv_window *w)
{
	struct session *s = &r->s;
	int err = window_open(&s->pool, w->window);

	/* In iWARP the peer learns a key of the buffer that is read into (RFC 5040 s.4.4). So that key too is made for
	 * one use. */
	if (!err && s->dev.iwarp)
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
	struct ibv_sge sge = {(uintptr_t)w->window->bytes + descriptor->asked, len, window_lkey(w->window)};
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

/* A window that has been read, and the sender does not know it. */
static bool is_to_announce(const struct receiver *r, const struct descriptor *descriptor)
{
	return descriptor->reading && !descriptor->announced &&
	       r->windows.list[descriptor->window].state == RECV_WINDOW_ARRIVED;
}

/* How many windows the next FIN names. Few credits: it waits for more windows. */
static unsigned count_announcements(const struct receiver *r)
{
	const struct session *s = &r->s;
	unsigned count = 0;

	for (uint64_t seq = r->descriptors.done; seq < r->descriptors.received; seq++)
		count += is_to_announce(r, descriptors_at(r, seq));
	if (!control_is_roomy(&s->control) && r->reads.under_way && !scarce_enough(count, s->pool.count, SCARCE_GRANTS))
		return 0;
	return count && !s->control.peer_takes ? 1 : count;
}

/* At once, so that the sender can revoke its keys and fill the windows again. */
static bool announce_reads(struct receiver *r)
{
	unsigned count = count_announcements(r);
	struct cursor_out *out = count ? session_begin(&r->s, PROTO_FIN) : NULL;

	if (!out)
		return false;
	for (uint64_t seq = r->descriptors.done; count; seq++) {
		struct descriptor *descriptor = descriptors_at(r, seq);
		struct proto_descriptor d = {
			.seq = seq, .window = descriptor->grant.window, .lane = descriptor->d.lane};

		if (!is_to_announce(r, descriptor))
			continue;
		session_step(&r->s, "FIN", "window %u has been read", d.window);
		proto_put_descriptor(out, &d);
		descriptor->announced = true;
		count--;
	}
	session_send(&r->s);
	return true;
}

bool read_pump(struct receiver *r)
{
	const struct descriptors *all = &r->descriptors;
	bool any = false;

	for (uint64_t seq = all->done; seq < all->received && r->s.status == MOVER_OK; seq++) {
		struct descriptor *descriptor = descriptors_at(r, seq);
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
	}
	while (r->s.status == MOVER_OK && announce_reads(r))
		any = true;
	return any;
}
