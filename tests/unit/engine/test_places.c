/* SPDX-License-Identifier: BSD-2-Clause */
/* When a slot of the send queue is free again. */
#include "pair.h"

#include <errno.h>

#include "engine/cq.h"
#include "engine/qp.h"

#define SLOTS 64 /* of pair.c */

static struct pair *make(bool sig_all)
{
	struct pair_options o = pair_defaults();

	o.sig_all = sig_all;
	return pair_create(&o);
}

/* Posts until the queue is full. Returns how many were taken. */
static unsigned fill(struct pair *p)
{
	unsigned n = 0;
	int rc;

	while (!(rc = pair_send(p, 0, ROCI_WR_RDMA_WRITE, n, 0, 4, 0)))
		n++;
	assert_int_equal(rc, -ENOMEM);
	assert_false(roci_qp_send_room(p->side[0].qp, 1));
	pair_run(p);
	return n;
}

static unsigned take(struct pair *p, unsigned max)
{
	struct roci_cqe cqe[2 * SLOTS];

	return roci_cq_poll(p->side[0].cq, cqe, max);
}

/* A program that posts until the queue is full, and then polls, needs a CQ that is only as large as the queue. */
static void completions_that_wait_hold_places(void **state)
{
	struct pair *p = make(true);

	assert_int_equal(roci_cq_resize(p->side[0].cq, SLOTS), 0);
	assert_int_equal(fill(p), SLOTS);
	assert_int_equal(fill(p), 0);
	for (unsigned n = 1; n <= SLOTS; n += 21) {
		assert_int_equal(take(p, n), n);
		assert_true(roci_qp_send_room(p->side[0].qp, n));
		assert_false(roci_qp_send_room(p->side[0].qp, n + 1));
		assert_int_equal(fill(p), n);
	}
	assert_false(roci_cq_overrun(p->side[0].cq));
	pair_free(p);
}

static void silent_requests_hold_none(void **state)
{
	struct pair *p = make(false);

	for (int i = 0; i < 3; i++)
		assert_int_equal(fill(p), SLOTS);
	pair_expect_nothing(p, 0);
	pair_free(p);
}

/* One place is enough for a program that waits for each completion, so the others need no room in a cache. A completion
 * that was not polled keeps its place. */
static void an_empty_queue_begins_again(void **state)
{
	struct pair *p = make(true);
	const struct roci_sq *sq = &p->side[0].qp->sq;

	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_WRITE, i, 0, 4, 0), 0);
		assert_int_equal(sq->tail, 1);
		pair_run(p);
		pair_expect(p, 0, i, ROCI_WC_SUCCESS);
	}
	assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_WRITE, 3, 0, 4, 0), 0);
	pair_run(p);
	assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_WRITE, 4, 0, 4, 0), 0);
	assert_int_equal(sq->tail, 2);
	pair_run(p);
	pair_expect(p, 0, 3, ROCI_WC_SUCCESS);
	pair_expect(p, 0, 4, ROCI_WC_SUCCESS);
	pair_free(p);
}

/* The CQ changes its size, and is shared with a QP that is destroyed. */
static void purge_and_resize_hold_none(void **state)
{
	struct pair *p = make(true);
	struct roci_cq *cq = p->side[0].cq;

	for (int round = 0; round < 3; round++) {
		for (unsigned i = 0; i < 50; i++)
			roci_cq_push(cq, &(struct roci_cqe){.qpn = 7}, false);
		assert_int_equal(fill(p), SLOTS);
		roci_cq_purge(cq, 7);
		assert_int_equal(fill(p), 0);
		assert_int_equal(take(p, 10), 10);
		assert_int_equal(roci_cq_resize(cq, 128u << round), 0);
		assert_true(roci_qp_send_room(p->side[0].qp, 10));
		assert_int_equal(take(p, 2 * SLOTS), SLOTS - 10);
		assert_true(roci_qp_send_room(p->side[0].qp, SLOTS));
	}
	pair_free(p);
}

/* Other QPs complete there while this one is idle, until the 32-bit numbers of the entries wrap. */
static void age_holds_none(void **state)
{
	struct pair *p = make(true);
	struct roci_cq *cq = p->side[0].cq;

	assert_int_equal(fill(p), SLOTS);
	assert_int_equal(take(p, 2 * SLOTS), SLOTS);
	atomic_fetch_add(&cq->tail, (1u << 31) + 1000);
	atomic_fetch_add(&cq->head, (1u << 31) + 1000);
	assert_int_equal(fill(p), SLOTS);
	pair_free(p);
}

static void flushed_requests_hold_places_until_the_reset(void **state)
{
	struct roci_qp_attr attr = {.state = ROCI_QPS_ERR};
	struct pair *p = make(true);
	struct roci_qp *qp = p->side[0].qp;

	assert_int_equal(fill(p), SLOTS);
	assert_int_equal(take(p, 4), 4);
	assert_int_equal(roci_qp_modify(qp, p->now, &attr, ROCI_QP_STATE), 0);
	assert_int_equal(fill(p), 4);
	assert_int_equal(take(p, 2 * SLOTS), SLOTS);
	assert_int_equal(fill(p), SLOTS);
	attr.state = ROCI_QPS_RESET;
	assert_int_equal(roci_qp_modify(qp, p->now, &attr, ROCI_QP_STATE), 0);
	assert_true(roci_qp_send_room(qp, SLOTS));
	pair_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(completions_that_wait_hold_places),
		cmocka_unit_test(silent_requests_hold_none),
		cmocka_unit_test(an_empty_queue_begins_again),
		cmocka_unit_test(purge_and_resize_hold_none),
		cmocka_unit_test(age_holds_none),
		cmocka_unit_test(flushed_requests_hold_places_until_the_reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
