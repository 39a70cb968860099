/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many packets of a path may go at once, as the time that the path takes for them. A burst is cheap for both hosts,
 * but comes to a queue that may be shorter: then its end is lost each time, at whatever rate the bursts follow each
 * other, so that no congestion control repairs it. What is lost by chance is lost anywhere in a burst. So bursts become
 * shorter where too much of what is lost was at their end, by as much as was lost, and longer again with time.
 */
#ifndef ROCI_ENGINE_BURST_H
#define ROCI_ENGINE_BURST_H

#include <stdbool.h>
#include <stdint.h>

#define ROCI_BURST_MOST  UINT64_C(1000000)   /* ns */
#define ROCI_BURST_GROWS UINT64_C(250000000) /* ns, and as many round trips as ... */
#define ROCI_BURST_RTTS  16                  /* ... that, then bursts grow by an eighth */
#define ROCI_BURST_BYTES UINT64_C(16640)     /* 13 packets: bursts that are no longer stay as they are */
#define ROCI_BURST_TRIES 4u                  /* so often in a row the length of bursts is an excuse */
#define ROCI_BURST_KNOWN 1024u               /* packets: those that were lost long ago count less and less */
#define ROCI_PLACES      UINT32_C(256)       /* of a burst, from its first packet to its last */
#define ROCI_MIDDLE      (ROCI_PLACES / 2)   /* where those are on average that are lost by chance */

struct roci_burst {
	uint64_t ns;         /* how long a burst may be */
	uint64_t changed_at; /* ns */
	uint64_t shortened_at;
	unsigned tries; /* how often they became shorter since they grew twice in a row */
	uint32_t lost;  /* packets that were sent since changed_at */
	int64_t late;   /* the sum of how many places behind the middle they were */
};

/* From `now` on bursts are `ns` long, or ROCI_BURST_MOST. */
static inline void roci_burst_set(struct roci_burst *b, uint64_t now, uint64_t ns)
{
	bool shorter = ns < b->ns;

	*b = (struct roci_burst){.ns = ns < ROCI_BURST_MOST ? ns : ROCI_BURST_MOST,
				 .changed_at = now,
				 .shortened_at = shorter ? now : b->shortened_at,
				 .tries = shorter                            ? b->tries + 1
					  : b->shortened_at == b->changed_at ? b->tries
									     : 0};
}
/* Whether what was lost was further behind the middle than chance has it once in 3,700 times: by the square root of 12
 * deviations of the mean of so many places, whose variance is 1/12 of the square of ROCI_PLACES. */
static inline bool roci_burst_loses_its_end(const struct roci_burst *b)
{
	return b->late > 0 && b->late * b->late > (int64_t)b->lost * ROCI_PLACES * ROCI_PLACES;
}
/* A packet that was sent at `sent_at`, in place `place` of its burst, is lost, and with it `part` of 1024 packets. True
 * where that was because bursts were longer then than they are now: it says nothing about the rate. Where that is said
 * too often, it is not believed any more. */
static inline bool roci_burst_lost(struct roci_burst *b, uint64_t now, uint64_t sent_at, uint32_t place, uint64_t part)
{
	if (sent_at >= b->changed_at) {
		if (b->lost == ROCI_BURST_KNOWN) {
			b->lost /= 2;
			b->late /= 2;
		}
		b->lost++;
		b->late += (int64_t)place - ROCI_MIDDLE;
		if (roci_burst_loses_its_end(b))
			roci_burst_set(b, now, b->ns * (1024 - (part < 64 ? 64 : part > 768 ? 768 : part)) / 1024);
	}
	return sent_at < b->shortened_at && b->tries <= ROCI_BURST_TRIES;
}
/* A round trip has passed; it takes `rtt_ns`. */
static inline void roci_burst_round(struct roci_burst *b, uint64_t now, uint64_t rtt_ns)
{
	if (b->ns < ROCI_BURST_MOST && now - b->changed_at >= ROCI_BURST_GROWS + ROCI_BURST_RTTS * rtt_ns)
		roci_burst_set(b, now, b->ns + b->ns / 8 + 1);
}

#endif
