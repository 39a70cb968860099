/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The responses of a responder: those to be sent, in the order of PSNs, and those kept to be sent again. READs, atomics
 * and ATOMIC WRITEs each take a place of the ring, as many as the peer may have outstanding (max_dest_rd_atomic, IBTA
 * 9.4.5). A place is reused when a newer request needs it. Until then, a request that comes again is answered again.
 * FLUSHes take no place and are not kept, because one that comes again is answered like a new one.
 *
 * A peer far away may have more outstanding (far_read.h), and asks for any part of a READ again: just what it misses.
 * Such parts wait in a queue of their own, and are sent first.
 */
#ifndef ROCI_ENGINE_RESPONSE_RING_H
#define ROCI_ENGINE_RESPONSE_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/packet.h"

/* FLUSHes that may wait for their answer: Soft-RoCE leaves up to 128 packets unacknowledged. */
#define ROCI_MAX_FLUSHES 128
/* Requests that a peer may have outstanding which was told so, and parts that it may ask for again at once: READs of
 * 64 KiB for 20 Gbit/s with a round trip of 100 ms. The memory, 256 KiB, is taken when such a peer first asks. */
#define ROCI_FAR_READS 4096

struct roci_response {
	uint64_t va;           /* READ */
	uint64_t original;     /* atomic: the value before */
	uint32_t rkey, len;    /* READ */
	uint32_t psn, packets; /* its PSN range */
	uint32_t next, end;    /* packets still to send: [next, end) of [0, packets) */
	uint32_t msn;          /* in the AETH of its packets */
	uint8_t kind;          /* enum roci_kind, of the request: READ, atomic, ATOMIC WRITE or FLUSH */
	bool starts;           /* the next packet starts a message (First or Only) */
	bool repeated;         /* the request came again: it may be a late duplicate */
	bool copy_payload;     /* see struct roci_tx_packet */
};

/* FLUSHes to be answered. */
struct roci_flushes {
	uint32_t psns[ROCI_MAX_FLUSHES]; /* ring */
	uint8_t first, count;
	struct roci_response answer; /* to the oldest of them, as roci_response_ring_next() returns it */
};
/* Parts of READs that are to be sent again. */
struct roci_parts {
	struct {
		uint32_t psn, packets;
	} ring[ROCI_FAR_READS];
	uint16_t first, count;
	uint16_t quiet;              /* so many of the oldest responses have nothing else to send */
	struct roci_response answer; /* to the oldest of them, which was taken out: a copy of its READ */
};

struct roci_response_ring {
	uint16_t room, newest_end, count; /* newest_end: where the next response goes */
	struct roci_response *slots;      /* owned; `room` of them */
	struct roci_flushes *flushes;     /* owned; NULL: none ever came */
	struct roci_parts *parts;         /* owned; NULL: the peer asks for tails only */
};

/* Makes room for `room` responses, and keeps the newest. -EBUSY where one that would go is still to be sent; -ENOMEM.
 */
int roci_response_ring_resize(struct roci_response_ring *ring, unsigned room);
void roci_response_ring_fini(struct roci_response_ring *ring);
/* From now on the peer may have ROCI_FAR_READS outstanding, and ask for any part again. False where it may have none at
 * all, or without memory. */
bool roci_response_ring_extend(struct roci_response_ring *ring);
/* How many the peer may have outstanding because of that; 0: as many as there is room for. */
static inline uint16_t roci_response_ring_extended(const struct roci_response_ring *ring)
{
	return ring->parts ? ROCI_FAR_READS : 0;
}

/* Adds the response to the request *p, of `packets` packets with `msn`. NULL where the peer has more outstanding than
 * it may: the oldest response is not sent yet. The caller sets `original`. */
struct roci_response *roci_response_ring_add(struct roci_response_ring *ring, const struct roci_packet *p,
					     uint32_t packets, uint32_t msn);
/* Adds the answer to the FLUSH with this PSN. False where too many wait for their answers, or
 * there is no memory. */
bool roci_response_ring_add_flush(struct roci_response_ring *ring, uint32_t psn);

/* The request *p came again, a READ whole or its tail (IBTA 9.7.5.2.1), or any part; `packets`: of its answer. Adds
 * what it asks for to what is to be sent. An atomic is answered with the value that was saved (IBTA 9.7.5.2.2). False
 * where the request is unknown: it is not kept any more, or is another one than had this PSN. */
bool roci_response_ring_again(struct roci_response_ring *ring, const struct roci_packet *p, uint32_t packets,
			      uint32_t mtu);

/* Whether something is still to be sent of the response that has `psn`, or of any part. */
bool roci_response_ring_waits(struct roci_response_ring *ring, uint32_t psn);

static inline bool roci_response_pending(const struct roci_response *x)
{
	return x->next < x->end;
}
/* The same of a ring that has something, or had. */
struct roci_response *roci_response_ring_search(struct roci_response_ring *ring);
/* The response whose next packet is to be sent next, or NULL. Valid until the ring changes. */
static inline struct roci_response *roci_response_ring_next(struct roci_response_ring *ring)
{
	return ring->count || ring->flushes ? roci_response_ring_search(ring) : NULL;
}
/* The next packet of *x, which roci_response_ring_next() returned, was sent. */
void roci_response_ring_sent(struct roci_response_ring *ring, struct roci_response *x);

#endif
