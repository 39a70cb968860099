/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/peer_port.h"

/* Counts a packet from another port, without a proof. True where there were enough of them in a row. */
static bool refuse(struct roci_peer_port *p, uint16_t port)
{
	if (p->refused_port != port)
		p->refused = 0;
	p->refused_port = port;
	return ++p->refused == ROCI_PEER_PORT_PATIENCE;
}

bool roci_peer_port_change(struct roci_peer_port *p, uint64_t now, uint16_t port, enum roci_proof proof)
{
	if (proof != ROCI_PROOF_PEER && !refuse(p, port))
		return false;
	if (p->shown) {
		p->changes = now - p->changed_at <= ROCI_PEER_PORT_CHANGE_NS ? p->changes + 1 : 1;
		p->changed_at = now;
		p->sprays = p->changes >= ROCI_PEER_PORT_CHANGES;
	}
	p->shown = true;
	p->port = port;
	p->silent = false;
	p->refused = 0;
	return true;
}
