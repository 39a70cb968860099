/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UDP source ports: peers that change theirs, and an attacker off the path. The attacker forges addresses and does not
 * know a connection's PSN, and mostly not its port or QPN either. Nothing of what it sends may be delivered: the model
 * knows no such messages.
 */
#include "sim.h"

#define USED (1u << 15) /* more PSNs than a program uses: nobody guesses one of those, but in 2^40 packets */
#define FAR  (1u << 20) /* PSNs between what is expected and what somebody guesses who knows the port */

void sim_forger_draw(struct sim *sim)
{
	struct sim_net *net = &sim->net;

	rng_init(&sim->forger, sim->seed, 5);
	net->forge = rng_once_in(&sim->forger, 2) ? rng_range(&sim->forger, 1, 100) : 0;
	if (rng_once_in(&sim->forger, 4))
		net->move = rng_range(&sim->forger, 1, rng_once_in(&sim->forger, 4) ? 1000 : 20);
}

uint16_t sim_forger_port(struct sim *sim, struct sim_qp *qp, uint16_t port)
{
	if (!sim->net.move || qp->type == ROCI_QPT_UD)
		return port;
	if (rng_below(&sim->forger, 1000) < sim->net.move) {
		qp->moved_port = (uint16_t)rng_below(&sim->forger, 65536);
		qp->moved = true;
	}
	return qp->moved ? qp->moved_port : port;
}

static uint8_t operation(struct sim *sim)
{
	static const uint8_t operations[] = {ROCI_OP_SEND_ONLY,    ROCI_OP_WRITE_ONLY_IMM,    ROCI_OP_WRITE_ONLY,
					     ROCI_OP_READ_REQUEST, ROCI_OP_FETCH_ADD,         ROCI_OP_ACKNOWLEDGE,
					     ROCI_OP_ACKNOWLEDGE,  ROCI_OP_READ_RESPONSE_ONLY};

	return operations[rng_below(&sim->forger, sizeof(operations))];
}

/* A packet that the peer of `to` could send: right in addresses, QPN and R_Key. */
static struct roci_packet request_or_answer(struct sim *sim, const struct sim_qp *to, const uint8_t *noise)
{
	const struct sim_mr *target = to->peer->target;
	struct rng *r = &sim->forger;
	struct roci_packet pkt = {.opcode = ROCI_TRANSPORT_UC | ROCI_OP_WRITE_ONLY, .pkey = ROCI_PKEY_DEFAULT};

	if (to->type == ROCI_QPT_RC)
		pkt.opcode = ROCI_TRANSPORT_RC | operation(sim);
	pkt.dest_qpn = to->qpn;
	pkt.ack_req = true;
	pkt.syndrome = ROCI_AETH_ACK | ROCI_AETH_UNLIMITED_CREDITS;
	if (pkt.opcode == ROCI_OP_ACKNOWLEDGE && rng_once_in(r, 2))
		pkt.syndrome = (uint8_t)(ROCI_AETH_NAK | rng_below(r, 4));
	if (target) {
		pkt.rkey = target->key;
		pkt.va = target->iova;
	}
	pkt.swap_add = rng_next(r);
	pkt.payload = noise;
	if (roci_opcode_info(pkt.opcode)->payload && pkt.opcode != (ROCI_TRANSPORT_RC | ROCI_OP_WRITE_ONLY_IMM))
		pkt.payload_len = SIM_FORGED_BYTES;
	pkt.dma_len = pkt.opcode == ROCI_OP_READ_REQUEST ? SIM_FORGED_BYTES : pkt.payload_len;
	return pkt;
}

/* What the attacker does not know: the PSN, and the port or the QPN. UC takes any PSN from the port that it knows. */
static void guess(struct sim *sim, const struct sim_qp *to, struct roci_packet *pkt, uint16_t *port)
{
	bool response = roci_opcode_info(pkt->opcode)->response;
	uint32_t begin = response ? to->sq_psn : to->peer->sq_psn;
	struct rng *r = &sim->forger;

	*port = to->peer->moved ? to->peer->moved_port : to->peer->av.src_port;
	pkt->psn = (begin + USED + rng_below(r, ROCI_PSN_MASK - 2 * USED)) & ROCI_PSN_MASK;
	switch (rng_below(r, to->type == ROCI_QPT_RC ? 3 : 2)) {
	case 0: *port ^= (uint16_t)rng_range(r, 1, 65535); break;
	case 1:
		*port ^= (uint16_t)rng_range(r, 1, 65535);
		do
			pkt->dest_qpn = rng_range(r, 2, ROCI_QPN_MASK - 1);
		while (sim_find_qp(sim, pkt->dest_qpn));
		break;
	default: pkt->psn = (begin + FAR + rng_below(r, FAR)) & ROCI_PSN_MASK; break;
	}
}

bool sim_forger_spray(struct sim *sim, struct sim_qp *to, struct sim_forged *out)
{
	struct roci_packet pkt;

	if (!sim->net.forge || to->type == ROCI_QPT_UD || rng_below(&sim->forger, 1000) >= sim->net.forge)
		return false;
	/* Of a peer that keeps changing its port it takes everything; where a clock leaps, a peer that seems silent is
	 * answered from 4791, and then from the QP's own port again. */
	if (to->type == ROCI_QPT_UC && (sim->net.move || sim->clocks))
		return false;
	pkt = request_or_answer(sim, to, out->payload);
	guess(sim, to, &pkt, &out->port);
	for (unsigned i = 0; i < SIM_FORGED_BYTES; i++)
		out->payload[i] = (uint8_t)rng_next(&sim->forger);
	out->payload_len = pkt.payload_len;
	out->header_len = roci_packet_build(&pkt, out->header);
	return true;
}
