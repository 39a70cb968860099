/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stream of packets that comes evenly, from one far end of a wire, slowly enough that the thread would be woken for
 * each two or three of them: what is received, and hardly answered. Where such a stream goes on, the thread takes some
 * packets at a time, and does not listen in between. Each wake-up costs this host as much as a packet or two, also
 * whoever brings the packets; so does each acknowledgement.
 *
 * Only a stream that has gone on for a while counts: a request that is answered ends before. Pure; times are
 * nanoseconds.
 */
#ifndef ROCI_DEVICE_INFLOW_H
#define ROCI_DEVICE_INFLOW_H

#include <stdbool.h>
#include <stdint.h>

#define ROCI_INFLOW_BLOCK_NS UINT64_C(1000000) /* over which it is measured, and so long it has gone on at least */
#define ROCI_INFLOW_GAP_NS   UINT64_C(250000)  /* without a packet: it has ended */
#define ROCI_INFLOW_ANSWERS  4                 /* packets received for each that is sent, at least */
#define ROCI_INFLOW_PACKETS  8                 /* to take at a time, */
#define ROCI_INFLOW_LEAST    4                 /* or so many at least where they come slowly */
#define ROCI_INFLOW_MOST_NS  UINT64_C(100000)  /* between two turns */
#define ROCI_INFLOW_LEAST_NS UINT64_C(30000)   /* a shorter pause is not worth its timer */

struct roci_inflow {
	uint64_t from;     /* since when it is counted; 0: there is no stream */
	uint64_t at;       /* of the newest packet */
	uint64_t apart_ns; /* between two packets, in the last block; 0: there was none yet, or it was no such stream */
	uint32_t received, sent;
};

/* A turn at `now` received and sent so many packets. others: and took some that did not come by the wire. */
static inline void roci_inflow_turn(struct roci_inflow *f, uint64_t now, unsigned received, unsigned sent, bool others)
{
	uint64_t since = now - f->at, slowest = received * (ROCI_INFLOW_MOST_NS / ROCI_INFLOW_LEAST);

	if (others || (f->from && since > ROCI_INFLOW_GAP_NS && since > slowest))
		*f = (struct roci_inflow){0};
	if (!received)
		return;
	if (!f->from)
		f->from = now;
	f->at = now;
	f->received += received;
	f->sent += sent;
	if (now - f->from < ROCI_INFLOW_BLOCK_NS)
		return;
	f->apart_ns = f->received >= ROCI_INFLOW_ANSWERS * f->sent ? (now - f->from) / f->received : 0;
	f->from = now;
	f->received = f->sent = 0;
}

/* How long not to listen; 0: listen. */
static inline uint64_t roci_inflow_pause(const struct roci_inflow *f)
{
	uint64_t pause = ROCI_INFLOW_PACKETS * f->apart_ns;

	if (pause < ROCI_INFLOW_LEAST_NS || ROCI_INFLOW_LEAST * f->apart_ns > ROCI_INFLOW_MOST_NS)
		return 0;
	return pause < ROCI_INFLOW_MOST_NS ? pause : ROCI_INFLOW_MOST_NS;
}

#endif
