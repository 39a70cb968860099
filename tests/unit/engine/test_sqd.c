/* SPDX-License-Identifier: BSD-2-Clause */
/* SQD: what may change when the send queue has drained, and the event (IBTA 10.3.1.5). */
#include "pair.h"

#include <errno.h>
#include <string.h>

#include "engine/qp.h"

static void change(struct pair *p, int s, enum roci_qp_state state, unsigned mask, struct roci_qp_attr attr)
{
	attr.state = state;
	assert_int_equal(roci_qp_modify(p->side[s].qp, p->now, &attr, ROCI_QP_STATE | mask), 0);
}

static void drain(struct pair *p, int s)
{
	change(p, s, ROCI_QPS_SQD, 0, (struct roci_qp_attr){0});
}

static void go_on(struct pair *p, int s)
{
	change(p, s, ROCI_QPS_RTS, 0, (struct roci_qp_attr){0});
}

static void more_reads_may_be_outstanding(void **state)
{
	struct pair_options o = pair_defaults();
	const struct roci_qp_attr four = {.max_rd_atomic = 4, .max_dest_rd_atomic = 4};
	struct pair *p;

	o.max_rd_atomic = 1;
	p = pair_create(&o);
	for (int s = 0; s < 2; s++) {
		drain(p, s);
		change(p, s, ROCI_QPS_SQD, ROCI_QP_MAX_QP_RD_ATOMIC | ROCI_QP_MAX_DEST_RD_ATOMIC, four);
		go_on(p, s);
	}
	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_READ, i, 0, 2 * PAIR_MTU, 8000), 0);
	assert_true(pair_turn(p, 0));
	assert_int_equal(p->sent[0], 4);
	pair_run(p);
	for (uint64_t i = 0; i < 4; i++)
		pair_expect(p, 0, i, ROCI_WC_SUCCESS);
	pair_free(p);
}

static bool lose_last_answer(struct pair *p, int from, const struct roci_packet *pkt)
{
	return from == 0 || ++p->count != 4;
}

/* The newest responses are kept for a peer that asks for them again, as many as there is room for. */
static void answers_survive_fewer_places(void **state)
{
	struct pair_options o = pair_defaults();
	struct roci_qp_attr few = {.max_dest_rd_atomic = 1};
	uint64_t value = 100;
	struct pair *p = pair_create(&o);

	memcpy(p->side[1].memory + 64, &value, 8);
	p->filter = lose_last_answer;
	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(pair_send(p, 0, ROCI_WR_ATOMIC_FETCH_AND_ADD, i, 128 + 8 * (uint32_t)i, 8, 64), 0);
	assert_true(pair_turn(p, 0));
	drain(p, 1);
	few.state = ROCI_QPS_SQD;
	assert_int_equal(roci_qp_modify(p->side[1].qp, p->now, &few, ROCI_QP_STATE | ROCI_QP_MAX_DEST_RD_ATOMIC),
			 -EBUSY);
	assert_true(pair_turn(p, 1));
	change(p, 1, ROCI_QPS_SQD, ROCI_QP_MAX_DEST_RD_ATOMIC, few);
	pair_run_until(p, p->now + 1000000000);
	for (uint64_t i = 0; i < 4; i++) {
		pair_expect(p, 0, i, ROCI_WC_SUCCESS);
		memcpy(&value, p->side[0].memory + 128 + 8 * i, 8);
		assert_int_equal(value, 100 + 5 * i);
	}
	memcpy(&value, p->side[1].memory + 64, 8);
	assert_int_equal(value, 120);
	pair_free(p);
}

static bool lose_all(struct pair *p, int from, const struct roci_packet *pkt)
{
	return false;
}

static void nothing_stays_on_the_books_of_another_path(void **state)
{
	struct pair_options o = pair_defaults();
	struct roci_qp_attr attr;
	struct roci_qp_cap cap;
	struct roci_qp *qp;
	struct pair *p;

	o.type = ROCI_QPT_UC;
	p = pair_create(&o);
	p->filter = lose_all;
	qp = p->side[0].qp;
	assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_WRITE, 1, 0, PAIR_MTU, 0), 0);
	assert_true(pair_turn(p, 0));
	assert_true(qp->path->flight > 0);
	roci_qp_query(qp, &attr, &cap);
	attr.av.dgid[15] = 77;
	drain(p, 0);
	change(p, 0, ROCI_QPS_SQD, ROCI_QP_AV, attr);
	assert_int_equal(qp->path->flight, 0);
	go_on(p, 0);
	pair_run_until(p, p->now + 1000000000);
	assert_int_equal(qp->path->flight, 0);
	pair_free(p);
}

/* The kernel fragments what does not fit. */
static void another_path_may_be_narrower(void **state)
{
	struct pair_options o = pair_defaults();
	struct pair *p = pair_create(&o);
	struct roci_qp_attr attr;
	struct roci_qp_cap cap;

	roci_qp_query(p->side[0].qp, &attr, &cap);
	drain(p, 0);
	attr.state = ROCI_QPS_SQD;
	attr.av.mtu = PAIR_MTU / 2;
	assert_int_equal(roci_qp_modify(p->side[0].qp, p->now, &attr, ROCI_QP_STATE | ROCI_QP_AV), 0);
	pair_free(p);
}

static unsigned drained_events(struct pair *p)
{
	struct roci_event ev;
	unsigned n = 0;

	while (roci_engine_next_event(p->side[0].e, &ev))
		n += ev.kind == ROCI_EV_ASYNC && ev.type == ROCI_EVENT_SQ_DRAINED;
	return n;
}

static void drained_is_told_to_who_asks(void **state)
{
	const struct roci_qp_attr tell = {.en_sqd_async_notify = 1};
	struct pair_options o = pair_defaults();
	struct pair *p = pair_create(&o);

	change(p, 0, ROCI_QPS_SQD, ROCI_QP_EN_SQD_ASYNC_NOTIFY, tell);
	assert_int_equal(drained_events(p), 1);
	go_on(p, 0);
	drain(p, 0);
	assert_int_equal(drained_events(p), 0);
	go_on(p, 0);
	assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_WRITE, 1, 0, 8, 0), 0);
	assert_true(pair_turn(p, 0));
	change(p, 0, ROCI_QPS_SQD, ROCI_QP_EN_SQD_ASYNC_NOTIFY, tell);
	assert_int_equal(drained_events(p), 0);
	pair_run(p);
	assert_int_equal(drained_events(p), 1);
	pair_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(more_reads_may_be_outstanding),
		cmocka_unit_test(answers_survive_fewer_places),
		cmocka_unit_test(nothing_stays_on_the_books_of_another_path),
		cmocka_unit_test(another_path_may_be_narrower),
		cmocka_unit_test(drained_is_told_to_who_asks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
