/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A ring of packets in shared memory: one process writes, one reads. Pure: the memory is the caller's.
 *
 * A record is a packet's headers, and its payload or the places in the writer's memory where that lies. Records are
 * whole, and a record does not go around the end of the ring. The reader checks what it reads: the writer may have been
 * killed, or have gone mad.
 *
 * The reader looks at the place of the next record, and at nothing else: its size is 0 until the record is there. So a
 * short packet costs one cache line that moves from one processor to the other: an acknowledgement and a SEND of 8
 * bytes have room in one. The writer makes the size behind its last record 0 before it writes the size of the first one
 * that was not shown, and with it shows all of them. A reader that waits takes the line at which it looks back again
 * and again, so the writer fills that line elsewhere, and writes it when it shows it.
 */
#ifndef ROCI_DEVICE_LOCAL_RING_H
#define ROCI_DEVICE_LOCAL_RING_H

#include <stdbool.h>

#include "device/local/shared.h"
#include "engine/types.h"
#include "wire/packet.h"

#define ROCI_LOCAL_LINE 64 /* bytes of a cache line */

/* A record as it lies in the ring: headers, then (at the record's next multiple of 8) payload or spans, behind each
 * other. */
struct roci_local_record {
	_Atomic uint32_t size; /* of the record in the ring: a multiple of 32. 0: it is not there yet */
	uint32_t payload_len;
	uint8_t header_len;      /* 0: the rest of the ring is unused, the next record is at its start */
	uint8_t span_count;      /* 0: the payload is here */
	_Atomic uint8_t revoked; /* the writer takes back the memory that the spans name */
	uint8_t reserved;
	uint8_t bytes[];
};
_Static_assert(sizeof(struct roci_local_record) == 12, "with 12 bytes of BTH and 8 of payload it has 32 bytes");

/* A record as the reader took it out: what the writer changes later does not matter. */
struct roci_local_packet {
	uint32_t size, payload_len;
	unsigned header_len, span_count;
	uint8_t header[ROCI_MAX_HEADER_BYTES];
	const struct roci_local_record *record; /* for its payload, its spans and whether it is revoked */
};

/* The writer's view. */
struct roci_local_writer {
	struct roci_local_ring *ring;
	uint64_t tail;       /* behind the last record, published or not */
	uint64_t shown;      /* behind the last one that was published */
	uint32_t shows_next; /* the size that is written there to publish the rest */
	bool unstaged;       /* what was added since then is in the ring */
	uint64_t head;       /* as last seen */
	/* Else the line of `shown` is here, as far as records were added that end in it. */
	uint64_t staged[ROCI_LOCAL_LINE / 8];
};

/* The reader's view. */
struct roci_local_reader {
	struct roci_local_ring *ring;
	uint64_t head; /* the next record */
	uint64_t tail; /* as last seen: it is looked at once in half a ring, to find a writer that has gone mad */
};

/* An empty ring. */
void roci_local_ring_init(struct roci_local_ring *ring);

/* Adds a packet whose payload, `payload_len` bytes, lies in the spans. by_reference: what is put there are the spans.
 * False where it does not fit. */
bool roci_local_ring_put(struct roci_local_writer *w, const uint8_t *header, unsigned header_len,
			 const struct roci_span *spans, unsigned span_count, uint32_t payload_len, bool by_reference);
/* Shows the reader what was added. Returns false where there was nothing new. */
bool roci_local_ring_publish(struct roci_local_writer *w);
/* Marks the records that were not read and name memory in [base, base + len), or go to QP `dest_qpn`; 0, 0: none. */
void roci_local_ring_revoke(struct roci_local_writer *w, uint64_t base, uint64_t len, uint32_t dest_qpn);
/* The same for READ responses from memory in [base, base + len). */
void roci_local_ring_revoke_responses(struct roci_local_writer *w, uint64_t base, uint64_t len);

static inline struct roci_local_record *roci_local_record_at(struct roci_local_ring *ring, uint64_t place)
{
	return (struct roci_local_record *)(void *)(ring->bytes + place % sizeof(ring->bytes));
}
static inline bool roci_local_ring_waits(const struct roci_local_reader *r)
{
	return atomic_load_explicit(&roci_local_record_at(r->ring, r->head)->size, memory_order_acquire);
}
/* The oldest record: *packet, until roci_local_ring_next(). Returns 1; 0: there is none; -EBADMSG: the ring is no
 * ring. */
int roci_local_ring_get(struct roci_local_reader *r, struct roci_local_packet *packet);
/* The payload that is in the ring: the writer may change it. */
const uint8_t *roci_local_packet_payload(const struct roci_local_packet *packet);
/* The spans, to `spans`, which has room for ROCI_MAX_SGE. False where they do not add up to the payload. */
bool roci_local_packet_spans(const struct roci_local_packet *packet, struct roci_span *spans);
static inline bool roci_local_packet_is_revoked(const struct roci_local_packet *packet)
{
	return atomic_load(&packet->record->revoked);
}
/* The oldest record was dealt with. Its room is the writer's after roci_local_ring_release(). */
void roci_local_ring_next(struct roci_local_reader *r, const struct roci_local_packet *packet);
static inline void roci_local_ring_release(struct roci_local_reader *r)
{
	atomic_store_explicit(&r->ring->head, r->head, memory_order_release);
}

#endif
