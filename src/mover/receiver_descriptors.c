/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mover/chunk_cipher.h"
#include "mover/receiver.h"

#define MIN_ROOM 4096 /* for segments, so that the buffer seldom has to grow */

/* One for each window, and as many again: their ACK may be on the way while the windows are filled once more. */
static uint16_t ring_size(unsigned windows)
{
	return 2 * windows > PROTO_DESCRIPTORS ? (uint16_t)(2 * windows) : PROTO_DESCRIPTORS;
}

int descriptors_init(struct receiver *r)
{
	uint16_t size = ring_size(r->s.terms.windows);

	r->descriptors.ring = calloc(size, sizeof(*r->descriptors.ring));
	if (!r->descriptors.ring)
		return -ENOMEM;
	r->s.control.takes = size;
	return 0;
}

void descriptors_destroy(struct receiver *r)
{
	for (unsigned i = 0; r->descriptors.ring && i < r->s.control.takes; i++)
		free(r->descriptors.ring[i].segments);
	free(r->descriptors.ring);
}

struct descriptor *descriptors_at(const struct receiver *r, uint64_t seq)
{
	return &r->descriptors.ring[seq % r->s.control.takes];
}

bool descriptors_idle(const struct receiver *r)
{
	return r->descriptors.done == r->descriptors.received;
}

/* Arrival */

static bool keep_segments(struct receiver *r, struct descriptor *descriptor, const struct cursor_in *in)
{
	size_t len = (size_t)(in->end - in->at), room = len < MIN_ROOM ? MIN_ROOM : len;

	if (descriptor->room < len) {
		uint8_t *more = realloc(descriptor->segments, room);

		if (!more) {
			session_fail_memory(&r->s);
			return false;
		}
		descriptor->segments = more;
		descriptor->room = room;
	}
	if (len)
		memcpy(descriptor->segments, in->at, len);
	descriptor->len = len;
	return true;
}

/* Reads a descriptor and adds it to the ring. NULL after session_fail(). */
static struct descriptor *add(struct receiver *r, struct cursor_in *payload)
{
	struct descriptors *all = &r->descriptors;
	struct descriptor *descriptor = descriptors_at(r, all->received);
	struct cursor_in segments;
	struct proto_descriptor d;

	if (r->end.finishing || proto_get_descriptor(payload, &d) || proto_get_segments(payload, &d, &segments) ||
	    !d.count || d.seq != all->received || d.bytes > r->s.terms.chunk_bytes || d.lane >= r->s.lanes.count ||
	    all->received - all->done >= r->s.control.takes || (d.bytes == 0) != (d.window == PROTO_NO_WINDOW)) {
		session_fail_protocol(&r->s, "a malformed descriptor");
		return NULL;
	}
	if (!keep_segments(r, descriptor, &segments))
		return NULL;
	descriptor->d = d;
	descriptor->reading = descriptor->announced = false;
	descriptor->window = d.window;
	all->received++;
	return descriptor;
}

/* False after session_fail(). */
static bool take_fin(struct receiver *r, struct cursor_in *payload)
{
	struct descriptor *descriptor = add(r, payload);

	if (!descriptor)
		return false;
	session_step(&r->s, "FIN", "window %d, segments: %u", descriptor->d.bytes ? descriptor->d.window : -1,
		     descriptor->d.count);
	if (descriptor->window == PROTO_NO_WINDOW)
		return true;
	if (r->s.terms.mode != MOVER_READ && windows_claim(r, descriptor->window))
		return true;
	session_fail_protocol(&r->s, "FIN of a window that was not granted");
	return false;
}

void descriptors_fin(struct receiver *r, struct cursor_in *payload)
{
	while (take_fin(r, payload) && proto_get_nothing(payload))
		;
}

/* False after session_fail(). */
static bool take_grant(struct receiver *r, struct cursor_in *payload)
{
	struct proto_grant grant;
	struct descriptor *descriptor;

	if (proto_get_grant(payload, &grant)) {
		session_fail_protocol(&r->s, "a malformed GRANT");
		return false;
	}
	descriptor = add(r, payload);
	if (!descriptor)
		return false;
	if (!descriptor->d.bytes || grant.len != descriptor->d.bytes + CHUNK_CIPHER_TAG_BYTES ||
	    grant.window != descriptor->d.window) {
		session_fail_protocol(&r->s, "a GRANT that does not fit its descriptor");
		return false;
	}
	session_step(&r->s, "GRANT", "window %u: %u bytes, rkey 0x%x", grant.window, grant.len, grant.rkey);
	descriptor->grant = grant;
	descriptor->window = PROTO_NO_WINDOW;
	return true;
}

void descriptors_grant(struct receiver *r, struct cursor_in *payload)
{
	uint16_t count = get_u16(payload);

	if (!count || r->s.terms.mode != MOVER_READ) {
		session_fail_protocol(&r->s, "a malformed GRANT");
		return;
	}
	for (unsigned i = 0; i < count; i++)
		if (!take_grant(r, payload))
			return;
	if (proto_get_nothing(payload))
		session_fail_protocol(&r->s, "bytes after a GRANT");
}

/* Acting upon them */

/* Whether the control connection and the data connection say the same about the window. */
static bool agrees(const struct receiver *r, const struct descriptor *descriptor, const struct recv_window *w)
{
	switch (r->s.terms.mode) {
	case MOVER_WRITE: return w->seq == descriptor->d.seq && w->lane == descriptor->d.lane;
	case MOVER_SEND: return w->len == descriptor->d.bytes + CHUNK_CIPHER_TAG_BYTES && w->lane == descriptor->d.lane;
	default: return true;
	}
}

static void act(struct receiver *r, struct descriptor *descriptor, struct recv_window *w)
{
	struct cursor_in in = cursor_in(descriptor->segments, descriptor->len);
	uint8_t *bytes = NULL;

	if (w) {
		window_revoke(w->window); /* from here on nobody else writes there, and it can be checked */
		w->state = RECV_WINDOW_USED;
		bytes = w->window->bytes;
		if (mover_secure_open_chunk(r->s.control.secure, r->s.terms.encrypt, descriptor->d.seq, bytes,
					    descriptor->d.bytes)) {
			session_fail(&r->s, MOVER_MISMATCH, "a chunk was changed on its way");
			return;
		}
	}
	for (unsigned i = 0; i < descriptor->d.count && r->s.status == MOVER_OK; i++) {
		struct proto_segment segment;

		proto_get_segment(&in, &segment); /* proto_get_segments() has checked it */
		store_segment(r, &segment, bytes, w);
		if (bytes)
			bytes += segment.len;
	}
}

bool descriptors_pump(struct receiver *r)
{
	struct descriptors *all = &r->descriptors;
	bool any = false;

	while (all->done < all->received && r->s.status == MOVER_OK) {
		struct descriptor *descriptor = descriptors_at(r, all->done);
		struct recv_window *w = NULL;

		if (descriptor->d.bytes) {
			if (descriptor->window == PROTO_NO_WINDOW)
				break;
			w = &r->windows.list[descriptor->window];
			if (w->state != RECV_WINDOW_ARRIVED || (descriptor->reading && !descriptor->announced))
				break;
			if (!agrees(r, descriptor, w)) {
				session_fail_protocol(&r->s, "a window is not what its descriptor says");
				break;
			}
		}
		act(r, descriptor, w);
		all->done++;
		any = true;
	}
	return any;
}
