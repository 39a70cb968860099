/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets of somebody who knows a connection's addresses and QPN, but does not see its PSNs. */
#include "pair.h"

#include <string.h>

#include "engine/qp.h"
#include "engine/reorder.h"

#define MESSAGES          5000 /* between the expected PSN and the forged one */
#define RESERVED_SYNDROME 0x40 /* IBTA 9.7.5.1.1: neither ACK, RNR NAK nor NAK */
#define TO                1000 /* offset of the receives */

/* A packet of side 0, as it arrived at side 1. */
static struct {
	bool full;
	struct roci_rx rx;
	uint8_t payload[PAIR_MTU];
} sample;

static bool keep_sample(struct pair *p, int from, const struct roci_packet *pkt)
{
	if (from != 0 || sample.full)
		return true;
	sample.full = true;
	sample.rx = (struct roci_rx){.pkt = *pkt, .src_port = p->tx->av->src_port, .hop_limit = 64};
	memcpy(sample.payload, pkt->payload, pkt->payload_len);
	sample.rx.pkt.payload = sample.payload;
	memcpy(sample.rx.sgid, p->tx->av->sgid, 16);
	memcpy(sample.rx.dgid, p->tx->av->dgid, 16);
	return true;
}

/* Sends the number `n` in 4 bytes, and checks that it arrives. */
static void exchange(struct pair *p, uint32_t n)
{
	memcpy(p->side[0].memory, &n, 4);
	assert_int_equal(pair_recv(p, 1, n, TO, 4), 0);
	assert_int_equal(pair_send(p, 0, ROCI_WR_SEND, n, 0, 4, 0), 0);
	pair_run(p);
	pair_expect(p, 0, n, ROCI_WC_SUCCESS);
	pair_expect(p, 1, n, ROCI_WC_SUCCESS);
	assert_memory_equal(p->side[1].memory + TO, &n, 4);
}

/* A pair that has exchanged message 0, which is in `sample`, and runs unmolested from then on. */
static struct pair *make(void)
{
	struct pair_options o = pair_defaults();
	struct pair *p = pair_create(&o);

	sample.full = false;
	p->filter = keep_sample;
	exchange(p, 0);
	assert_true(sample.full);
	return p;
}

/* A SEND with the PSN that lies `ahead` behind the expected one. */
static void forge(struct pair *p, uint32_t ahead)
{
	struct roci_rx rx = sample.rx;

	rx.pkt.psn = roci_psn_add(p->side[1].qp->resp.epsn, ahead);
	memset(sample.payload, 0xee, 4);
	roci_engine_rx(p->side[1].e, p->now, &rx);
}

static void forged_send_far_ahead_is_not_delivered(void **state)
{
	struct pair *p = make();

	forge(p, MESSAGES);
	for (uint32_t n = 1; n <= MESSAGES + 2; n++)
		exchange(p, n);
	pair_free(p);
}

/* The responder owes an acknowledgement when the forged packet comes, and sends the NAK of a gap in its place. That
 * says the same: the peer waits for what was not sent yet. */
static void nak_in_the_place_of_an_ack_acknowledges(void **state)
{
	struct pair_options o = pair_defaults();
	struct pair *p;

	o.retry_cnt = 0;
	p = pair_create(&o);
	assert_int_equal(pair_recv(p, 1, 1, TO, 4), 0);
	assert_int_equal(pair_send(p, 0, ROCI_WR_SEND, 1, 0, 4, 0), 0);
	assert_true(pair_turn(p, 0));
	pair_inject(p, 1, (struct roci_packet){.opcode = ROCI_OP_SEND_ONLY, .psn = roci_psn_add(o.psn, MESSAGES)});
	pair_run(p); /* the time does not change */
	assert_int_equal(roci_engine_stats(p->side[0].e)->naks_received, 1);
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	pair_expect(p, 1, 1, ROCI_WC_SUCCESS);
	pair_free(p);
}

/* As a gap: one NAK, and one count for each packet. */
static void forged_send_is_answered_as_a_gap(void **state)
{
	struct pair *p = make();
	unsigned sent = p->sent[1];

	for (uint32_t i = 0; i < 3; i++)
		forge(p, MESSAGES + i);
	pair_run(p);
	assert_int_equal(p->sent[1], sent + 1);
	assert_int_equal(roci_engine_stats(p->side[1].e)->naks_sent, 1);
	assert_int_equal(roci_engine_stats(p->side[1].e)->rx_out_of_order, 3);
	exchange(p, 1);
	pair_free(p);
}

/* How many of all PSNs are kept. Each is tried alone. */
static void few_of_all_psns_are_kept(void **state)
{
	struct pair *p = make();
	struct roci_reorder *early = &p->side[1].qp->resp.early;
	unsigned kept = 0;

	for (uint32_t ahead = 1; ahead <= ROCI_PSN_MASK; ahead += ahead < 2 * ROCI_REORDER_WINDOW ? 1 : 997) {
		forge(p, ahead);
		kept += early->count;
		roci_reorder_clear(&p->side[1].e->reorder, early);
	}
	assert_int_equal(kept, ROCI_REORDER_WINDOW - 1);
	exchange(p, 1);
	pair_free(p);
}

/* How many of all PSNs let an acknowledgement in. It has a reserved syndrome, so it changes nothing. */
static unsigned acks_that_count(struct pair *p)
{
	struct roci_engine *e = p->side[0].e;
	uint64_t before = roci_engine_stats(e)->rx_malformed;
	uint32_t una = p->side[0].qp->req.window.una;
	struct roci_rx rx = {.hop_limit = 64};

	rx.src_port = p->side[0].qp->peer.port;
	memcpy(rx.sgid, sample.rx.dgid, 16);
	memcpy(rx.dgid, sample.rx.sgid, 16);
	rx.pkt = (struct roci_packet){.opcode = ROCI_TRANSPORT_RC | ROCI_OP_ACKNOWLEDGE,
				      .op = roci_opcode_info(ROCI_TRANSPORT_RC | ROCI_OP_ACKNOWLEDGE),
				      .pkey = ROCI_PKEY_DEFAULT,
				      .dest_qpn = 100,
				      .syndrome = RESERVED_SYNDROME};
	for (uint32_t i = 0; i <= ROCI_PSN_MASK; i += i < 1000 || i > ROCI_PSN_MASK - 1000 ? 1 : 97) {
		rx.pkt.psn = roci_psn_add(una, i);
		roci_engine_rx(e, p->now, &rx);
	}
	return (unsigned)(roci_engine_stats(e)->rx_malformed - before);
}

static bool drop_requests(struct pair *p, int from, const struct roci_packet *pkt)
{
	return from != 0;
}

/* IBTA 9.7.5.1.1: an ACK, a NAK or a response must name a packet that is sent and not acknowledged. */
static void forged_ack_must_name_an_outstanding_packet(void **state)
{
	struct pair *p = make();

	assert_int_equal(acks_that_count(p), 0);
	p->filter = drop_requests;
	pair_send(p, 0, ROCI_WR_RDMA_WRITE, 1, 0, 12 * PAIR_MTU, 0);
	pair_turn(p, 0);
	assert_int_equal(roci_send_window_packets(&p->side[0].qp->req.window), 12);
	assert_int_equal(acks_that_count(p), 12);
	pair_expect_nothing(p, 0);
	pair_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forged_send_far_ahead_is_not_delivered),
		cmocka_unit_test(forged_send_is_answered_as_a_gap),
		cmocka_unit_test(nak_in_the_place_of_an_ack_acknowledges),
		cmocka_unit_test(forged_ack_must_name_an_outstanding_packet),
		cmocka_unit_test(few_of_all_psns_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
