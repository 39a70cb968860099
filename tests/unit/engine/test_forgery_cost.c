/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a blind forgery costs. The attacker forges the peer's address and knows all secrets of a packet but one: QPN,
 * UDP source port, PSN, R_Key. It tries the values of that one against a live pair of engines; what has an effect is
 * counted. The shares multiply, since the secrets are drawn independently. A packet from a wrong port counts where its
 * PSN is a proof (peer_port.h), so for a peer whose port is known the chances of both ways add up:
 *
 *     P = qpns/2^24 * (ports/2^16 * psns(right port)/2^24 + psns(wrong port)/2^24) * keys/2^32
 *
 * Else the attacker knows the port, or any is right.
 *
 * The table goes to stdout; docs/SECURITY.md has it.
 */
#include "pair.h"

#include <math.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "engine/cnp.h"
#include "engine/path.h"
#include "engine/qp.h"
#include "engine/ranges.h"

#define PSNS   (ROCI_PSN_MASK + 1u)
#define PORTS  65536u
#define DENSE  16384 /* PSNs on either side of the right one that are all tried */
#define STRIDE 61    /* of those behind, one of so many is */
#define WRONG  0x0bad
#define TO     32768 /* in the memories: what forged WRITEs write to */
#define LEAST  40.0

#define OUTSTANDING 8192.0 /* packets, at most: without payload, in the largest congestion window */

enum { ATTACKED = 1 }; /* the side that gets the packets */

/* A kind of packet, and what is known about the connection. */
struct attack {
	const char *name;
	uint8_t opcode;
	uint32_t payload_len;
	bool imm, keyed; /* keyed: it takes effect only with the right R_Key */
};

enum situation { ESTABLISHED, NOT_SHOWN, FROM_4791, SITUATIONS };

static const char *const situations[] = {"peer's port known to the QP", "peer has sent nothing",
					 "peer sends from 4791"};

static uint8_t payload[PAIR_MTU + ROCI_RANGES_MAX_BYTES];

/* ---- the connection ---- */

static struct pair *connection(enum situation situation)
{
	struct pair_options o = pair_defaults();
	struct pair *p;

	o.psn = 0x654321;
	p = pair_create(&o);
	if (situation == FROM_4791)
		p->port[0] = p->port[1] = ROCI_UDP_PORT;
	if (situation != NOT_SHOWN) {
		assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_WRITE, 1, 0, 64, 0), 0);
		pair_run(p);
		pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	}
	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(pair_recv(p, ATTACKED, i, 0, PAIR_MTU), 0);
	return p;
}

static uint16_t right_port(const struct pair *p, enum situation situation)
{
	return situation == FROM_4791 ? ROCI_UDP_PORT : p->side[1 - ATTACKED].qp->attr.av.src_port;
}

/* A packet of the attacker, right in everything. */
static struct roci_rx packet(const struct pair *p, const struct attack *a, uint16_t port)
{
	const struct pair_side *x = &p->side[ATTACKED];
	struct roci_rx rx = {.src_port = port, .hop_limit = 64};

	rx.pkt = (struct roci_packet){.opcode = a->opcode,
				      .op = roci_opcode_info(a->opcode),
				      .pkey = ROCI_PKEY_DEFAULT,
				      .dest_qpn = x->qp->qpn,
				      .psn = x->qp->resp.epsn,
				      .va = (uintptr_t)x->memory + TO,
				      .rkey = x->key,
				      .dma_len = a->opcode == ROCI_OP_READ_REQUEST ? 8 : a->payload_len,
				      .swap_add = 1,
				      .payload = payload,
				      .payload_len = a->payload_len};
	memcpy(rx.sgid, x->qp->attr.av.dgid, 16);
	memcpy(rx.dgid, x->qp->attr.av.sgid, 16);
	return rx;
}

/* ---- effects ---- */

/* Sends the packet to a QP that is as it was before. True where it had an effect: it was executed, or kept to be
 * executed later. An answer to a duplicate is none. */
static bool has_effect(struct pair **p, enum situation situation, const struct roci_rx *rx)
{
	struct pair_side *x = &(*p)->side[ATTACKED];
	struct roci_peer_port before = x->qp->peer;
	uint32_t epsn = x->qp->resp.epsn;

	roci_engine_rx(x->e, (*p)->now, rx);
	if (x->qp->resp.epsn != epsn || x->qp->state != ROCI_QPS_RTS) {
		pair_free(*p);
		*p = connection(situation);
		return true;
	}
	x->qp->peer = before;
	if (!x->qp->resp.early.count)
		return false;
	roci_reorder_clear(&x->e->reorder, &x->qp->resp.early);
	return true;
}

/* How many of all PSNs have an effect. */
static double effective_psns(enum situation situation, const struct attack *a, uint16_t port)
{
	struct pair *p = connection(situation);
	double count = 0;

	for (uint32_t i = 0; i < PSNS; i += i < DENSE || i >= PSNS - DENSE - STRIDE ? 1 : STRIDE) {
		struct roci_rx rx = packet(p, a, port);

		rx.pkt.psn = roci_psn_add(rx.pkt.psn, i);
		if (has_effect(&p, situation, &rx))
			count += i < DENSE || i >= PSNS - DENSE - STRIDE ? 1 : STRIDE;
	}
	pair_free(p);
	return count;
}

/* How many of all ports have an effect, with a PSN that the right port makes effective. */
static double effective_ports(const struct attack *a)
{
	struct pair *p = connection(ESTABLISHED);
	double count = 0;

	for (uint32_t port = 0; port < PORTS; port++) {
		struct roci_rx rx = packet(p, a, (uint16_t)port);

		rx.pkt.psn = roci_psn_add(rx.pkt.psn, 200);
		count += has_effect(&p, ESTABLISHED, &rx);
	}
	pair_free(p);
	return count;
}

static double effective_qpns(enum situation situation, const struct attack *a)
{
	struct pair *p = connection(situation);
	struct roci_rx rx = packet(p, a, right_port(p, situation));
	double count = 0;

	for (uint32_t qpn = 0; qpn <= ROCI_QPN_MASK; qpn++) {
		rx.pkt.dest_qpn = qpn;
		if (qpn != ROCI_QPN_MULTICAST)
			count += has_effect(&p, situation, &rx);
	}
	pair_free(p);
	return count;
}

/* Whether no bit of the R_Key may be wrong: the connection ends, and the memory stays as it was. */
static bool needs_whole_key(const struct attack *a)
{
	bool needed = true;

	for (unsigned bit = 0; bit < 32; bit++) {
		struct pair *p = connection(ESTABLISHED);
		struct roci_rx rx = packet(p, a, right_port(p, ESTABLISHED));
		uint8_t *memory = p->side[ATTACKED].memory + TO, before[64];

		memcpy(before, memory, sizeof(before));
		rx.pkt.rkey ^= 1u << bit;
		roci_engine_rx(p->side[ATTACKED].e, p->now, &rx);
		needed = needed && !memcmp(before, memory, sizeof(before)) &&
			 p->side[ATTACKED].qp->state == ROCI_QPS_ERR;
		pair_free(p);
	}
	return needed;
}

/* ---- the table ---- */

static void put(const char *what, const char *when, double cost)
{
	printf("# %-40s %-28s 2^%.1f\n", what, when, cost);
}

static double bits(double share)
{
	return -log2(share);
}

static void requests(void **state)
{
	static const struct attack attacks[] = {
		{"SEND", ROCI_OP_SEND_ONLY, 8, false, false},
		{"WRITE with immediate data, empty", ROCI_OP_WRITE_ONLY_IMM, 0, true, false},
		{"WRITE", ROCI_OP_WRITE_ONLY, 8, false, true},
		{"READ", ROCI_OP_READ_REQUEST, 0, false, true},
		{"FETCH ADD", ROCI_OP_FETCH_ADD, 0, false, true},
	};
	double qpns = effective_qpns(ESTABLISHED, &attacks[0]) / PSNS;

	memset(payload, 0xee, sizeof(payload));
	for (size_t i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++) {
		for (enum situation s = 0; s < SITUATIONS; s++) {
			const struct attack *a = &attacks[i];
			struct pair *p = connection(s);
			double right = effective_psns(s, a, right_port(p, s)) / PSNS;
			double wrong = effective_psns(s, a, WRONG) / PSNS;
			double cost = bits(qpns * (s == ESTABLISHED ? effective_ports(a) / PORTS * right + wrong
								    : fmax(right, wrong)));

			assert_true(right > 0);
			put(a->keyed ? "any request: the connection ends" : a->name, situations[s], cost);
			assert_true(cost >= LEAST);
			if (a->keyed) {
				assert_true(needs_whole_key(a));
				put(a->name, situations[s], cost + 32);
			}
			pair_free(p);
		}
	}
}

/* ---- with RANGES ---- */

static bool arrives(struct pair *p, uint32_t ahead, uint16_t port)
{
	static const struct attack attack = {"", ROCI_OP_SEND_ONLY, 8, false, false};
	struct roci_qp *qp = p->side[ATTACKED].qp;
	struct roci_rx rx = packet(p, &attack, port);
	uint32_t count = qp->resp.early.count, epsn = qp->resp.epsn;

	rx.pkt.psn = roci_psn_add(epsn, ahead);
	roci_engine_rx(qp->e, p->now, &rx);
	return qp->resp.early.count != count || qp->resp.epsn != epsn;
}

/* The peer is told what is missing. After every third packet `gap` are lost, as long as what comes is kept. Returns how
 * far that went. */
static uint32_t lose_many(struct pair *p, enum situation s, uint32_t gap)
{
	uint32_t end = 1;

	p->side[ATTACKED].qp->resp.ranges.offered = true;
	if (!p->side[ATTACKED].qp->resp.ranges.kept)
		p->side[ATTACKED].qp->resp.ranges.kept = calloc(1, sizeof(struct roci_ranges_kept));
	for (unsigned i = 0; i < 900 && end < 20000 && arrives(p, end, right_port(p, s)); i++)
		end += 1 + (i % 3 ? 0 : gap);
	return end;
}

/* The same with a burst of losses behind, that are sent again: what is missing is expected, whoever sends it. */
static void requests_among_losses(void **state)
{
	for (enum situation s = ESTABLISHED; s < SITUATIONS; s++) {
		double count = 0, cost;
		struct pair *p;
		uint32_t end;

		if (s == NOT_SHOWN)
			continue; /* it has been offered nothing */
		p = connection(s);
		end = lose_many(p, s, s == ESTABLISHED ? 100 : 1) + 2 * ROCI_REORDER_AHEAD;
		for (uint32_t ahead = end; ahead-- > 0;) {
			if (!arrives(p, ahead, right_port(p, s)))
				continue;
			count++;
			pair_free(p);
			p = connection(s);
			lose_many(p, s, s == ESTABLISHED ? 100 : 1);
		}
		cost = bits(1.0 / PSNS * (s == ESTABLISHED ? count / PSNS / PORTS + 1.0 / PSNS : count / PSNS));
		put("SEND, many packets are missing", situations[s], cost);
		assert_true(count > 1);
		assert_true(cost >= LEAST);
		pair_free(p);
	}
}

/* ---- the known port ---- */

/* How many PSNs make the port of a request the known one, and how many packets do without any. */
static void another_port_becomes_the_known_one(void **state)
{
	static const struct attack attack = {"", ROCI_OP_SEND_ONLY, 8, false, false};
	struct pair *p = connection(ESTABLISHED);
	struct roci_peer_port before = p->side[ATTACKED].qp->peer;
	double count = 0;
	unsigned patience = 0;

	for (uint32_t i = 1; i < PSNS; i++) { /* 0 is executed */
		struct roci_rx rx = packet(p, &attack, WRONG);

		rx.pkt.psn = roci_psn_add(rx.pkt.psn, i);
		roci_engine_rx(p->side[ATTACKED].e, p->now, &rx);
		count += p->side[ATTACKED].qp->peer.port == WRONG;
		p->side[ATTACKED].qp->peer = before;
	}
	for (; p->side[ATTACKED].qp->peer.port != WRONG; patience++) {
		struct roci_rx rx = packet(p, &attack, WRONG);

		rx.pkt.psn = roci_psn_add(rx.pkt.psn, 5000);
		roci_engine_rx(p->side[ATTACKED].e, p->now, &rx);
	}
	put("another port becomes the known one", "by its PSN", bits((count + 1) / PSNS / PSNS));
	put("another port becomes the known one", "by patience", bits(1.0 / PSNS / patience));
	assert_true(bits((count + 1) / PSNS / PSNS) >= LEAST);
	assert_true(bits(1.0 / PSNS / patience) >= LEAST);
	pair_free(p);
}

/* ---- answers ---- */

static bool drop_all(struct pair *p, int from, const struct roci_packet *pkt)
{
	return false;
}

/* The attacked side has as much outstanding as its window ever allows. */
static struct pair *sender(enum situation situation)
{
	struct pair *p = connection(situation);

	p->side[ATTACKED].qp->path->cwnd = 2u << 20; /* the largest window, of the shortest packets */
	p->filter = drop_all;
	for (uint64_t i = 0; i < 40; i++)
		assert_int_equal(pair_send(p, ATTACKED, ROCI_WR_RDMA_WRITE, i, 0, 60000, 0), 0);
	while (pair_turn(p, ATTACKED))
		;
	return p;
}

/* How many PSNs let an acknowledgement in. It has a reserved syndrome (IBTA 9.7.5.1.1), so it changes nothing. */
static double answering_psns(struct pair *p, uint16_t port)
{
	static const struct attack ack = {"", ROCI_OP_ACKNOWLEDGE, 0, false, false};
	struct roci_qp *qp = p->side[ATTACKED].qp;
	struct roci_peer_port before = qp->peer;
	uint64_t passed = roci_engine_stats(qp->e)->rx_malformed;
	struct roci_rx rx = packet(p, &ack, port);

	rx.pkt.syndrome = 0x40;
	for (uint32_t psn = 0; psn < PSNS; psn++) {
		rx.pkt.psn = psn;
		roci_engine_rx(qp->e, p->now, &rx);
		qp->peer = before;
	}
	return (double)(roci_engine_stats(qp->e)->rx_malformed - passed);
}

static double answering_ports(struct pair *p)
{
	static const struct attack ack = {"", ROCI_OP_ACKNOWLEDGE, 0, false, false};
	struct roci_qp *qp = p->side[ATTACKED].qp;
	struct roci_peer_port before = qp->peer;
	uint64_t passed = roci_engine_stats(qp->e)->rx_malformed;
	struct roci_rx rx = packet(p, &ack, 0);

	rx.pkt.syndrome = 0x40;
	rx.pkt.psn = roci_psn_add(qp->req.window.una, 64);
	for (uint32_t port = 0; port < PORTS; port++) {
		rx.src_port = (uint16_t)port;
		roci_engine_rx(qp->e, p->now, &rx);
		qp->peer = before;
	}
	return (double)(roci_engine_stats(qp->e)->rx_malformed - passed);
}

static double answer_cost(struct pair *p, enum situation s)
{
	double right = answering_psns(p, right_port(p, s)) / PSNS, wrong = answering_psns(p, WRONG) / PSNS;

	if (s == ESTABLISHED && !p->side[ATTACKED].qp->peer.silent)
		return bits(1.0 / PSNS * (answering_ports(p) / PORTS * right + wrong));
	return bits(1.0 / PSNS * fmax(right, wrong));
}

/* An idle connection cannot be hit. These have as much outstanding as there ever is. */
static void answers(void **state)
{
	for (enum situation s = 0; s < SITUATIONS; s++) {
		struct pair *p = sender(s);
		double cost = answer_cost(p, s);

		put("ACK, NAK, READ response", situations[s], cost);
		assert_true(cost >= LEAST);
		if (s == ESTABLISHED) {
			roci_qp_peer_silent(p->side[ATTACKED].qp, true);
			cost = answer_cost(p, s);
			put("ACK, NAK, READ response", "peer is silent", cost);
			assert_true(cost >= LEAST);
		}
		pair_free(p);
	}
}

/* The attacked side READs over a far path, and has as much outstanding as it wants. */
static struct pair *far_reader(enum situation situation)
{
	struct pair *p = connection(situation);
	struct roci_qp *qp = p->side[ATTACKED].qp;

	qp->path->base_rtt = qp->path->srtt = qp->path->latest_rtt = 20000000;
	qp->req.selective.agreed = true;
	qp->req.selective.reads = ROCI_FAR_READS;
	roci_path_agree(qp->path, p->now);
	roci_far_read_agree(qp, ROCI_FAR_READS);
	assert_true(qp->req.far_read);
	qp->req.far_read->path->bbr.window = qp->req.far_read->path->bbr.rate = UINT64_C(1) << 30;
	p->filter = drop_all;
	for (uint64_t i = 0; i < 60; i++)
		assert_int_equal(pair_send(p, ATTACKED, ROCI_WR_RDMA_READ, i, 0, 60000, 0), 0);
	for (unsigned i = 0; i < 1000; i++) {
		p->now += 20000;
		roci_engine_timers(qp->e, p->now);
		while (pair_turn(p, ATTACKED))
			;
	}
	assert_true(roci_send_window_packets(&qp->req.window) > 2 * ROCI_REORDER_AHEAD);
	return p;
}

/* How many PSNs let a READ response in. */
static double responding_psns(enum situation situation, uint16_t port)
{
	static const struct attack response = {"", ROCI_OP_READ_RESPONSE_MIDDLE, PAIR_MTU, false, false};
	struct pair *p = far_reader(situation);
	double count = 0;

	for (uint32_t i = 0; i < PSNS; i += i < DENSE || i >= PSNS - DENSE - STRIDE ? 1 : STRIDE) {
		struct roci_qp *qp = p->side[ATTACKED].qp;
		struct roci_send_window before = qp->req.window;
		struct roci_peer_port peer = qp->peer;
		struct roci_rx rx = packet(p, &response, port);

		rx.pkt.psn = roci_psn_add(before.una, i);
		roci_engine_rx(qp->e, p->now, &rx);
		qp->peer = peer;
		if (qp->req.window.una != before.una) {
			pair_free(p);
			p = far_reader(situation);
		} else if (qp->req.far_read->board.have) {
			roci_scoreboard_reset(&qp->req.far_read->board, before.una);
			qp->req.window = before;
		} else {
			continue;
		}
		count += i < DENSE || i >= PSNS - DENSE - STRIDE ? 1 : STRIDE;
	}
	pair_free(p);
	return count;
}

static void far_read_responses(void **state)
{
	for (enum situation s = ESTABLISHED; s < SITUATIONS; s++) {
		uint16_t port = s == FROM_4791 ? ROCI_UDP_PORT : 0;
		double right, cost;

		if (s == NOT_SHOWN)
			continue; /* it has told nothing */
		if (s == ESTABLISHED) {
			struct pair *p = connection(s);

			port = right_port(p, s);
			pair_free(p);
		}
		right = responding_psns(s, port);
		assert_true(right > 1);
		cost = bits(
			1.0 / PSNS *
			(s == ESTABLISHED ? right / PSNS / PORTS + responding_psns(s, WRONG) / PSNS : right / PSNS));
		put("READ response, far", situations[s], cost);
		assert_true(cost >= LEAST);
	}
}

/* The same answer again and again, from the right port: how many until one in the middle of all counts. */
static void an_answer_again_and_again(void **state)
{
	static const struct attack ack = {"", ROCI_OP_ACKNOWLEDGE, 0, false, false};
	struct pair *p = sender(FROM_4791);
	struct roci_qp *qp = p->side[ATTACKED].qp;
	struct roci_rx rx = packet(p, &ack, ROCI_UDP_PORT);
	const struct roci_engine_stats *stats = roci_engine_stats(qp->e);
	double count = 0, cost;

	rx.pkt.syndrome = 0x40;
	rx.pkt.psn = roci_psn_add(qp->req.window.una, roci_send_window_packets(&qp->req.window) / 2);
	for (uint64_t before = stats->rx_malformed; stats->rx_malformed == before; count++)
		roci_engine_rx(qp->e, p->now, &rx);
	cost = bits(OUTSTANDING / PSNS / PSNS / count);
	put("ACK, NAK, READ response", "again and again", cost);
	assert_true(cost >= LEAST);
	pair_free(p);
}

/* What such an answer does from the right port, and does not from a wrong one. */
static void an_answer_needs_the_port(void **state)
{
	static const struct attack ack = {"", ROCI_OP_ACKNOWLEDGE, 0, false, false};
	static const uint8_t syndromes[] = {ROCI_AETH_ACK, ROCI_AETH_NAK | ROCI_NAK_REMOTE_ACCESS};

	for (unsigned i = 0; i < 4; i++) {
		struct pair *p = sender(ESTABLISHED);
		struct roci_qp *qp = p->side[ATTACKED].qp;
		bool right = i & 1;
		struct roci_rx rx = packet(p, &ack, right ? right_port(p, ESTABLISHED) : WRONG);
		uint32_t una = qp->req.window.una;

		rx.pkt.syndrome = syndromes[i / 2];
		rx.pkt.psn = roci_psn_add(una, 64);
		roci_engine_rx(qp->e, p->now, &rx);
		assert_int_equal(qp->req.window.una != una || qp->state == ROCI_QPS_ERR, right);
		pair_free(p);
	}
}

/* ---- CNP ---- */

static bool cnp_counts(struct pair *p, uint16_t port, struct roci_cnp cnp)
{
	static const struct attack notification = {"", ROCI_OPCODE_CNP, ROCI_CNP_BYTES, false, false};
	struct roci_rx rx = packet(p, &notification, port);
	uint64_t refused = roci_engine_stats(p->side[ATTACKED].e)->cnp_refused;

	roci_cnp_build(&cnp, payload);
	roci_engine_rx(p->side[ATTACKED].e, p->now, &rx);
	return roci_engine_stats(p->side[ATTACKED].e)->cnp_refused == refused;
}

/* The attacker knows how many packets the connection has sent, so that one PSN gives it the other. */
static void notifications(void **state)
{
	struct pair *p = connection(ESTABLISHED);
	const struct roci_qp *qp = p->side[ATTACKED].qp;
	uint16_t port = right_port(p, ESTABLISHED);
	uint32_t sent = roci_psn_add(qp->resp.epsn, ROCI_PSN_MASK) - qp->attr.rq_psn;
	struct roci_cnp cnp = {ROCI_CNP_RESPONSE, qp->attr.rq_psn + sent, qp->attr.rq_psn};
	double psns = 0, ports = 0, wrong = 0, cost;

	for (uint32_t i = 0; i < PORTS; i++)
		ports += cnp_counts(p, (uint16_t)i, cnp);
	for (cnp.first_psn = 0; cnp.first_psn < PSNS; cnp.first_psn++) {
		cnp.psn = roci_psn_add(cnp.first_psn, sent);
		psns += cnp_counts(p, port, cnp);
		wrong += cnp_counts(p, WRONG, cnp);
	}
	assert_true(psns > 0 && ports > 0);
	cost = bits(1.0 / PSNS * (ports / PORTS * psns / PSNS + wrong / PSNS));
	put("CNP", situations[ESTABLISHED], cost);
	assert_true(cost >= LEAST);
	cost = bits(1.0 / PSNS * psns / PSNS);
	put("CNP", "port is no secret", cost);
	assert_true(cost >= LEAST);

	/* The exception of docs/SECURITY.md: what adapters and networks send. */
	cnp = (struct roci_cnp){.kind = ROCI_CNP_STANDARD};
	assert_false(cnp_counts(p, port, cnp));
	p->side[ATTACKED].qp->attr.av.traffic_class = 2;
	assert_true(cnp_counts(p, WRONG, cnp));
	put("CNP without proof", "only with ECN", bits(1.0 / PSNS));
	pair_free(p);
}

/* ---- RANGES, OFFER ---- */

/* What the engine takes is not counted as from a wrong source, and not dropped for its port. */
static bool ranges_count(struct pair *p, uint16_t port, uint64_t secret)
{
	static const struct attack attack = {"", ROCI_OPCODE_RANGES, ROCI_RANGES_HEAD, false, false};
	struct roci_ranges r = {.secret = secret, .room = 1000};
	struct roci_rx rx = packet(p, &attack, port);
	const struct roci_engine_stats *stats = roci_engine_stats(p->side[ATTACKED].e);
	uint64_t refused = stats->rx_wrong_source;

	roci_ranges_build(&r, payload);
	roci_engine_rx(p->side[ATTACKED].e, p->now, &rx);
	return stats->rx_wrong_source == refused;
}

/* Its secret is the proof, so the port counts for nothing, and all bits of the secret count. */
static void ranges(void **state)
{
	struct pair *p = connection(ESTABLISHED);
	struct roci_qp *qp = p->side[ATTACKED].qp;
	uint64_t secret = UINT64_C(0x0123456789abcdef);
	struct roci_peer_port before = qp->peer;
	double secrets = 0, ports = 0, cost;

	assert_false(ranges_count(p, right_port(p, ESTABLISHED), 0)); /* none was asked for */
	qp->secret = secret;
	for (uint32_t port = 0; port < PORTS; port++) {
		ports += ranges_count(p, (uint16_t)port, secret);
		qp->peer = before;
	}
	assert_true(ports > 0);
	for (unsigned first = 0; first < 64; first++)
		for (unsigned second = first; second < 64; second++)
			secrets += ranges_count(p, right_port(p, ESTABLISHED),
						secret ^ UINT64_C(1) << first ^
							(second > first ? UINT64_C(1) << second : 0));
	for (uint64_t low = 1; low < PSNS; low++)
		secrets += ranges_count(p, right_port(p, ESTABLISHED), secret ^ low);
	assert_true(secrets == 0);
	cost = bits(1.0 / PSNS * ports / PORTS) + 64;
	put("RANGES", "any", cost);
	assert_true(cost >= LEAST);
	pair_free(p);
}

static bool offer_counts(struct pair *p, uint16_t port, uint32_t first_psn, uint32_t psn)
{
	static const struct attack attack = {"", ROCI_OPCODE_OFFER, ROCI_OFFER_BYTES, false, false};
	struct roci_responder *r = &p->side[ATTACKED].qp->resp;
	struct roci_rx rx = packet(p, &attack, port);

	r->ranges.offered = false;
	rx.pkt.psn = psn;
	roci_offer_build(&(struct roci_offer){first_psn, 0, 77, 0}, payload);
	roci_engine_rx(p->side[ATTACKED].e, p->now, &rx);
	return r->ranges.offered;
}

/* The attacker knows how many packets the connection has sent, so that one PSN gives it the other. */
static void offers(void **state)
{
	for (enum situation s = 0; s < SITUATIONS; s++) {
		struct pair *p = connection(s);
		const struct roci_qp *qp = p->side[ATTACKED].qp;
		uint32_t sent = roci_psn_add(qp->resp.epsn, ROCI_PSN_MASK) - qp->attr.rq_psn;
		double psns = 0, ports = 0, cost;

		for (uint32_t first = 0; first < PSNS; first++)
			psns += offer_counts(p, right_port(p, s), first, roci_psn_add(first, sent));
		for (uint32_t port = 0; port < PORTS; port++)
			ports += offer_counts(p, (uint16_t)port, qp->attr.rq_psn, roci_psn_add(qp->attr.rq_psn, sent));
		assert_true((psns > 0 && ports > 0) == (s != NOT_SHOWN));
		/* Who sends from 4791 is known to do so. */
		cost = bits(1.0 / PSNS * psns / PSNS * (s == FROM_4791 ? 1 : ports / PORTS));
		if (s != NOT_SHOWN) /* then nothing is taken, from any port */
			put("OFFER", situations[s], cost);
		assert_true(cost >= LEAST);
		pair_free(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests),
		cmocka_unit_test(requests_among_losses),
		cmocka_unit_test(another_port_becomes_the_known_one),
		cmocka_unit_test(answers),
		cmocka_unit_test(far_read_responses),
		cmocka_unit_test(an_answer_again_and_again),
		cmocka_unit_test(an_answer_needs_the_port),
		cmocka_unit_test(notifications),
		cmocka_unit_test(ranges),
		cmocka_unit_test(offers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
