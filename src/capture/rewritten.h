/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses that a NAT has written into packets. Where a capture was taken behind it, as seen from the sender, the ICRC
 * covers other addresses than the IP header has: those that the end behind the NAT sees (wire/nat.h). That end names
 * them in its REQ, HELLO and MTU PROBE. What it names counts where it makes the ICRC of that packet right.
 */
#ifndef CAPTURE_REWRITTEN_H
#define CAPTURE_REWRITTEN_H

#include "capture/frame.h"
#include "wire/packet.h"

#define CAPTURE_REWRITTEN_MAX 64 /* the oldest is forgotten */

/* Zeroed: none. */
struct capture_rewritten {
	struct {
		struct roci_flow seen;  /* of packets from behind the NAT */
		struct roci_flow meant; /* what they are in its place */
	} flows[CAPTURE_REWRITTEN_MAX];
	unsigned count, next;
};

/* As capture_frame_icrc(), and CAPTURE_ICRC_BEHIND_NAT where it is right for addresses that a NAT has replaced. Learns
 * them from *pkt, the packet of the frame. */
enum capture_icrc capture_rewritten_icrc(struct capture_rewritten *r, const struct capture_frame *frame,
					 const struct roci_packet *pkt);

#endif
