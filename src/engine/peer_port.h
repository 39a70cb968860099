/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The UDP port that the peer of an RC or UC QP sends from. The standard leaves it to the sender (IBTA A17), and most
 * keep one for each QP: a packet from another port is forged, unless it proves the contrary. The proof is to be exactly
 * the packet that is expected next, which only the peer and those who see its packets know. It makes its port the known
 * one: a peer may change it at any time. As long as none is known, the proof is to be near what is
 * expected, because the first packets may overtake each other, or come again from port 4791. A packet that can change
 * nothing needs no proof. The caller judges the packet.
 *
 * A peer that keeps changing its port (some adapters spray over paths) proves that by exact packets, and is not judged
 * any more.
 */
#ifndef ROCI_ENGINE_PEER_PORT_H
#define ROCI_ENGINE_PEER_PORT_H

#include <stdbool.h>
#include <stdint.h>

#define ROCI_PEER_PORT_NEAR      128 /* PSNs: "near"; until it knows the port, a sender has no more in flight */
#define ROCI_PEER_PORT_CHANGES   4   /* so many, each soon after the last: the peer sprays */
#define ROCI_PEER_PORT_CHANGE_NS UINT64_C(10000000000) /* what "soon" means */
/* So many packets from one other port, with none from the known one among them: that is the peer, whatever they are. A
 * UC peer may have gone on without us, and nothing would bring it back. A guess costs as many packets for each QPN. */
#define ROCI_PEER_PORT_PATIENCE 65536

struct roci_peer_port {
	uint16_t port; /* the known one */
	bool shown;    /* there is one */
	bool sprays;   /* not judged any more */
	bool silent;   /* an answer is missed, and nothing came from the peer since */
	uint8_t changes;
	uint16_t refused_port; /* that the last refused packet came from */
	uint32_t refused;      /* packets from there in a row */
	uint64_t changed_at;
};

/* A packet came from `port`. True where it counts whatever it is. */
static inline bool roci_peer_port_is(struct roci_peer_port *p, uint16_t port)
{
	if (!p->shown || (p->port != port && !p->sprays))
		return false;
	p->refused = 0;
	p->silent = false;
	return true;
}

/* What a packet proves by itself. */
enum roci_proof {
	ROCI_PROOF_NONE,
	ROCI_PROOF_NEEDLESS, /* nothing, but it can change nothing */
	ROCI_PROOF_PEER,     /* the peer sent it */
};

/* A packet came from a port that roci_peer_port_is() says no to. True where its port is the known one now. */
bool roci_peer_port_change(struct roci_peer_port *p, uint64_t now, uint16_t port, enum roci_proof proof);

#endif
