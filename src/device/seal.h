/* SPDX-License-Identifier: BSD-2-Clause */
/* The last touch on packets before they leave: runs, IPv4 identification, pad and ICRC. */
#ifndef ROCI_DEVICE_SEAL_H
#define ROCI_DEVICE_SEAL_H

#include "device/link.h"

/* Copies of payload that has to be the same when it is sent as when its ICRC was computed. */
struct roci_copies {
	struct roci_span spans[ROCI_TX_BATCH];
	uint8_t bytes[ROCI_TX_BATCH * ROCI_MAX_MTU]; /* touched as needed */
};

/* Fills frames[] (at least ROCI_TX_BATCH) with the packets of *batch, unsealed. Payload that is short, or whose packet
 * has copy_payload set, is copied to *copies, which are in use until the frames are sent; the rest stays where it lies.
 * Returns how many. */
unsigned roci_frames_from(const struct roci_tx_batch *batch, struct roci_copies *copies, struct roci_frame *frames);

/* Groups frames into runs of one destination and one length (the last of a run may be shorter) as long as `link` takes
 * them, and computes each ICRC with the identification that it will have: its place in the run (PROTOCOL.md s.8). */
void roci_frames_seal(struct roci_link *link, struct roci_frame *frames, unsigned count);

/* Makes each of `count` frames a run of its own: for a socket that turned out to have no GSO. */
void roci_frames_seal_singly(struct roci_frame *frames, unsigned count);

/* The flow of packets to `av`. */
void roci_av_flow(const struct roci_av *av, struct roci_flow *flow);

#endif
