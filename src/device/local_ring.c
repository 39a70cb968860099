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

/* Looks how far the reader is. What makes no sense is not believed: nothing more is free then. */
static void see_head(struct roci_local_writer *w)
{
	uint64_t head = atomic_load_explicit(&w->ring->head, memory_order_acquire);

	if (head % LINE == 0 && w->tail - head <= w->tail - w->head)
		w->head = head;
}

static bool fits(struct roci_local_writer *w, uint64_t size)
{
	if (w->tail - w->head + size > ROOM)
		see_head(w);
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

/* ---- what the other side may have written ---- */

static bool is_sound(const struct roci_local_packet *p, uint64_t available, uint64_t to_the_end)
{
	size_t body = p->span_count ? p->span_count * sizeof(struct roci_span) : p->payload_len;

	if (!p->size || p->size % LINE || p->size > available || p->size > to_the_end)
		return false;
	return !p->header_len ||
	       (p->header_len >= ROCI_BTH_BYTES && p->header_len <= ROCI_MAX_HEADER_BYTES &&
		p->span_count <= ROCI_MAX_SGE && sizeof(*p->record) + body_at(p->header_len) + body <= p->size);
}

/* Takes out the record at `place`, with `available` bytes from there on. Each field is read once, and checked after
 * that. False where it makes no sense. */
static bool look(struct roci_local_ring *ring, uint64_t place, uint64_t available, struct roci_local_packet *p)
{
	const volatile struct roci_local_record *r = at(ring, place);

	p->record = at(ring, place);
	p->size = r->size;
	p->payload_len = r->payload_len;
	p->header_len = r->header_len;
	p->span_count = r->span_count;
	if (available > ROOM || !is_sound(p, available, to_end(place)))
		return false;
	memcpy(p->header, p->record->bytes, p->header_len);
	return true;
}

/* ---- the writer takes back ---- */

static bool names(const struct roci_local_packet *p, uint64_t base, uint64_t len)
{
	struct roci_span spans[ROCI_MAX_SGE];

	roci_local_packet_spans(p, spans);
	for (unsigned i = 0; i < p->span_count; i++)
		if ((uintptr_t)spans[i].base < base + len && base < (uintptr_t)spans[i].base + spans[i].len)
			return true;
	return false;
}

struct revocation {
	uint64_t base, len;
	uint32_t dest_qpn; /* 0: not by this */
	bool responses_only;
};

static bool concerns(const struct revocation *v, const struct roci_local_packet *p)
{
	const struct roci_opcode_info *op;

	if (!p->header_len || !p->span_count)
		return false;
	op = roci_opcode_info(p->header[0]);
	if (v->responses_only && (!op || op->kind != ROCI_KIND_READ_RESPONSE))
		return false;
	return names(p, v->base, v->len) || (v->dest_qpn && roci_dest_qpn(p->header) == v->dest_qpn);
}

/* The reader moves its end meanwhile: a record that it has just left may be marked, too. */
static void revoke(struct roci_local_writer *w, const struct revocation *v)
{
	struct roci_local_packet p;
	uint64_t place;

	see_head(w);
	place = w->head;
	while (place != w->tail && look(w->ring, place, w->tail - place, &p)) {
		if (concerns(v, &p))
			atomic_store(&at(w->ring, place)->revoked, 1);
		place += p.size;
	}
}

void roci_local_ring_revoke(struct roci_local_writer *w, uint64_t base, uint64_t len, uint32_t dest_qpn)
{
	revoke(w, &(struct revocation){base, len, dest_qpn, false});
}

void roci_local_ring_revoke_responses(struct roci_local_writer *w, uint64_t base, uint64_t len)
{
	revoke(w, &(struct revocation){base, len, 0, true});
}

/* ---- the reader ---- */

int roci_local_ring_get(struct roci_local_reader *r, struct roci_local_packet *packet)
{
	uint64_t available = atomic_load_explicit(&r->ring->tail, memory_order_acquire) - r->head;

	while (available) {
		if (!look(r->ring, r->head, available, packet))
			return -EBADMSG;
		if (packet->header_len)
			return 1;
		r->head += packet->size;
		available -= packet->size;
	}
	return 0;
}

const uint8_t *roci_local_packet_payload(const struct roci_local_packet *packet)
{
	return packet->record->bytes + body_at(packet->header_len);
}

bool roci_local_packet_spans(const struct roci_local_packet *packet, struct roci_span *spans)
{
	uint64_t len = 0;

	memcpy(spans, roci_local_packet_payload(packet), packet->span_count * sizeof(*spans));
	for (unsigned i = 0; i < packet->span_count; i++) {
		if (spans[i].len > ROCI_MAX_MESSAGE_BYTES)
			return false;
		len += spans[i].len;
	}
	return len == packet->payload_len;
}

void roci_local_ring_next(struct roci_local_reader *r, const struct roci_local_packet *packet)
{
	r->head += packet->size;
}
