/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets that cross a NAT, at the edge of the device: which addresses an ICRC covers, HELLO and CHALLENGE
 * (wire/nat.h).
 *
 * Where the ICRC is wrong for the addresses of the IP header, it may be right for those that the sender sees. Some
 * packets to QP 1 name these: a HELLO, a REQ, and a SIDR_REQ with an IP CM header. For a QP whose peer is behind a NAT
 * they are known. What a packet names is only a claim. Until a HELLO brings the cookie of a CHALLENGE back, nothing is
 * kept, and nothing is sent to where the packet came from but that CHALLENGE, which is shorter than the packet.
 */
#ifndef ROCI_DEVICE_NAT_H
#define ROCI_DEVICE_NAT_H

#include "device/link.h"
#include "wire/nat.h"

struct roci_device;

enum roci_nat_arrival {
	ROCI_NAT_DAMAGED, /* the ICRC is wrong for all of them */
	ROCI_NAT_NONE,    /* right for those of its IP header, or those that its QP knows */
	ROCI_NAT_CLAIMED, /* right for those that it names; *claim is filled, and its `mad` for QP 1 */
};
/* Judges a parsed packet. */
enum roci_nat_arrival roci_nat_judge(const struct roci_device *dev, const struct roci_datagram *d,
				     const struct roci_packet *pkt, struct roci_hello *claim);
/* A damaged packet: counts it if it is a datagram, and for --why says what may have happened. UDP's checksum was right,
 * so a NAT that replaced an address is more likely than damage. */
void roci_nat_damaged(struct roci_device *dev, uint64_t now, const struct roci_datagram *d,
		      const struct roci_packet *pkt);
/* Whether the claim's cookie proves where it comes from. Fills *nat. */
bool roci_nat_proved(const struct roci_device *dev, uint64_t now, const struct roci_flow *from,
		     const struct roci_hello *claim, struct roci_nat_terms *nat);
/* Asks for proof, about the exchange `id` of the sender. */
void roci_nat_challenge(struct roci_device *dev, uint64_t now, const struct roci_flow *from,
			const struct roci_hello *claim, uint32_t id);
/* A HELLO for a QP: if its peer has moved, the connection manager learns it, too. */
void roci_nat_hello(struct roci_device *dev, uint64_t now, const struct roci_rx *rx);

/* Our QPs and connections behind a NAT whose address is gone go on from another address that leads to their peers.
 * Called when the host's addresses have changed, and again after a second if there was none to send from. */
void roci_nat_rehome(struct roci_device *dev, uint64_t now);

#endif
