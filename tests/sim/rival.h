/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A TCP flow with CUBIC (RFC 9438) that shares a line: what it sends when, and not what it sends. All packets are full,
 * and each is acknowledged by its number. A lost one counts against the window and is not sent again, because only
 * what the flow takes of the line matters here.
 */
#ifndef ROCI_SIM_RIVAL_H
#define ROCI_SIM_RIVAL_H

#include <stdbool.h>
#include <stdint.h>

#define RIVAL_BYTES 1500 /* of a packet, IP header included */

struct rival {
	double window, threshold, before; /* packets: now, end of slow start, when the window was last cut */
	double k;                         /* seconds from the cut until the window is as large as it was */
	double friendly;                  /* what Reno would have (RFC 9438 4.3) */
	uint64_t cut_at;                  /* ns, 0: never */
	uint64_t rtt_ns;
	uint64_t heard_at;             /* when an acknowledgement last came */
	uint64_t next, acked, recover; /* numbers of packets: next to send; next to be acknowledged; end of a cut */
};

void rival_init(struct rival *r, uint64_t now);
/* Whether the next packet, r->next, may go now. The caller counts r->next up. */
bool rival_may_send(const struct rival *r);
/* The acknowledgement of the packet `number`, which was sent at `sent_at`, came. */
void rival_acked(struct rival *r, uint64_t now, uint64_t number, uint64_t sent_at);
/* When to call rival_expired(). */
uint64_t rival_deadline(const struct rival *r);
/* Nothing came for long: all is lost (RFC 6298 5). */
void rival_expired(struct rival *r, uint64_t now);

#endif
