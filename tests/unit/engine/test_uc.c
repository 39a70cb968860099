/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules of the unreliable connection. */
#include "pair.h"

#include <string.h>

#include "engine/path.h"
#include "engine/qp.h"

#define MS UINT64_C(1000000)

static struct pair *make(void)
{
	struct pair_options o = pair_defaults();

	o.type = ROCI_QPT_UC;
	return pair_create(&o);
}

static bool drop_all(struct pair *p, int from, const struct roci_packet *pkt)
{
	return false;
}

static bool drop_third_from_0(struct pair *p, int from, const struct roci_packet *pkt)
{
	return from != 0 || ++p->count != 3;
}

/* IBTA 9.8.2.2: the message with the gap is lost, the next one arrives. */
static void unreliable_connection_skips_a_broken_message(void **state)
{
	struct pair_options o = pair_defaults();
	struct pair *p;

	o.type = ROCI_QPT_UC;
	p = pair_create(&o);
	p->filter = drop_third_from_0;
	memset(p->side[0].memory, 0x5a, 1200);
	pair_recv(p, 1, 5, 30000, 2000);
	pair_send(p, 0, ROCI_WR_SEND, 1, 0, 1000, 0);
	pair_send(p, 0, ROCI_WR_SEND, 2, 0, 1200, 0);
	pair_run(p);
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	pair_expect(p, 0, 2, ROCI_WC_SUCCESS);
	pair_expect(p, 1, 5, ROCI_WC_SUCCESS);
	pair_expect_nothing(p, 1);
	assert_memory_equal(p->side[1].memory + 30000, p->side[0].memory, 1200);
	pair_free(p);
}

/* uc_flow.h: with the peer's answers the sender keeps to the window; without them, to the pace. */
static void unreliable_connection_heeds_advice(void **state)
{
	struct pair_options o = pair_defaults();
	struct pair *p;

	o.type = ROCI_QPT_UC;
	p = pair_create(&o);
	for (int round = 0; round < 3; round++) {
		for (uint64_t i = 0; i < 20; i++)
			assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_WRITE, i, 0, 30000, 0), 0);
		pair_run_until(p, p->now + 4000 * MS);
		for (uint64_t i = 0; i < 20; i++)
			pair_expect(p, 0, i, ROCI_WC_SUCCESS);
		assert_int_equal(roci_engine_deadline(p->side[0].e), ROCI_NEVER);
		assert_true(p->sent[1] > 0);
		p->filter = round == 0 ? drop_all : NULL; /* the peer does not answer, then it does */
	}
	pair_free(p);
}

/* A message of `len` bytes, which must (or must not) arrive. */
static void send_one(struct pair *p, uint32_t len, bool arrives)
{
	pair_send(p, 0, ROCI_WR_RDMA_WRITE_WITH_IMM, 1, 0, len, 8000);
	pair_run(p);
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	if (arrives)
		pair_expect(p, 1, 7, ROCI_WC_SUCCESS);
	pair_expect_nothing(p, 1);
}

/* The next packet of side 0 gets a PSN that is `by` newer than its turn. */
static void move_sender(struct pair *p, int32_t by)
{
	struct roci_send_window *w = &p->side[0].qp->req.window;

	w->next = w->una = roci_psn_add(w->next, (uint32_t)by & ROCI_PSN_MASK);
}

/* IBTA 9.8.2.2: a First or Only begins a new message, whatever its PSN: the sender may have been reset, and has another
 * one. Only the first must be near the PSN that was agreed on. */
static void sender_may_start_anywhere(void **state)
{
	static const int32_t steps[] = {-5000, 5000, -(1 << 22), 1 << 22};
	struct pair *p = make();

	for (uint64_t i = 0; i < 10; i++)
		pair_recv(p, 1, 7, 0, 0);
	move_sender(p, -10);
	send_one(p, 3 * PAIR_MTU, true);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		move_sender(p, steps[i]);
		send_one(p, 3 * PAIR_MTU, true);
	}
	pair_free(p);
}

/* A receiver that was late misses the beginning. Somebody else's packet would be as far off, so it takes a while. */
static void a_sender_that_has_gone_on_is_believed_at_last(void **state)
{
	struct pair *p = make();
	struct roci_cqe cqe;
	unsigned missed = 0;

	pair_recv(p, 1, 7, 0, 0);
	move_sender(p, 100000);
	for (;; missed++) {
		assert_true(missed < 2 * ROCI_PEER_PORT_PATIENCE);
		pair_send(p, 0, ROCI_WR_RDMA_WRITE_WITH_IMM, 1, 0, 10, 8000);
		pair_run_until(p, p->now + 200 * MS);
		pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
		if (roci_cq_poll(p->side[1].cq, &cqe, 1))
			break;
	}
	assert_true(missed >= ROCI_PEER_PORT_PATIENCE - 1);
	pair_free(p);
}

static void what_comes_late_is_passed_over(void **state)
{
	struct pair *p = make();

	pair_recv(p, 1, 7, 0, 0);
	pair_recv(p, 1, 7, 0, 0);
	send_one(p, 3 * PAIR_MTU, true);
	move_sender(p, -3);
	send_one(p, 3 * PAIR_MTU, false);
	send_one(p, 10, true);
	pair_free(p);
}

static struct roci_packet answer;

/* Keeps the last answer of side 1, and drops it. */
static bool keep_answer(struct pair *p, int from, const struct roci_packet *pkt)
{
	if (from == 1)
		answer = *pkt;
	return from == 0;
}

/* What was in flight on the old path is forgotten. A late answer is not about the new path. */
static void an_answer_after_a_change_of_path_counts_nothing(void **state)
{
	struct pair *p = make();
	struct roci_qp *qp = p->side[0].qp;
	struct roci_qp_attr attr = {.state = ROCI_QPS_SQD};
	struct roci_qp_cap cap;
	struct roci_rx rx = {0};
	uint64_t cwnd;

	p->filter = keep_answer;
	pair_send(p, 0, ROCI_WR_RDMA_WRITE, 1, 0, 3 * PAIR_MTU, 8000);
	pair_run(p);
	assert_int_equal(answer.opcode, ROCI_OP_ACKNOWLEDGE);

	assert_int_equal(roci_qp_modify(qp, p->now, &attr, ROCI_QP_STATE), 0);
	roci_qp_query(qp, &attr, &cap);
	attr.av.traffic_class = 4;
	assert_int_equal(roci_qp_modify(qp, p->now, &attr, ROCI_QP_AV), 0);

	cwnd = qp->path->cwnd;
	rx.pkt = answer;
	rx.pkt.psn = pair_defaults().psn; /* of the first packet only */
	rx.src_port = attr.av.peer_port;
	memcpy(rx.sgid, attr.av.dgid, 16);
	memcpy(rx.dgid, attr.av.sgid, 16);
	roci_engine_rx(p->side[0].e, p->now, &rx);
	assert_int_equal(qp->path->cwnd, cwnd);
	pair_free(p);
}

static void transfer(struct pair *p, unsigned rounds)
{
	for (unsigned i = 0; i < rounds; i++) {
		struct roci_cqe cqe;

		assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_WRITE, i, 0, 60000, 0), 0);
		pair_round_trip(p);
		while (roci_cq_poll(p->side[0].cq, &cqe, 1))
			assert_int_equal(cqe.status, ROCI_WC_SUCCESS);
	}
}

static bool drop_some_from_0(struct pair *p, int from, const struct roci_packet *pkt)
{
	return from != 0 || ++p->count % 10;
}

/* A path model needs to know what is lost: nothing of UC is sent again. */
static void a_far_path_hears_what_was_lost(void **state)
{
	struct pair *p = make();
	const struct roci_path *path = p->side[0].qp->path;
	uint64_t bytes;

	transfer(p, 10);
	assert_true(path->far);
	assert_int_equal(path->lost, 0);
	p->filter = drop_some_from_0;
	transfer(p, 10);
	bytes = roci_uc_flow_bytes(PAIR_MTU, p->dropped);
	assert_in_range(path->lost, bytes * 8 / 10, bytes);
	assert_true(path->bbr.burst.lost);
	assert_int_equal(path->bbr.burst.late, 0); /* which packets they were, the answers do not say */
	pair_free(p);
}

/* What was in flight when no answer came did not arrive, as far as anybody knows. */
static void silence_on_a_far_path_delivers_nothing(void **state)
{
	struct pair *p = make();
	const struct roci_path *path = p->side[0].qp->path;
	uint64_t delivered;

	transfer(p, 10);
	assert_true(path->far);
	p->filter = drop_all;
	delivered = path->delivered;
	transfer(p, 20);
	assert_int_equal(path->delivered, delivered);
	p->filter = NULL;
	transfer(p, 20);
	assert_true(path->delivered > delivered);
	pair_free(p);
}

static bool drop_most_from_0(struct pair *p, int from, const struct roci_packet *pkt)
{
	return from != 0 || ++p->count % 10 == 0;
}

/* It is not known yet whether the path is far. */
static void what_is_lost_does_not_open_the_window(void **state)
{
	struct pair *p = make();
	const struct roci_path *path = p->side[0].qp->path;
	uint64_t cwnd;

	transfer(p, 2);
	assert_false(path->far);
	cwnd = path->cwnd;
	p->filter = drop_most_from_0;
	transfer(p, 2);
	assert_true(path->cwnd <= cwnd + roci_uc_flow_bytes(PAIR_MTU, p->count - p->dropped));
	cwnd = path->cwnd;
	p->filter = drop_all;
	transfer(p, 20);
	assert_true(path->cwnd <= cwnd);
	pair_free(p);
}

/* A near path does not change: its window bounds what is in flight, whatever is lost. */
static void a_near_path_hears_nothing(void **state)
{
	struct pair *p = make();
	const struct roci_path *path = p->side[0].qp->path;
	uint64_t cwnd = path->cwnd;

	p->filter = drop_some_from_0;
	for (unsigned i = 0; i < 50; i++) {
		assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_WRITE, i, 0, 60000, 0), 0);
		pair_run_until(p, p->now + 2 * MS);
		pair_expect(p, 0, i, ROCI_WC_SUCCESS);
	}
	assert_false(path->far);
	assert_true(path->cwnd >= cwnd);
	pair_free(p);
}

static void post_much(struct pair *p)
{
	for (uint64_t i = 0; i < 20; i++)
		assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_WRITE, i, 0, 30000, 0), 0);
}

/* Packets of side 0 that its peer does not read yet. */
static unsigned unread(struct pair *p, uint64_t for_ns)
{
	unsigned before = p->sent[0];

	p->filter = drop_all;
	for (uint64_t end = p->now + for_ns; p->now < end; p->now += MS)
		pair_drain(p, 0);
	p->filter = NULL;
	return p->sent[0] - before;
}

static void no_more_is_in_flight_than_the_peers_buffer_takes(void **state)
{
	const uint64_t room = 32 << 10;
	struct pair *p = make();

	roci_engine_receive_room(p->side[1].e, room);
	transfer(p, 1);
	post_much(p);
	assert_in_range(unread(p, 50 * MS), 10, room / PAIR_MTU);
	pair_free(p);
}

/* Its buffer keeps what came before. */
static void a_stopped_peer_gets_a_packet_at_a_time(void **state)
{
	struct pair *p = make();

	pair_send(p, 0, ROCI_WR_RDMA_WRITE, 0, 0, 10, 0);
	pair_run(p);
	pair_expect(p, 0, 0, ROCI_WC_SUCCESS);
	post_much(p);
	unread(p, 90 * MS);
	assert_in_range(unread(p, 1000 * MS), 9, 11);
	pair_run_until(p, p->now + 200 * MS);
	for (uint64_t i = 0; i < 20; i++)
		pair_expect(p, 0, i, ROCI_WC_SUCCESS);
	pair_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unreliable_connection_skips_a_broken_message),
		cmocka_unit_test(unreliable_connection_heeds_advice),
		cmocka_unit_test(sender_may_start_anywhere),
		cmocka_unit_test(a_sender_that_has_gone_on_is_believed_at_last),
		cmocka_unit_test(what_comes_late_is_passed_over),
		cmocka_unit_test(an_answer_after_a_change_of_path_counts_nothing),
		cmocka_unit_test(a_far_path_hears_what_was_lost),
		cmocka_unit_test(silence_on_a_far_path_delivers_nothing),
		cmocka_unit_test(what_is_lost_does_not_open_the_window),
		cmocka_unit_test(a_near_path_hears_nothing),
		cmocka_unit_test(no_more_is_in_flight_than_the_peers_buffer_takes),
		cmocka_unit_test(a_stopped_peer_gets_a_packet_at_a_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
