/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses that a NAT has written into packets. A capture may be taken on the far side of the NAT. Then the ICRC
 * covers other addresses than those of the IP header: the ones that the end behind the NAT sees (wire/nat.h). That end
 * names them in its REQ, HELLO and MTU PROBE. They are believed if they make the ICRC of that packet right.
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
		struct roci_flow meant; /* the flow that their ICRC covers */
	} flows[CAPTURE_REWRITTEN_MAX];
	unsigned count, next;
};

/* As capture_frame_icrc(), and CAPTURE_ICRC_BEHIND_NAT where the ICRC is right for addresses that a NAT has replaced.
 * Learns these from *pkt, the packet of the frame. */
enum capture_icrc capture_rewritten_icrc(struct capture_rewritten *r, const struct capture_frame *frame,
					 const struct roci_packet *pkt);

#endif
