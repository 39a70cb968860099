/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/local/ring.h"

#include <errno.h>
#include <string.h>

#include "device/link.h"

#define UNIT  32 /* bytes; a record has a multiple of them. Two have room in a cache line */
#define LINE  ROCI_LOCAL_LINE
#define SHORT 16 /* bytes of headers; each record has room for them */
#define ROOM  sizeof(((struct roci_local_ring *)0)->bytes)

static uint64_t to_end(uint64_t place)
{
	return ROOM - place % ROOM;
}

/* In bytes[]. */
static size_t body_at(unsigned header_len)
{
	const size_t head = sizeof(struct roci_local_record);

	return ((head + header_len + 7) & ~(size_t)7) - head;
}

static uint32_t size_of(unsigned header_len, size_t body)
{
	return (uint32_t)((sizeof(struct roci_local_record) + body_at(header_len) + body + UNIT - 1) &
			  ~(size_t)(UNIT - 1));
}

/* Looks how far the reader is. What makes no sense is not believed: nothing more is free then. */
static void see_head(struct roci_local_writer *w)
{
	uint64_t head = atomic_load_explicit(&w->ring->head, memory_order_acquire);

	if (head % UNIT == 0 && w->tail - head <= w->tail - w->head)
		w->head = head;
}

/* One unit is left for the size behind the last record. */
static bool fits(struct roci_local_writer *w, uint64_t size)
{
	if (w->tail - w->head + size + UNIT > ROOM)
		see_head(w);
	return w->tail - w->head + size + UNIT <= ROOM;
}

void roci_local_ring_init(struct roci_local_ring *ring)
{
	atomic_store(&ring->head, 0);
	atomic_store(&ring->tail, 0);
	atomic_store(&roci_local_record_at(ring, 0)->size, 0);
}

/* ---- the line of the first record that is not published ---- */

static uint64_t line_end(uint64_t place)
{
	return (place | (LINE - 1)) + 1;
}

static struct roci_local_record *staged_at(struct roci_local_writer *w, uint64_t place)
{
	return (struct roci_local_record *)(void *)((uint8_t *)w->staged + place % LINE);
}

/* Writes what is staged to the ring, but the size that shows it. */
static void unstage(struct roci_local_writer *w)
{
	const size_t at = sizeof(((struct roci_local_record *)0)->size);
	const uint64_t end = w->tail < line_end(w->shown) ? w->tail : line_end(w->shown);

	if (w->unstaged || end == w->shown)
		return;
	memcpy((uint8_t *)roci_local_record_at(w->ring, w->shown) + at, (uint8_t *)staged_at(w, w->shown) + at,
	       end - w->shown - at);
	w->unstaged = true;
}

/* Where a record of `size` bytes at the tail is written. */
static struct roci_local_record *place_at_tail(struct roci_local_writer *w, uint64_t size)
{
	if (w->unstaged || w->tail >= line_end(w->shown))
		return roci_local_record_at(w->ring, w->tail);
	if (w->tail + size <= line_end(w->shown))
		return staged_at(w, w->tail);
	unstage(w);
	w->unstaged = true;
	return roci_local_record_at(w->ring, w->tail);
}

/* Writes the size of *r, the record at the tail, or keeps the first one that is not published, and goes on. */
static void advance(struct roci_local_writer *w, struct roci_local_record *r, uint32_t size)
{
	if (w->tail == w->shown)
		w->shows_next = size;
	else
		atomic_store_explicit(&r->size, size, memory_order_relaxed);
	w->tail += size;
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
		r = place_at_tail(w, gap);
		r->header_len = 0;
		advance(w, r, (uint32_t)gap);
	}
	r = place_at_tail(w, size);
	atomic_store_explicit(&r->revoked, 0, memory_order_relaxed);
	r->payload_len = payload_len;
	r->header_len = (uint8_t)header_len;
	r->span_count = by_reference ? (uint8_t)span_count : 0;
	memcpy(r->bytes, header, header_len);
	if (by_reference)
		memcpy(r->bytes + body_at(header_len), spans, span_count * sizeof(*spans));
	else
		gather(r->bytes + body_at(header_len), spans, span_count);
	advance(w, r, size);
	if (w->tail == line_end(w->shown))
		__builtin_prefetch(roci_local_record_at(w->ring, w->tail), 1); /* the size behind it will be written */
	return true;
}

bool roci_local_ring_publish(struct roci_local_writer *w)
{
	if (w->shown == w->tail)
		return false;
	atomic_store_explicit(&w->ring->tail, w->tail, memory_order_relaxed);
	atomic_store_explicit(&roci_local_record_at(w->ring, w->tail)->size, 0, memory_order_relaxed);
	unstage(w);
	atomic_store_explicit(&roci_local_record_at(w->ring, w->shown)->size, w->shows_next, memory_order_release);
	w->shown = w->tail;
	w->unstaged = false;
	/* There the next one writes a size before it shows its record. The line comes while the peer works. */
	__builtin_prefetch(roci_local_record_at(w->ring, w->tail + LINE), 1);
	return true;
}

/* ---- what the other side may have written ---- */

static bool is_sound(const struct roci_local_packet *p, uint64_t to_the_end)
{
	size_t body = p->span_count ? p->span_count * sizeof(struct roci_span) : p->payload_len;

	if (!p->size || p->size % UNIT || p->size > to_the_end)
		return false;
	return !p->header_len ||
	       (p->header_len >= ROCI_BTH_BYTES && p->header_len <= ROCI_MAX_HEADER_BYTES &&
		p->span_count <= ROCI_MAX_SGE && sizeof(*p->record) + body_at(p->header_len) + body <= p->size);
}

/* Takes out the record of `size` bytes at `place`. Each field is read once, and checked after that. False where it
 * makes no sense. */
static bool look(struct roci_local_ring *ring, uint64_t place, uint32_t size, struct roci_local_packet *p)
{
	const volatile struct roci_local_record *r = roci_local_record_at(ring, place);

	p->record = roci_local_record_at(ring, place);
	p->size = size;
	p->payload_len = r->payload_len;
	p->header_len = r->header_len;
	p->span_count = r->span_count;
	if (!is_sound(p, to_end(place)))
		return false;
	if (p->header_len <= SHORT)
		memcpy(p->header, p->record->bytes, SHORT); /* most are, and this needs no call */
	else
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

	unstage(w);
	see_head(w);
	for (place = w->head; place != w->tail; place += p.size) {
		struct roci_local_record *r = roci_local_record_at(w->ring, place);
		uint32_t size = place == w->shown ? w->shows_next : atomic_load(&r->size);

		if (size > w->tail - place || !look(w->ring, place, size, &p))
			return;
		if (concerns(v, &p))
			atomic_store(&r->revoked, 1);
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

/* A writer that has gone mad could show the same records again and again. */
static bool is_there(struct roci_local_reader *r, uint32_t size)
{
	const int64_t most = ROOM / 2;
	int64_t beyond = (int64_t)(r->head + size - r->tail);

	if (beyond > most) {
		r->tail = atomic_load_explicit(&r->ring->tail, memory_order_relaxed);
		beyond = (int64_t)(r->head + size - r->tail);
	}
	return beyond <= most && beyond >= -2 * most;
}

int roci_local_ring_get(struct roci_local_reader *r, struct roci_local_packet *packet)
{
	uint32_t size;

	while ((size = atomic_load_explicit(&roci_local_record_at(r->ring, r->head)->size, memory_order_acquire))) {
		if (!look(r->ring, r->head, size, packet) || !is_there(r, size))
			return -EBADMSG;
		__builtin_prefetch(roci_local_record_at(r->ring, r->head + size)); /* it may be there already */
		if (packet->header_len)
			return 1;
		r->head += size;
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
