/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/ack_timer.h"

#define PROBE_MIN_NS   UINT64_C(4000000)    /* the peer may wait for a processor that long */
#define PROBE_FIRST_NS UINT64_C(100000000)  /* at least, where no round trip is known, or the peer has to wake first */
#define PROBE_RTTS     4                    /* round trips of silence before a probe */
#define FIRST_MOST_NS  UINT64_C(1000000000) /* RFC 6298 2.1; what was told of the round trip may be far too long */
#define PROBES_MAX     8                    /* doublings of that time */
#define PROBES_ALONE   4                    /* then the oldest packets are sent again, too */
#define GRACE_NS       UINT64_C(200000000)  /* added to the earliest time that the standard allows */
#define FAR_NS         UINT64_C(1000000)    /* a round trip that is longer than threads wait for a processor, mostly */
#define FAR_RTTS       4                    /* round trips: a probe and its answer come before a timeout */
#define FAR_MOST_NS    UINT64_C(3000000000) /* the first sample may be one of a packet that was sent several times */

/* IBTA 9.7.6.1.3: silence is a timeout after 4.096 us * 2^timeout at the earliest, and after four times that at the
 * latest. Both ends may be threads that wait for a processor, so within these bounds they get some grace. It delays no
 * repair, because probes come long before. */
static uint64_t timeout_ns(unsigned timeout)
{
	uint64_t least = UINT64_C(4096) << timeout, grace = 3 * least;

	return least + (grace < GRACE_NS ? grace : GRACE_NS);
}

/* A peer that is farther away than the standard's bounds allow for cannot have answered yet. */
static uint64_t far_ns(uint64_t srtt)
{
	uint64_t wait = FAR_RTTS * srtt < FAR_MOST_NS ? FAR_RTTS * srtt : FAR_MOST_NS;

	return srtt >= FAR_NS ? wait + GRACE_NS : 0;
}

/* How long the first probe waits where no round trip was measured. */
static uint32_t first_ns(uint64_t answer)
{
	uint64_t wait = answer < FIRST_MOST_NS ? answer + answer / 4 : FIRST_MOST_NS;

	if (wait > FIRST_MOST_NS)
		wait = FIRST_MOST_NS;
	return (uint32_t)(wait > PROBE_FIRST_NS ? wait : PROBE_FIRST_NS);
}

/* Likewise where only that is known: as much again is for the answer to the first probe. */
static uint64_t unmeasured_ns(uint32_t first)
{
	return first > PROBE_FIRST_NS ? UINT64_C(2) * first + GRACE_NS : 0;
}

void roci_ack_timer_restart(struct roci_ack_timer *t, uint64_t now, unsigned timeout, uint64_t srtt, uint64_t answer)
{
	uint64_t wait = timeout_ns(timeout), far;

	t->probes = 0;
	t->first_ns = first_ns(answer);
	far = srtt ? far_ns(srtt) : unmeasured_ns(t->first_ns);
	t->timeout_at = timeout ? now + (wait > far ? wait : far) : UINT64_MAX;
}

uint64_t roci_ack_timer_next(const struct roci_ack_timer *t, uint64_t now, uint64_t srtt, bool bound, bool acked)
{
	uint64_t wait = bound ? srtt + srtt / 4 : PROBE_RTTS * srtt; /* no answer takes longer than the bound */
	uint64_t least = !srtt ? t->first_ns : acked ? PROBE_MIN_NS : PROBE_FIRST_NS, probe_at;

	if (wait < least)
		wait = least;
	probe_at = now + (wait << t->probes);
	return probe_at < t->timeout_at ? probe_at : t->timeout_at;
}

enum roci_ack_expiry roci_ack_timer_expire(struct roci_ack_timer *t, uint64_t now, bool acked)
{
	if (now < t->timeout_at) {
		if (t->probes < PROBES_MAX)
			t->probes++;
		return acked && t->probes <= PROBES_ALONE ? ROCI_ACK_PROBE : ROCI_ACK_RESEND;
	}
	if (!t->retries_left)
		return ROCI_ACK_GIVE_UP;
	t->retries_left--;
	return ROCI_ACK_RETRY;
}
