/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/nat.h"

#include <string.h>

#include "cm/cm.h"
#include "cm/msg.h"
#include "device/device_state.h"
#include "device/gsi.h"
#include "engine/why.h"
#include "wire/gid.h"
#include "wire/mtu_probe.h"

/* ---- what a packet claims ---- */

/* A request names the addresses that its sender means. */
static bool claim_of_request(const struct roci_packet *pkt, struct roci_hello *claim)
{
	struct roci_cm_msg msg;
	struct roci_cm_ip ip;

	if (!roci_gsi_is_mad(pkt) || roci_cm_msg_parse(&msg, pkt->payload) != ROCI_CM_PARSE_OK)
		return false;
	*claim = (struct roci_hello){.token = msg.tid, .mad = pkt->payload};
	if (msg.attribute == ROCI_CM_ATTR_REQ) {
		memcpy(claim->src, msg.primary.local_gid, 16);
		memcpy(claim->dst, msg.primary.remote_gid, 16);
		return true;
	}
	if (msg.attribute != ROCI_CM_ATTR_SIDR_REQ || !roci_cm_service_is_ip(msg.service_id) ||
	    !roci_cm_ip_parse(&ip, msg.private, ROCI_CM_SIDR_REQ_PRIVATE))
		return false;
	memcpy(claim->src, ip.src, 16);
	memcpy(claim->dst, ip.dst, 16);
	return true;
}

/* It says what it claims by its opcode. */
static bool is_claim(const struct roci_packet *pkt)
{
	return pkt->op->kind == ROCI_KIND_HELLO || pkt->op->kind == ROCI_KIND_MTU_PROBE;
}

static bool read_claim(const struct roci_packet *pkt, struct roci_hello *claim)
{
	switch (pkt->op->kind) {
	case ROCI_KIND_HELLO: return roci_hello_parse(pkt->payload, pkt->payload_len, claim);
	case ROCI_KIND_MTU_PROBE:
		return pkt->dest_qpn == ROCI_QPN_GSI && roci_mtu_probe_parse(pkt->payload, pkt->payload_len, claim);
	default: return pkt->dest_qpn == ROCI_QPN_GSI && claim_of_request(pkt, claim);
	}
}

static bool covers(const struct roci_flow *flow, const struct roci_datagram *d)
{
	return roci_icrc_check(flow, d->bytes, d->len) >= 0;
}

enum roci_nat_arrival roci_nat_judge(const struct roci_device *dev, const struct roci_datagram *d,
				     const struct roci_packet *pkt, struct roci_hello *claim)
{
	const struct roci_flow *from = &d->from->flow, *meant = roci_engine_nat_flow(dev->engine, pkt->dest_qpn);
	bool gsi = pkt->dest_qpn == ROCI_QPN_GSI;
	struct roci_flow claimed;

	/* A socket does not show the IPv4 identification, so the ICRC may be right for any. */
	if (!is_claim(pkt) && ((meant && covers(meant, d)) || covers(from, d)))
		return ROCI_NAT_NONE;
	if (!read_claim(pkt, claim))
		return ROCI_NAT_DAMAGED;
	if (roci_gid_is_ipv4(claim->src) != roci_gid_is_ipv4(from->src) ||
	    roci_gid_is_ipv4(claim->dst) != roci_gid_is_ipv4(from->src) || (gsi && !claim->mad))
		return ROCI_NAT_DAMAGED;
	roci_nat_flow(&claimed, claim->src, claim->dst);
	return covers(&claimed, d) ? ROCI_NAT_CLAIMED : ROCI_NAT_DAMAGED;
}

void roci_nat_damaged(struct roci_device *dev, uint64_t now, const struct roci_datagram *d,
		      const struct roci_packet *pkt)
{
	bool datagram = (pkt->opcode & ROCI_TRANSPORT_MASK) == ROCI_TRANSPORT_UD;
	char from[ROCI_GID_TEXT];

	if (pkt->dest_qpn == ROCI_QPN_GSI)
		return;
	dev->stats->rx_ud_bad_icrc += datagram;
	roci_gid_text(d->from->flow.src, from);
	ROCI_WHY("its ICRC does not fit the addresses that it came with. A NAT on the way has replaced one, or the "
		 "packet was damaged. Connections of rdma_cm (RC, UC) cross a NAT; datagrams (UD), and QPs that a "
		 "program connects by itself, do not: they need a network without one, such as a VPN");
	ROCI_WHY_TELL_PACED(&dev->nat_why, now, "a %s from %s for QP 0x%x is dropped", datagram ? "datagram" : "packet",
			    from, pkt->dest_qpn);
}

/* ---- proof ---- */

/* What the claim says, of whoever sends from there. */
static struct roci_nat_terms terms_of(const struct roci_flow *from, const struct roci_hello *claim)
{
	struct roci_nat_terms terms = {.token = claim->token, .port = from->src_port};

	memcpy(terms.src, claim->src, 16);
	memcpy(terms.dst, claim->dst, 16);
	return terms;
}

bool roci_nat_proved(const struct roci_device *dev, uint64_t now, const struct roci_flow *from,
		     const struct roci_hello *claim, struct roci_nat_terms *nat)
{
	*nat = terms_of(from, claim);
	return roci_nat_cookie_is(&dev->nat_key, now, from->src, from->src_port, claim->cookie);
}

void roci_nat_challenge(struct roci_device *dev, uint64_t now, const struct roci_flow *from,
			const struct roci_hello *claim, uint32_t id)
{
	struct roci_packet pkt = {.opcode = ROCI_OPCODE_CHALLENGE,
				  .pkey = ROCI_PKEY_DEFAULT,
				  .dest_qpn = ROCI_QPN_GSI,
				  .payload_len = ROCI_CHALLENGE_BYTES};
	struct roci_challenge c = {.id = id, .token = claim->token, .seen_port = from->src_port};
	struct roci_nat_terms nat = terms_of(from, claim);
	uint8_t payload[ROCI_CHALLENGE_BYTES];
	struct roci_span span = {payload, sizeof(payload)};

	memcpy(c.seen, from->src, 16);
	c.cookie = roci_nat_cookie(&dev->nat_key, now, from->src, from->src_port);
	roci_challenge_build(&c, payload);
	if (roci_gsi_send_to(dev, from->dst, from->src, &nat, &pkt, &span, 1))
		dev->stats->challenges_sent++;
}

void roci_nat_hello(struct roci_device *dev, uint64_t now, const struct roci_rx *rx)
{
	struct roci_nat_terms terms;
	uint8_t gid[16];

	if (!roci_engine_rx_hello(dev->engine, now, rx) ||
	    !roci_engine_nat_terms(dev->engine, rx->pkt.dest_qpn, &terms, gid))
		return;
	roci_cm_moved(roci_cm_host_cm(dev), gid, &terms);
}

/* ---- QPs ---- */

int roci_device_cross_nat(struct roci_device *dev, struct roci_qp *qp, const uint8_t dgid[16], uint32_t dest_qpn)
{
	struct roci_nat_terms terms;

	if (dev->dead || !roci_cm_find_nat(roci_cm_host_cm(dev), dgid, dest_qpn, &terms))
		return 0;
	return roci_qp_cross_nat(qp, &terms);
}

/* ---- another network ---- */

#define LOOK_NS 1000000000u /* a route may come after the address */

struct move {
	struct roci_device *dev;
	bool missing; /* a QP has no address to send from */
};

static bool find_home(void *context, struct roci_av *av)
{
	struct move *move = context;
	struct roci_device *dev = move->dev;
	const struct roci_gid_entry *old = &dev->gids.entries[av->sgid_index];
	struct roci_ah_params params = {.hop_limit = av->hop_limit, .traffic_class = av->traffic_class};
	struct roci_av found;
	uint8_t sgid[16];
	int index;

	if (roci_gid_is_present(old) && !memcmp(old->gid, av->sgid, 16))
		return false;
	index = roci_device_source_of(dev, av->dgid, sgid) ? -1 : roci_gids_find(&dev->gids, sgid, 0);
	params.sgid_index = (uint8_t)index;
	memcpy(params.dgid, av->dgid, 16);
	if (index < 0 || roci_device_make_av(dev, &params, &found)) {
		move->missing = true;
		return false;
	}
	roci_cm_rehome(roci_cm_host_cm(dev), av->sgid, found.sgid);
	*av = found;
	return true;
}

void roci_nat_rehome(struct roci_device *dev, uint64_t now)
{
	struct move move = {.dev = dev};

	roci_engine_rehome(dev->engine, now, find_home, &move);
	dev->nat_look_at = move.missing ? now + LOOK_NS : ROCI_CM_NEVER;
}
