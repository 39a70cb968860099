/* SPDX-License-Identifier: BSD-2-Clause */
/* What comes where nobody expects it: answers of the wrong kind, twice, or too late, and requests from long ago. */
#include "pair.h"

#include <string.h>

#include "engine/qp.h"
#include "engine/ranges.h"
#include "engine/responder.h"

#define MS UINT64_C(1000000)

static struct pair *make(void)
{
	struct pair_options o = pair_defaults();

	return pair_create(&o);
}

/* What a peer sends, or somebody who knows as much. */
static void inject(struct pair *p, int to, uint8_t opcode, uint32_t psn, void *payload, uint32_t len)
{
	pair_inject(p, to,
		    (struct roci_packet){.opcode = opcode,
					 .psn = psn,
					 .syndrome = ROCI_AETH_ACK | ROCI_AETH_UNLIMITED_CREDITS,
					 .payload = payload,
					 .payload_len = len});
}

static bool drop_all(struct pair *p, int from, const struct roci_packet *pkt)
{
	return false;
}

/* It has as many bytes as the SEND, whose memory it would be placed in. */
static void a_read_response_to_a_send_is_refused(void **state)
{
	struct pair *p = make();
	uint8_t payload[32];

	memset(payload, 0x5a, sizeof(payload));
	p->filter = drop_all;
	pair_send(p, 0, ROCI_WR_SEND, 1, 0, sizeof(payload), 0);
	pair_run(p);
	inject(p, 0, ROCI_OP_READ_RESPONSE_ONLY, p->side[0].qp->req.window.una, payload, sizeof(payload));
	assert_int_equal(roci_engine_stats(p->side[0].e)->rx_malformed, 1);
	assert_int_equal(p->side[0].memory[0], 0);
	pair_expect_nothing(p, 0);
	pair_free(p);
}

static bool deregister_before_the_answer(struct pair *p, int from, const struct roci_packet *pkt)
{
	if (pkt->op->kind == ROCI_KIND_ATOMIC_ACK)
		assert_int_equal(roci_mr_destroy(p->side[0].mr), 0);
	return true;
}

static void an_atomic_whose_memory_is_gone_fails(void **state)
{
	struct pair *p = make();

	p->filter = deregister_before_the_answer;
	pair_send(p, 0, ROCI_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 8, 8000);
	pair_run(p);
	pair_expect(p, 0, 1, ROCI_WC_LOC_PROT_ERR);
	pair_free(p);
}

static void an_answer_after_an_error_is_dropped(void **state)
{
	struct roci_qp_attr attr = {.state = ROCI_QPS_ERR};
	struct pair *p = make();

	pair_send(p, 0, ROCI_WR_RDMA_WRITE, 0, 0, 10, 0); /* its answer shows the peer's port */
	pair_run(p);
	pair_expect(p, 0, 0, ROCI_WC_SUCCESS);
	p->filter = drop_all;
	pair_send(p, 0, ROCI_WR_SEND, 1, 0, 10, 0);
	pair_run(p);
	assert_int_equal(roci_qp_modify(p->side[0].qp, p->now, &attr, ROCI_QP_STATE), 0);
	pair_expect(p, 0, 1, ROCI_WC_WR_FLUSH_ERR);
	inject(p, 0, ROCI_OP_ACKNOWLEDGE, p->side[0].qp->req.window.una, NULL, 0);
	assert_int_equal(roci_engine_stats(p->side[0].e)->rx_wrong_state, 1);
	pair_expect_nothing(p, 0);
	pair_free(p);
}

static bool rnr_nak_twice(struct pair *p, int from, const struct roci_packet *pkt)
{
	if (from == 1 && (pkt->syndrome & ROCI_AETH_TYPE_MASK) == ROCI_AETH_RNR_NAK && !p->count++) {
		struct roci_rx rx = {.pkt = *pkt, .src_port = p->side[0].qp->peer.port};

		memcpy(rx.sgid, p->side[0].qp->attr.av.dgid, 16);
		memcpy(rx.dgid, p->side[0].qp->attr.av.sgid, 16);
		roci_engine_rx(p->side[0].e, p->now, &rx);
	}
	return true;
}

static void an_rnr_nak_that_comes_twice_is_one(void **state)
{
	struct pair_options o = pair_defaults();
	struct pair *p;

	o.rnr_retry = 1;
	o.min_rnr_timer = 14; /* 1 ms */
	p = pair_create(&o);
	p->filter = rnr_nak_twice;
	pair_send(p, 0, ROCI_WR_SEND, 1, 0, 10, 0);
	pair_run(p);
	assert_int_equal(p->count, 1);
	pair_expect_nothing(p, 0);
	pair_recv(p, 1, 7, 0, 100);
	pair_run_until(p, p->now + 10 * MS);
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	pair_expect(p, 1, 7, ROCI_WC_SUCCESS);
	pair_free(p);
}

static bool drop_read_responses(struct pair *p, int from, const struct roci_packet *pkt)
{
	return pkt->op->kind != ROCI_KIND_READ_RESPONSE;
}

/* IBTA 9.7.5.1.2. It has no data to wait for. */
static void an_empty_read_is_done_by_what_is_behind_it(void **state)
{
	struct pair_options o = pair_defaults();
	struct pair *p;

	o.min_rnr_timer = 14;
	p = pair_create(&o);
	p->filter = drop_read_responses;
	pair_send(p, 0, ROCI_WR_RDMA_READ, 1, 0, 0, 8000);
	pair_send(p, 0, ROCI_WR_SEND, 2, 0, 10, 0);
	pair_run(p); /* an RNR NAK about the SEND */
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	pair_expect_nothing(p, 0);
	pair_recv(p, 1, 7, 0, 100);
	pair_run_until(p, p->now + 10 * MS);
	pair_expect(p, 0, 2, ROCI_WC_SUCCESS);
	pair_send(p, 0, ROCI_WR_RDMA_READ, 3, 0, 0, 8000);
	pair_recv(p, 1, 8, 0, 100);
	pair_send(p, 0, ROCI_WR_SEND, 4, 0, 10, 0);
	p->sent[0] = 0;
	pair_run(p); /* an ACK of the SEND */
	pair_expect(p, 0, 3, ROCI_WC_SUCCESS);
	pair_expect(p, 0, 4, ROCI_WC_SUCCESS);
	assert_int_equal(p->sent[0], 2);
	pair_free(p);
}

static bool gone_for_one_response(struct pair *p, int from, const struct roci_packet *pkt)
{
	p->gone = pkt->op->kind == ROCI_KIND_READ_RESPONSE && !p->count++;
	return true;
}

/* On the local path: its sender took it back meanwhile. */
static void a_response_whose_payload_is_gone_is_lost(void **state)
{
	struct pair_options o = pair_defaults();
	struct pair *p;

	o.local = true;
	p = pair_create(&o);
	memset(p->side[1].memory + 8000, 0x5a, 100);
	p->filter = gone_for_one_response;
	pair_send(p, 0, ROCI_WR_RDMA_READ, 1, 0, 100, 8000);
	pair_run_until(p, p->now + 1000 * MS);
	assert_true(p->count > 1);
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	assert_memory_equal(p->side[0].memory, p->side[1].memory + 8000, 100);
	pair_free(p);
}

static unsigned events(struct roci_engine *e, enum roci_async_type type)
{
	struct roci_event ev;
	unsigned n = 0;

	while (roci_engine_next_event(e, &ev))
		n += ev.kind == ROCI_EV_ASYNC && ev.type == type;
	return n;
}

/* IBTA 11.6.3.3 */
static void the_first_packet_establishes(void **state)
{
	struct pair *p = make();
	struct roci_qp *qp = p->side[1].qp;
	struct roci_qp_attr a = qp->attr;
	uint32_t epsn = qp->resp.epsn;

	a.state = ROCI_QPS_RESET;
	assert_int_equal(roci_qp_modify(qp, p->now, &a, ROCI_QP_STATE), 0);
	a.state = ROCI_QPS_INIT;
	assert_int_equal(roci_qp_modify(qp, p->now, &a,
					ROCI_QP_STATE | ROCI_QP_PKEY_INDEX | ROCI_QP_PORT | ROCI_QP_ACCESS_FLAGS),
			 0);
	a.state = ROCI_QPS_RTR;
	a.rq_psn = epsn;
	assert_int_equal(roci_qp_modify(qp, p->now, &a,
					ROCI_QP_STATE | ROCI_QP_AV | ROCI_QP_PATH_MTU | ROCI_QP_DEST_QPN |
						ROCI_QP_RQ_PSN | ROCI_QP_MAX_DEST_RD_ATOMIC | ROCI_QP_MIN_RNR_TIMER),
			 0);
	pair_send(p, 0, ROCI_WR_RDMA_WRITE, 1, 0, 10, 0);
	pair_run(p);
	assert_int_equal(events(p->side[1].e, ROCI_EVENT_COMM_EST), 1);
	pair_send(p, 0, ROCI_WR_RDMA_WRITE, 2, 0, 10, 0);
	pair_run(p);
	assert_int_equal(events(p->side[1].e, ROCI_EVENT_COMM_EST), 0);
	pair_free(p);
}

static struct pair *make_uc(void)
{
	struct pair_options o = pair_defaults();

	o.type = ROCI_QPT_UC;
	return pair_create(&o);
}

static void an_unreliable_packet_in_err_is_dropped(void **state)
{
	struct roci_qp_attr attr = {.state = ROCI_QPS_ERR};
	struct pair *p = make_uc();

	pair_send(p, 0, ROCI_WR_RDMA_WRITE, 1, 0, 10, 0);
	pair_run(p);
	assert_int_equal(roci_qp_modify(p->side[1].qp, p->now, &attr, ROCI_QP_STATE), 0);
	memset(p->side[0].memory, 0x5a, 10);
	pair_send(p, 0, ROCI_WR_RDMA_WRITE, 2, 0, 10, 8000);
	pair_run(p);
	assert_int_equal(p->side[1].memory[8000], 0);
	assert_int_equal(roci_engine_stats(p->side[1].e)->rx_wrong_state, 1);
	pair_free(p);
}

static bool drop_second(struct pair *p, int from, const struct roci_packet *pkt)
{
	return from == 1 || ++p->count != 2;
}

/* A gap is one gap, and a receive that is half full is filled by the next message, whatever fails in between. */
static void an_unreliable_gap_counts_once(void **state)
{
	struct pair *p = make_uc();
	const struct roci_engine_stats *stats = roci_engine_stats(p->side[1].e);

	p->filter = drop_second;
	pair_recv(p, 1, 7, 30000, 2000);
	pair_send(p, 0, ROCI_WR_SEND, 1, 0, 5 * PAIR_MTU, 0);
	pair_run(p);
	assert_int_equal(stats->rx_out_of_order, 1);
	p->side[1].key ^= 0x5a00;
	pair_send(p, 0, ROCI_WR_RDMA_WRITE, 2, 0, 10, 0);
	p->side[1].key ^= 0x5a00;
	pair_run(p);
	assert_int_equal(stats->rx_no_wqe, 0);
	pair_expect_nothing(p, 1);
	pair_send(p, 0, ROCI_WR_SEND, 3, 0, 10, 0);
	pair_run(p);
	pair_expect(p, 1, 7, ROCI_WC_SUCCESS);
	pair_send(p, 0, ROCI_WR_SEND, 4, 0, 10, 0);
	pair_run(p);
	assert_int_equal(stats->rx_no_wqe, 1);
	assert_int_equal(stats->rx_out_of_order, 1);
	pair_free(p);
}

static void an_unreliable_packet_is_answered_where_it_asks(void **state)
{
	struct pair *p = make_uc();
	uint8_t payload[8] = {0};

	pair_recv(p, 1, 7, 0, 100);
	inject(p, 1, ROCI_TRANSPORT_UC | ROCI_OP_SEND_ONLY, p->side[1].qp->resp.epsn, payload, sizeof(payload));
	pair_expect(p, 1, 7, ROCI_WC_SUCCESS);
	assert_false(pair_turn(p, 1));
	pair_free(p);
}

static bool drop_first(struct pair *p, int from, const struct roci_packet *pkt)
{
	return from == 1 || p->count++ > 0;
}

/* Packets behind a gap cause one NAK, and no ACK before the gap is filled. */
static void a_gap_is_reported_once(void **state)
{
	struct pair *p = make();

	p->filter = drop_first;
	for (uint64_t id = 1; id <= 4; id++)
		pair_send(p, 0, ROCI_WR_RDMA_WRITE, id, 0, 10, 8000);
	while (pair_turn(p, 0) && p->sent[0] < 4)
		;
	while (pair_turn(p, 1))
		;
	assert_int_equal(p->sent[1], 1);
	assert_int_equal(roci_engine_stats(p->side[1].e)->naks_sent, 1);
	pair_run(p);
	assert_int_equal(roci_engine_stats(p->side[1].e)->naks_sent, 1);
	for (uint64_t id = 1; id <= 4; id++)
		pair_expect(p, 0, id, ROCI_WC_SUCCESS);
	pair_free(p);
}

/* A QP that the program has moved to ERR answers nothing more. */
static void no_response_leaves_in_err(void **state)
{
	struct roci_qp_attr attr = {.state = ROCI_QPS_ERR};
	struct pair *p = make();

	pair_send(p, 0, ROCI_WR_RDMA_READ, 1, 0, 200 * PAIR_MTU, 0);
	assert_true(pair_turn(p, 0));
	assert_true(pair_turn(p, 1));
	assert_int_equal(roci_qp_modify(p->side[1].qp, p->now, &attr, ROCI_QP_STATE), 0);
	assert_false(pair_turn(p, 1));
	pair_free(p);
}

/* UC: what is older by 4096 packets at most was delayed or doubled; what is older still is of a new start. */
static void an_unreliable_packet_from_the_past_is_dropped(void **state)
{
	struct pair_options o = pair_defaults();
	uint8_t payload[8] = {0};
	struct pair *p;
	uint32_t epsn;

	o.type = ROCI_QPT_UC;
	p = pair_create(&o);
	pair_recv(p, 1, 7, 0, 100);
	pair_recv(p, 1, 8, 0, 100);
	pair_send(p, 0, ROCI_WR_SEND, 1, 0, 10, 0);
	pair_run(p);
	pair_expect(p, 1, 7, ROCI_WC_SUCCESS);
	epsn = p->side[1].qp->resp.epsn;
	inject(p, 1, ROCI_TRANSPORT_UC | ROCI_OP_SEND_ONLY, epsn - 4096, payload, sizeof(payload));
	assert_int_equal(roci_engine_stats(p->side[1].e)->rx_duplicate, 1);
	pair_expect_nothing(p, 1);
	inject(p, 1, ROCI_TRANSPORT_UC | ROCI_OP_SEND_ONLY, epsn - 4097, payload, sizeof(payload));
	pair_expect(p, 1, 8, ROCI_WC_SUCCESS);
	pair_free(p);
}

static bool is_taken(struct pair *p, uint32_t first_psn, uint32_t ago)
{
	const struct roci_qp *qp = p->side[1].qp;
	uint64_t before = roci_engine_stats(p->side[1].e)->rx_wrong_source;
	uint8_t payload[ROCI_OFFER_BYTES];

	roci_offer_build(&(struct roci_offer){first_psn, 0, 7, 0}, payload);
	inject(p, 1, ROCI_OPCODE_OFFER, qp->resp.epsn - ago, payload, sizeof(payload));
	return roci_engine_stats(p->side[1].e)->rx_wrong_source == before;
}

/* An OFFER names a packet that was received lately, and the first of all: who is off the path knows neither. */
static void an_offer_must_name_a_recent_packet(void **state)
{
	struct pair *p = make();
	uint32_t first = p->side[1].qp->attr.rq_psn;

	pair_send(p, 0, ROCI_WR_RDMA_WRITE, 1, 0, 10, 0);
	pair_run(p);
	assert_false(is_taken(p, first + 1, 1));
	assert_false(is_taken(p, first, 0));
	assert_false(is_taken(p, first, ROCI_OFFER_WINDOW + 1));
	assert_true(is_taken(p, first, 1));
	assert_true(is_taken(p, first, ROCI_OFFER_WINDOW));
	pair_free(p);
}

/* The receive says what was wrong, so no event does (IBTA 11.6.2). */
static void a_receive_that_says_why_is_enough(void **state)
{
	struct pair *p = make();

	p->side[1].key ^= 0x5a00;
	pair_recv(p, 1, 7, 0, 100);
	pair_send(p, 0, ROCI_WR_RDMA_WRITE_WITH_IMM, 1, 0, 100, 0);
	pair_run(p);
	pair_expect(p, 1, 7, ROCI_WC_LOC_ACCESS_ERR);
	for (unsigned type = 0; type < 32; type++) {
		struct roci_event ev;

		if (roci_engine_next_event(p->side[1].e, &ev))
			assert_int_equal(ev.kind, ROCI_EV_COMPLETION);
	}
	pair_free(p);
}

/* The NAK says that the first of two is done and the second is not: then nothing is awaited any more. */
static void no_timer_runs_after_a_nak_ended_the_connection(void **state)
{
	struct pair *p = make();

	pair_send(p, 0, ROCI_WR_RDMA_WRITE, 0, 0, 10, 0); /* its answer shows the peer's port */
	pair_run(p);
	pair_expect(p, 0, 0, ROCI_WC_SUCCESS);
	p->filter = drop_all;
	for (uint64_t i = 1; i <= 3; i++)
		pair_send(p, 0, ROCI_WR_RDMA_WRITE, i, 0, 10, 0);
	pair_run(p);
	pair_inject(p, 0,
		    (struct roci_packet){.opcode = ROCI_OP_ACKNOWLEDGE,
					 .psn = p->side[0].qp->req.window.una + 1,
					 .syndrome = ROCI_AETH_NAK | ROCI_NAK_REMOTE_ACCESS});
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	pair_expect(p, 0, 2, ROCI_WC_REM_ACCESS_ERR);
	pair_expect(p, 0, 3, ROCI_WC_WR_FLUSH_ERR);
	assert_int_equal(roci_engine_deadline(p->side[0].e), ROCI_NEVER);
	pair_free(p);
}

/* What comes behind a gap that was reported is kept, and not answered. */
static void behind_a_gap_there_is_no_answer(void **state)
{
	struct pair *p = make();
	const struct roci_qp *qp = p->side[1].qp;

	pair_send(p, 0, ROCI_WR_RDMA_WRITE, 1, 0, 10, 0);
	pair_run(p);
	inject(p, 1, ROCI_OP_SEND_ONLY, qp->resp.epsn + 1, NULL, 0);
	assert_true(pair_turn(p, 1)); /* the NAK */
	inject(p, 1, ROCI_OP_SEND_ONLY, qp->resp.epsn + 2, NULL, 0);
	assert_int_equal(qp->resp.early.count, 2);
	assert_false(pair_turn(p, 1));
	pair_free(p);
}

/* Others shall have their turn: a long answer goes in pieces of so many packets as the engine gives it. */
static void a_long_response_keeps_to_its_share(void **state)
{
	static struct roci_tx_batch batch;
	struct pair *p = make();
	struct roci_qp *qp = p->side[1].qp;

	pair_send(p, 0, ROCI_WR_RDMA_READ, 1, 0, 20 * PAIR_MTU, 0);
	assert_true(pair_turn(p, 0)); /* the request */
	batch.count = batch.span_count = 0;
	assert_true(roci_responder_fill(qp, &batch, 4));
	assert_int_equal(batch.count, 4);
	assert_true(roci_responder_fill(qp, &batch, 4));
	assert_int_equal(batch.count, 8);
	batch.count = ROCI_TX_BATCH - 2;
	assert_true(roci_responder_fill(qp, &batch, 4));
	assert_int_equal(batch.count, ROCI_TX_BATCH);
	pair_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_read_response_to_a_send_is_refused),
		cmocka_unit_test(an_atomic_whose_memory_is_gone_fails),
		cmocka_unit_test(an_answer_after_an_error_is_dropped),
		cmocka_unit_test(an_rnr_nak_that_comes_twice_is_one),
		cmocka_unit_test(an_empty_read_is_done_by_what_is_behind_it),
		cmocka_unit_test(a_response_whose_payload_is_gone_is_lost),
		cmocka_unit_test(the_first_packet_establishes),
		cmocka_unit_test(an_unreliable_packet_in_err_is_dropped),
		cmocka_unit_test(an_unreliable_gap_counts_once),
		cmocka_unit_test(an_unreliable_packet_is_answered_where_it_asks),
		cmocka_unit_test(a_gap_is_reported_once),
		cmocka_unit_test(no_response_leaves_in_err),
		cmocka_unit_test(an_unreliable_packet_from_the_past_is_dropped),
		cmocka_unit_test(an_offer_must_name_a_recent_packet),
		cmocka_unit_test(a_receive_that_says_why_is_enough),
		cmocka_unit_test(no_timer_runs_after_a_nak_ended_the_connection),
		cmocka_unit_test(behind_a_gap_there_is_no_answer),
		cmocka_unit_test(a_long_response_keeps_to_its_share),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
