/* SPDX-License-Identifier: BSD-2-Clause */
/* How long the peer took to answer, from the first time that it was asked: roci_conn_info.answer_ns. */
#include "pair.h"

static const struct roci_cm_bytes none;

static void end(struct pair *p, struct roci_conn *active, struct roci_conn *passive)
{
	roci_conn_destroy(active, p->now);
	roci_conn_destroy(passive, p->now);
	pair_close(p);
}

/* Each program takes a while to answer, too. */
static void both_sides_know(void **state)
{
	struct roci_conn *active, *passive;
	struct pair p;

	pair_open(&p, 0);
	pair_request(&p, 0x1000, &active, &passive);
	pair_wait(&p, 30 * MS);
	assert_int_equal(roci_conn_info(active)->answer_ns, 0);
	assert_int_equal(pair_accept(&p, passive, 0x2000), 0);
	pair_carry(&p);
	assert_int_equal(roci_conn_info(active)->answer_ns, 30 * MS);
	pair_wait(&p, 7 * MS);
	assert_int_equal(roci_conn_info(passive)->answer_ns, 0);
	assert_int_equal(roci_conn_establish(active, p.now, none), 0);
	pair_carry(&p);
	assert_int_equal(roci_conn_info(passive)->answer_ns, 7 * MS);
	assert_int_equal(roci_conn_info(active)->answer_ns, 30 * MS);
	end(&p, active, passive);
}

/* Nobody knows which of the two was answered. */
static void what_is_sent_again_counts_from_the_first_time(void **state)
{
	struct roci_conn *active, *passive;
	uint64_t asked;
	struct pair p;

	pair_open(&p, 0);
	asked = p.now;
	p.lose_only = ROCI_CM_ATTR_REQ;
	active = pair_connect(&p, 0x1000);
	pair_wait(&p, SECOND);
	assert_int_equal(p.sent[ROCI_CM_ATTR_REQ], 2);
	passive = pair_only_event(&p, ROCI_CM_REQ_RECEIVED)->conn;
	pair_clear(&p);
	assert_int_equal(pair_accept(&p, passive, 0x2000), 0);
	pair_carry(&p);
	assert_int_equal(roci_conn_info(active)->answer_ns, p.now - asked);
	assert_int_equal(roci_conn_establish(active, p.now, none), 0);
	end(&p, active, passive);

	pair_open(&p, 0);
	pair_request(&p, 0x1000, &active, &passive);
	pair_clear(&p);
	asked = p.now;
	p.lose_only = ROCI_CM_ATTR_REP;
	assert_int_equal(pair_accept(&p, passive, 0x2000), 0);
	pair_wait(&p, SECOND);
	assert_int_equal(p.sent[ROCI_CM_ATTR_REP], 2);
	assert_int_equal(roci_conn_establish(active, p.now, none), 0);
	pair_carry(&p);
	assert_int_equal(roci_conn_info(passive)->answer_ns, p.now - asked);
	end(&p, active, passive);
}

/* An MRA is no answer, though its peer has sent it at once. */
static void an_mra_is_no_answer(void **state)
{
	struct roci_conn *active, *passive;
	uint64_t asked;
	struct pair p;

	pair_open(&p, 0);
	asked = p.now;
	pair_request(&p, 0x1000, &active, &passive);
	pair_wait(&p, 3 * SECOND);
	assert_true(p.sent[ROCI_CM_ATTR_MRA]);
	assert_int_equal(roci_conn_info(active)->answer_ns, 0);
	assert_int_equal(pair_accept(&p, passive, 0x2000), 0);
	pair_carry(&p);
	assert_int_equal(roci_conn_info(active)->answer_ns, p.now - asked);
	end(&p, active, passive);
}

/* The RTU is lost. */
static void data_are_an_answer(void **state)
{
	struct roci_conn *active, *passive;
	struct pair p;

	pair_open(&p, 0);
	pair_request(&p, 0x1000, &active, &passive);
	assert_int_equal(pair_accept(&p, passive, 0x2000), 0);
	pair_carry(&p);
	p.lose_only = ROCI_CM_ATTR_RTU;
	assert_int_equal(roci_conn_establish(active, p.now, none), 0);
	pair_wait(&p, 11 * MS);
	assert_int_equal(roci_conn_notify(passive, p.now), 0);
	assert_int_equal(roci_conn_info(passive)->answer_ns, 11 * MS);
	pair_drain(&p, p.b);
	end(&p, active, passive);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_sides_know),
		cmocka_unit_test(what_is_sent_again_counts_from_the_first_time),
		cmocka_unit_test(an_mra_is_no_answer),
		cmocka_unit_test(data_are_an_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
