/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/gsi.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cm/msg.h"
#include "device/cm_host.h"
#include "device/device_state.h"
#include "device/nat.h"
#include "device/port_names.h"
#include "device/say.h"
#include "device/seal.h"
#include "wire/gid.h"
#include "wire/mtu_probe.h"

/* ---- the process that a message is for ---- */

/* The slot to which the request `comm_id` of `gid` went. make: to be written; else NULL where it is not known. */
static uint16_t *remembered_slot(struct roci_gsi *gsi, const uint8_t gid[16], uint32_t comm_id, bool make)
{
	unsigned i = (comm_id ^ comm_id >> 12 ^ gid[15]) % ROCI_GSI_ROUTE_MEMORY;

	if (make) {
		memcpy(gsi->routes[i].gid, gid, 16);
		gsi->routes[i].comm_id = comm_id;
	} else if (gsi->routes[i].comm_id != comm_id || memcmp(gsi->routes[i].gid, gid, 16)) {
		return NULL;
	}
	return &gsi->routes[i].slot;
}

/* The slot of the process that listens; 0: nobody. That process checks the IP CM header against the datagram. */
static unsigned listener_slot(const struct roci_device *dev, const struct roci_cm_msg *msg, const uint8_t dgid[16])
{
	if (!roci_cm_service_is_ip(msg->service_id))
		return 0;
	return roci_ports_owner(&dev->registry, roci_cm_service_ps(msg->service_id),
				roci_cm_service_port(msg->service_id), dgid);
}

static unsigned request_slot(struct roci_device *dev, const struct roci_cm_msg *msg, const uint8_t sgid[16],
			     const uint8_t dgid[16])
{
	struct roci_gsi *gsi = roci_cm_host_gsi(dev);
	uint16_t *known = remembered_slot(gsi, sgid, msg->local_id, false);
	unsigned slot;

	if (known && roci_registry_alive(&dev->registry, *known))
		return *known;
	slot = listener_slot(dev, msg, dgid);
	if (slot)
		*remembered_slot(gsi, sgid, msg->local_id, true) = (uint16_t)slot;
	else if (roci_cm_service_is_ip(msg->service_id)) /* says why; not remembered, for another may listen soon */
		slot = roci_ports_other_family(&dev->registry, roci_cm_service_ps(msg->service_id),
					       roci_cm_service_port(msg->service_id), dgid);
	return slot;
}

/* The slot of the process that the message is for; 0: nobody's, so this process answers. */
static unsigned owner_slot(struct roci_device *dev, const struct roci_cm_msg *msg, const uint8_t sgid[16],
			   const uint8_t dgid[16])
{
	const uint16_t *known;

	switch (msg->attribute) {
	case ROCI_CM_ATTR_REQ:
	case ROCI_CM_ATTR_SIDR_REQ: return request_slot(dev, msg, sgid, dgid);
	case ROCI_CM_ATTR_SIDR_REP: return msg->local_id >> ROCI_COMM_SLOT_SHIFT;
	default:
		if (msg->remote_id)
			return msg->remote_id >> ROCI_COMM_SLOT_SHIFT;
		known = remembered_slot(roci_cm_host_gsi(dev), sgid, msg->local_id, false);
		return known ? *known : 0;
	}
}

/* ---- forwarding, by side doors ---- */

#define DOOR_RETRY_NS  300000
#define PROBE_PAUSE_NS 100000000

/* A door has no room: the packet is lost, as in a network. If it is a probe (wire/mtu_probe.h), those behind it are
 * shorter, and would say that the path bears no more. So they are lost, too. */
static void lose(struct roci_device *dev, uint64_t now)
{
	dev->stats->mads_dropped++;
	roci_cm_host_gsi(dev)->probes_at = now + PROBE_PAUSE_NS;
}

static bool is_held_back(struct roci_device *dev, uint64_t now, const uint8_t *bytes)
{
	return bytes[0] == ROCI_OPCODE_MTU_PROBE && now < roci_cm_host_gsi(dev)->probes_at;
}

static int send_to_door(struct roci_device *dev, unsigned slot, const struct roci_arrival *from, void *bytes,
			unsigned len)
{
	struct iovec iov[2] = {{0}, {bytes, len}};

	return roci_side_door_send(dev->links.door, slot, from, len, iov, 2);
}

static void enqueue(struct roci_device *dev, uint64_t now, unsigned slot, const struct roci_arrival *from,
		    const void *bytes, unsigned len)
{
	struct roci_gsi *gsi = roci_cm_host_gsi(dev);
	struct roci_gsi_waiting *w;
	unsigned room;

	if (!gsi->queue)
		gsi->queue = calloc(ROCI_GSI_QUEUE, sizeof(*gsi->queue));
	/* A process of another registry that does not read its door must leave room for ours. */
	room = roci_registry_alive(&dev->registry, slot) ? ROCI_GSI_QUEUE : ROCI_GSI_QUEUE / 2;
	if (!gsi->queue || gsi->queue_count >= room || len > sizeof(w->bytes) || is_held_back(dev, now, bytes)) {
		lose(dev, now);
		return;
	}
	w = &gsi->queue[(gsi->queue_first + gsi->queue_count++) % ROCI_GSI_QUEUE];
	w->from = *from;
	w->slot = (uint16_t)slot;
	w->len = (uint16_t)len;
	memcpy(w->bytes, bytes, len);
	if (gsi->queue_at == ROCI_CM_NEVER)
		gsi->queue_at = now + DOOR_RETRY_NS;
}

/* Returns false where the slot is nobody's. */
static bool forward(struct roci_device *dev, uint64_t now, unsigned slot, const struct roci_arrival *from, void *bytes,
		    unsigned len)
{
	struct roci_gsi *gsi = roci_cm_host_gsi(dev);
	int err =
		gsi->queue_count || is_held_back(dev, now, bytes) ? -EAGAIN : send_to_door(dev, slot, from, bytes, len);

	if (err == -ESRCH)
		return false;
	if (err)
		enqueue(dev, now, slot, from, bytes, len);
	dev->stats->mads_forwarded++;
	return true;
}

/* Offers a request to the processes of other registries: one of them may listen to the port. Returns false where nobody
 * does. */
static bool offer(struct roci_device *dev, uint64_t now, const struct roci_cm_msg *msg, const struct roci_arrival *from,
		  void *bytes, unsigned len)
{
	struct iovec iov[2] = {{0}, {bytes, len}};
	unsigned ps = roci_cm_service_ps(msg->service_id);
	uint16_t port = roci_cm_service_port(msg->service_id);
	int err = -EAGAIN;

	if ((msg->attribute != ROCI_CM_ATTR_REQ && msg->attribute != ROCI_CM_ATTR_SIDR_REQ) ||
	    !roci_cm_service_is_ip(msg->service_id) || roci_ports_listened_to(&dev->registry, ps, port))
		return false;
	if (!is_held_back(dev, now, bytes))
		err = roci_side_door_offer(dev->links.door, ps, port, from, len, iov, 2);
	if (err == -ESRCH)
		return false;
	if (err)
		lose(dev, now);
	dev->stats->mads_forwarded++;
	return true;
}

void roci_gsi_send_queued(struct roci_device *dev, uint64_t now)
{
	struct roci_gsi *gsi = roci_cm_host_gsi(dev);

	for (unsigned n = gsi->queue_count; n--;) {
		struct roci_gsi_waiting *w = &gsi->queue[gsi->queue_first];

		gsi->queue_first = (gsi->queue_first + 1) % ROCI_GSI_QUEUE;
		gsi->queue_count--;
		/* Where the process died meanwhile: the peer repeats its message, and we answer that. */
		if (send_to_door(dev, w->slot, &w->from, w->bytes, w->len) == -EAGAIN) {
			struct roci_gsi_waiting copy = *w;

			enqueue(dev, now, copy.slot, &copy.from, copy.bytes, copy.len);
		}
	}
	gsi->queue_at = gsi->queue_count ? now + DOOR_RETRY_NS : ROCI_CM_NEVER;
}

/* ---- a listener of the other address family ---- */

/* The peer is told only that nobody listens (REJ 8). Here somebody may wonder why. Once a port. */
static void say_other_family(struct roci_device *dev, const struct roci_cm_msg *msg, const uint8_t dgid[16])
{
	bool ipv4 = roci_gid_is_ipv4(dgid);
	unsigned ps = roci_cm_service_ps(msg->service_id);
	uint16_t port = roci_cm_service_port(msg->service_id);
	struct roci_port_name *name = NULL;

	if ((msg->attribute == ROCI_CM_ATTR_REQ || msg->attribute == ROCI_CM_ATTR_SIDR_REQ) &&
	    roci_cm_service_is_ip(msg->service_id))
		name = roci_port_names_find(roci_cm_host_port_names(dev), ps, port);
	if (!name || name->told || roci_ports_owner(&dev->registry, ps, port, dgid) ||
	    roci_ports_other_family(&dev->registry, ps, port, dgid) != dev->registry.slot)
		return;
	name->told = true;
	roci_device_say(
		"roci: a connection request for port %u came by IPv%d and is rejected: this process listens there at "
		"IPv%d addresses only. Listen at :: to get both (hints.ai_family = AF_INET6 and RAI_PASSIVE without a "
		"node give it).\n",
		port, ipv4 ? 4 : 6, ipv4 ? 6 : 4);
}

/* ---- receive ---- */

bool roci_gsi_is_mad(const struct roci_packet *pkt)
{
	return pkt->opcode == (ROCI_TRANSPORT_UD | ROCI_OP_SEND_ONLY) && pkt->qkey == ROCI_QKEY_GSI &&
	       pkt->payload_len == ROCI_CM_MAD_BYTES && roci_pkey_matches(pkt->pkey);
}

/* For the process that sent what it is about. */
static void rx_challenge(struct roci_device *dev, uint64_t now, const struct roci_datagram *d,
			 const struct roci_packet *pkt)
{
	struct roci_challenge c;
	unsigned slot;

	if (!roci_challenge_parse(pkt->payload, pkt->payload_len, &c)) {
		dev->stats->mads_malformed++;
		return;
	}
	slot = d->from->forwarded ? 0 : c.id >> ROCI_COMM_SLOT_SHIFT;
	if (slot && slot != dev->registry.slot && forward(dev, now, slot, d->from, d->bytes, d->len))
		return;
	dev->stats->challenges_received++;
	roci_cm_challenged(roci_cm_host_cm(dev), c.id, c.token, c.cookie, d->from->flow.src);
	roci_cm_host_drive(dev, now);
}

/* A message for this process. One that claims to have crossed a NAT counts when its sender has proved where it is. */
static void rx_own(struct roci_device *dev, uint64_t now, const struct roci_flow *flow, const struct roci_cm_msg *msg,
		   const uint8_t *mad, const struct roci_hello *claim)
{
	struct roci_nat_terms nat;

	if (!claim)
		roci_cm_host_rx(dev, now, mad, flow->src, flow->dst, msg->local_id, NULL);
	else if (roci_nat_proved(dev, now, flow, claim, &nat))
		roci_cm_host_rx(dev, now, mad, flow->src, flow->dst, msg->local_id, &nat);
	else
		roci_nat_challenge(dev, now, flow, claim, msg->local_id);
}

/* The token of a request is its transaction ID. */
static bool is_consistent(const struct roci_cm_msg *msg, const struct roci_hello *claim)
{
	return !claim || claim->token == msg->tid ||
	       (msg->attribute != ROCI_CM_ATTR_REQ && msg->attribute != ROCI_CM_ATTR_SIDR_REQ);
}

void roci_gsi_rx(struct roci_device *dev, uint64_t now, const struct roci_datagram *d, const struct roci_packet *pkt,
		 const struct roci_hello *claim)
{
	const uint8_t *mad = claim ? claim->mad : roci_gsi_is_mad(pkt) ? pkt->payload : NULL;
	const struct roci_flow *flow = &d->from->flow;
	struct roci_cm_msg msg;
	unsigned slot;

	if (pkt->op->kind == ROCI_KIND_CHALLENGE) {
		rx_challenge(dev, now, d, pkt);
		return;
	}
	if (!mad || roci_cm_msg_parse(&msg, mad) != ROCI_CM_PARSE_OK || !is_consistent(&msg, claim)) {
		dev->stats->mads_malformed++;
		return;
	}
	if (pkt->op->kind == ROCI_KIND_MTU_PROBE)
		dev->stats->mtu_probes_received++;
	else
		dev->stats->mads_received++;
	slot = d->from->forwarded && !d->from->offered ? 0 : owner_slot(dev, &msg, flow->src, flow->dst);
	if (slot && slot != dev->registry.slot && forward(dev, now, slot, d->from, d->bytes, d->len))
		return;
	if (!slot && !d->from->forwarded && offer(dev, now, &msg, d->from, d->bytes, d->len))
		return;
	if (pkt->op->kind == ROCI_KIND_MTU_PROBE) {
		roci_cm_mtu_probed(roci_cm_host_cm(dev), msg.tid, roci_mtu_probed(pkt->payload_len));
		return;
	}
	say_other_family(dev, &msg, flow->dst);
	rx_own(dev, now, flow, &msg, mad, claim);
}

/* ---- send ---- */

static struct roci_packet ud_packet(void)
{
	return (struct roci_packet){
		.opcode = ROCI_TRANSPORT_UD | ROCI_OP_SEND_ONLY,
		.pkey = ROCI_PKEY_DEFAULT,
		.dest_qpn = ROCI_QPN_GSI,
		.src_qpn = ROCI_QPN_GSI,
		.qkey = ROCI_QKEY_GSI,
		.payload_len = ROCI_CM_MAD_BYTES,
	};
}

/* A MAD in a HELLO: the packet, and its payload before the MAD. */
static struct roci_packet hello_packet(const struct roci_hello *hello, uint8_t payload[ROCI_HELLO_BYTES])
{
	roci_hello_build(hello, payload);
	return (struct roci_packet){
		.opcode = ROCI_OPCODE_HELLO,
		.pkey = ROCI_PKEY_DEFAULT,
		.dest_qpn = ROCI_QPN_GSI,
		.payload_len = ROCI_HELLO_BYTES + ROCI_CM_MAD_BYTES,
	};
}

static unsigned build_header(struct roci_gsi *gsi, struct roci_packet *pkt, uint8_t header[ROCI_MAX_HEADER_BYTES])
{
	pkt->psn = gsi->psn++ & ROCI_PSN_MASK;
	return roci_packet_build(pkt, header);
}

/* The packet of a MAD, as a network would carry it to this host. Returns its length. */
static unsigned build_packet(struct roci_device *dev, const struct roci_cm_tx *tx, uint8_t bytes[ROCI_GSI_PACKET_BYTES],
			     struct roci_arrival *from)
{
	struct roci_av av = {.src_port = ROCI_UDP_PORT};
	struct roci_hello hello = {.token = tx->nat.token};
	uint8_t header[ROCI_MAX_HEADER_BYTES], head[ROCI_HELLO_BYTES];
	struct roci_span payload[2] = {{head, sizeof(head)}, {(void *)tx->mad, ROCI_CM_MAD_BYTES}};
	struct roci_packet pkt = ud_packet();
	struct roci_nat_way meant = {.port = ROCI_UDP_PORT};
	struct roci_frame frame;
	bool nat = tx->nat.port;

	memcpy(av.sgid, tx->sgid, 16);
	memcpy(av.dgid, tx->dgid, 16);
	*from = (struct roci_arrival){.traffic_class = tx->traffic_class, .hop_limit = tx->hop_limit};
	roci_av_flow(&av, &from->flow);
	if (nat) { /* it came from behind a NAT; who takes it asks for proof again */
		memcpy(hello.src, tx->nat.src, 16);
		memcpy(hello.dst, tx->nat.dst, 16);
		pkt = hello_packet(&hello, head);
		roci_nat_flow(&meant.flow, hello.src, hello.dst);
		av.nat = &meant;
		from->flow.src_port = tx->nat.port;
	}
	frame = roci_frame(&av, header, build_header(roci_cm_host_gsi(dev), &pkt, header), payload + !nat, 1 + nat);
	roci_seal_packet(&frame, bytes);
	return frame.len;
}

/* UDP port 4791 cannot be had: processes of this host are reached by their side doors, other hosts not at all. */
static void send_by_door(struct roci_device *dev, uint64_t now, const struct roci_cm_tx *tx)
{
	uint8_t bytes[ROCI_GSI_PACKET_BYTES];
	struct roci_arrival from;
	struct roci_cm_msg msg;
	unsigned slot, len;

	if (roci_gids_find(&dev->gids, tx->dgid, 0) < 0 || roci_cm_msg_parse(&msg, tx->mad) != ROCI_CM_PARSE_OK) {
		dev->stats->mads_dropped++;
		return;
	}
	len = build_packet(dev, tx, bytes, &from);
	slot = owner_slot(dev, &msg, tx->sgid, tx->dgid);
	/* Nobody's: through our own side door, so that we answer it as if it came from the network. */
	if (!slot || !forward(dev, now, slot, &from, bytes, len))
		forward(dev, now, dev->registry.slot, &from, bytes, len);
}

struct forwarding {
	struct roci_device *dev;
	uint64_t now;
};

static bool forward_request(void *context, const struct roci_cm_tx *request)
{
	const struct forwarding *forwarding = context;
	struct roci_device *dev = forwarding->dev;
	uint64_t now = forwarding->now;
	uint8_t bytes[ROCI_GSI_PACKET_BYTES];
	struct roci_arrival from;
	struct roci_cm_msg msg;
	unsigned slot, len;

	roci_cm_msg_parse(&msg, request->mad);
	slot = owner_slot(dev, &msg, request->sgid, request->dgid);
	if (slot == dev->registry.slot)
		return false;
	len = build_packet(dev, request, bytes, &from);
	return !slot ? offer(dev, now, &msg, &from, bytes, len) : forward(dev, now, slot, &from, bytes, len);
}

void roci_gsi_forward_pending(struct roci_device *dev, uint64_t now)
{
	struct forwarding forwarding = {dev, now};

	roci_cm_forward_pending(roci_cm_host_cm(dev), forward_request, &forwarding);
}

/* Fills *av for a packet to QP1, but for src_port: see roci_udp_mad_port(). False: no such address. */
static bool find_way(const struct roci_device *dev, const struct roci_cm_tx *tx, struct roci_av *av)
{
	int index = roci_gids_find(&dev->gids, tx->sgid, tx->ifindex);

	if (index < 0 || roci_gid_is_ipv4(tx->sgid) != roci_gid_is_ipv4(tx->dgid))
		return false;
	*av = (struct roci_av){
		.mtu = 256,
		.sgid_index = (uint8_t)index,
		.ifindex = dev->gids.entries[index].ifindex,
		.traffic_class = tx->traffic_class,
		.hop_limit = tx->hop_limit,
	};
	memcpy(av->sgid, tx->sgid, 16);
	memcpy(av->dgid, tx->dgid, 16);
	return true;
}

static struct roci_frame make_frame(struct roci_device *dev, struct roci_gsi_outgoing *out,
				    const struct roci_nat_terms *nat, struct roci_packet *pkt,
				    const struct roci_span *payload, unsigned spans)
{
	if (nat->port) {
		out->meant = (struct roci_nat_way){.port = nat->port};
		roci_nat_flow(&out->meant.flow, nat->dst, nat->src);
		out->av.nat = &out->meant;
	}
	return roci_frame(&out->av, out->header, build_header(roci_cm_host_gsi(dev), pkt, out->header), payload, spans);
}

bool roci_gsi_send_to(struct roci_device *dev, const uint8_t sgid[16], const uint8_t dgid[16],
		      const struct roci_nat_terms *nat, struct roci_packet *pkt, const struct roci_span *payload,
		      unsigned spans)
{
	struct roci_gsi_outgoing out = {.tx = {.hop_limit = 64, .nat = *nat}};
	struct roci_frame frame;

	memcpy(out.tx.sgid, sgid, 16);
	memcpy(out.tx.dgid, dgid, 16);
	if (!find_way(dev, &out.tx, &out.av) || roci_udp_listen(dev->links.udp, out.av.sgid_index))
		return false;
	out.av.src_port = roci_udp_mad_port(dev->links.udp, out.av.sgid_index);
	frame = make_frame(dev, &out, nat, pkt, payload, spans);
	roci_link_send(dev->links.top, &frame, 1);
	return true;
}

/* In a HELLO, where this end is behind a NAT. */
static struct roci_frame make_mad(struct roci_device *dev, struct roci_gsi_outgoing *out)
{
	const struct roci_cm_tx *tx = &out->tx;
	struct roci_hello hello = {.token = tx->nat.token, .cookie = tx->nat.cookie};
	struct roci_packet pkt = ud_packet();

	out->payload[0] = (struct roci_span){out->head, sizeof(out->head)};
	out->payload[1] = (struct roci_span){out->tx.mad, ROCI_CM_MAD_BYTES};
	if (tx->nat.cookie) {
		memcpy(hello.src, tx->sgid, 16);
		memcpy(hello.dst, tx->dgid, 16);
		pkt = hello_packet(&hello, out->head);
	}
	return make_frame(dev, out, &tx->nat, &pkt, out->payload + !tx->nat.cookie, 1 + !!tx->nat.cookie);
}

/* Returns false where the MAD does not go by the link: it has left by a side door, or is counted as lost. */
static bool goes_by_link(struct roci_device *dev, uint64_t now, struct roci_gsi_outgoing *out)
{
	int err;

	if (!find_way(dev, &out->tx, &out->av)) {
		dev->stats->mads_dropped++;
		return false;
	}
	err = roci_udp_listen(dev->links.udp, out->av.sgid_index); /* for the answer */
	dev->stats->mads_sent++;
	if (err) {
		send_by_door(dev, now, &out->tx);
		return false;
	}
	out->av.src_port = roci_udp_mad_port(dev->links.udp, out->av.sgid_index);
	roci_path_mtu_probe(dev, now, &out->av, &out->tx);
	return true;
}

bool roci_gsi_send(struct roci_device *dev, uint64_t now)
{
	struct roci_frame frames[ROCI_GSI_BATCH];
	struct roci_gsi_outgoing *out = roci_cm_host_gsi(dev)->batch;
	unsigned taken, count = 0;

	for (taken = 0; taken < ROCI_GSI_BATCH; taken++) {
		if (!roci_cm_tx(roci_cm_host_cm(dev), now, &out[count].tx))
			break;
		if (goes_by_link(dev, now, &out[count])) {
			frames[count] = make_mad(dev, &out[count]);
			count++;
		}
	}
	if (count)
		roci_link_send(dev->links.top, frames, count);
	return taken;
}
