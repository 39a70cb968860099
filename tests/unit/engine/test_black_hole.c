/* SPDX-License-Identifier: BSD-2-Clause */
/* A path that swallows what is long: the engine finds out, and marks such packets to go in fragments. */
#include "pair.h"

#include <string.h>

#include "engine/qp.h"
#include "random.h"
#include "wire/gid.h"

#define MS     UINT64_C(1000000)
#define MTU    2048
#define LEN    (6 * MTU)
#define NARROW 1400 /* UDP payload that the path takes in one packet */

static bool lossy, wide; /* the path: of short packets, every fourth is lost, by chance; it takes all */
static uint64_t seed;

/* Drops what is long, unless its sender lets it be cut. */
static bool swallows(struct pair *p, int from, const struct roci_packet *pkt)
{
	uint32_t bytes = p->tx->header_len + p->tx->payload_len + ROCI_ICRC_BYTES, carries = p->tx->av->max_datagram;

	if (!roci_gid_is_ipv4(p->tx->av->dgid) && !p->tx->av->pieces)
		carries = 0; /* nobody cuts it */
	if (lossy && bytes <= NARROW && random_next(&seed) % 4 == 0)
		return false;
	return wide || bytes <= NARROW || (carries && bytes > carries);
}

static struct pair *connected_with(uint64_t secret, bool ipv6)
{
	struct pair_options o = pair_defaults();
	struct pair *p;

	o.ipv6 = ipv6;

	o.path_mtu = 4;
	o.timeout = 17;
	o.secret = secret;
	p = pair_create(&o);
	p->filter = swallows;
	lossy = wide = false;
	seed = 1;
	return p;
}

/* Two Rocinantes. */
static struct pair *connected(void)
{
	return connected_with(0x0123456789abcdef, false);
}

static const struct roci_engine_stats *stats(struct pair *p, int s)
{
	return roci_engine_stats(p->side[s].e);
}

static void transfer(struct pair *p, enum roci_wr_opcode op, uint32_t len)
{
	if (op == ROCI_WR_SEND)
		assert_int_equal(pair_recv(p, 1, 7, 0, len), 0);
	assert_int_equal(pair_send(p, 0, op, 1, 0, len, 0), 0);
	pair_run_until(p, p->now + 20000 * MS);
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	if (op == ROCI_WR_SEND)
		pair_expect(p, 1, 7, ROCI_WC_SUCCESS);
}

/* The first message ever, and one behind others. */
static void requests_pass(void **state)
{
	for (unsigned before = 0; before < 2; before++) {
		struct pair *p = connected();

		if (before)
			transfer(p, ROCI_WR_SEND, 100);
		transfer(p, ROCI_WR_SEND, LEN);
		assert_int_equal(stats(p, 0)->black_holes, 1);
		transfer(p, ROCI_WR_RDMA_WRITE, LEN); /* it is known by now */
		assert_int_equal(stats(p, 0)->black_holes, 1);
		assert_int_equal(stats(p, 1)->black_holes, 0);
		pair_free(p);
	}
}

static void read_responses_pass(void **state)
{
	struct pair *p = connected();

	transfer(p, ROCI_WR_RDMA_READ, LEN);
	assert_int_equal(stats(p, 0)->black_holes, 0);
	assert_int_equal(stats(p, 1)->black_holes, 1);
	pair_free(p);
}

/* The way changes: long packets have passed before. */
static void a_path_that_narrows(void **state)
{
	struct pair *p = connected();

	wide = true;
	transfer(p, ROCI_WR_SEND, LEN);
	wide = false;
	transfer(p, ROCI_WR_SEND, LEN);
	assert_int_equal(stats(p, 0)->black_holes, 1);
	pair_free(p);
}

/* Packets that are lost by chance are other ones each time. */
static void loss_is_no_black_hole(void **state)
{
	struct pair *p = connected();

	lossy = true;
	for (unsigned i = 0; i < 500; i++)
		transfer(p, i % 2 ? ROCI_WR_RDMA_WRITE : ROCI_WR_SEND, 1000);
	assert_int_equal(stats(p, 0)->black_holes + stats(p, 1)->black_holes, 0);
	pair_free(p);
}

/* Each long packet is lost six times by chance, and the peer takes no fragments: an adapter, or Soft-RoCE. */
static uint8_t tries[1 << 24];

static bool lossy_for_others(struct pair *p, int from, const struct roci_packet *pkt)
{
	uint32_t bytes = p->tx->header_len + p->tx->payload_len + ROCI_ICRC_BYTES, carries = p->tx->av->max_datagram;

	if (pkt->op->kind == ROCI_KIND_OFFER || (carries && bytes > carries))
		return false;
	return bytes <= NARROW || tries[pkt->psn]++ >= 6;
}

/* It is told, and nothing else: the packets of a connection that loses many go on as they are. */
static void other_peers_get_no_fragments(void **state)
{
	struct pair *p = connected();

	memset(tries, 0, sizeof(tries));
	p->filter = lossy_for_others;
	transfer(p, ROCI_WR_SEND, 100);
	transfer(p, ROCI_WR_SEND, LEN);
	assert_int_equal(stats(p, 0)->black_holes, 1);
	assert_int_equal(p->side[0].qp->attr.av.max_datagram, 0);
	assert_int_equal(stats(p, 0)->timeouts, 0);
	memset(tries, 0, sizeof(tries));
	transfer(p, ROCI_WR_RDMA_READ, LEN);
	assert_int_equal(p->side[1].qp->attr.av.max_datagram, 0);
	pair_free(p);
}

/* Who is known without a question, as on a far path, needs none. */
static void a_peer_is_asked_once(void **state)
{
	struct pair *p = connected();

	transfer(p, ROCI_WR_SEND, LEN);
	assert_int_equal(p->side[0].qp->req.selective.asks, 1);
	assert_false(p->side[0].qp->req.selective.agreed);
	assert_false(p->side[1].qp->resp.ranges.offered);
	assert_true(p->side[0].qp->path->ours && p->side[1].qp->path->ours);
	transfer(p, ROCI_WR_RDMA_READ, LEN);
	assert_int_equal(p->side[1].qp->req.selective.asks, 0);
	assert_int_equal(stats(p, 1)->black_holes, 1);
	pair_free(p);
}

/* Over IPv6 no router cuts anything: the packets go in pieces, which only a Rocinante takes. */
static void over_ipv6_packets_go_in_pieces(void **state)
{
	struct pair *p = connected_with(0x0123456789abcdef, true);

	transfer(p, ROCI_WR_SEND, 100);
	transfer(p, ROCI_WR_SEND, LEN);
	assert_true(p->side[0].qp->attr.av.pieces);
	assert_int_equal(p->side[0].qp->attr.av.max_datagram, ROCI_BLACK_HOLE_1280);
	assert_false(p->side[1].qp->attr.av.pieces);
	transfer(p, ROCI_WR_RDMA_READ, LEN);
	assert_true(p->side[1].qp->attr.av.pieces);
	pair_free(p);
}

/* A probe of rdma_cm has shown before that the path takes less: that makes nobody cut, either. */
static void over_ipv6_a_known_path_is_a_black_hole_too(void **state)
{
	struct pair *p = connected_with(0x0123456789abcdef, true);

	p->side[0].qp->attr.av.max_datagram = 1100;
	transfer(p, ROCI_WR_SEND, LEN);
	assert_true(p->side[0].qp->attr.av.pieces);
	assert_int_equal(stats(p, 0)->black_holes, 1);
	pair_free(p);
}

static bool swallows_and_drops_offers(struct pair *p, int from, const struct roci_packet *pkt)
{
	return pkt->op->kind != ROCI_KIND_OFFER && swallows(p, from, pkt);
}

static void over_ipv6_other_peers_get_no_pieces(void **state)
{
	struct pair *p = connected_with(0x0123456789abcdef, true);

	p->filter = swallows_and_drops_offers;
	assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_WRITE, 1, 0, LEN, 0), 0);
	pair_run_until(p, p->now + 60000 * MS);
	pair_expect(p, 0, 1, ROCI_WC_RETRY_EXC_ERR);
	assert_int_equal(stats(p, 0)->black_holes, 1);
	assert_false(p->side[0].qp->attr.av.pieces);
	assert_int_equal(p->side[0].qp->attr.av.max_datagram, ROCI_BLACK_HOLE_1280); /* the driver says so */
	pair_free(p);
}

/* Nothing passes at all: that is no question of length. */
static bool nothing(struct pair *p, int from, const struct roci_packet *pkt)
{
	return false;
}

static void a_dead_peer_is_no_black_hole(void **state)
{
	struct pair *p = connected();

	p->filter = nothing;
	assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_WRITE, 1, 0, LEN, 0), 0);
	pair_run_until(p, p->now + 60000 * MS);
	pair_expect(p, 0, 1, ROCI_WC_RETRY_EXC_ERR);
	assert_int_equal(stats(p, 0)->black_holes, 0);
	pair_free(p);
}

/* A process that was stopped finds all that its peer has sent again at once. It has answered none of it yet. */
static void a_responder_that_was_stopped_finds_no_black_hole(void **state)
{
	struct pair *p = connected();
	struct roci_packet again = {.opcode = ROCI_OP_READ_REQUEST, .dma_len = LEN};

	wide = true;
	again.psn = p->side[1].qp->resp.epsn;
	again.va = (uintptr_t)p->side[1].memory;
	again.rkey = p->side[1].key;
	for (unsigned i = 0; i < 8; i++)
		pair_inject(p, 1, again);
	assert_int_equal(stats(p, 1)->black_holes, 0);
	pair_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_pass),
		cmocka_unit_test(read_responses_pass),
		cmocka_unit_test(a_path_that_narrows),
		cmocka_unit_test(loss_is_no_black_hole),
		cmocka_unit_test(other_peers_get_no_fragments),
		cmocka_unit_test(a_peer_is_asked_once),
		cmocka_unit_test(over_ipv6_packets_go_in_pieces),
		cmocka_unit_test(over_ipv6_a_known_path_is_a_black_hole_too),
		cmocka_unit_test(over_ipv6_other_peers_get_no_pieces),
		cmocka_unit_test(a_dead_peer_is_no_black_hole),
		cmocka_unit_test(a_responder_that_was_stopped_finds_no_black_hole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
