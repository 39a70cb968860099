/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets that are longer than the path MTU of the verbs, between two Rocinantes. A path MTU is a power of two: over
 * Ethernet's 1,500 bytes a packet has 1,024 bytes of payload, where 1,408 would fit; over the 9,000 bytes of jumbo
 * frames it has 4,096, the largest path MTU there is, where 8,832 would fit. What really arrives is found as
 * packetization layer path MTU discovery does it (RFC 8899): a probe of full length, which may be lost without harm,
 * goes before the data. The probe is an OFFER with zeros behind it, and RANGES says that it has come (ranges.h).
 *
 * Lengths are bytes of payload, multiples of ROCI_PLPMTU_STEP. The longest that the interface, and what is known of the
 * path, allow is tried first, then shorter ones.
 */
#ifndef ROCI_ENGINE_PLPMTU_H
#define ROCI_ENGINE_PLPMTU_H

#include <stdint.h>

#include "engine/limits.h"
#include "wire/mtu.h"

#define ROCI_PLPMTU_STEP  128u
#define ROCI_PLPMTU_TRIES 2 /* probes of one length */
#define ROCI_PLPMTU_MOST  8 /* probes in all */

/* Payload of the probe for packets of `bytes`: then it is as long as the longest of them, a WRITE Only with Immediate.
 */
#define ROCI_PLPMTU_PROBE_BYTES(bytes) ((bytes) + 20u)
_Static_assert(ROCI_MAX_PAYLOAD % ROCI_PLPMTU_STEP == 0 && ROCI_MAX_PAYLOAD / ROCI_PLPMTU_STEP <= UINT8_MAX,
	       "lengths are counted in steps");

/* Of one direction of a QP. Zeroed: nothing is known. In steps. */
struct roci_plpmtu {
	uint8_t proved; /* the longest that has arrived; 0: none that is longer than the path MTU */
	uint8_t size;   /* of the last probe */
	uint8_t tries;  /* probes of that size */
	uint8_t probes; /* in all */
};

/* The longest that packets may be, where one IP packet takes `carries` bytes of UDP payload (0: not known). 0: not
 * longer than `mtu`; or `mtu` is not the largest one that fits, so whoever chose it meant to have shorter packets. */
static inline uint32_t roci_plpmtu_most(uint32_t mtu, uint32_t carries)
{
	uint32_t bytes = carries > ROCI_MTU_HEADER_BYTES ? carries - ROCI_MTU_HEADER_BYTES : 0;

	bytes -= bytes % ROCI_PLPMTU_STEP;
	if (bytes <= mtu || (bytes >= 2 * mtu && mtu != ROCI_MAX_MTU))
		return 0;
	return bytes < ROCI_MAX_PAYLOAD ? bytes : ROCI_MAX_PAYLOAD;
}
/* For which length a probe may go now; 0: for none. */
static inline uint32_t roci_plpmtu_next(const struct roci_plpmtu *p, uint32_t mtu, uint32_t carries)
{
	uint32_t most = roci_plpmtu_most(mtu, carries), size = p->size * ROCI_PLPMTU_STEP;

	if (!most || p->proved || p->probes == ROCI_PLPMTU_MOST)
		return 0;
	if (!size || size > most)
		return most;
	if (p->tries == ROCI_PLPMTU_TRIES)
		size -= ROCI_PLPMTU_STEP;
	return size > mtu ? size : 0;
}
/* A probe for `bytes` goes, which roci_plpmtu_next() returned. */
static inline void roci_plpmtu_sent(struct roci_plpmtu *p, uint32_t bytes)
{
	uint8_t size = (uint8_t)(bytes / ROCI_PLPMTU_STEP);

	p->tries = size == p->size ? (uint8_t)(p->tries + 1) : 1;
	p->size = size;
	p->probes++;
}
/* The peer says that a probe for `bytes` has arrived, perhaps an older one; 0: none has. */
static inline void roci_plpmtu_arrived(struct roci_plpmtu *p, uint32_t bytes)
{
	uint32_t size = bytes / ROCI_PLPMTU_STEP;

	if (size >= p->size && size > p->proved) /* not longer than what was asked for */
		p->proved = p->size;
}
/* How long the packets of a request are that begins now; 0: as the path MTU says. */
static inline uint32_t roci_plpmtu_payload(const struct roci_plpmtu *p, uint32_t mtu, uint32_t carries)
{
	uint32_t most, proved = p->proved * ROCI_PLPMTU_STEP;

	if (!proved)
		return 0;
	most = roci_plpmtu_most(mtu, carries);
	return proved < most ? proved : most;
}

#endif
