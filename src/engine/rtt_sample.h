/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Measures one round trip at a time: from a packet that asks for an acknowledgement to the acknowledgement. A packet
 * that was sent twice measures nothing, because its acknowledgement may be about either (Karn's algorithm, RFC 6298 3);
 * or no more than a bound: the round trip takes no longer than from the first time on.
 */
#ifndef ROCI_ENGINE_RTT_SAMPLE_H
#define ROCI_ENGINE_RTT_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/psn.h"

struct roci_rtt_sample {
	bool running;
	bool again; /* packets were sent again meanwhile */
	uint32_t psn;
	uint64_t sent_at; /* ns */
};

/* The packet `psn` is sent for the first time, and will be answered. Ignored while a measurement runs. */
static inline void roci_rtt_sample_start(struct roci_rtt_sample *s, uint32_t psn, uint64_t now)
{
	if (!s->running)
		*s = (struct roci_rtt_sample){.running = true, .psn = psn, .sent_at = now};
}
/* Packets are sent again. bound: nothing better than a bound is known, so the measurement goes on. */
static inline void roci_rtt_sample_again(struct roci_rtt_sample *s, bool bound)
{
	s->running = s->running && bound;
	s->again = true;
}
/* Everything before `una` is acknowledged. True where that ends the measurement; *rtt_ns is its result then, where
 * s->again is set a bound. */
static inline bool roci_rtt_sample_end(struct roci_rtt_sample *s, uint32_t una, uint64_t now, uint64_t *rtt_ns)
{
	if (!s->running || roci_psn_diff(una, s->psn) <= 0)
		return false;
	s->running = false;
	*rtt_ns = now - s->sent_at;
	return true;
}

#endif
