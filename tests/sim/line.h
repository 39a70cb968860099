/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One direction of a network on the virtual clock: a queue in front of a wire, and what may happen to a packet behind
 * it. The queue is a FIFO that drops its tail. Everything follows from the seed.
 */
#ifndef ROCI_SIM_LINE_H
#define ROCI_SIM_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include "rng.h"

#define LINE_FLOWS 4

/* 0 turns a thing off; times are ns, `_bps` bits per second, `_ppm` packets of a million. */
struct line_spec {
	uint64_t rate_bps, delay_ns;
	uint64_t queue_bytes; /* 0: one bandwidth-delay product of the round trip, as two equal directions have it */
	uint32_t loss_ppm;
	uint64_t jitter_ns;                /* up to so much more delay, in order */
	uint32_t late_ppm;                 /* packets that others overtake ... */
	uint64_t late_ns;                  /* ... for so long */
	uint64_t police_bps, police_bytes; /* a token bucket that drops what is above its rate */
	uint64_t mark_bytes;               /* a queue that is longer marks packets that understand ECN */
	uint64_t outage_at_ns, outage_ns;
	uint32_t mtu;       /* packets that are longer, IP header included, are lost, and nobody tells ... */
	uint64_t mtu_at_ns; /* ... from then on */
};

struct line {
	struct line_spec spec;
	struct rng rng;
	uint64_t began, next_free, last_arrival;
	uint64_t tokens, tokens_at;
	/* counted from `count_from` on */
	uint64_t count_from;
	uint64_t packets, dropped, lost, marked;
	uint64_t queued_ns, queued_max_ns;
	uint64_t bytes[LINE_FLOWS];
};

void line_init(struct line *l, const struct line_spec *spec, uint64_t seed, uint64_t now);
/* A packet of `bytes`, IP header included, is sent now. Returns when it arrives, 0: never. *ce: it understands ECN; on
 * return, it is marked. */
uint64_t line_send(struct line *l, uint64_t now, uint32_t bytes, unsigned flow, bool *ce);

#endif
