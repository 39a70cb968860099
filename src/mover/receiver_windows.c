/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "mover/chunk_cipher.h"
#include "mover/receiver.h"
#include "mover/wr_id.h"

#define GRANTS_AT_ONCE 16 /* the sender begins with the first while the others are registered */

void windows_init(struct receiver *r)
{
	for (unsigned i = 0; i < r->s.pool.count; i++)
		r->windows.list[i].window = &r->s.pool.windows[i];
}

struct recv_window *windows_free(struct receiver *r)
{
	const struct session *s = &r->s;

	for (unsigned i = 0; i < s->pool.count; i++)
		if (r->windows.list[i].state == RECV_WINDOW_FREE &&
		    (s->terms.mode != MOVER_SEND || s->lanes.conns[i % s->lanes.count].state != CONNECTION_NONE))
			return &r->windows.list[i];
	return NULL;
}

/* Granting (WRITE, SEND) */

static bool post_window(struct receiver *r, struct recv_window *w)
{
	struct session *s = &r->s;
	struct ibv_sge sge = {(uintptr_t)w->window->bytes, s->terms.chunk_bytes + CHUNK_CIPHER_TAG_BYTES,
			      window_lkey(&s->pool, w->window)};
	struct ibv_recv_wr *bad,
		wr = {.wr_id = wr_id_make(WR_WINDOW, w->lane, w->window->index), .sg_list = &sge, .num_sge = 1};
	int err = ibv_post_recv(s->lanes.conns[w->lane].id->qp, &wr, &bad);

	if (err)
		session_fail(s, MOVER_LOST, "the connection broke: %s", strerror(err));
	return !err;
}

static bool open_window(struct receiver *r, struct recv_window *w, struct proto_grant *grant)
{
	struct session *s = &r->s;
	uint32_t len = s->terms.chunk_bytes + CHUNK_CIPHER_TAG_BYTES;
	int err;

	*grant = (struct proto_grant){.window = w->window->index, .len = len};
	w->state = RECV_WINDOW_GRANTED;
	if (s->terms.mode == MOVER_SEND) {
		w->lane = grant->lane = (uint16_t)(w->window->index % s->lanes.count);
		return post_window(r, w);
	}
	err = window_grant(&s->pool, w->window, len, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (err) {
		session_fail_errno(s, err, SESSION_NO_MEMORY);
		return false;
	}
	grant->addr = (uintptr_t)w->window->bytes;
	grant->rkey = w->window->granted->rkey;
	return true;
}

/* An OFFER shows that the sender takes a GRANT now. Older senders make their data connections first, and until then a
 * GRANT comes too early for them. */
static bool may_grant(const struct receiver *r)
{
	return r->s.terms.mode != MOVER_READ && !r->s.terms.dry_run && !r->end.finishing &&
	       (r->verdicts.offered || r->lanes_up);
}

static bool grant_windows(struct receiver *r)
{
	struct session *s = &r->s;
	struct cursor_out *out;
	uint8_t *head;
	uint16_t count = 0;

	if (!may_grant(r) || !windows_free(r))
		return false;
	out = session_begin(s, PROTO_GRANT);
	if (!out)
		return false;
	head = cursor_take(out, 2);
	for (struct recv_window *w; count < GRANTS_AT_ONCE && (w = windows_free(r)); count++) {
		struct proto_grant grant;

		if (!open_window(r, w, &grant))
			return false;
		session_step(s, "GRANT", "window %u: %u bytes, rkey 0x%x", grant.window, grant.len, grant.rkey);
		proto_put_grant(out, &grant);
	}
	cursor_patch_u16(head, count);
	session_send(s);
	return true;
}

/* Arrivals */

bool windows_claim(struct receiver *r, uint16_t window)
{
	struct recv_window *w = window < r->s.pool.count ? &r->windows.list[window] : NULL;

	if (!w || w->claimed || (w->state != RECV_WINDOW_GRANTED && w->state != RECV_WINDOW_ARRIVED))
		return false;
	w->claimed = true;
	return true;
}

void windows_received(struct receiver *r, unsigned window, unsigned lane, uint32_t len)
{
	struct recv_window *w = &r->windows.list[window];

	w->state = RECV_WINDOW_ARRIVED;
	w->len = len;
	w->lane = (uint16_t)lane;
	session_step(&r->s, "SEND", "window %u: %u bytes on QP %u", window, len, lane);
}

void windows_done(struct receiver *r, unsigned lane, uint64_t seq, uint16_t window)
{
	struct recv_window *w = window < r->s.pool.count ? &r->windows.list[window] : NULL;

	if (r->s.terms.mode != MOVER_WRITE || !w || w->state != RECV_WINDOW_GRANTED) {
		session_fail_protocol(&r->s, "DONE of a window that was not granted");
		return;
	}
	session_step(&r->s, "WRITE", "window %u has been written on QP %u", window, lane);
	w->state = RECV_WINDOW_ARRIVED;
	w->lane = (uint16_t)lane;
	w->seq = seq;
}

static bool free_windows(struct receiver *r)
{
	bool any = false;

	for (unsigned i = 0; i < r->s.pool.count; i++) {
		struct recv_window *w = &r->windows.list[i];

		if (w->state != RECV_WINDOW_USED || w->writing)
			continue;
		*w = (struct recv_window){.window = w->window};
		any = true;
	}
	return any;
}

bool windows_pump(struct receiver *r)
{
	return free_windows(r) | grant_windows(r);
}
