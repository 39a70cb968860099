/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The network: each packet becomes bytes with pad and ICRC, as on a real link. Some are lost, damaged, doubled,
 * delayed, overtaken or marked; the others keep their order.
 */
#include "sim.h"

#include "wire/icrc.h"
#include "wire/print.h"

#define ECN_MASK 3
#define ECN_CE   3

static unsigned draw_rate(struct sim *sim)
{
	switch (rng_below(&sim->plan, 4)) {
	case 0: return 0;
	case 1: return rng_range(&sim->plan, 1, 20);
	case 2: return rng_range(&sim->plan, 1, 80);
	default: return rng_range(&sim->plan, 1, 200);
	}
}

static void draw_bandwidth(struct sim *sim, struct sim_net *net)
{
	if (!rng_once_in(&sim->plan, 6))
		return;
	net->ns_per_kb = rng_range(&sim->plan, 80, 8000); /* 1 to 100 Gbit/s */
	net->queue_ns = net->ns_per_kb * rng_range(&sim->plan, 8, 300);
	net->lossy = true;
}

void sim_net_draw(struct sim *sim)
{
	struct sim_net *net = &sim->net;
	unsigned kind = rng_below(&sim->plan, 8);

	*net = (struct sim_net){.delay_ns = rng_range(&sim->plan, 1, 100) * US};
	if (rng_once_in(&sim->plan, 4))
		net->delay_ns = rng_range(&sim->plan, 100, 1000);
	if (rng_once_in(&sim->plan, 2))
		net->jitter_ns = rng_below(&sim->plan, net->delay_ns);
	net->reorder_ns = rng_range(&sim->plan, 1, 400) * US;
	if (sim->far)
		net->delay_ns += MS / 2;
	net->stray = rng_once_in(&sim->plan, 4) ? draw_rate(sim) : 0;
	net->ce = rng_once_in(&sim->plan, 4) ? draw_rate(sim) : 0;
	net->lossy =
		sim->memory || sim->clocks; /* what is dropped for lack of memory, or comes when nobody waits for it */
	if (kind == 0)
		return;
	draw_bandwidth(sim, net);
	if (kind == 1) {
		net->dup = draw_rate(sim);
		net->reorder = draw_rate(sim);
		return;
	}
	net->loss = draw_rate(sim);
	net->dup = draw_rate(sim);
	net->reorder = draw_rate(sim);
	net->corrupt = draw_rate(sim);
	if (rng_once_in(&sim->plan, 3))
		net->burst = rng_range(&sim->plan, 1, 10);
	if (net->loss || net->corrupt || net->burst)
		net->lossy = true;
}

static bool hit(struct sim *sim, unsigned rate)
{
	return rate && rng_below(&sim->netrng, 1000) < rate;
}

static struct sim_host *host_of(struct sim *sim, const uint8_t gid[16])
{
	for (unsigned i = 0; i < sim->num_hosts; i++)
		if (!memcmp(sim->hosts[i].gid, gid, 16))
			return &sim->hosts[i];
	return NULL;
}

/* Damage that a CRC-32 finds for certain: up to three flipped bits, a burst of at most 32, or a cut tail. */
static void damage(struct sim *sim, struct sim_packet *p)
{
	struct rng *r = &sim->netrng;
	unsigned kind = rng_below(r, 8);

	p->damaged = true;
	sim->stats.damaged++;
	if (kind == 0 && p->len > ROCI_MIN_PACKET_BYTES) {
		p->len -= 1 + rng_below(r, p->len > 40 ? 24 : p->len - 1);
	} else if (kind < 3) {
		uint32_t at = rng_below(r, p->len - 3);
		uint32_t mask = rng_next(r) | 1;

		for (unsigned i = 0; i < 4; i++)
			p->bytes[at + i] ^= mask >> (8 * i);
	} else {
		for (unsigned n = rng_range(r, 1, 3); n; n--) {
			uint32_t bit = rng_below(r, 8 * p->len);

			p->bytes[bit / 8] ^= 1u << (bit % 8);
		}
	}
}

static void trace(struct sim *sim, const struct sim_host *from, const struct sim_host *to,
		  const struct roci_packet *pkt, const char *fate)
{
	char line[256];

	if (!sim->verbose)
		return;
	roci_packet_print(pkt, line, sizeof(line));
	sim_trace(sim, "%u->%u %s%s", from->id, to->id, line, fate);
}

static uint64_t arrival(struct sim *sim, unsigned from, unsigned to, bool overtaken)
{
	struct sim_net *net = &sim->net;
	uint64_t at = sim->now + net->delay_ns;

	if (net->ns_per_kb)
		at += net->next_free[from] - sim->now;
	if (net->jitter_ns)
		at += rng_below(&sim->netrng, net->jitter_ns);
	if (overtaken)
		return at + rng_range(&sim->netrng, 1, net->reorder_ns);
	if (at < net->last_arrival[from][to])
		at = net->last_arrival[from][to];
	net->last_arrival[from][to] = at;
	return at;
}

/* The queue in front of a wire of finite speed. Returns false where the packet found it full. */
static bool queue_up(struct sim *sim, unsigned from, struct sim_packet *p)
{
	struct sim_net *net = &sim->net;

	if (!net->ns_per_kb)
		return true;
	if (net->next_free[from] < sim->now)
		net->next_free[from] = sim->now;
	if (net->next_free[from] - sim->now > net->queue_ns)
		return false;
	if (net->next_free[from] - sim->now > net->queue_ns / 2 && (p->traffic_class & ECN_MASK))
		p->traffic_class |= ECN_CE;
	net->next_free[from] += net->ns_per_kb * (p->len + 46) / 1024;
	return true;
}

static bool lost(struct sim *sim, unsigned from)
{
	struct sim_net *net = &sim->net;

	if (hit(sim, net->burst))
		net->burst_left[from] = rng_range(&sim->netrng, 2, 40);
	if (net->burst_left[from]) {
		net->burst_left[from]--;
		return true;
	}
	return hit(sim, net->loss);
}

void sim_count_loss(struct sim *sim, struct sim_qp *to)
{
	to->lost++;
	to->peer->lost++;
}

static void count_loss(struct sim *sim, const struct roci_packet *pkt)
{
	sim_count_loss(sim, sim_find_qp(sim, pkt->dest_qpn));
}

static void fly(struct sim *sim, struct sim_host *from, struct sim_host *to, struct sim_packet *p,
		const struct roci_packet *pkt, const char *what)
{
	bool overtaken = hit(sim, sim->net.reorder);
	char fate[64];

	if (hit(sim, sim->net.ce) && (p->traffic_class & ECN_MASK)) {
		p->traffic_class |= ECN_CE;
		sim->stats.marked++;
	}
	if (hit(sim, sim->net.corrupt)) {
		damage(sim, p);
		count_loss(sim, pkt);
	}
	if (overtaken) {
		count_loss(sim, pkt); /* an ACK that overtakes a READ response is as good as lost */
		sim->stats.reordered++;
	}
	snprintf(fate, sizeof(fate), "%s%s%s", what, p->damaged ? " (damaged)" : "", overtaken ? " (late)" : "");
	trace(sim, from, to, pkt, fate);
	sim_schedule_packet(sim, arrival(sim, from->id, to->id, overtaken), to, from->id, p);
}

/* Puts the ICRC behind the `len` bytes of BTH to pad. */
static void seal(struct sim_packet *p, uint32_t len, uint32_t header_len)
{
	struct roci_flow flow = {.src_port = p->src_port, .dst_port = ROCI_UDP_PORT};
	uint32_t crc;

	p->len = len + ROCI_ICRC_BYTES;
	memcpy(flow.src, p->sgid, 16);
	memcpy(flow.dst, p->dgid, 16);
	crc = roci_icrc_begin(&flow, p->ip_id, p->len);
	crc = roci_icrc_headers(crc, p->bytes, header_len);
	crc = roci_icrc_update(crc, p->bytes + header_len, len - header_len);
	roci_icrc_store(crc, p->bytes + len);
}

static struct sim_packet *serialize(struct sim *sim, struct sim_host *from, const struct roci_tx_packet *tx,
				    const struct roci_span *spans)
{
	struct sim_packet *p = sim_packet_alloc(sim);
	struct sim_qp *dest = sim_find_qp(sim, (uint32_t)tx->header[5] << 16 | tx->header[6] << 8 | tx->header[7]);
	uint32_t at = tx->header_len, pad = roci_pad_bytes(tx->payload_len);

	sim_check(sim, tx->payload_len <= ROCI_MAX_PAYLOAD, "payload of %u bytes", tx->payload_len);
	memcpy(p->bytes, tx->header, tx->header_len);
	for (unsigned i = 0; i < tx->span_count; i++) {
		const struct roci_span *span = &spans[tx->first_span + i];

		sim_check(sim, at + span->len <= tx->header_len + tx->payload_len, "spans exceed the payload length");
		memcpy(p->bytes + at, span->base, span->len);
		at += span->len;
	}
	sim_check(sim, at == tx->header_len + tx->payload_len, "spans fall short of the payload length");
	memset(p->bytes + at, 0, pad);
	memcpy(p->sgid, tx->av->sgid, 16);
	memcpy(p->dgid, tx->av->dgid, 16);
	p->src_port = dest ? sim_forger_port(sim, dest->peer, tx->av->src_port) : tx->av->src_port;
	p->traffic_class = tx->av->traffic_class;
	p->hop_limit = tx->av->hop_limit;
	p->ip_id = from->ip_id++;
	seal(p, at + pad, tx->header_len);
	return p;
}

/* Turns a packet into an intact one that the receiver must drop silently (IBTA 9.6.1). */
static void make_stray(struct sim *sim, struct sim_packet *p, const struct roci_packet *pkt)
{
	struct rng *r = &sim->netrng;
	uint8_t *b = p->bytes;

	p->stray = true;
	switch (rng_below(r, 5)) {
	case 0: /* a QP that does not exist */
		do
			b[5 + rng_below(r, 3)] ^= 1u << rng_below(r, 8);
		while (sim_find_qp(sim, b[5] << 16 | b[6] << 8 | b[7]) || (b[5] & b[6] & b[7]) == 0xff);
		break;
	case 1: /* another partition */ b[2] ^= 1u << rng_below(r, 7); break;
	case 2: /* another transport */
		if (sim_find_qp(sim, pkt->dest_qpn)->type == ROCI_QPT_RC)
			b[0] = ROCI_TRANSPORT_UC | ROCI_OP_SEND_ONLY;
		else
			b[0] = ROCI_TRANSPORT_RC | ROCI_OP_SEND_ONLY;
		break;
	case 3: /* another sender, to the same QP; or a wrong Q_Key */
		if (pkt->op->headers & 1 << ROCI_HDR_DETH)
			b[12] ^= 0x40;
		else
			p->sgid[15] ^= 0x80;
		break;
	default: /* an opcode that does not exist */ b[0] = 0x15 | (b[0] & ROCI_TRANSPORT_MASK); break;
	}
	seal(p, p->len - ROCI_ICRC_BYTES, ROCI_BTH_BYTES);
	sim->stats.strays++;
}

/* A packet with the addresses of `p`, for the QP that `p` is for, made by somebody who guesses. */
static struct sim_packet *forge(struct sim *sim, const struct sim_packet *p, struct sim_qp *dest)
{
	struct sim_forged forged;
	struct sim_packet *copy;
	uint32_t len, pad;

	if (!dest || !sim_forger_spray(sim, dest, &forged))
		return NULL;
	copy = sim_packet_alloc(sim);
	*copy = *p;
	copy->stray = true;
	copy->src_port = forged.port;
	pad = roci_pad_bytes(forged.payload_len);
	len = forged.header_len + forged.payload_len + pad;
	memcpy(copy->bytes, forged.header, forged.header_len);
	memcpy(copy->bytes + forged.header_len, forged.payload, forged.payload_len);
	memset(copy->bytes + forged.header_len + forged.payload_len, 0, pad);
	seal(copy, len, forged.header_len);
	sim->stats.forged++;
	return copy;
}

/* The packet must go the way that its QP has now. */
static void check_path(struct sim *sim, const struct roci_tx_packet *tx, const struct roci_packet *pkt)
{
	const struct sim_qp *dest = sim_find_qp(sim, pkt->dest_qpn);

	if (dest && dest->type != ROCI_QPT_UD && !roci_kind_is_notice(pkt->op->kind))
		sim_check(sim, tx->av->src_port == dest->peer->av.src_port || tx->av->src_port == ROCI_UDP_PORT,
			  "QP %u sent from port %u, not %u", dest->peer->id, tx->av->src_port, dest->peer->av.src_port);
}

void sim_net_late(struct sim *sim, struct sim_host *from, const struct roci_tx_packet *tx,
		  const struct roci_span *spans, uint64_t delay_ns)
{
	struct sim_packet *p = serialize(sim, from, tx, spans);

	p->stray = true;
	sim->stats.strays++;
	sim_schedule_packet(sim, sim->now + delay_ns, host_of(sim, p->dgid), from->id, p);
}

void sim_net_at_once(struct sim *sim, struct sim_host *from, const struct roci_tx_packet *tx,
		     const struct roci_span *spans)
{
	struct sim_packet *p = serialize(sim, from, tx, spans);

	p->stray = true;
	sim->stats.strays++;
	sim_host_receive(host_of(sim, p->dgid), p);
	sim_packet_free(sim, p);
}

void sim_net_send(struct sim *sim, struct sim_host *from, const struct roci_tx_packet *tx,
		  const struct roci_span *spans)
{
	struct sim_packet *p = serialize(sim, from, tx, spans), *copy;
	struct sim_host *to = host_of(sim, p->dgid);
	struct roci_packet pkt;
	enum roci_parse_result result = roci_packet_parse(&pkt, p->bytes, p->len);

	sim_check(sim, result == ROCI_PARSE_OK, "engine sent what cannot be parsed: %d", result);
	sim_check(sim, to, "engine sent to an address that nobody has");
	sim_check(sim, !memcmp(p->sgid, from->gid, 16), "engine sent from an address that is not its own");
	check_path(sim, tx, &pkt);
	sim->stats.packets++;
	sim_monitor_sent(sim, from, &pkt);
	if (!queue_up(sim, from->id, p) || lost(sim, from->id)) {
		trace(sim, from, to, &pkt, " (lost)");
		count_loss(sim, &pkt);
		sim->stats.lost++;
		sim_packet_free(sim, p);
		return;
	}
	if (hit(sim, sim->net.stray) && !roci_kind_is_notice(pkt.op->kind)) {
		copy = sim_packet_alloc(sim);
		*copy = *p;
		make_stray(sim, copy, &pkt);
		fly(sim, from, to, copy, &pkt, " (stray)");
	}
	copy = forge(sim, p, sim_find_qp(sim, pkt.dest_qpn));
	if (copy)
		fly(sim, from, to, copy, &pkt, " (forged)");
	if (hit(sim, sim->net.dup)) {
		copy = sim_packet_alloc(sim);
		*copy = *p;
		sim->stats.duplicated++;
		fly(sim, from, to, copy, &pkt, " (duplicate)");
	}
	fly(sim, from, to, p, &pkt, "");
}
