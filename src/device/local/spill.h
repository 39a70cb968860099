/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets that found their ring full (ring.h): they wait here, in this process's memory, for the reader to make
 * room. The window keeps the ring from overflowing, but each QP may always have one packet under way, and there may be
 * thousands of QPs.
 */
#ifndef ROCI_DEVICE_LOCAL_SPILL_H
#define ROCI_DEVICE_LOCAL_SPILL_H

#include "device/local/ring.h"

#define ROCI_LOCAL_SPILL_RINGS 64 /* 8 MiB at most */

struct roci_local_spill {
	/* The oldest at [first % ROCI_LOCAL_SPILL_RINGS]. Owned; there while something waits. */
	struct roci_local_ring *rings[ROCI_LOCAL_SPILL_RINGS];
	unsigned first, count;
	struct roci_local_reader reader; /* of the oldest */
	struct roci_local_writer writer; /* of the newest */
};

static inline bool roci_local_spill_is_empty(const struct roci_local_spill *s)
{
	return !s->count;
}

/* As roci_local_ring_put(). False where there is no memory, or too much waits. */
bool roci_local_spill_put(struct roci_local_spill *s, const uint8_t *header, unsigned header_len,
			  const struct roci_span *spans, unsigned span_count, uint32_t payload_len, bool by_reference);
/* Moves what waits to `out`, in order, as far as there is room. What was revoked meanwhile is dropped. */
void roci_local_spill_pump(struct roci_local_spill *s, struct roci_local_writer *out);
/* As roci_local_ring_revoke(), roci_local_ring_revoke_responses(). */
void roci_local_spill_revoke(struct roci_local_spill *s, uint64_t base, uint64_t len, uint32_t dest_qpn);
void roci_local_spill_revoke_responses(struct roci_local_spill *s, uint64_t base, uint64_t len);
/* Drops all. */
void roci_local_spill_free(struct roci_local_spill *s);

#endif
