/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "mover/chunk_cipher.h"
#include "mover/clock.h"
#include "mover/scarce.h"
#include "mover/sender.h"
#include "mover/wr_id.h"

#define NO_LANE UINT_MAX

int dispatch_init(struct sender *x)
{
	x->dispatch.batch = calloc(1, sizeof(*x->dispatch.batch));
	return x->dispatch.batch ? 0 : -ENOMEM;
}

void dispatch_destroy(struct sender *x)
{
	free(x->dispatch.batch);
	x->dispatch = (struct dispatch){0};
}

static unsigned window_index(const struct pack *pack)
{
	return pack->window->index;
}

void dispatch_grant(struct sender *x, struct cursor_in *payload)
{
	uint16_t count = get_u16(payload);
	uint32_t need = x->s.terms.chunk_bytes + CHUNK_CIPHER_TAG_BYTES;

	if (x->s.terms.mode == MOVER_READ || payload->bad || x->dispatch.grant_count + count > PROTO_MAX_WINDOWS) {
		session_fail_protocol(&x->s, "a GRANT that was not needed");
		return;
	}
	for (unsigned i = 0; i < count; i++) {
		struct proto_grant grant;
		if (proto_get_grant(payload, &grant) || grant.len != need || grant.lane >= x->s.lanes.count) {
			session_fail_protocol(&x->s, "a malformed GRANT");
			return;
		}
		session_step(&x->s, "GRANT", "window %u: %u bytes, rkey 0x%x", grant.window, grant.len, grant.rkey);
		x->dispatch.grants[(x->dispatch.grant_first + x->dispatch.grant_count++) % PROTO_MAX_WINDOWS] = grant;
	}
	if (proto_get_nothing(payload))
		session_fail_protocol(&x->s, "bytes after a GRANT");
}

void dispatch_done(struct sender *x, unsigned window)
{
	pack_release(x, &x->packs.list[window]);
}

/* READ: the receiver has read a window. False after session_fail(). */
static bool take_fin(struct sender *x, struct cursor_in *payload)
{
	struct proto_descriptor d;
	struct pack *pack;

	if (x->s.terms.mode != MOVER_READ || proto_get_descriptor(payload, &d) || d.window >= x->s.pool.count) {
		session_fail_protocol(&x->s, "a malformed FIN");
		return false;
	}
	pack = &x->packs.list[d.window];
	if (pack->state != PACK_POSTED || pack->descriptor.seq != d.seq) {
		session_fail_protocol(&x->s, "FIN of a window that was not granted");
		return false;
	}
	session_step(&x->s, "FIN", "window %u has been read", d.window);
	pack_release(x, pack);
	return true;
}

void dispatch_fin(struct sender *x, struct cursor_in *payload)
{
	while (take_fin(x, payload) && proto_get_nothing(payload))
		;
}

static bool post(struct sender *x, struct pack *pack, const struct proto_grant *grant)
{
	struct session *s = &x->s;
	unsigned lane = pack->descriptor.lane, index = window_index(pack);
	struct ibv_sge sge = {(uintptr_t)pack->window->bytes, pack->wire_bytes, window_lkey(pack->window)};
	struct ibv_send_wr *bad, wr = {
					 .wr_id = wr_id_make(WR_WINDOW, lane, index),
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_SEND,
					 .send_flags = IBV_SEND_SIGNALED,
				 };
	int err;

	if (s->terms.mode == MOVER_WRITE) {
		wr.opcode = IBV_WR_RDMA_WRITE;
		wr.send_flags = 0; /* the completion of DONE behind it covers both */
		wr.wr.rdma.remote_addr = grant->addr;
		wr.wr.rdma.rkey = grant->rkey;
	}
	session_step(s, s->terms.mode == MOVER_WRITE ? "WRITE" : "SEND", "window %u: %u bytes on QP %u", grant->window,
		     pack->wire_bytes, lane);
	err = ibv_post_send(s->lanes.conns[lane].id->qp, &wr, &bad);
	if (err) {
		session_fail(s, MOVER_LOST, "the connection broke: %s", strerror(err));
		return false;
	}
	if (s->terms.mode == MOVER_SEND)
		return true;
	return session_lane_send(s, lane, 1 + index, wr_id_make(WR_WINDOW, lane, index), pack->descriptor.seq,
				 grant->window);
}

/* READ: makes a key, which goes out with the descriptor. */
static bool grant_window(struct sender *x, struct pack *pack, struct proto_grant *grant)
{
	int err = window_grant(&x->s.pool, pack->window, pack->wire_bytes, IBV_ACCESS_REMOTE_READ);
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

/* The data connection for the next content: that of the next grant (SEND), or each in turn of those that are up.
 * NO_LANE: it is not up yet, or none is. */
static unsigned content_lane(const struct sender *x)
{
	const struct session_lanes *lanes = &x->s.lanes;
	unsigned first = x->dispatch.next_lane;

	if (x->s.terms.mode == MOVER_SEND) {
		first = x->dispatch.grants[x->dispatch.grant_first].lane;
		return lanes->conns[first].greeted ? first : NO_LANE;
	}
	for (unsigned i = 0; i < lanes->count; i++)
		if (lanes->conns[(first + i) % lanes->count].greeted)
			return (first + i) % lanes->count;
	return NO_LANE;
}

/* Sends the content, or grants it (READ), and takes a grant where one is needed. */
static bool send_content(struct sender *x, struct pack *pack, struct proto_grant *grant)
{
	struct proto_descriptor *d = &pack->descriptor;

	d->lane = (uint16_t)content_lane(x);
	x->dispatch.next_lane = d->lane + 1u;
	if (x->s.terms.mode == MOVER_READ) {
		d->window = (uint16_t)window_index(pack);
		return grant_window(x, pack, grant);
	}
	*grant = x->dispatch.grants[x->dispatch.grant_first];
	x->dispatch.grant_first = (x->dispatch.grant_first + 1) % PROTO_MAX_WINDOWS;
	x->dispatch.grant_count--;
	d->window = grant->window;
	return post(x, pack, grant);
}

/* The message for the next descriptors */

static bool goes_by_grant(const struct sender *x, const struct pack *pack)
{
	return x->s.terms.mode == MOVER_READ && pack->wire_bytes;
}

/* Whether the descriptor goes into the message. A peer that has not said how many it takes, takes one in a message. */
static bool fits(const struct sender *x, const struct pack *pack)
{
	const struct batch *batch = x->dispatch.batch;
	bool grant = goes_by_grant(x, pack);

	if (!batch->count)
		return true;
	return x->s.control.peer_takes && grant == (batch->type == PROTO_GRANT) &&
	       batch->len + PROTO_GRANT_BYTES + PROTO_DESCRIPTOR_BYTES + pack->segments_len <= sizeof(batch->bytes);
}

static void add_to_batch(struct sender *x, const struct pack *pack, const struct proto_grant *grant)
{
	struct batch *batch = x->dispatch.batch;
	struct cursor_out out;

	if (!batch->count) {
		batch->type = goes_by_grant(x, pack) ? PROTO_GRANT : PROTO_FIN;
		batch->len = batch->type == PROTO_GRANT ? 2 : 0; /* the count */
	}
	out = cursor_out(batch->bytes + batch->len, sizeof(batch->bytes) - batch->len);
	if (batch->type == PROTO_GRANT)
		proto_put_grant(&out, grant);
	else
		session_step(&x->s, "FIN", "window %d, segments: %u", pack->wire_bytes ? pack->descriptor.window : -1,
			     pack->descriptor.count);
	proto_put_descriptor(&out, &pack->descriptor);
	put_bytes(&out, pack->segments, pack->segments_len);
	batch->len += cursor_written(&out);
	batch->count++;
}

/* Nothing follows what has been dispatched. */
static bool all_dispatched(const struct sender *x)
{
	return x->source.next_entry == x->entry_count && !x->source.file && !x->source.filling && !x->packs.queued;
}

/* Whether the message goes now. Where few credits are left, it waits for more descriptors, if they come and fit. */
static bool batch_may_go(const struct sender *x)
{
	const struct batch *batch = x->dispatch.batch;
	const struct pack *next = pack_first_ready(x);

	if (!batch->count || !control_can_send(&x->s.control, batch->type))
		return false;
	return control_is_roomy(&x->s.control) || scarce_enough(batch->count, x->s.terms.windows, SCARCE_DESCRIPTORS) ||
	       (next && !fits(x, next)) || all_dispatched(x);
}

static bool send_batch(struct sender *x)
{
	struct batch *batch = x->dispatch.batch;

	if (!batch_may_go(x))
		return false;
	if (batch->type == PROTO_GRANT)
		cursor_patch_u16(batch->bytes, batch->count);
	put_bytes(session_begin(&x->s, batch->type), batch->bytes, batch->len);
	session_send(&x->s);
	batch->count = 0;
	return true;
}

static void dispatch_pack(struct sender *x, struct pack *pack)
{
	struct session *s = &x->s;
	struct proto_grant grant = {0};

	if (pack->wire_bytes && !send_content(x, pack, &grant))
		return;
	add_to_batch(x, pack, &grant);
	s->totals.bytes_moved += pack->descriptor.bytes;
	rate_limit_spend(&x->dispatch.limit, pack->descriptor.bytes);
	pack->state = PACK_POSTED;
	x->packs.posted++;
	if (!pack->wire_bytes)
		pack_release(x, pack);
}

/* Whether there is what the content goes by: a grant, and a data connection. */
static bool has_way(const struct sender *x)
{
	return (x->s.terms.mode == MOVER_READ || x->dispatch.grant_count) && content_lane(x) != NO_LANE;
}

static unsigned most_descriptors(const struct sender *x)
{
	return x->s.control.peer_takes ? x->s.control.peer_takes : PROTO_DESCRIPTORS;
}

/* Whether the pack may go now, its content and its descriptor. */
static bool may_go(struct sender *x, const struct pack *pack)
{
	return pack->descriptor.seq - x->dispatch.acked < most_descriptors(x) && fits(x, pack) &&
	       (!pack->wire_bytes || has_way(x)) && rate_limit_allows(&x->dispatch.limit, mover_now_ns());
}

static bool dispatch_ready(struct sender *x)
{
	struct pack *pack;
	bool any = false;

	while (x->s.status == MOVER_OK && (pack = pack_first_ready(x))) {
		if (!pack->descriptor.count)
			pack->state = PACK_FREE; /* nothing in it: its files had been given up */
		else if (may_go(x, pack))
			dispatch_pack(x, pack);
		else
			break;
		pack_remove_first(x);
		any = true;
	}
	return any;
}

bool dispatch_pump(struct sender *x)
{
	bool any = dispatch_ready(x);

	while (x->s.status == MOVER_OK && send_batch(x)) {
		dispatch_ready(x);
		any = true;
	}
	return any;
}
