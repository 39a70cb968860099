/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers about packets in the middle of those that are outstanding: who guesses a PSN hits there, and a peer seldom.
 */
#include "pair.h"

#include <string.h>

#include "engine/far_answer.h"
#include "engine/qp.h"

#define MS  UINT64_C(1000000)
#define LEN 60000 /* bytes of a request */
#define ALL 10    /* requests: some 2,300 packets */

/* ---- the object ---- */

static void the_oldest_and_the_newest_are_near(void **state)
{
	struct roci_send_window w = {.una = 0xfffff0, .next = 1000, .max = 1000};
	unsigned near = 0;

	for (uint32_t i = 0; i < 1016; i++)
		near += roci_answer_is_near(&w, roci_psn_add(w.una, i));
	assert_int_equal(near, ROCI_ANSWER_OLDEST + ROCI_ANSWER_NEWEST);
	assert_true(near <= 256);
	assert_true(roci_answer_is_near(&w, w.una));
	assert_true(roci_answer_is_near(&w, w.max - 1));
}

static void patience_needs_equal_answers(void **state)
{
	struct roci_far_answer f = {0};

	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 1; i < ROCI_ANSWER_PATIENCE; i++)
			assert_false(roci_far_answer_counts(&f, 7, 8192));
		assert_false(roci_far_answer_counts(&f, 8, 8192));
		for (unsigned i = 1; i < ROCI_ANSWER_PATIENCE; i++)
			assert_false(roci_far_answer_counts(&f, 7, 8192));
		assert_true(roci_far_answer_counts(&f, 7, 8192));
	}
}

/* The share of all PSNs that are outstanding, and how often one must be hit: never cheaper than with 8,192. */
static void patience_grows_with_what_is_outstanding(void **state)
{
	for (uint32_t outstanding = 1; outstanding < 1u << 22; outstanding += 1 + outstanding / 3) {
		struct roci_far_answer f = {0};
		uint32_t count = 1;

		while (!roci_far_answer_counts(&f, 7, outstanding))
			count++;
		assert_true(count >= ROCI_ANSWER_PATIENCE);
		assert_true((uint64_t)count * 8192 >= (uint64_t)ROCI_ANSWER_PATIENCE * outstanding);
	}
}

/* A NAK is not repeated. */
static void what_was_not_believed_is_asked_about(void **state)
{
	struct roci_far_answer f = {0};

	assert_false(roci_far_answer_reached(&f, 0));
	roci_far_answer_counts(&f, 0xffffff, 8192);
	assert_false(roci_far_answer_reached(&f, 0xfffff0));
	assert_true(roci_far_answer_reached(&f, 0xffffff));
	assert_false(roci_far_answer_reached(&f, 0xffffff)); /* once */
	roci_far_answer_counts(&f, 5, 8192);
	assert_true(roci_far_answer_reached(&f, 6));
	roci_far_answer_counts(&f, 5, 8192);
	assert_false(roci_far_answer_reached(&f, 7));
	assert_false(roci_far_answer_reached(&f, 5));
}

static void there_is_one_question_in_a_while(void **state)
{
	struct roci_far_answer f = {.count = 1};

	assert_int_equal(roci_far_answer_probes(&f, 1000 * MS, 10 * MS), 1);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(roci_far_answer_probes(&f, 1000 * MS + i * MS, 10 * MS), 0);
	f.count = 2;
	assert_int_equal(roci_far_answer_probes(&f, 1005 * MS, 10 * MS), ROCI_ANSWER_PATIENCE);
	assert_int_equal(roci_far_answer_probes(&f, 1005 * MS, 0), 0);
	assert_int_equal(roci_far_answer_probes(&f, 1006 * MS, 0), ROCI_ANSWER_PATIENCE);
}

/* ---- peers that answer late ---- */

/* A connection whose round trip is known, with a window for ALL requests. */
static struct pair *make(void)
{
	struct pair_options o = pair_defaults();
	struct pair *p = pair_create(&o);

	assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_WRITE, 99, 0, 64, 0), 0);
	assert_true(pair_turn(p, 0));
	p->now += MS / 10;
	pair_run(p);
	pair_expect(p, 0, 99, ROCI_WC_SUCCESS);
	p->side[0].qp->path->cwnd = 2u << 20;
	return p;
}

static const struct roci_engine_stats *stats(const struct pair *p, int s)
{
	return roci_engine_stats(p->side[s].e);
}

static void send_all(struct pair *p, enum roci_wr_opcode op)
{
	for (uint64_t i = 0; i < ALL; i++)
		assert_int_equal(pair_send(p, 0, op, i, 0, LEN, 0), 0);
	while (pair_turn(p, 0)) /* side 1 hears all before it says anything */
		;
}

/* It says all at once, in steps. */
static void a_late_peer_costs_nothing(void **state)
{
	struct pair *p = make();

	send_all(p, ROCI_WR_RDMA_WRITE);
	pair_run(p);
	for (uint64_t i = 0; i < ALL; i++)
		pair_expect(p, 0, i, ROCI_WC_SUCCESS);
	assert_int_equal(stats(p, 0)->rx_far, 0);
	assert_int_equal(stats(p, 0)->retransmits, 0);
	assert_int_equal(p->sent[0], 1 + ALL * ((LEN + PAIR_MTU - 1) / PAIR_MTU)); /* no probe */
	pair_free(p);
}

/* The receives are used up after 9 messages. */
static void a_late_rnr_nak_is_heard(void **state)
{
	struct pair *p = make();

	for (uint64_t i = 0; i + 1 < ALL; i++)
		pair_recv(p, 1, i, 0, LEN);
	send_all(p, ROCI_WR_SEND);
	pair_run(p);
	for (uint64_t i = 0; i + 1 < ALL; i++)
		pair_expect(p, 0, i, ROCI_WC_SUCCESS);
	pair_expect_nothing(p, 0);
	assert_int_equal(stats(p, 0)->rnr_received, 1);
	assert_int_equal(stats(p, 0)->rx_far, 0);
	pair_free(p);
}

/* ---- answers that are lost ---- */

/* Drops the first p->count packets of side 1. */
static bool drop_answers(struct pair *p, int from, const struct roci_packet *pkt)
{
	return from != 1 || !p->count || !p->count--;
}

/* The peer lacks one packet in the middle; and the first answers are lost. */
static bool drop_one_and_answers(struct pair *p, int from, const struct roci_packet *pkt)
{
	if (from == 0)
		return p->sent[0] != 1 + 1500;
	return drop_answers(p, from, pkt);
}

/* Without a wait: one question is enough, and the answer comes in steps. */
static void steps_that_were_lost_come_again(void **state)
{
	struct pair *p = make();

	p->filter = drop_one_and_answers;
	p->count = 12;
	send_all(p, ROCI_WR_RDMA_WRITE);
	pair_run(p);
	assert_int_equal(stats(p, 0)->probes, 2); /* what has arrived, and whether the next packet is lost */
	for (uint64_t i = 0; i < ALL; i++)
		pair_expect(p, 0, i, ROCI_WC_SUCCESS);
	assert_true(stats(p, 0)->rx_far > 0);
	assert_int_equal(stats(p, 0)->timeouts, 0);
	pair_free(p);
}

/* A fatal NAK in the middle of all, behind `lost` steps that are lost. Message 7 is longer than its receive. */
static struct pair *refuse_one(unsigned lost)
{
	struct pair *p = make();

	for (uint64_t i = 0; i < ALL; i++)
		pair_recv(p, 1, i, 0, i == 7 ? 1 : LEN);
	p->filter = drop_answers;
	p->count = lost;
	send_all(p, ROCI_WR_SEND);
	pair_run_until(p, p->now + 600000 * MS);
	return p;
}

/* It is sent once. Three lost steps leave it near; behind more it is as if it were lost, too. */
static void a_fatal_nak_is_heard_or_counts_as_lost(void **state)
{
	unsigned steps = (7 * ((LEN + PAIR_MTU - 1) / PAIR_MTU)) / ROCI_ACK_STEP;
	struct pair *p = refuse_one(3);

	for (uint64_t i = 0; i < 7; i++)
		pair_expect(p, 0, i, ROCI_WC_SUCCESS);
	pair_expect(p, 0, 7, ROCI_WC_REM_INV_REQ_ERR);
	pair_free(p);
	p = refuse_one(steps);
	pair_expect(p, 0, 0, ROCI_WC_RETRY_EXC_ERR);
	assert_int_equal(stats(p, 0)->rx_far, 1);
	pair_free(p);
}

/* Where only the newest answer comes through, nothing is missing. */
static void the_newest_answer_is_enough(void **state)
{
	struct pair *p = make();

	p->filter = drop_answers;
	p->count = (ALL * ((LEN + PAIR_MTU - 1) / PAIR_MTU) - 1) / ROCI_ACK_STEP;
	send_all(p, ROCI_WR_RDMA_WRITE);
	pair_run(p);
	assert_int_equal(p->count, 0);
	for (uint64_t i = 0; i < ALL; i++)
		pair_expect(p, 0, i, ROCI_WC_SUCCESS);
	assert_int_equal(stats(p, 0)->rx_far, 0);
	assert_int_equal(stats(p, 0)->retransmits, 0);
	pair_free(p);
}

/* Peers without steps, as other implementations are: they name only the newest PSN that they have executed, and keep
 * nothing that came early. */
static bool names_the_newest(struct pair *p, const struct roci_packet *pkt)
{
	roci_reorder_clear(&p->side[1].e->reorder, &p->side[1].qp->resp.early);
	return roci_psn_add(pkt->psn, pkt->syndrome & ROCI_AETH_NAK ? 0 : 1) == p->side[1].qp->resp.epsn;
}

/* This one answers many duplicates at once. */
static bool one_answer_of_a_turn(struct pair *p, int from, const struct roci_packet *pkt)
{
	if (from == 0)
		return p->sent[0] != 1 + 1500;
	if (!names_the_newest(p, pkt))
		return false;
	p->now += MS / 10;
	return true;
}

static void answer(struct pair *p, uint32_t psn)
{
	const struct roci_qp *qp = p->side[0].qp;
	struct roci_rx rx = {.src_port = qp->peer.port, .hop_limit = 64};

	rx.pkt = (struct roci_packet){.op = roci_opcode_info(ROCI_OP_ACKNOWLEDGE),
				      .opcode = ROCI_OP_ACKNOWLEDGE,
				      .pkey = ROCI_PKEY_DEFAULT,
				      .dest_qpn = qp->qpn,
				      .psn = psn,
				      .syndrome = ROCI_AETH_ACK | ROCI_AETH_UNLIMITED_CREDITS};
	memcpy(rx.sgid, qp->attr.av.dgid, 16);
	memcpy(rx.dgid, qp->attr.av.sgid, 16);
	roci_engine_rx(p->side[0].e, p->now, &rx);
}

/* This one answers each duplicate, as Soft-RoCE does. */
static bool an_answer_to_each(struct pair *p, int from, const struct roci_packet *pkt)
{
	uint32_t epsn = p->side[1].qp->resp.epsn;

	if (from == 1)
		return names_the_newest(p, pkt);
	if (roci_psn_diff(pkt->psn, epsn) >= 0 || roci_psn_diff(pkt->psn, p->side[0].qp->req.window.una) >= 0)
		return p->sent[0] != 1 + 1500;
	answer(p, roci_psn_add(epsn, ROCI_PSN_MASK));
	return false;
}

static void a_peer_without_steps_is_understood(void **state)
{
	bool (*const peers[])(struct pair *, int, const struct roci_packet *) = {one_answer_of_a_turn,
										 an_answer_to_each};

	for (unsigned peer = 0; peer < 2; peer++) {
		struct pair *p = make();
		uint64_t start = p->now;

		p->filter = peers[peer];
		send_all(p, ROCI_WR_RDMA_WRITE);
		pair_run_until(p, p->now + 1000 * MS);
		for (uint64_t i = 0; i < ALL; i++)
			pair_expect(p, 0, i, ROCI_WC_SUCCESS);
		assert_true(stats(p, 0)->rx_far > 0);
		assert_int_equal(stats(p, 0)->timeouts, 0);
		if (peer == 1)
			assert_in_range(p->now - start, 0, 20 * MS); /* without a wait but for a lost packet */
		pair_free(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_oldest_and_the_newest_are_near),
		cmocka_unit_test(patience_needs_equal_answers),
		cmocka_unit_test(patience_grows_with_what_is_outstanding),
		cmocka_unit_test(what_was_not_believed_is_asked_about),
		cmocka_unit_test(there_is_one_question_in_a_while),
		cmocka_unit_test(a_late_peer_costs_nothing),
		cmocka_unit_test(a_late_rnr_nak_is_heard),
		cmocka_unit_test(steps_that_were_lost_come_again),
		cmocka_unit_test(a_fatal_nak_is_heard_or_counts_as_lost),
		cmocka_unit_test(the_newest_answer_is_enough),
		cmocka_unit_test(a_peer_without_steps_is_understood),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
