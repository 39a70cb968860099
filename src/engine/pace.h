/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When the next packet of a path may go, at a given rate. Packets go in bursts: a burst begins when all before it have
 * had their time, and ends when its bytes are a quantum ahead. So a link gets several packets for one call, and a path
 * no more at once than it carries in about a millisecond. Whoever comes late may catch up one quantum.
 */
#ifndef ROCI_ENGINE_PACE_H
#define ROCI_ENGINE_PACE_H

#include <stdbool.h>
#include <stdint.h>

struct roci_pace {
	uint64_t at;  /* ns: when everything that was sent has had its time */
	bool waiting; /* a burst has ended, the next one begins at `at` */
};

static inline uint64_t roci_pace_ns(uint64_t bytes, uint64_t rate)
{
	return bytes * UINT64_C(1000000000) / (rate ? rate : 1);
}
/* True where a packet may go now. Else it may at p->at. `quantum`: bytes, `rate`: bytes per second. */
static inline bool roci_pace_is_due(struct roci_pace *p, uint64_t now, uint64_t quantum, uint64_t rate)
{
	p->waiting = p->waiting ? p->at > now : p->at >= now + roci_pace_ns(quantum, rate);
	return !p->waiting;
}
/* A packet of `bytes` is sent now. */
static inline void roci_pace_sent(struct roci_pace *p, uint64_t now, uint64_t bytes, uint64_t quantum, uint64_t rate)
{
	uint64_t behind = roci_pace_ns(quantum, rate);

	if (p->at + behind < now)
		p->at = now - behind;
	p->at += roci_pace_ns(bytes, rate);
}

#endif
