/* SPDX-License-Identifier: BSD-2-Clause */
/* ICMP says that nobody is there. Such messages are easily forged: what they quote must be our last message. */
#include "test.h"

#include <errno.h>

#include "pair.h"

/* What an ICMP message quotes of the last MAD that was sent. */
static void refuse(struct pair *p, size_t quoted, int err)
{
	roci_cm_unreachable(p->a, p->now, p->last.mad, quoted, p->last.dgid, err);
	pair_drain(p, p->a);
}

/* The second REQ is the confirmation. */
static void two_refusals_end_a_request(void **state)
{
	static const int errors[] = {-ECONNREFUSED, -EHOSTUNREACH, -ENETUNREACH};

	for (unsigned i = 0; i < 3; i++) {
		struct roci_conn *active;
		struct pair p;

		pair_open(&p, 0);
		p.lose = true;
		active = pair_connect(&p, 0x1000);
		pair_carry(&p);
		assert_int_equal(p.sent[ROCI_CM_ATTR_REQ], 1);
		refuse(&p, ROCI_CM_MAD_BYTES, errors[i]);
		assert_int_equal(p.event_count, 0);
		pair_wait(&p, 600 * MS);
		assert_int_equal(p.sent[ROCI_CM_ATTR_REQ], 2);
		refuse(&p, ROCI_CM_MAD_BYTES, errors[i]);
		assert_int_equal(pair_only_event(&p, ROCI_CM_REQ_ERROR)->status, errors[i]);
		pair_clear(&p);
		roci_conn_destroy(active, p.now);
		pair_close(&p);
	}
}

/* One that came because the listener had not started yet does not count against it. */
static void one_refusal_is_not_enough(void **state)
{
	struct roci_conn *active;
	struct pair p;

	pair_open(&p, 0);
	p.lose = true;
	active = pair_connect(&p, 0x1000);
	pair_carry(&p);
	refuse(&p, ROCI_CM_MAD_BYTES, -ECONNREFUSED);
	p.lose = false;
	pair_wait(&p, 600 * MS);
	roci_conn_destroy(pair_only_event(&p, ROCI_CM_REQ_RECEIVED)->conn, p.now);
	pair_clear(&p);
	pair_carry(&p);
	assert_int_equal(pair_only_event(&p, ROCI_CM_REJ_RECEIVED)->status, 0);
	roci_conn_destroy(active, p.now);
	pair_close(&p);
}

static void a_datagram_service_is_the_same(void **state)
{
	struct roci_sidr *sidr;
	struct pair p;

	pair_open(&p, 0);
	p.lose = true;
	sidr = pair_resolve(&p);
	pair_carry(&p);
	refuse(&p, ROCI_CM_MAD_BYTES, -ECONNREFUSED);
	pair_wait(&p, 600 * MS);
	refuse(&p, ROCI_CM_MAD_BYTES, -ECONNREFUSED);
	assert_int_equal(pair_only_event(&p, ROCI_CM_SIDR_ERROR)->status, -ECONNREFUSED);
	refuse(&p, ROCI_CM_MAD_BYTES, -ECONNREFUSED);
	pair_clear(&p);
	roci_sidr_destroy(sidr, p.now);
	pair_close(&p);
}

/* Whoever has not seen the request cannot quote its transaction ID. */
static void what_does_not_quote_the_request_is_ignored(void **state)
{
	struct roci_conn *active;
	struct roci_cm_tx good;
	struct pair p;

	pair_open(&p, 0);
	p.lose = true;
	active = pair_connect(&p, 0x1000);
	pair_carry(&p);
	good = p.last;
	for (unsigned i = 0; i < 10; i++) {
		roci_cm_unreachable(p.a, p.now, good.mad, 0, good.dgid, -ECONNREFUSED);
		roci_cm_unreachable(p.a, p.now, good.mad, 27, good.dgid, -ECONNREFUSED); /* not all of the local ID */
		roci_cm_unreachable(p.a, p.now, good.mad, ROCI_CM_MAD_BYTES, good.sgid, -ECONNREFUSED);
		for (unsigned at = 0; at < 28; at++) {
			struct roci_cm_tx forged = good;

			forged.mad[at] ^= 1;
			roci_cm_unreachable(p.a, p.now, forged.mad, 28, forged.dgid, -ECONNREFUSED);
		}
	}
	pair_drain(&p, p.a);
	assert_int_equal(p.event_count, 0);
	for (unsigned i = 0; i < 2; i++)
		refuse(&p, 28, -ECONNREFUSED);
	pair_only_event(&p, ROCI_CM_REQ_ERROR);
	pair_clear(&p);
	roci_conn_destroy(active, p.now);
	pair_close(&p);
}

/* An established connection does not end, nor one that ends already. */
static void connections_do_not_care(void **state)
{
	struct roci_conn *active, *passive;
	struct pair p;

	pair_open(&p, 0);
	pair_establish(&p, 0x1000, &active, &passive);
	for (unsigned i = 0; i < 5; i++)
		refuse(&p, ROCI_CM_MAD_BYTES, -ECONNREFUSED); /* quotes the RTU */
	assert_int_equal(p.event_count, 0);
	assert_int_equal(active->state, ROCI_CONN_ESTABLISHED);
	roci_conn_destroy(passive, p.now);
	pair_carry(&p);
	pair_clear(&p);
	roci_conn_destroy(active, p.now);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_refusals_end_a_request),
		cmocka_unit_test(one_refusal_is_not_enough),
		cmocka_unit_test(a_datagram_service_is_the_same),
		cmocka_unit_test(what_does_not_quote_the_request_is_ignored),
		cmocka_unit_test(connections_do_not_care),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
