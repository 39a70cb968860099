/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/local/spill.h"

#include <stdlib.h>

#include "engine/limits.h"

static struct roci_local_ring **at(struct roci_local_spill *s, unsigned i)
{
	return &s->rings[(s->first + i) % ROCI_LOCAL_SPILL_RINGS];
}

static bool add_ring(struct roci_local_spill *s)
{
	struct roci_local_ring *ring;

	if (s->count == ROCI_LOCAL_SPILL_RINGS)
		return false;
	ring = aligned_alloc(_Alignof(struct roci_local_ring), sizeof(*ring));
	if (!ring)
		return false;
	roci_local_ring_init(ring);
	*at(s, s->count++) = ring;
	s->writer = (struct roci_local_writer){.ring = ring};
	if (s->count == 1)
		s->reader = (struct roci_local_reader){.ring = ring};
	return true;
}

static void drop_oldest(struct roci_local_spill *s)
{
	free(*at(s, 0));
	s->first++;
	if (--s->count)
		s->reader = (struct roci_local_reader){.ring = *at(s, 0)};
}

bool roci_local_spill_put(struct roci_local_spill *s, const uint8_t *header, unsigned header_len,
			  const struct roci_span *spans, unsigned span_count, uint32_t payload_len, bool by_reference)
{
	bool put = s->count &&
		   roci_local_ring_put(&s->writer, header, header_len, spans, span_count, payload_len, by_reference);

	if (!put && add_ring(s))
		put = roci_local_ring_put(&s->writer, header, header_len, spans, span_count, payload_len, by_reference);
	if (put)
		roci_local_ring_publish(&s->writer);
	return put;
}

static bool move(const struct roci_local_packet *p, struct roci_local_writer *out)
{
	struct roci_span spans[ROCI_MAX_SGE];

	if (p->span_count)
		return roci_local_packet_is_revoked(p) || !roci_local_packet_spans(p, spans) ||
		       roci_local_ring_put(out, p->header, p->header_len, spans, p->span_count, p->payload_len, true);
	spans[0] = (struct roci_span){(void *)(uintptr_t)roci_local_packet_payload(p), p->payload_len};
	return roci_local_ring_put(out, p->header, p->header_len, spans, p->payload_len ? 1 : 0, p->payload_len, false);
}

void roci_local_spill_pump(struct roci_local_spill *s, struct roci_local_writer *out)
{
	struct roci_local_packet packet;

	while (s->count) {
		if (roci_local_ring_get(&s->reader, &packet) <= 0) {
			drop_oldest(s);
			continue;
		}
		if (!move(&packet, out))
			return;
		roci_local_ring_next(&s->reader, &packet);
		roci_local_ring_release(&s->reader);
	}
}

/* The writer of a ring as it stands, for those that look through it. */
static struct roci_local_writer writer_of(struct roci_local_ring *ring)
{
	uint64_t tail = atomic_load(&ring->tail);

	return (struct roci_local_writer){.ring = ring, .tail = tail, .shown = tail, .head = atomic_load(&ring->head)};
}

void roci_local_spill_revoke(struct roci_local_spill *s, uint64_t base, uint64_t len, uint32_t dest_qpn)
{
	for (unsigned i = 0; i < s->count; i++) {
		struct roci_local_writer w = writer_of(*at(s, i));

		roci_local_ring_revoke(&w, base, len, dest_qpn);
	}
}

void roci_local_spill_revoke_responses(struct roci_local_spill *s, uint64_t base, uint64_t len)
{
	for (unsigned i = 0; i < s->count; i++) {
		struct roci_local_writer w = writer_of(*at(s, i));

		roci_local_ring_revoke_responses(&w, base, len);
	}
}

void roci_local_spill_free(struct roci_local_spill *s)
{
	while (s->count)
		drop_oldest(s);
}
