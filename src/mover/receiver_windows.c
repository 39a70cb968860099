/* SPDX-License-Identifier: BSD-2-Clause */
/* Windows at the receiver: granted, filled, revoked, then looked at; and the descriptors that say what is in them,
 * acted upon strictly in their order. */
#include <stdlib.h>

#include "mover/receiver.h"

#define RXE_READS      4 /* under way, of all windows */
#define RXE_READ_BYTES (64u << 10)

static struct window *window_of(struct receiver *r, const struct hold *hold)
{
	return &r->s.windows.windows[hold - r->holds];
}

static uint32_t wire_bytes(const struct receiver *r, uint32_t bytes)
{
	return bytes + (r->s.terms.encrypt ? SECURE_CHUNK_TAG_BYTES : 0);
}

static struct hold *free_hold(struct receiver *r)
{
	for (unsigned i = 0; i < r->s.windows.count; i++)
		if (r->holds[i].state == HOLD_FREE)
			return &r->holds[i];
	return NULL;
}

/* Granting (WRITE, SEND) */

static bool post_window(struct receiver *r, struct hold *hold)
{
	struct session *s = &r->s;
	struct window *window = window_of(r, hold);
	struct ibv_sge sge = {(uintptr_t)window->bytes, wire_bytes(r, s->terms.chunk_bytes),
			      window_lkey(&s->windows, window)};
	struct ibv_recv_wr *bad,
		wr = {.wr_id = session_wr_id(WR_WINDOW, hold->lane, window->index), .sg_list = &sge, .num_sge = 1};
	int err = ibv_post_recv(s->lanes[hold->lane].id->qp, &wr, &bad);

	if (err)
		session_fail(s, MOVER_LOST, "the connection broke: %s", strerror(err));
	return !err;
}

static bool open_window(struct receiver *r, struct hold *hold, struct proto_grant *grant)
{
	struct session *s = &r->s;
	struct window *window = window_of(r, hold);
	uint32_t len = wire_bytes(r, s->terms.chunk_bytes);

	*grant = (struct proto_grant){.window = window->index, .len = len};
	*hold = (struct hold){.state = HOLD_GRANTED};
	if (s->terms.mode == MOVER_SEND) {
		hold->lane = grant->lane = (uint16_t)(window->index % s->lane_count);
		return post_window(r, hold);
	}
	int err = window_grant(&s->windows, window, len, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (err) {
		session_fail_errno(s, err, SESSION_NO_MEMORY);
		return false;
	}
	grant->addr = (uintptr_t)window->bytes;
	grant->rkey = window->granted->rkey;
	return true;
}

static bool grant_windows(struct receiver *r)
{
	struct session *s = &r->s;
	struct cursor_out *out;
	uint8_t *head;
	uint16_t count = 0;

	if (s->terms.mode == MOVER_READ || s->terms.dry_run || r->end_came || !free_hold(r))
		return false;
	out = session_begin(s, PROTO_GRANT);
	if (!out)
		return false;
	head = cursor_take(out, 2);
	for (struct hold *hold; (hold = free_hold(r)); count++) {
		struct proto_grant grant;
		if (!open_window(r, hold, &grant))
			return false;
		session_step(s, "GRANT", "window %u: %u bytes, rkey 0x%x", grant.window, grant.len, grant.rkey);
		proto_put_grant(out, &grant);
	}
	cursor_patch_u16(head, count);
	session_send(s);
	return true;
}

/* Descriptors */

static bool keep_segments(struct receiver *r, struct fin *fin, const struct cursor_in *in)
{
	size_t len = (size_t)(in->end - in->at);

	if (fin->room < len) {
		uint8_t *more = realloc(fin->segments, len < 4096 ? 4096 : len);
		if (!more) {
			session_fail(&r->s, MOVER_FAILED, "out of memory");
			return false;
		}
		fin->segments = more;
		fin->room = len < 4096 ? 4096 : len;
	}
	if (len)
		memcpy(fin->segments, in->at, len);
	fin->len = len;
	return true;
}

static struct fin *add_fin(struct receiver *r, struct cursor_in *payload)
{
	struct fin *fin = &r->fins[r->seq % PROTO_FINS];
	struct proto_descriptor d;

	if (r->end_came || proto_get_descriptor(payload, &d) || proto_check_segments(*payload, &d) || !d.count ||
	    d.seq != r->seq || d.bytes > r->s.terms.chunk_bytes || d.lane >= r->s.lane_count ||
	    r->seq - r->seq_done >= PROTO_FINS || (d.bytes == 0) != (d.window == PROTO_NO_WINDOW)) {
		session_fail_protocol(&r->s, "a malformed descriptor");
		return NULL;
	}
	if (!keep_segments(r, fin, payload))
		return NULL;
	fin->d = d;
	fin->reading = fin->told = false;
	fin->window = d.window;
	r->seq++;
	return fin;
}

void windows_fin(struct receiver *r, struct cursor_in *payload)
{
	struct fin *fin = add_fin(r, payload);
	struct hold *hold;

	if (!fin)
		return;
	session_step(&r->s, "FIN", "window %d, segments: %u", fin->d.bytes ? fin->d.window : -1, fin->d.count);
	if (fin->window == PROTO_NO_WINDOW)
		return;
	hold = fin->window < r->s.windows.count ? &r->holds[fin->window] : NULL;
	if (r->s.terms.mode == MOVER_READ || !hold || hold->claimed ||
	    (hold->state != HOLD_GRANTED && hold->state != HOLD_ARRIVED)) {
		session_fail_protocol(&r->s, "FIN of a window that was not granted");
		return;
	}
	hold->claimed = true;
}

void windows_grant(struct receiver *r, struct cursor_in *payload)
{
	uint16_t count = get_u16(payload);
	struct proto_grant grant;
	struct fin *fin;

	if (count != 1 || proto_get_grant(payload, &grant) || r->s.terms.mode != MOVER_READ) {
		session_fail_protocol(&r->s, "a malformed GRANT");
		return;
	}
	fin = add_fin(r, payload);
	if (!fin)
		return;
	if (!fin->d.bytes || grant.len != wire_bytes(r, fin->d.bytes) || grant.window != fin->d.window) {
		session_fail_protocol(&r->s, "a GRANT that does not fit its descriptor");
		return;
	}
	session_step(&r->s, "GRANT", "window %u: %u bytes, rkey 0x%x", grant.window, grant.len, grant.rkey);
	fin->grant = grant;
	fin->window = PROTO_NO_WINDOW;
}

/* Reading (READ) */

static bool begin_read(struct receiver *r, struct fin *fin, struct hold *hold)
{
	struct session *s = &r->s;
	struct window *window = window_of(r, hold);
	int err = 0;

	/* iWARP tells the peer a key of the place that is read into; so that is registered for one use as well */
	if (s->iwarp)
		err = window_grant(&s->windows, window, fin->grant.len,
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (err) {
		session_fail_errno(s, err, SESSION_NO_MEMORY);
		return false;
	}
	session_step(s, "READ", "window %u: %u bytes on QP %u", fin->grant.window, fin->grant.len, fin->d.lane);
	*hold = (struct hold){.state = HOLD_GRANTED, .claimed = true, .asking = true};
	fin->reading = true;
	fin->asked = 0;
	fin->window = window->index;
	return true;
}

/* The next READ of a window. */
static bool post_read(struct receiver *r, struct fin *fin, uint32_t len)
{
	struct session *s = &r->s;
	struct hold *hold = &r->holds[fin->window];
	struct window *window = window_of(r, hold);
	struct ibv_sge sge = {(uintptr_t)window->bytes + fin->asked, len, window_lkey(&s->windows, window)};
	struct ibv_send_wr *bad,
		wr = {
			.wr_id = session_wr_id(WR_WINDOW, fin->d.lane, window->index),
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_READ,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = {.remote_addr = fin->grant.addr + fin->asked, .rkey = fin->grant.rkey},
		};
	int err = ibv_post_send(s->lanes[fin->d.lane].id->qp, &wr, &bad);

	if (err) {
		session_fail(s, MOVER_LOST, "the connection broke: %s", strerror(err));
		return false;
	}
	fin->asked += len;
	hold->reads++;
	r->reads++;
	return true;
}

/* Soft-RoCE answers a READ as fast as it can, and what overruns the network's queues costs a timeout: there, a few
 * short ones at a time. Returns whether all of the window has been asked for. */
static bool ask(struct receiver *r, struct fin *fin)
{
	bool gently = r->s.rxe;

	while (fin->asked < fin->grant.len && (!gently || r->reads < RXE_READS)) {
		uint32_t left = fin->grant.len - fin->asked;

		if (!post_read(r, fin, gently && left > RXE_READ_BYTES ? RXE_READ_BYTES : left))
			return false;
	}
	r->holds[fin->window].asking = fin->asked < fin->grant.len;
	return !r->holds[fin->window].asking;
}

/* Told at once, so that the sender revokes its key and fills the window again. */
static bool tell_read(struct receiver *r, struct fin *fin)
{
	struct proto_descriptor d = {.seq = fin->d.seq, .window = fin->grant.window, .lane = fin->d.lane};
	struct cursor_out *out = session_begin(&r->s, PROTO_FIN);

	if (!out)
		return false;
	session_step(&r->s, "FIN", "window %u has been read", d.window);
	proto_put_descriptor(out, &d);
	session_send(&r->s);
	fin->told = true;
	return true;
}

static bool read_windows(struct receiver *r)
{
	bool any = false;

	for (uint64_t seq = r->seq_done; seq < r->seq && r->s.status == MOVER_OK; seq++) {
		struct fin *fin = &r->fins[seq % PROTO_FINS];
		struct hold *hold;
		if (!fin->d.bytes)
			continue;
		if (!fin->reading) {
			hold = free_hold(r);
			if (!hold || !begin_read(r, fin, hold))
				break;
			any = true;
		}
		if (r->holds[fin->window].asking && !ask(r, fin))
			break;
		if (!fin->told && r->holds[fin->window].state == HOLD_ARRIVED)
			any |= tell_read(r, fin);
	}
	return any;
}

/* Arrivals */

void windows_arrived(struct receiver *r, unsigned window, unsigned lane, uint32_t len)
{
	struct hold *hold = &r->holds[window];

	if (r->s.terms.mode == MOVER_READ) {
		hold->reads--;
		r->reads--;
		if (hold->reads || hold->asking)
			return;
	}
	hold->state = HOLD_ARRIVED;
	hold->len = len;
	hold->lane = (uint16_t)lane;
	if (r->s.terms.mode == MOVER_SEND)
		session_step(&r->s, "SEND", "window %u: %u bytes on QP %u", window, len, lane);
}

void windows_done(struct receiver *r, unsigned lane, uint64_t seq, uint16_t window)
{
	struct hold *hold = window < r->s.windows.count ? &r->holds[window] : NULL;

	if (r->s.terms.mode != MOVER_WRITE || !hold || hold->state != HOLD_GRANTED) {
		session_fail_protocol(&r->s, "DONE of a window that was not granted");
		return;
	}
	session_step(&r->s, "WRITE", "window %u has been written on QP %u", window, lane);
	hold->state = HOLD_ARRIVED;
	hold->lane = (uint16_t)lane;
	hold->seq = seq;
}

/* Acting upon descriptors */

/* What the two connections said of a window has to agree. */
static bool agrees(const struct receiver *r, const struct fin *fin, const struct hold *hold)
{
	switch (r->s.terms.mode) {
	case MOVER_WRITE: return hold->seq == fin->d.seq && hold->lane == fin->d.lane;
	case MOVER_SEND: return hold->len == wire_bytes(r, fin->d.bytes) && hold->lane == fin->d.lane;
	default: return true;
	}
}

static void act(struct receiver *r, struct fin *fin, struct hold *hold)
{
	struct cursor_in in = cursor_in(fin->segments, fin->len);
	uint8_t *bytes = NULL;

	if (hold) {
		struct window *window = window_of(r, hold);
		window_revoke(window); /* nobody writes there any more: now it can be looked at */
		hold->state = HOLD_USED;
		bytes = window->bytes;
		if (r->s.terms.encrypt &&
		    mover_secure_open_chunk(r->s.control.secure, fin->d.seq, bytes, fin->d.bytes)) {
			session_fail(&r->s, MOVER_MISMATCH, "a chunk was changed on its way");
			return;
		}
	}
	for (unsigned i = 0; i < fin->d.count && r->s.status == MOVER_OK; i++) {
		struct proto_segment segment;
		proto_get_segment(&in, &segment); /* checked when it came */
		store_segment(r, &segment, bytes, hold);
		if (bytes)
			bytes += segment.len;
	}
}

static bool act_in_order(struct receiver *r)
{
	bool any = false;

	while (r->seq_done < r->seq && r->s.status == MOVER_OK) {
		struct fin *fin = &r->fins[r->seq_done % PROTO_FINS];
		struct hold *hold = NULL;
		if (fin->d.bytes) {
			if (fin->window == PROTO_NO_WINDOW)
				break;
			hold = &r->holds[fin->window];
			if (hold->state != HOLD_ARRIVED || (fin->reading && !fin->told))
				break;
			if (!agrees(r, fin, hold)) {
				session_fail_protocol(&r->s, "a window is not what its descriptor says");
				break;
			}
		}
		act(r, fin, hold);
		r->seq_done++;
		any = true;
	}
	return any;
}

static bool free_windows(struct receiver *r)
{
	bool any = false;
	for (unsigned i = 0; i < r->s.windows.count; i++) {
		if (r->holds[i].state != HOLD_USED || r->holds[i].writing)
			continue;
		r->holds[i] = (struct hold){0};
		any = true;
	}
	return any;
}

bool windows_idle(const struct receiver *r)
{
	return r->seq_done == r->seq;
}

bool windows_pump(struct receiver *r)
{
	bool any = act_in_order(r);

	any |= free_windows(r);
	if (r->s.terms.mode == MOVER_READ)
		any |= read_windows(r);
	else
		any |= grant_windows(r);
	return any;
}
