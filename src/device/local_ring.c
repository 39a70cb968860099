/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/local_ring.h"

#include <errno.h>
#include <string.h>

#include "device/link.h"

#define LINE 64 /* bytes; a record begins with a cache line */
#define ROOM sizeof(((struct roci_local_ring *)0)->bytes)

static struct roci_local_record *at(struct roci_local_ring *ring, uint64_t place)
{
	return (struct roci_local_record *)(void *)(ring->bytes + place % ROOM);
}

static uint64_t to_end(uint64_t place)
{
	return ROOM - place % ROOM;
}

static size_t body_at(unsigned header_len)
{
	return ((size_t)header_len + 7) & ~(size_t)7;
}

static uint32_t size_of(unsigned header_len, size_t body)
{
	return (uint32_t)((sizeof(struct roci_local_record) + body_at(header_len) + body + LINE - 1) &
			  ~(size_t)(LINE - 1));
}

static bool fits(struct roci_local_writer *w, uint64_t size)
{
	if (w->tail - w->head + size <= ROOM)
		return true;
	w->head = atomic_load_explicit(&w->ring->head, memory_order_acquire);
	return w->tail - w->head + size <= ROOM;
}

static void gather(uint8_t *to, const struct roci_span *spans, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		memcpy(to, spans[i].base, spans[i].len);
		to += spans[i].len;
	}
}

bool roci_local_ring_put(struct roci_local_writer *w, const uint8_t *header, unsigned header_len,
			 const struct roci_span *spans, unsigned span_count, uint32_t payload_len, bool by_reference)
{
	uint32_t size = size_of(header_len, by_reference ? span_count * sizeof(*spans) : payload_len);
	uint64_t gap = to_end(w->tail) < size ? to_end(w->tail) : 0;
	struct roci_local_record *r;

	if (!fits(w, gap + size))
		return false;
	if (gap) {
		r = at(w->ring, w->tail);
		r->size = (uint32_t)gap;
		r->header_len = 0;
		w->tail += gap;
	}
	r = at(w->ring, w->tail);
	r->size = size;
	atomic_store_explicit(&r->revoked, 0, memory_order_relaxed);
	r->payload_len = payload_len;
	r->header_len = (uint8_t)header_len;
	r->span_count = by_reference ? (uint8_t)span_count : 0;
	memcpy(r->bytes, header, header_len);
	if (by_reference)
		memcpy(r->bytes + body_at(header_len), spans, span_count * sizeof(*spans));
	else
		gather(r->bytes + body_at(header_len), spans, span_count);
	w->tail += size;
	return true;
}

bool roci_local_ring_publish(struct roci_local_writer *w)
{
	if (atomic_load_explicit(&w->ring->tail, memory_order_relaxed) == w->tail)
		return false;
	atomic_store_explicit(&w->ring->tail, w->tail, memory_order_release);
	return true;
}

static bool names(const struct roci_local_record *r, uint64_t base, uint64_t len)
{
	struct roci_span span;

	for (unsigned i = 0; i < r->span_count; i++) {
		memcpy(&span, r->bytes + body_at(r->header_len) + i * sizeof(span), sizeof(span));
		if ((uintptr_t)span.base < base + len && base < (uintptr_t)span.base + span.len)
			return true;
	}
	return false;
}

/* The reader moves its end meanwhile: a record that it has just left may be marked, too. */
void roci_local_ring_revoke(struct roci_local_writer *w, uint64_t base, uint64_t len, uint32_t dest_qpn)
{
	uint64_t place = atomic_load_explicit(&w->ring->head, memory_order_acquire);

	if (w->tail - place > ROOM)
		return; /* the reader has gone mad, and reads nothing any more that makes sense */
	while (place != w->tail) {
		struct roci_local_record *r = at(w->ring, place);

		if (!r->size || r->size % LINE || r->size > w->tail - place)
			return;
		if (r->header_len && r->span_count &&
		    (names(r, base, len) || (dest_qpn && roci_dest_qpn(r->bytes) == dest_qpn)))
			atomic_store(&r->revoked, 1);
		place += r->size;
	}
}

static bool is_sound(const struct roci_local_record *r, uint64_t size, uint64_t available, uint64_t to_the_end)
{
	size_t body = r->span_count ? r->span_count * sizeof(struct roci_span) : r->payload_len;

	if (!size || size % LINE || size > available || size > to_the_end)
		return false;
	return !r->header_len || (r->header_len >= ROCI_BTH_BYTES && r->header_len <= ROCI_MAX_HEADER_BYTES &&
				  r->span_count <= ROCI_MAX_SGE && sizeof(*r) + body_at(r->header_len) + body <= size);
}

int roci_local_ring_get(struct roci_local_reader *r, const struct roci_local_record **record)
{
	uint64_t available = atomic_load_explicit(&r->ring->tail, memory_order_acquire) - r->head;

	for (;;) {
		const struct roci_local_record *rec = at(r->ring, r->head);
		uint64_t size;

		if (!available)
			return 0;
		size = rec->size;
		if (available > ROOM || !is_sound(rec, size, available, to_end(r->head)))
			return -EBADMSG;
		if (rec->header_len) {
			*record = rec;
			return 1;
		}
		r->head += size;
		available -= size;
	}
}

const uint8_t *roci_local_record_payload(const struct roci_local_record *record)
{
	return record->bytes + body_at(record->header_len);
}

bool roci_local_record_spans(const struct roci_local_record *record, struct roci_span *spans)
{
	uint64_t len = 0;

	memcpy(spans, roci_local_record_payload(record), record->span_count * sizeof(*spans));
	for (unsigned i = 0; i < record->span_count; i++) {
		if (spans[i].len > ROCI_MAX_MESSAGE_BYTES)
			return false;
		len += spans[i].len;
	}
	return len == record->payload_len;
}

void roci_local_ring_next(struct roci_local_reader *r, const struct roci_local_record *record)
{
	r->head += record->size;
}
