/* SPDX-License-Identifier: BSD-2-Clause */
/* From windows onto the wire, in each of the three modes; and the rate limit. */
#include "mover/sender.h"

static unsigned window_index(const struct pack *pack)
{
	return pack->window->index;
}

void dispatch_grant(struct sender *x, struct cursor_in *payload)
{
	uint16_t count = get_u16(payload);
	uint32_t need = x->s.terms.chunk_bytes + (x->s.terms.encrypt ? SECURE_CHUNK_TAG_BYTES : 0);

	if (x->s.terms.mode == MOVER_READ || payload->bad || x->grant_count + count > PROTO_MAX_WINDOWS) {
		session_fail_protocol(&x->s, "grants that nobody needs");
		return;
	}
	for (unsigned i = 0; i < count; i++) {
		struct proto_grant grant;
		if (proto_get_grant(payload, &grant) || grant.len != need || grant.lane >= x->s.lane_count) {
			session_fail_protocol(&x->s, "a malformed GRANT");
			return;
		}
		session_step(&x->s, "GRANT", "window %u: %u bytes, rkey 0x%x", grant.window, grant.len, grant.rkey);
		x->grants[(x->grant_first + x->grant_count++) % PROTO_MAX_WINDOWS] = grant;
	}
	if (proto_get_nothing(payload))
		session_fail_protocol(&x->s, "more behind a GRANT");
}

static void free_posted(struct sender *x, struct pack *pack)
{
	window_revoke(pack->window);
	pack->state = PACK_FREE;
	x->posted--;
}

/* WRITE and SEND: the operation has been acknowledged. */
void dispatch_done(struct sender *x, unsigned window)
{
	free_posted(x, &x->packs[window]);
}

/* READ: the receiver has read the window. */
void dispatch_fin(struct sender *x, struct cursor_in *payload)
{
	struct proto_descriptor d;
	struct pack *pack;

	if (x->s.terms.mode != MOVER_READ || proto_get_descriptor(payload, &d) || proto_get_nothing(payload) ||
	    d.window >= x->s.windows.count) {
		session_fail_protocol(&x->s, "a malformed FIN");
		return;
	}
	pack = &x->packs[d.window];
	if (pack->state != PACK_POSTED || pack->descriptor.seq != d.seq) {
		session_fail_protocol(&x->s, "FIN of a window that was not granted");
		return;
	}
	session_step(&x->s, "FIN", "window %u has been read", d.window);
	free_posted(x, pack);
}

/* --limit: windows may go while there are tokens; a window may overdraw. */
static bool may_go(struct sender *x)
{
	double rate = (double)x->options->limit_bytes_per_s;
	uint64_t now;

	if (!x->options->limit_bytes_per_s)
		return true;
	now = mover_now_ns();
	x->tokens += rate * (double)(now - x->tokens_ns) / 1e9;
	if (x->tokens > rate / 10)
		x->tokens = rate / 10;
	x->tokens_ns = now;
	return x->tokens >= 0;
}

static bool post(struct sender *x, struct pack *pack, const struct proto_grant *grant)
{
	struct session *s = &x->s;
	unsigned lane = pack->descriptor.lane, index = window_index(pack);
	struct ibv_sge sge = {(uintptr_t)pack->window->bytes, pack->wire_bytes, window_lkey(&s->windows, pack->window)};
	struct ibv_send_wr *bad, wr = {
					 .wr_id = session_wr_id(WR_WINDOW, lane, index),
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_SEND,
					 .send_flags = IBV_SEND_SIGNALED,
				 };
	int err;

	if (s->terms.mode == MOVER_WRITE) {
		wr.opcode = IBV_WR_RDMA_WRITE;
		wr.send_flags = 0; /* DONE behind it tells of both */
		wr.wr.rdma.remote_addr = grant->addr;
		wr.wr.rdma.rkey = grant->rkey;
	}
	session_step(s, s->terms.mode == MOVER_WRITE ? "WRITE" : "SEND", "window %u: %u bytes on QP %u", grant->window,
		     pack->wire_bytes, lane);
	err = ibv_post_send(s->lanes[lane].id->qp, &wr, &bad);
	if (err) {
		session_fail(s, MOVER_LOST, "the connection broke: %s", strerror(err));
		return false;
	}
	if (s->terms.mode == MOVER_SEND)
		return true;
	return session_lane_send(s, lane, 1 + index, session_wr_id(WR_WINDOW, lane, index), pack->descriptor.seq,
				 grant->window);
}

/* READ: the window's key goes with its descriptor. */
static bool grant_window(struct sender *x, struct pack *pack, struct proto_grant *grant)
{
	int err = window_grant(&x->s.windows, pack->window, pack->wire_bytes, IBV_ACCESS_REMOTE_READ);
	if (err) {
		session_fail_errno(&x->s, err, SESSION_NO_MEMORY);
		return false;
	}
	*grant = (struct proto_grant){
		.window = (uint16_t)window_index(pack),
		.lane = pack->descriptor.lane,
		.len = pack->wire_bytes,
		.addr = (uintptr_t)pack->window->bytes,
		.rkey = pack->window->granted->rkey,
	};
	session_step(&x->s, "GRANT", "window %u: %u bytes, rkey 0x%x", grant->window, grant->len, grant->rkey);
	return true;
}

/* Content of a window on its way: chooses the data connection, and takes a grant where one is needed. */
static bool send_content(struct sender *x, struct pack *pack, struct proto_grant *grant)
{
	struct proto_descriptor *d = &pack->descriptor;

	if (x->s.terms.mode == MOVER_READ) {
		d->lane = (uint16_t)(x->next_lane++ % x->s.lane_count);
		d->window = (uint16_t)window_index(pack);
		return grant_window(x, pack, grant);
	}
	*grant = x->grants[x->grant_first];
	x->grant_first = (x->grant_first + 1) % PROTO_MAX_WINDOWS;
	x->grant_count--;
	d->lane = x->s.terms.mode == MOVER_SEND ? grant->lane : (uint16_t)(x->next_lane++ % x->s.lane_count);
	d->window = grant->window;
	return post(x, pack, grant);
}

static void dispatch(struct sender *x, struct pack *pack)
{
	struct session *s = &x->s;
	struct proto_grant grant = {0};
	bool read = s->terms.mode == MOVER_READ && pack->wire_bytes;
	struct cursor_out *out;

	if (pack->wire_bytes && !send_content(x, pack, &grant))
		return;
	out = session_begin(s, read ? PROTO_GRANT : PROTO_FIN);
	if (read) {
		put_u16(out, 1);
		proto_put_grant(out, &grant);
	} else {
		session_step(s, "FIN", "window %d, segments: %u", pack->wire_bytes ? pack->descriptor.window : -1,
			     pack->descriptor.count);
	}
	proto_put_descriptor(out, &pack->descriptor);
	put_bytes(out, pack->segments, pack->segments_len);
	session_send(s);
	s->totals.bytes_moved += pack->descriptor.bytes;
	x->tokens -= pack->descriptor.bytes;
	pack->state = PACK_POSTED;
	x->posted++;
	if (!pack->wire_bytes)
		free_posted(x, pack);
}

bool dispatch_pump(struct sender *x)
{
	bool any = false;

	while (x->queue_count && x->s.status == MOVER_OK) {
		struct pack *pack = x->queue[x->queue_first];
		bool needs_grant = pack->wire_bytes && x->s.terms.mode != MOVER_READ;

		if (pack->state != PACK_READY)
			break;
		if (pack->descriptor.count) {
			if (pack->descriptor.seq - x->seq_done >= PROTO_FINS || (needs_grant && !x->grant_count) ||
			    !control_can_send(&x->s.control, PROTO_FIN) || !may_go(x))
				break;
			dispatch(x, pack);
		} else {
			pack->state = PACK_FREE; /* nothing in it: its files were given up before */
		}
		x->queue_first = (x->queue_first + 1) % PROTO_MAX_WINDOWS;
		x->queue_count--;
		any = true;
	}
	return any;
}
