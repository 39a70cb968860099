/* SPDX-License-Identifier: BSD-2-Clause */
/* Silence: a peer that is only late costs no packet with data, and what is lost comes again. */
#include "pair.h"

#include <string.h>

#define MS       UINT64_C(1000000)
#define MESSAGES 8
#define LEN      (4 * PAIR_MTU)

static struct pair *connected(void)
{
	struct pair_options o = pair_defaults();
	struct pair *p;

	o.timeout = 20; /* 4 s: probes are long before */
	p = pair_create(&o);
	return p;
}

/* One request that is answered at once: the path's round trip is known, and the peer has acknowledged something. */
static void warm_up(struct pair *p)
{
	assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_WRITE, 99, 0, 1, 0), 0);
	assert_true(pair_turn(p, 0));
	p->now += MS / 10;
	pair_run(p);
	pair_expect(p, 0, 99, ROCI_WC_SUCCESS);
	memset(p->sent, 0, sizeof(p->sent));
}

static const struct roci_engine_stats *stats(struct pair *p, int s)
{
	return roci_engine_stats(p->side[s].e);
}

static bool is_probe(const struct roci_packet *pkt)
{
	return pkt->opcode == ROCI_OP_WRITE_ONLY && !pkt->payload_len && !pkt->va && !pkt->rkey;
}

/* Side 0 drives itself until `until`; its peer does not answer. */
static void drive_alone(struct pair *p, uint64_t until)
{
	for (int n = 0; n < 1000; n++) {
		while (pair_turn(p, 0))
			;
		if (roci_engine_deadline(p->side[0].e) > until)
			return;
		p->now = roci_engine_deadline(p->side[0].e);
		roci_engine_timers(p->side[0].e, p->now);
	}
	fail_msg("no end");
}

/* The peer's process has to wait for a processor. */
static void a_late_peer_costs_no_retransmission(void **state)
{
	struct pair *p = connected();

	warm_up(p);
	for (unsigned round = 0; round < 20; round++) {
		for (uint64_t i = 0; i < MESSAGES; i++)
			assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_WRITE, i, 0, LEN, 0), 0);
		drive_alone(p, p->now + 50 * MS);
		pair_run(p);
		for (uint64_t i = 0; i < MESSAGES; i++)
			pair_expect(p, 0, i, ROCI_WC_SUCCESS);
	}
	assert_int_equal(p->copied[0], 0);
	assert_int_equal(stats(p, 0)->retransmits, 0);
	assert_int_equal(stats(p, 0)->timeouts, 0);
	assert_int_equal(stats(p, 1)->naks_sent, 0);
	assert_true(stats(p, 0)->probes > 0);
	pair_free(p);
}

/* READ responses are what is late. */
static void late_responses_cost_no_retransmission(void **state)
{
	struct pair *p = connected();

	warm_up(p);
	assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_READ, 1, 0, LEN, 0), 0);
	drive_alone(p, p->now + 50 * MS);
	pair_run(p);
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	assert_int_equal(stats(p, 0)->retransmits, 0);
	pair_free(p);
}

/* Drops the packets with data of side 0 whose number p->count says, from 1 on. */
static bool drop_counted(struct pair *p, int from, const struct roci_packet *pkt)
{
	return from || is_probe(pkt) || --p->count;
}

/* No NAK tells of the last packet of a burst. The answer to the probe does, and only that packet comes again. */
static void a_lost_tail_is_sent_again_after_one_probe(void **state)
{
	struct pair *p = connected();

	warm_up(p);
	p->filter = drop_counted;
	p->count = LEN / PAIR_MTU;
	assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_WRITE, 1, 0, LEN, 0), 0);
	pair_run_until(p, p->now + 100 * MS);
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	assert_int_equal(p->dropped, 1);
	assert_int_equal(stats(p, 0)->probes, 1);
	assert_int_equal(stats(p, 0)->timeouts, 0);
	assert_in_range(stats(p, 0)->retransmits, 1, LEN / PAIR_MTU);
	pair_free(p);
}

static bool drop_first_responses(struct pair *p, int from, const struct roci_packet *pkt)
{
	return !from || !p->count || !p->count--;
}

/* The peer has executed the READ, and says so; its data is missing all the same. */
static void lost_responses_are_asked_for_again(void **state)
{
	struct pair *p = connected();

	warm_up(p);
	p->filter = drop_first_responses;
	p->count = LEN / PAIR_MTU;
	memset(p->side[1].memory, 0x5a, LEN);
	assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_READ, 1, 0, LEN, 0), 0);
	pair_run_until(p, p->now + 100 * MS);
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	assert_memory_equal(p->side[0].memory, p->side[1].memory, LEN);
	assert_int_equal(stats(p, 0)->probes, 1);
	assert_int_equal(stats(p, 0)->timeouts, 0);
	pair_free(p);
}

static bool drop_probes_and_first(struct pair *p, int from, const struct roci_packet *pkt)
{
	if (from || (!is_probe(pkt) && !p->count))
		return true;
	p->count -= !is_probe(pkt);
	return false;
}

/* A peer that answers no probe gets the data again, before the timeout. So does one that has
 * acknowledged nothing yet: it cannot be asked. */
static void without_answers_the_data_is_sent_again(void **state)
{
	for (int acked = 0; acked < 2; acked++) {
		struct pair *p = connected();

		if (acked)
			warm_up(p);
		p->filter = drop_probes_and_first;
		p->count = 1;
		assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_WRITE, 1, 0, 1, 0), 0);
		pair_run_until(p, p->now + 1000 * MS);
		pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
		assert_int_equal(stats(p, 0)->retransmits, 1);
		assert_int_equal(stats(p, 0)->timeouts, 0);
		assert_int_equal(stats(p, 0)->probes, acked ? 5 : 1);
		pair_free(p);
	}
}

/* Where the probed loss is followed by another one. */
static void each_probe_is_a_new_question(void **state)
{
	struct pair *p = connected();

	warm_up(p);
	p->filter = drop_counted;
	p->count = 1;
	assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_WRITE, 1, 0, 1, 0), 0);
	for (unsigned i = 0; i < 3; i++) {
		p->count = 1;
		pair_run(p);
		p->now = roci_engine_deadline(p->side[0].e);
		roci_engine_timers(p->side[0].e, p->now);
	}
	pair_run_until(p, p->now + 1000 * MS);
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	assert_int_equal(stats(p, 0)->timeouts, 0);
	pair_free(p);
}

/* Without a probe, an acknowledgement that says nothing new means nothing. */
static void an_old_acknowledgement_is_no_answer(void **state)
{
	struct pair *p = connected();
	struct roci_qp_attr attr;
	struct roci_qp_cap cap;
	struct roci_rx rx = {.hop_limit = 64};

	warm_up(p);
	roci_qp_query(p->side[0].qp, &attr, &cap);
	rx.pkt = (struct roci_packet){.op = roci_opcode_info(ROCI_OP_ACKNOWLEDGE),
				      .opcode = ROCI_OP_ACKNOWLEDGE,
				      .pkey = ROCI_PKEY_DEFAULT,
				      .dest_qpn = 100,
				      .psn = attr.sq_psn,
				      .syndrome = ROCI_AETH_ACK};
	memcpy(rx.sgid, attr.av.dgid, 16);
	memcpy(rx.dgid, attr.av.sgid, 16);
	assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_WRITE, 1, 0, 1, 0), 0);
	pair_turn(p, 0);
	roci_engine_rx(p->side[0].e, p->now, &rx);
	pair_run(p);
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	assert_int_equal(stats(p, 0)->retransmits, 0);
	assert_int_equal(stats(p, 0)->rx_duplicate, 1);
	pair_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_late_peer_costs_no_retransmission),
		cmocka_unit_test(late_responses_cost_no_retransmission),
		cmocka_unit_test(a_lost_tail_is_sent_again_after_one_probe),
		cmocka_unit_test(lost_responses_are_asked_for_again),
		cmocka_unit_test(without_answers_the_data_is_sent_again),
		cmocka_unit_test(each_probe_is_a_new_question),
		cmocka_unit_test(an_old_acknowledgement_is_no_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
