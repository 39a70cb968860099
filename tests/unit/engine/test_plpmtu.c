/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets that are longer than the path MTU: which are tried, when they are sent, and from whom they are taken. */
#include "pair.h"

#include <string.h>

#include "engine/plpmtu.h"
#include "engine/qp.h"

#define MS     UINT64_C(1000000)
#define SECRET UINT64_C(0x0123456789abcdef)
#define V6     1452u /* UDP payload of an IPv6 packet of 1,500 bytes */
#define LEN    40000u

/* ---- the object ---- */

static void what_fits_the_interface(void **state)
{
	assert_int_equal(roci_plpmtu_most(1024, V6), 1408);
	assert_int_equal(roci_plpmtu_most(1024, 1472), 1408);
	assert_int_equal(roci_plpmtu_most(1024, 1420 - 48), 1280);
	assert_int_equal(roci_plpmtu_most(1024, 1280 - 48), 1152);
	assert_int_equal(roci_plpmtu_most(1024, 0), 0);
	assert_int_equal(roci_plpmtu_most(1024, 1060), 0);
	assert_int_equal(roci_plpmtu_most(1024, 9000), 0); /* the program wants short packets */
	assert_int_equal(roci_plpmtu_most(256, V6), 0);
	assert_int_equal(roci_plpmtu_most(4096, 8952), 8832); /* IPv6 packets of 9,000 bytes */
	assert_int_equal(roci_plpmtu_most(4096, 8800), 8704);
	assert_int_equal(roci_plpmtu_most(4096, 65507), ROCI_MAX_PAYLOAD); /* the loopback interface */
	assert_int_equal(roci_plpmtu_most(4096, 4200), 0);
	assert_int_equal(roci_plpmtu_most(2048, 4000), 3840);
	assert_int_equal(roci_plpmtu_most(ROCI_MAX_MESSAGE_BYTES, V6), 0); /* the local path */
}

/* Probes that nobody answers. */
static void tries_shorter_ones(void **state)
{
	static const uint32_t sizes[] = {1408, 1408, 1280, 1280, 1152, 1152, 0};
	struct roci_plpmtu p = {0};

	for (unsigned i = 0; i < 7; i++) {
		assert_int_equal(roci_plpmtu_next(&p, 1024, V6), sizes[i]);
		if (sizes[i])
			roci_plpmtu_sent(&p, sizes[i]);
	}
	assert_int_equal(roci_plpmtu_payload(&p, 1024, V6), 0);
}

static void no_more_than_some_probes(void **state)
{
	struct roci_plpmtu p = {0};
	unsigned n = 0;
	uint32_t size;

	for (; (size = roci_plpmtu_next(&p, 2048, 4096)); n++)
		roci_plpmtu_sent(&p, size);
	assert_int_equal(n, ROCI_PLPMTU_MOST);
}

static void what_arrived_is_used(void **state)
{
	struct roci_plpmtu p = {0};

	roci_plpmtu_sent(&p, roci_plpmtu_next(&p, 1024, V6));
	roci_plpmtu_arrived(&p, 0); /* a RANGES packet of somebody who has seen no probe */
	assert_int_equal(roci_plpmtu_payload(&p, 1024, V6), 0);
	roci_plpmtu_arrived(&p, 1280); /* not what was asked for */
	assert_int_equal(roci_plpmtu_payload(&p, 1024, V6), 0);
	roci_plpmtu_arrived(&p, 4096);
	assert_int_equal(roci_plpmtu_payload(&p, 1024, V6), 1408);
	assert_int_equal(roci_plpmtu_next(&p, 1024, V6), 0);
	/* The path bears less now. */
	assert_int_equal(roci_plpmtu_payload(&p, 1024, 1420 - 48), 1280);
	assert_int_equal(roci_plpmtu_payload(&p, 1024, 1060), 0);
}

static void nothing_counts_before_a_probe(void **state)
{
	struct roci_plpmtu p = {0};

	roci_plpmtu_arrived(&p, 1408);
	assert_int_equal(roci_plpmtu_payload(&p, 1024, V6), 0);
}

/* ---- two engines ---- */

static uint32_t bears; /* UDP payload */
static unsigned probes, longer, full, too_long;

static bool count(struct pair *p, int from, const struct roci_packet *pkt)
{
	uint32_t bytes = p->tx->header_len + p->tx->payload_len + ROCI_ICRC_BYTES, fits = p->tx->av->max_datagram;

	probes += pkt->op->kind == ROCI_KIND_OFFER && pkt->payload_len > ROCI_OFFER_BYTES;
	longer += pkt->op->kind != ROCI_KIND_OFFER && pkt->payload_len > 1024;
	full += pkt->payload_len == 1024;
	if (pkt->op->kind == ROCI_KIND_OFFER)
		assert_int_equal(p->tx->whole, pkt->payload_len > ROCI_OFFER_BYTES);
	if (bytes <= bears || (fits && bytes > fits)) /* else in fragments */
		return true;
	too_long++;
	return false;
}

static void fill(struct pair_side *s)
{
	for (unsigned i = 0; i < PAIR_MEMORY; i++)
		s->memory[i] = (uint8_t)(i * 7 + i / 251);
}

static void transfer(struct pair *p, enum roci_wr_opcode op, uint32_t len)
{
	fill(&p->side[0]);
	memset(p->side[1].memory, 0, PAIR_MEMORY);
	if (op == ROCI_WR_SEND)
		assert_int_equal(pair_recv(p, 1, 7, 0, len), 0);
	assert_int_equal(pair_send(p, 0, op, 1, 0, len, 0), 0);
	pair_run_until(p, p->now + 20000 * MS);
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	if (op == ROCI_WR_SEND)
		pair_expect(p, 1, 7, ROCI_WC_SUCCESS);
	assert_memory_equal(p->side[0].memory, p->side[1].memory, len);
	p->now += 100 * MS;
}

/* The two have exchanged a packet already. */
static struct pair *make(uint64_t secret, uint32_t interface)
{
	struct pair_options o = pair_defaults();
	struct pair *p;

	o.path_mtu = 3;
	o.secret = secret;
	p = pair_create(&o);
	for (unsigned i = 0; i < 2; i++)
		p->side[i].qp->attr.av.max_datagram = interface;
	p->filter = count;
	bears = V6;
	transfer(p, ROCI_WR_SEND, 100);
	probes = longer = full = too_long = 0;
	return p;
}

/* The first bulk transfer agrees; then a message takes fewer packets. One packet of it may be longer than 1,024, too.
 */
static void two_of_ours_send_longer_packets(void **state)
{
	struct pair *p = make(SECRET, V6);
	unsigned sent;

	transfer(p, ROCI_WR_RDMA_WRITE, LEN);
	assert_int_equal(probes, 1);
	sent = p->sent[0];
	full = 0;
	for (unsigned i = 0; i < 2; i++) {
		transfer(p, i ? ROCI_WR_SEND : ROCI_WR_RDMA_WRITE, LEN);
		assert_int_equal(p->sent[0] - sent, (LEN + 1407) / 1408);
		sent = p->sent[0];
		transfer(p, i ? ROCI_WR_SEND : ROCI_WR_RDMA_WRITE, 1300);
		assert_int_equal(p->sent[0] - sent, 1);
		sent = p->sent[0];
	}
	assert_int_equal(full, 0);
	assert_int_equal(probes, 1);
	pair_free(p);
}

/* Each direction for itself; READs stay as they are, and what is no bulk transfer asks for nothing. */
static void others_do_not(void **state)
{
	struct pair *p = make(0, V6);

	for (unsigned i = 0; i < 3; i++)
		transfer(p, ROCI_WR_RDMA_WRITE, LEN);
	assert_int_equal(probes + longer, 0); /* no secret: as between all other devices */
	pair_free(p);
	p = make(SECRET, V6);
	for (unsigned i = 0; i < 3; i++) {
		memcpy(p->side[0].memory, p->side[1].memory, PAIR_MEMORY);
		assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_READ, 1, 0, LEN, 0), 0);
		pair_run_until(p, p->now + 100 * MS);
		pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
		transfer(p, ROCI_WR_RDMA_WRITE, 5000);
	}
	assert_int_equal(probes + longer, 0);
	pair_free(p);
	p = make(SECRET, 0); /* nothing is known of the interface */
	transfer(p, ROCI_WR_RDMA_WRITE, LEN);
	assert_int_equal(probes + longer, 0);
	pair_free(p);
}

/* A tunnel on the way, which tells nobody. */
static void a_path_that_bears_less(void **state)
{
	static const struct {
		uint32_t bears, payload;
	} rows[] = {{1420 - 48, 1280}, {1280 - 48, 1152}, {1100, 0}};

	for (unsigned i = 0; i < 3; i++) {
		struct pair *p = make(SECRET, V6);

		bears = rows[i].bears;
		for (unsigned n = 0; n < 8; n++)
			transfer(p, ROCI_WR_RDMA_WRITE, LEN);
		assert_int_equal(too_long, probes - (rows[i].payload != 0)); /* nothing but probes was lost */
		assert_int_equal(roci_plpmtu_payload(&p->side[0].qp->req.plpmtu, 1024, V6), rows[i].payload);
		assert_int_equal(longer != 0, rows[i].payload != 0);
		assert_int_equal(roci_engine_stats(p->side[0].e)->timeouts, 0);
		assert_int_equal(roci_engine_stats(p->side[0].e)->black_holes, 0);
		pair_free(p);
	}
}

/* Longer packets have passed, and do not any more: what is under way goes in fragments, what follows is shorter. */
static void a_path_that_narrows(void **state)
{
	struct pair *p = make(SECRET, V6);

	transfer(p, ROCI_WR_RDMA_WRITE, LEN);
	transfer(p, ROCI_WR_RDMA_WRITE, LEN);
	assert_true(longer);
	bears = 1420 - 48;
	transfer(p, ROCI_WR_RDMA_WRITE, LEN);
	assert_int_equal(roci_engine_stats(p->side[0].e)->black_holes, 1);
	too_long = 0;
	transfer(p, ROCI_WR_RDMA_WRITE, LEN);
	assert_int_equal(too_long, 0);
	assert_int_equal(p->side[0].qp->attr.av.max_datagram, ROCI_BLACK_HOLE_1280);
	pair_free(p);
}

/* The kernel has heard of it. */
static void a_path_that_is_said_to_narrow(void **state)
{
	struct pair *p = make(SECRET, V6);

	transfer(p, ROCI_WR_RDMA_WRITE, LEN);
	transfer(p, ROCI_WR_RDMA_WRITE, LEN);
	bears = 1420 - 48;
	roci_engine_path_carries(p->side[0].e, p->side[1].qp->attr.av.sgid, bears);
	roci_engine_path_carries(p->side[0].e, p->side[1].qp->attr.av.sgid, V6); /* late */
	longer = 0;
	transfer(p, ROCI_WR_RDMA_WRITE, LEN);
	assert_int_equal(too_long, 0);
	assert_true(longer);
	assert_int_equal(roci_engine_stats(p->side[0].e)->black_holes, 0);
	pair_free(p);
}

/* Lost packets are sent again as long as they were. */
static bool lose_some(struct pair *p, int from, const struct roci_packet *pkt)
{
	return count(p, from, pkt) && (from || !pkt->payload_len || ++p->count % 5);
}

static void lost_ones_are_sent_again(void **state)
{
	struct pair *p = make(SECRET, V6);

	p->filter = lose_some;
	for (unsigned i = 0; i < 12; i++)
		transfer(p, i % 2 ? ROCI_WR_SEND : ROCI_WR_RDMA_WRITE, LEN);
	assert_true(longer);
	pair_free(p);
}

/* A packet that is longer than the path MTU, from a peer that has not asked, or longer than what it asked for (IBTA
 * 9.7.4.1.6). */
static void others_may_not(void **state)
{
	static uint8_t bytes[2000];

	for (unsigned asked = 0; asked < 2; asked++) {
		struct pair *p = make(SECRET, V6);
		struct roci_packet pkt = {.opcode = ROCI_OP_WRITE_FIRST, .dma_len = LEN, .payload = bytes};

		if (asked)
			transfer(p, ROCI_WR_RDMA_WRITE, LEN);
		assert_int_equal(p->side[1].qp->resp.ranges.longest, asked ? 1408 : 0);
		pkt.va = (uintptr_t)p->side[1].memory;
		pkt.rkey = p->side[1].key;
		pkt.psn = p->side[1].qp->resp.epsn;
		pkt.payload_len = asked ? 1412 : 1028;
		pair_inject(p, 1, pkt);
		assert_int_equal(roci_qp_state(p->side[1].qp), ROCI_QPS_ERR);
		pair_free(p);
	}
}

/* All packets of a message are as long as its first one, but the last, which is not longer. */
static void a_message_keeps_its_length(void **state)
{
	static uint8_t bytes[2000];
	static const struct {
		uint32_t first, then;
		uint8_t opcode;
		bool good;
	} rows[] = {
		{1408, 1408, ROCI_OP_WRITE_MIDDLE, true},  {1280, 1280, ROCI_OP_WRITE_MIDDLE, true},
		{1024, 1024, ROCI_OP_WRITE_MIDDLE, true},  {1024, 1408, ROCI_OP_WRITE_MIDDLE, false},
		{1408, 1024, ROCI_OP_WRITE_MIDDLE, false}, {1024, 1408, ROCI_OP_WRITE_LAST, false},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct pair *p = make(SECRET, V6);
		struct roci_packet pkt = {.opcode = ROCI_OP_WRITE_FIRST, .payload = bytes};

		transfer(p, ROCI_WR_RDMA_WRITE, LEN);
		pkt.dma_len = rows[i].opcode == ROCI_OP_WRITE_LAST ? rows[i].first + rows[i].then : LEN;
		pkt.va = (uintptr_t)p->side[1].memory;
		pkt.rkey = p->side[1].key;
		pkt.psn = p->side[1].qp->resp.epsn;
		pkt.payload_len = rows[i].first;
		pair_inject(p, 1, pkt);
		pkt.opcode = rows[i].opcode;
		pkt.psn = p->side[1].qp->resp.epsn;
		pkt.payload_len = rows[i].then;
		pair_inject(p, 1, pkt);
		assert_int_equal(roci_qp_state(p->side[1].qp), rows[i].good ? ROCI_QPS_RTS : ROCI_QPS_ERR);
		pair_free(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_fits_the_interface),
		cmocka_unit_test(tries_shorter_ones),
		cmocka_unit_test(no_more_than_some_probes),
		cmocka_unit_test(what_arrived_is_used),
		cmocka_unit_test(nothing_counts_before_a_probe),
		cmocka_unit_test(two_of_ours_send_longer_packets),
		cmocka_unit_test(others_do_not),
		cmocka_unit_test(a_path_that_bears_less),
		cmocka_unit_test(a_path_that_narrows),
		cmocka_unit_test(a_path_that_is_said_to_narrow),
		cmocka_unit_test(lost_ones_are_sent_again),
		cmocka_unit_test(others_may_not),
		cmocka_unit_test(a_message_keeps_its_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
