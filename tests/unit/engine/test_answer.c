/* SPDX-License-Identifier: BSD-2-Clause */
/* A path of 600 ms whose round trip was not measured yet: when its first packets go again. The exchange that made the
 * connection has told how far the peer is. */
#include "pair.h"

#include "engine/path.h"
#include "engine/qp.h"

#define MS         UINT64_C(1000000)
#define ROUND_TRIP (600 * MS)
#define LEN        (4 * PAIR_MTU)

static bool lose_all(struct pair *p, int from, const struct roci_packet *pkt)
{
	return false;
}

/* The timeout of rdma_cm's QPs. */
static struct pair *make(void)
{
	struct pair_options o = pair_defaults();

	o.timeout = 14;
	o.retry_cnt = 7;
	return pair_create(&o);
}

static void answered(struct pair *p, uint64_t ns)
{
	roci_engine_answered(p->side[0].e, p->side[0].qp->qpn, ns);
}

/* Side 0 sends a message, and goes on alone for `ns`. */
static void send_and_wait(struct pair *p, uint64_t ns)
{
	uint64_t end = p->now + ns, at;

	assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_WRITE, 1, 0, LEN, 0), 0);
	pair_drain(p, 0);
	while ((at = roci_engine_deadline(p->side[0].e)) <= end) {
		p->now = at;
		pair_drain(p, 0);
	}
	p->now = end;
}

static void nothing_goes_twice_before_an_answer_can_come(void **state)
{
	struct pair *p = make();

	answered(p, ROUND_TRIP + 20 * MS);
	send_and_wait(p, ROUND_TRIP);
	assert_int_equal(p->sent[0], LEN / PAIR_MTU);
	assert_int_equal(p->side[0].qp->req.ack_timer.retries_left, 7);
	pair_drain(p, 1);
	pair_drain(p, 0);
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	assert_int_equal(p->side[0].qp->path->srtt, ROUND_TRIP);
	assert_false(p->side[0].qp->path->rtt_is_bound);
	pair_free(p);
}

static void without_an_answer_they_go_after_100_ms(void **state)
{
	struct pair *p = make();

	answered(p, 0);
	send_and_wait(p, 100 * MS);
	assert_int_equal(p->sent[0], 2 * LEN / PAIR_MTU);
	pair_free(p);
}

/* The one that took longest was of a slow program. */
static void the_fastest_answer_counts(void **state)
{
	struct pair *p = make();

	answered(p, 700 * MS);
	answered(p, 200 * MS);
	answered(p, 900 * MS);
	roci_engine_answered(p->side[0].e, p->side[0].qp->qpn + 1, 100 * MS); /* there is no such QP */
	p->filter = lose_all;
	send_and_wait(p, 249 * MS);
	assert_int_equal(p->sent[0], LEN / PAIR_MTU);
	pair_run_until(p, p->now + 1 * MS);
	assert_int_equal(p->sent[0], 2 * LEN / PAIR_MTU);
	pair_free(p);
}

/* Programs may be slow. So nothing else makes use of it. */
static void only_the_timer_believes_it(void **state)
{
	struct pair *p = make(), *q = make();
	const struct roci_path *with = p->side[0].qp->path, *without = q->side[0].qp->path;

	answered(p, ROUND_TRIP);
	assert_int_equal(with->srtt, 0);
	assert_int_equal(with->base_rtt, 0);
	send_and_wait(p, 1 * MS);
	send_and_wait(q, 1 * MS);
	for (int i = 0; i < 2; i++) {
		pair_run(p);
		pair_run(q);
	}
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	pair_expect(q, 0, 1, ROCI_WC_SUCCESS);
	assert_int_equal(with->srtt, without->srtt);
	assert_int_equal(with->cwnd, without->cwnd);
	assert_int_equal(with->far, without->far);
	pair_free(p);
	pair_free(q);
}

/* What goes by memory does not get lost on a long way. */
static void a_process_of_this_host_is_not_far(void **state)
{
	struct pair_options o = pair_defaults();
	struct pair *p;

	o.local = true;
	p = pair_create(&o);
	answered(p, ROUND_TRIP);
	assert_int_equal(p->side[0].qp->path->answer_ns, 0);
	pair_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_goes_twice_before_an_answer_can_come),
		cmocka_unit_test(without_an_answer_they_go_after_100_ms),
		cmocka_unit_test(the_fastest_answer_counts),
		cmocka_unit_test(only_the_timer_believes_it),
		cmocka_unit_test(a_process_of_this_host_is_not_far),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
