/* SPDX-License-Identifier: BSD-2-Clause */
/* Which UDP ports a peer may send from, and which port it is answered from. */
#include "pair.h"

#include <string.h>

#include "engine/peer_port.h"
#include "engine/qp.h"

#define MS    UINT64_C(1000000)
#define OTHER 0x1234 /* a UDP port that the peer did not have before */

/* ---- the object ---- */

static void a_port_that_was_shown_counts(void **state)
{
	struct roci_peer_port p = {0};

	assert_false(roci_peer_port_is(&p, 7));
	assert_false(roci_peer_port_change(&p, 0, 7, ROCI_PROOF_NONE));
	assert_false(roci_peer_port_change(&p, 0, 7, ROCI_PROOF_NEEDLESS));
	assert_false(roci_peer_port_is(&p, 7));
	assert_true(roci_peer_port_change(&p, 0, 7, ROCI_PROOF_PEER));
	assert_true(roci_peer_port_is(&p, 7));
	assert_false(roci_peer_port_is(&p, 8));
	assert_true(roci_peer_port_change(&p, 0, 8, ROCI_PROOF_PEER));
	assert_true(roci_peer_port_is(&p, 8));
	assert_false(roci_peer_port_is(&p, 7));
}

/* Some implementations send from port 0. */
static void port_0_is_a_port(void **state)
{
	struct roci_peer_port p = {0};

	assert_false(roci_peer_port_is(&p, 0));
	assert_true(roci_peer_port_change(&p, 0, 0, ROCI_PROOF_PEER));
	assert_true(roci_peer_port_is(&p, 0));
}

/* True where a peer that changes its port `changes` times, every `interval_ns`, is not judged any more. */
static bool sprays(unsigned changes, uint64_t interval_ns)
{
	struct roci_peer_port p = {0};
	uint64_t now = 1000 * MS;

	assert_true(roci_peer_port_change(&p, now, 1, ROCI_PROOF_PEER));
	for (uint16_t i = 0; i < changes; i++)
		assert_true(roci_peer_port_change(&p, now += interval_ns, 2 + i, ROCI_PROOF_PEER));
	return roci_peer_port_is(&p, 9999);
}

static void a_peer_that_sprays_is_not_judged(void **state)
{
	assert_false(sprays(ROCI_PEER_PORT_CHANGES - 1, MS));
	assert_true(sprays(ROCI_PEER_PORT_CHANGES, MS));
	assert_false(sprays(20, 2 * ROCI_PEER_PORT_CHANGE_NS)); /* now and then */
}

static void patience_ends(void **state)
{
	struct roci_peer_port p = {0};

	roci_peer_port_change(&p, 0, 7, ROCI_PROOF_PEER);
	for (unsigned i = 1; i < ROCI_PEER_PORT_PATIENCE; i++)
		assert_false(roci_peer_port_change(&p, 0, 8, ROCI_PROOF_NONE));
	assert_false(roci_peer_port_change(&p, 0, 9, ROCI_PROOF_NONE)); /* begins anew */
	for (unsigned i = 1; i < ROCI_PEER_PORT_PATIENCE; i++)
		assert_false(roci_peer_port_change(&p, 0, 8, ROCI_PROOF_NONE));
	assert_true(roci_peer_port_is(&p, 7)); /* the peer is there: begins anew */
	for (unsigned i = 1; i < ROCI_PEER_PORT_PATIENCE; i++)
		assert_false(roci_peer_port_change(&p, 0, 8, ROCI_PROOF_NONE));
	assert_true(roci_peer_port_change(&p, 0, 8, ROCI_PROOF_NONE));
	assert_true(roci_peer_port_is(&p, 8));
}

/* ---- a peer that changes its port ---- */

static struct pair *make(void)
{
	struct pair_options o = pair_defaults();
	struct pair *p = pair_create(&o);

	pair_recv(p, 1, 1, 30000, 64);
	assert_int_equal(pair_send(p, 0, ROCI_WR_SEND, 1, 0, 64, 0), 0);
	pair_run(p);
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	pair_expect(p, 1, 1, ROCI_WC_SUCCESS);
	return p;
}

/* Requests and responses of all kinds go on, without a wait. */
static void a_change_of_port_costs_nothing(void **state)
{
	static const enum roci_wr_opcode ops[] = {ROCI_WR_RDMA_WRITE, ROCI_WR_RDMA_READ, ROCI_WR_ATOMIC_FETCH_AND_ADD};
	struct pair *p = make();

	for (uint16_t i = 0; i < 3; i++) {
		for (int s = 0; s < 2; s++) {
			unsigned sent = p->sent[0] + p->sent[1];

			p->port[s] = (uint16_t)(OTHER + i);
			pair_send(p, s, ops[i], i, 0, i == 2 ? 8 : 20 * PAIR_MTU, 8192);
			pair_run(p);
			pair_expect(p, s, i, ROCI_WC_SUCCESS);
			assert_in_range(p->sent[0] + p->sent[1], sent + 2, sent + 30);
		}
	}
	assert_int_equal(roci_engine_stats(p->side[0].e)->rx_wrong_port, 0);
	assert_int_equal(roci_engine_stats(p->side[1].e)->rx_wrong_port, 0);
	pair_free(p);
}

/* Side 1 has executed everything, and side 0 does not know it. */
static bool drop_from_1(struct pair *p, int from, const struct roci_packet *pkt)
{
	return from != 1;
}

static void a_change_of_port_while_answers_are_lost(void **state)
{
	struct pair *p = make();

	p->filter = drop_from_1;
	pair_send(p, 0, ROCI_WR_RDMA_WRITE, 1, 0, 60000, 0);
	pair_send(p, 0, ROCI_WR_RDMA_READ, 2, 0, 60000, 0);
	pair_send(p, 0, ROCI_WR_RDMA_WRITE, 3, 0, 100, 0);
	pair_run(p);
	pair_expect_nothing(p, 0);
	p->filter = NULL;
	p->port[0] = OTHER;
	p->port[1] = OTHER + 1;
	pair_run_until(p, p->now + 1000 * MS);
	for (uint64_t i = 1; i <= 3; i++)
		pair_expect(p, 0, i, ROCI_WC_SUCCESS);
	assert_int_equal(roci_engine_stats(p->side[0].e)->timeouts, 0);
	pair_free(p);
}

/* The first NAK from a new port is about a message in the middle of what is outstanding. */
static void a_nak_from_another_port_is_heard_at_last(void **state)
{
	struct pair *p = make();

	p->port[1] = OTHER;
	for (uint64_t i = 1; i <= 3; i++)
		pair_send(p, 0, i == 2 ? ROCI_WR_SEND : ROCI_WR_RDMA_WRITE, i, 0, 2000, 0);
	pair_run_until(p, p->now + 300 * MS);
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	pair_recv(p, 1, 7, 30000, 2000);
	pair_run_until(p, p->now + 3000 * MS);
	pair_expect(p, 0, 2, ROCI_WC_SUCCESS);
	pair_expect(p, 0, 3, ROCI_WC_SUCCESS);
	pair_free(p);
}

/* Each packet from another port: an adapter that sprays. */
static bool spray(struct pair *p, int from, const struct roci_packet *pkt)
{
	p->port[from]++;
	return true;
}

static void a_sprayer_is_understood(void **state)
{
	struct pair *p = make();

	p->filter = spray;
	p->port[0] = p->port[1] = OTHER;
	for (uint64_t i = 0; i < 10; i++) {
		pair_send(p, 0, i % 2 ? ROCI_WR_RDMA_READ : ROCI_WR_RDMA_WRITE, i, 0, 20 * PAIR_MTU, 8192);
		pair_run_until(p, p->now + 1000 * MS);
		pair_expect(p, 0, i, ROCI_WC_SUCCESS);
	}
	assert_true(p->side[0].qp->peer.sprays && p->side[1].qp->peer.sprays);
	assert_int_equal(p->side[0].qp->attr.av.peer_port, 0);
	pair_free(p);
}

/* ---- the port that packets leave from ---- */

static uint16_t port_of(const struct pair *p, int s)
{
	return p->side[s].qp->attr.av.src_port;
}

static void one_that_sends_from_4791_is_answered_from_there(void **state)
{
	struct pair *p = make();

	assert_int_not_equal(port_of(p, 1), ROCI_UDP_PORT);
	p->port[0] = ROCI_UDP_PORT;
	pair_send(p, 0, ROCI_WR_RDMA_WRITE, 1, 0, 64, 0);
	pair_run(p);
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	assert_int_equal(port_of(p, 1), ROCI_UDP_PORT);
	pair_free(p);
}

/* A stateful firewall on each side: only what comes from port 4791 gets through, as both have sent MADs from there. */
static bool firewall(struct pair *p, int from, const struct roci_packet *pkt)
{
	return p->tx->av->src_port == ROCI_UDP_PORT;
}

/* Only side 0 has one. */
static bool firewall_of_0(struct pair *p, int from, const struct roci_packet *pkt)
{
	return from == 0 || p->tx->av->src_port == ROCI_UDP_PORT;
}

static bool firewall_of_1(struct pair *p, int from, const struct roci_packet *pkt)
{
	return from == 1 || p->tx->av->src_port == ROCI_UDP_PORT;
}

static void firewalls_are_passed(void **state)
{
	static bool (*const firewalls[])(struct pair *, int, const struct roci_packet *) = {firewall, firewall_of_0,
											    firewall_of_1};
	static const enum roci_qp_type types[] = {ROCI_QPT_RC, ROCI_QPT_UC};

	for (unsigned i = 0; i < 6; i++) {
		struct pair_options o = pair_defaults();
		struct pair *p;

		o.type = types[i / 3];
		p = pair_create(&o);
		p->filter = firewalls[i % 3];
		for (uint64_t n = 0; n < 20; n++) {
			int from = n > 10;

			pair_send(p, from, ROCI_WR_RDMA_WRITE, n, 0, 20 * PAIR_MTU, 8192);
			pair_run_until(p, p->now + 500 * MS);
			pair_expect(p, from, n, ROCI_WC_SUCCESS);
		}
		memset(p->side[0].memory, 0x5a, 100);
		pair_send(p, 0, ROCI_WR_RDMA_WRITE, 99, 0, 100, 8192);
		pair_run_until(p, p->now + 500 * MS);
		assert_memory_equal(p->side[1].memory + 8192, p->side[0].memory, 100);
		pair_free(p);
	}
}

/* A peer that answers is no reason to use a port that everybody knows. */
static void a_peer_that_answers_keeps_the_port_secret(void **state)
{
	struct pair *p = make();

	p->filter = drop_from_1;
	pair_send(p, 0, ROCI_WR_RDMA_WRITE, 1, 0, 64, 0);
	pair_run_until(p, p->now + 200 * MS);
	p->filter = NULL;
	pair_run_until(p, p->now + 1000 * MS);
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	assert_int_not_equal(port_of(p, 0), ROCI_UDP_PORT);
	assert_int_not_equal(port_of(p, 1), ROCI_UDP_PORT);
	pair_free(p);
}

/* A round trip longer than the patience of a sender that has measured none: no firewall. */
static void a_far_peer_keeps_the_port_secret(void **state)
{
	struct pair_options o = pair_defaults();
	struct pair *p = pair_create(&o);
	uint16_t port = port_of(p, 0);

	pair_send(p, 0, ROCI_WR_RDMA_WRITE, 1, 0, 64, 0);
	assert_true(pair_turn(p, 0));
	p->now += 150 * MS;
	roci_engine_timers(p->side[0].e, p->now);
	assert_int_equal(port_of(p, 0), ROCI_UDP_PORT);
	assert_true(pair_turn(p, 1)); /* the answer to the first packet */
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	assert_int_equal(port_of(p, 0), port);
	for (uint64_t n = 0; n < 20; n++) {
		pair_send(p, n & 1, ROCI_WR_RDMA_WRITE, n, 0, 64, 0);
		pair_run(p);
		pair_expect(p, n & 1, n, ROCI_WC_SUCCESS);
	}
	assert_int_equal(port_of(p, 0), port);
	pair_free(p);
}

/* A peer behind a firewall that is answered from its own port, whatever we send from: then that way was not open. */
static void a_port_that_was_taken_back_in_vain_is_left_for_good(void **state)
{
	struct pair_options o = pair_defaults();
	struct pair *p = pair_create(&o);

	p->filter = firewall_of_1;
	pair_send(p, 0, ROCI_WR_RDMA_WRITE, 1, 0, 64, 0);
	pair_turn(p, 0);
	p->now += 150 * MS;
	roci_engine_timers(p->side[0].e, p->now);
	assert_int_equal(port_of(p, 0), ROCI_UDP_PORT);
	pair_send(p, 1, ROCI_WR_RDMA_WRITE, 2, 0, 64, 0); /* from a port of its own */
	assert_true(pair_turn(p, 1));
	assert_int_not_equal(port_of(p, 0), ROCI_UDP_PORT);
	pair_run_until(p, p->now + 2000 * MS);
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	pair_expect(p, 1, 2, ROCI_WC_SUCCESS);
	assert_int_equal(port_of(p, 0), ROCI_UDP_PORT);
	pair_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_port_that_was_shown_counts),
		cmocka_unit_test(port_0_is_a_port),
		cmocka_unit_test(a_peer_that_sprays_is_not_judged),
		cmocka_unit_test(patience_ends),
		cmocka_unit_test(a_change_of_port_costs_nothing),
		cmocka_unit_test(a_change_of_port_while_answers_are_lost),
		cmocka_unit_test(a_nak_from_another_port_is_heard_at_last),
		cmocka_unit_test(a_sprayer_is_understood),
		cmocka_unit_test(one_that_sends_from_4791_is_answered_from_there),
		cmocka_unit_test(firewalls_are_passed),
		cmocka_unit_test(a_peer_that_answers_keeps_the_port_secret),
		cmocka_unit_test(a_far_peer_keeps_the_port_secret),
		cmocka_unit_test(a_port_that_was_taken_back_in_vain_is_left_for_good),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
