/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Measures one round trip at a time: from a packet that asks for an acknowledgement to the acknowledgement. A packet
 * that was sent twice measures nothing, because its acknowledgement may be about either (Karn's algorithm, RFC 6298 3).
 */
#ifndef ROCI_ENGINE_RTT_SAMPLE_H
#define ROCI_ENGINE_RTT_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/psn.h"

struct roci_rtt_sample {
	bool running;
	uint32_t psn;
	uint64_t sent_at; /* ns */
};

/* The packet `psn` is sent for the first time and asks for an acknowledgement. Ignored while a measurement runs. */
static inline void roci_rtt_sample_start(struct roci_rtt_sample *s, uint32_t psn, uint64_t now)
{
	if (!s->running)
		*s = (struct roci_rtt_sample){true, psn, now};
}
/* Packets are sent again. */
static inline void roci_rtt_sample_cancel(struct roci_rtt_sample *s)
{
	s->running = false;
}
/* Everything before `una` is acknowledged. True where that ends the measurement; *rtt_ns is its result then. */
static inline bool roci_rtt_sample_end(struct roci_rtt_sample *s, uint32_t una, uint64_t now, uint64_t *rtt_ns)
{
	if (!s->running || roci_psn_diff(una, s->psn) <= 0)
		return false;
	s->running = false;
	*rtt_ns = now - s->sent_at;
	return true;
}

#endif
