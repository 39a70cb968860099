/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When the next packet of a path may go, at a given rate. Packets go in bursts: a burst begins when all before it have
 * had their time, and ends when its bytes are a quantum ahead. So a link gets several packets for one call, and a path
 * no more at once than it carries in about a millisecond. Whoever comes late may catch up one quantum. Who waited for
 * the next burst, and was woken later than that because others had the processor, may catch up more: else what the path
 * could have carried meanwhile is lost for good.
 */
#ifndef ROCI_ENGINE_PACE_H
#define ROCI_ENGINE_PACE_H

#include <stdbool.h>
#include <stdint.h>

struct roci_pace {
	uint64_t at;   /* ns: when everything that was sent has had its time */
	bool waiting;  /* a burst has ended, the next one begins at `at`, and somebody waits for it */
	uint64_t late; /* ns by which the burst that goes now was woken too late, and has not caught up yet */
};

static inline uint64_t roci_pace_ns(uint64_t bytes, uint64_t rate)
{
	return bytes * UINT64_C(1000000000) / (rate ? rate : 1);
}
/* True where a packet may go now. Else it may at p->at. `quantum`: bytes, `rate`: bytes per second; a wake-up that
 * comes too late is caught up to `most` ns. */
static inline bool roci_pace_is_due(struct roci_pace *p, uint64_t now, uint64_t quantum, uint64_t rate, uint64_t most)
{
	if (p->waiting && p->at <= now)
		p->late = now - p->at < most ? now - p->at : most;
	p->waiting = p->waiting ? p->at > now : p->at >= now + roci_pace_ns(quantum, rate);
	return !p->waiting;
}
/* Nobody waits for the next burst any more: what comes later was not woken late. */
static inline void roci_pace_idle(struct roci_pace *p, uint64_t now)
{
	p->late = 0;
	p->waiting = p->waiting && p->at > now;
}
/* A packet of `bytes` is sent now. */
static inline void roci_pace_sent(struct roci_pace *p, uint64_t now, uint64_t bytes, uint64_t quantum, uint64_t rate)
{
	uint64_t least = roci_pace_ns(quantum, rate), behind = p->late > least ? p->late : least;

	if (p->at + behind < now)
		p->at = now - behind;
	p->at += roci_pace_ns(bytes, rate);
	if (p->at + p->late > now)
		p->late = p->at < now ? now - p->at : 0;
}

#endif
