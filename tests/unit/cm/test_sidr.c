/* SPDX-License-Identifier: BSD-2-Clause */
/* Service ID resolution: IBTA 12.11. */
#include "test.h"

#include <errno.h>

#include "pair.h"

static const struct roci_cm_sidr_answer yes = {
	.status = ROCI_SIDR_SUCCESS, .qpn = 0x345, .qkey = 0x1234567, .private = {"there", 6}};

static void resolves_and_answers(void **state)
{
	const struct roci_cm_event *ev;
	struct roci_sidr *asking, *answering;
	struct pair p;

	pair_open(&p, 0);
	asking = pair_resolve(&p);
	pair_carry(&p);
	ev = pair_only_event(&p, ROCI_CM_SIDR_REQ_RECEIVED);
	answering = ev->sidr;
	assert_true(ev->has_ip);
	assert_ptr_equal(ev->user, &p);
	assert_memory_equal(ev->path->dgid, pair_gid_a, 16);
	pair_clear(&p);
	p.lose_only = ROCI_CM_ATTR_SIDR_REP;
	assert_int_equal(roci_sidr_answer(answering, p.now, &yes), 0);
	assert_int_equal(roci_sidr_answer(answering, p.now, &yes), -EINVAL);
	roci_sidr_destroy(answering, p.now); /* duplicates are still answered */
	pair_wait(&p, SECOND);
	ev = pair_only_event(&p, ROCI_CM_SIDR_REP_RECEIVED);
	assert_ptr_equal(ev->sidr, asking);
	assert_int_equal(ev->sidr_status, ROCI_SIDR_SUCCESS);
	assert_int_equal(ev->sidr_qpn, 0x345);
	assert_int_equal(ev->sidr_qkey, 0x1234567);
	assert_memory_equal(ev->private.data, "there", 6);
	roci_sidr_destroy(asking, p.now);
	pair_close(&p);
}

static void rejects(void **state)
{
	struct roci_sidr *asking;
	struct pair p;

	pair_open(&p, 0);
	asking = pair_resolve(&p);
	pair_carry(&p);
	roci_sidr_destroy(pair_only_event(&p, ROCI_CM_SIDR_REQ_RECEIVED)->sidr, p.now);
	pair_clear(&p);
	pair_carry(&p);
	assert_int_equal(pair_only_event(&p, ROCI_CM_SIDR_REP_RECEIVED)->sidr_status, ROCI_SIDR_REJECT);
	roci_sidr_destroy(asking, p.now);
	roci_listener_destroy(p.listener, p.now);
	p.listener = NULL;
	pair_clear(&p);
	asking = pair_resolve(&p);
	pair_wait(&p, PENDING);
	assert_int_equal(pair_only_event(&p, ROCI_CM_SIDR_REP_RECEIVED)->sidr_status, ROCI_SIDR_UNSUPPORTED);
	roci_sidr_destroy(asking, p.now);
	pair_close(&p);
}

/* As in test_conn.c. */
static void addresses_are_those_of_the_datagram(void **state)
{
	static const uint8_t elsewhere[16] = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 3};
	struct roci_sidr *asking;
	struct roci_cm_tx tx;
	struct pair p;

	pair_open(&p, 0);
	asking = pair_resolve(&p);
	assert_true(roci_cm_tx(p.a, p.now, &tx));
	roci_cm_rx(p.b, p.now, tx.mad, elsewhere, tx.dgid, 7);
	pair_drain(&p, p.b);
	assert_int_equal(p.event_count, 0);
	roci_sidr_destroy(asking, p.now);
	pair_close(&p);
}

/* An answer has the TID of the request, and comes from where the request went: else it could name a QP of anybody. */
static void a_forged_answer_is_dropped(void **state)
{
	static const uint8_t elsewhere[16] = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 66};
	struct roci_sidr *asking;
	struct roci_cm_msg rep;
	uint8_t mad[ROCI_CM_MAD_BYTES];
	struct pair p;

	pair_open(&p, 0);
	asking = pair_resolve(&p);
	pair_carry(&p);
	assert_int_equal(roci_sidr_answer(pair_only_event(&p, ROCI_CM_SIDR_REQ_RECEIVED)->sidr, p.now, &yes), 0);
	p.lose = true;
	pair_carry(&p);
	pair_clear(&p);
	assert_int_equal(roci_cm_msg_parse(&rep, p.last.mad), ROCI_CM_PARSE_OK);
	roci_cm_rx(p.a, p.now, p.last.mad, elsewhere, pair_gid_a, 7);
	rep.tid ^= 1;
	rep.qpn = 0xbad;
	roci_cm_msg_build(&rep, mad);
	roci_cm_rx(p.a, p.now, mad, pair_gid_b, pair_gid_a, 7);
	pair_carry(&p);
	assert_int_equal(p.event_count, 0);
	assert_int_equal(p.a->stats.rx_wrong_source, 1);
	roci_cm_rx(p.a, p.now, p.last.mad, pair_gid_b, pair_gid_a, 7);
	pair_carry(&p);
	assert_int_equal(pair_only_event(&p, ROCI_CM_SIDR_REP_RECEIVED)->sidr_qpn, 0x345);
	roci_sidr_destroy(asking, p.now);
	roci_cm_destroy(p.a);
	roci_cm_destroy(p.b);
}

static void an_unanswered_sidr_req_times_out(void **state)
{
	struct roci_sidr *asking;
	struct pair p;

	pair_open(&p, 0);
	p.lose = true;
	asking = pair_resolve(&p);
	pair_wait(&p, 100 * SECOND);
	assert_int_equal(pair_only_event(&p, ROCI_CM_SIDR_ERROR)->status, -ETIMEDOUT);
	assert_int_equal(p.sent[ROCI_CM_ATTR_SIDR_REQ], 16);
	roci_sidr_destroy(asking, p.now);
	pair_close(&p);
}

/* A flood of SIDR_REQs: the number of remembered answers is bounded. */
static void answers_are_remembered_within_bounds(void **state)
{
	struct pair p;

	pair_open(&p, 0);
	for (unsigned i = 0; i < ROCI_CM_MAX_REMEMBERED + 10; i++) {
		struct roci_sidr *asking = pair_resolve(&p);

		pair_carry(&p);
		roci_sidr_destroy(pair_only_event(&p, ROCI_CM_SIDR_REQ_RECEIVED)->sidr, p.now);
		pair_clear(&p);
		pair_carry(&p);
		pair_only_event(&p, ROCI_CM_SIDR_REP_RECEIVED);
		roci_sidr_destroy(asking, p.now);
		pair_clear(&p);
	}
	assert_int_equal(p.b->exchange_count, ROCI_CM_MAX_REMEMBERED);
	pair_wait(&p, 10 * SECOND);
	assert_int_equal(p.b->remembered_count, 0);
	pair_close(&p);
}

static void a_full_backlog_rejects(void **state)
{
	struct roci_sidr *asking[2];
	struct pair p;

	pair_open(&p, 1);
	asking[0] = pair_resolve(&p);
	asking[1] = pair_resolve(&p);
	pair_carry(&p);
	pair_only_event(&p, ROCI_CM_SIDR_REQ_RECEIVED);
	pair_wait(&p, 3 * SECOND);
	assert_int_equal(p.event_count, 2);
	assert_int_equal(p.events[1].sidr_status, ROCI_SIDR_REJECT);
	roci_sidr_destroy(p.events[0].sidr, p.now);
	roci_sidr_destroy(asking[0], p.now);
	roci_sidr_destroy(asking[1], p.now);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(resolves_and_answers),
		cmocka_unit_test(rejects),
		cmocka_unit_test(addresses_are_those_of_the_datagram),
		cmocka_unit_test(a_forged_answer_is_dropped),
		cmocka_unit_test(an_unanswered_sidr_req_times_out),
		cmocka_unit_test(answers_are_remembered_within_bounds),
		cmocka_unit_test(a_full_backlog_rejects),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
