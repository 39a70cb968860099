/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "mover/chunk_cipher.h"
#include "mover/grants.h"
#include "mover/receiver.h"
#include "mover/scarce.h"
#include "mover/wr_id.h"

void windows_init(struct receiver *r)
{
	for (unsigned i = 0; i < r->s.pool.count; i++)
		r->windows.list[i].window = &r->s.pool.windows[i];
}

/* SEND: and its data connection has been accepted. */
static bool is_free(const struct receiver *r, unsigned window)
{
	const struct session *s = &r->s;

	return r->windows.list[window].state == RECV_WINDOW_FREE &&
	       (s->terms.mode != MOVER_SEND || s->lanes.conns[window % s->lanes.count].state != CONNECTION_NONE);
}

struct recv_window *windows_free(struct receiver *r)
{
	for (unsigned i = 0; i < r->s.pool.count; i++)
		if (is_free(r, i))
			return &r->windows.list[i];
	return NULL;
}

/* Granting (WRITE, SEND) */

static bool post_window(struct receiver *r, struct recv_window *w)
{
	struct session *s = &r->s;
	struct ibv_sge sge = {(uintptr_t)w->window->bytes, s->terms.chunk_bytes + CHUNK_CIPHER_TAG_BYTES,
			      window_lkey(w->window)};
	struct ibv_recv_wr *bad,
		wr = {.wr_id = wr_id_make(WR_WINDOW, w->lane, w->window->index), .sg_list = &sge, .num_sge = 1};
	int err = ibv_post_recv(s->lanes.conns[w->lane].id->qp, &wr, &bad);

	if (err)
		session_fail(s, MOVER_LOST, "the connection broke: %s", strerror(err));
	return !err;
}

static bool is_registered(const struct receiver *r, const struct recv_window *w)
{
	return r->s.terms.mode == MOVER_SEND ? window_is_open(&r->s.pool, w->window) : w->window->granted != NULL;
}

/* WRITE: makes the key that the sender will get. SEND: for the receives. Once for each use, or once at all. */
static bool register_window(struct receiver *r, struct recv_window *w)
{
	struct session *s = &r->s;
	uint32_t len = s->terms.chunk_bytes + CHUNK_CIPHER_TAG_BYTES;
	int err = 0;

	if (s->terms.mode == MOVER_SEND)
		err = window_open(&s->pool, w->window);
	else if (!w->window->granted)
		err = window_grant(&s->pool, w->window, len, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (err)
		session_fail_errno(s, err, SESSION_NO_MEMORY);
	return !err;
}

static bool open_window(struct receiver *r, struct recv_window *w, struct proto_grant *grant)
{
	struct session *s = &r->s;

	*grant = (struct proto_grant){.window = w->window->index, .len = s->terms.chunk_bytes + CHUNK_CIPHER_TAG_BYTES};
	w->state = RECV_WINDOW_GRANTED;
	if (!register_window(r, w))
		return false;
	if (s->terms.mode == MOVER_SEND) {
		w->lane = grant->lane = (uint16_t)(w->window->index % s->lanes.count);
		return post_window(r, w);
	}
	grant->addr = (uintptr_t)w->window->bytes;
	grant->rkey = w->window->granted->rkey;
	return true;
}

/* Content will come into windows that the receiver grants. */
static bool grants_content(const struct receiver *r)
{
	return r->s.terms.mode != MOVER_READ && !r->s.terms.dry_run && !r->end.finishing;
}

/* The sender takes a GRANT when it has sent its first OFFER, or all data connections are up. */
static bool may_grant(const struct receiver *r)
{
	return grants_content(r) && (r->verdicts.offered || r->lanes_up);
}

/* While the first OFFER is on its way: registers the next window, so that its GRANT need not wait for that. One at a
 * time, because what comes is looked at between them. */
static bool register_ahead(struct receiver *r)
{
	if (!grants_content(r) || may_grant(r))
		return false;
	for (unsigned i = 0; i < r->s.pool.count; i++)
		if (!is_registered(r, &r->windows.list[i]))
			return register_window(r, &r->windows.list[i]);
	return false;
}

/* Of the windows that can be granted, how many go into the next GRANT. */
static unsigned count_grants(struct receiver *r)
{
	unsigned free = 0, registered = 0;

	for (unsigned i = 0; i < r->s.pool.count; i++) {
		const struct recv_window *w = &r->windows.list[i];

		if (!is_free(r, i))
			continue;
		free++;
		registered += is_registered(r, w);
	}
	if (control_is_roomy(&r->s.control))
		return grants_next(registered, free, r->windows.granted);
	return scarce_enough(free, r->s.pool.count, SCARCE_GRANTS) ? free : 0;
}

static bool grant_windows(struct receiver *r)
{
	struct session *s = &r->s;
	struct cursor_out *out;
	unsigned count = may_grant(r) ? count_grants(r) : 0;

	if (!count)
		return false;
	out = session_begin(s, PROTO_GRANT);
	if (!out)
		return false;
	put_u16(out, (uint16_t)count);
	for (unsigned i = 0; i < count; i++) {
		struct proto_grant grant;

		if (!open_window(r, windows_free(r), &grant))
			return false;
		session_step(s, "GRANT", "window %u: %u bytes, rkey 0x%x", grant.window, grant.len, grant.rkey);
		proto_put_grant(out, &grant);
	}
	r->windows.granted += count;
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
	return free_windows(r) | register_ahead(r) | grant_windows(r);
}
