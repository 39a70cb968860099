/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include <errno.h>

#include "cm/listener.h"
#include "pair.h"

static void count_events(const struct pair *p, unsigned counts[ROCI_CM_EVENT_KINDS])
{
	memset(counts, 0, ROCI_CM_EVENT_KINDS * sizeof(*counts));
	for (unsigned i = 0; i < p->event_count; i++)
		counts[p->events[i].kind]++;
}

/* More requests than the backlog has room for: each fetch lets the next one through. */
static void a_burst_waits_for_the_backlog(void **state)
{
	struct roci_conn *active[10];
	unsigned counts[ROCI_CM_EVENT_KINDS];
	struct pair p;

	pair_open(&p, 3);
	for (unsigned i = 0; i < 10; i++)
		active[i] = pair_connect(&p, 0x1000 + i);
	pair_wait(&p, 100 * MS);
	count_events(&p, counts);
	assert_int_equal(counts[ROCI_CM_REQ_RECEIVED], 3);
	for (unsigned i = 0; i < 10; i++) {
		roci_conn_fetched(p.events[i].conn, p.now, false);
		pair_wait(&p, 21 * MS);
	}
	count_events(&p, counts);
	assert_int_equal(counts[ROCI_CM_REQ_RECEIVED], 10);
	assert_int_equal(p.b->waiting_count, 0);
	for (unsigned i = 0; i < 10; i++) {
		roci_conn_destroy(p.events[i].conn, p.now);
		roci_conn_destroy(active[i], p.now);
	}
	pair_close(&p);
}

/* An answer lets the next request through at once; without an answer it comes 20 ms later. */
static void requests_are_paced(void **state)
{
	struct roci_conn *active[10];
	struct pair p;

	pair_open(&p, 0);
	for (unsigned i = 0; i < 10; i++)
		active[i] = pair_connect(&p, 0x1000 + i);
	pair_carry(&p);
	for (unsigned i = 0, request = 0; i < 5; i++) {
		assert_int_equal(p.event_count, 2 * i + 1); /* a REQ, and for each answer the next and a REP */
		assert_int_equal(p.events[request].kind, ROCI_CM_REQ_RECEIVED);
		assert_int_equal(pair_accept(&p, p.events[request].conn, 0x2000 + i), 0);
		request = p.event_count;
		pair_carry(&p);
	}
	pair_wait(&p, 19 * MS);
	assert_int_equal(p.event_count, 11);
	pair_wait(&p, 100 * MS);
	assert_int_equal(p.event_count, 15);
	for (unsigned i = 0; i < p.event_count; i++)
		if (p.events[i].kind == ROCI_CM_REQ_RECEIVED)
			roci_conn_destroy(p.events[i].conn, p.now);
	for (unsigned i = 0; i < 10; i++)
		roci_conn_destroy(active[i], p.now);
	pair_close(&p);
}

/* A consumer that answers none gets the first few paced, and all others soon after. Once it answers, the pace is back.
 */
static void a_collecting_consumer_is_not_paced_for_long(void **state)
{
	enum { MANY = 20 };
	struct roci_conn *active[MANY];
	struct pair p;

	pair_open(&p, 0);
	for (unsigned i = 0; i < MANY; i++)
		active[i] = pair_connect(&p, 0x1000 + i);
	pair_wait(&p, ROCI_PACE_FULL * 20 * MS - 1);
	assert_int_equal(p.event_count, ROCI_PACE_FULL);
	pair_wait(&p, 21 * MS);
	assert_int_equal(p.event_count, MANY);
	for (unsigned i = 0; i < MANY; i++)
		roci_conn_destroy(p.events[i].conn, p.now);
	pair_clear(&p);
	for (unsigned i = 0; i < MANY; i++)
		roci_conn_destroy(active[i], p.now);
	for (unsigned i = 0; i < 2; i++)
		active[i] = pair_connect(&p, 0x2000 + i);
	pair_wait(&p, 19 * MS);
	pair_only_event(&p, ROCI_CM_REQ_RECEIVED);
	pair_wait(&p, 2 * MS);
	assert_int_equal(p.event_count, 2);
	for (unsigned i = 0; i < 2; i++) {
		roci_conn_destroy(p.events[i].conn, p.now);
		roci_conn_destroy(active[i], p.now);
	}
	pair_close(&p);
}

/* Fetches and answers the request `active[i]`, whose event came first of those that are left. */
static void answer_next(struct pair *p, unsigned i, bool in_turn)
{
	unsigned k = 0;

	for (unsigned seen = 0; seen <= i; k++) {
		assert_true(k < p->event_count);
		seen += p->events[k].kind == ROCI_CM_REQ_RECEIVED;
	}
	roci_conn_fetched(p->events[k - 1].conn, p->now, in_turn);
	assert_int_equal(pair_accept(p, p->events[k - 1].conn, 0x2000 + i), 0);
	pair_carry(p);
}

static unsigned requests_seen(const struct pair *p)
{
	unsigned counts[ROCI_CM_EVENT_KINDS];

	count_events(p, counts);
	return counts[ROCI_CM_REQ_RECEIVED];
}

/* One that answers each before it looks for the next event hands none to another thread: it gets all at once, until one
 * is answered otherwise. */
static void a_consumer_that_answers_in_turn_is_not_paced(void **state)
{
	enum { BEFORE = ROCI_PACE_IN_TURN + 1, MANY = BEFORE + 8, MORE = 3 };
	struct roci_conn *active[MANY + MORE];
	struct pair p;

	pair_open(&p, 0);
	for (unsigned i = 0; i < MANY; i++)
		active[i] = pair_connect(&p, 0x1000 + i);
	pair_carry(&p);
	for (unsigned i = 0; i < BEFORE; i++) {
		assert_int_equal(requests_seen(&p), i + 1);
		answer_next(&p, i, i > 0);
	}
	assert_int_equal(requests_seen(&p), MANY);
	for (unsigned i = BEFORE; i < MANY; i++)
		answer_next(&p, i, i + 1 < MANY); /* the last but one was handed on */
	for (unsigned i = MANY; i < MANY + MORE; i++)
		active[i] = pair_connect(&p, 0x1000 + i);
	pair_carry(&p);
	assert_int_equal(requests_seen(&p), MANY + 1);
	for (unsigned i = 0; i < p.event_count; i++)
		if (p.events[i].kind == ROCI_CM_REQ_RECEIVED)
			roci_conn_destroy(p.events[i].conn, p.now);
	for (unsigned i = 0; i < MANY + MORE; i++)
		roci_conn_destroy(active[i], p.now);
	pair_close(&p);
}

/* A consumer that answers each request while it has the next one is slow, and does not collect them. */
static void a_slow_consumer_keeps_the_pace(void **state)
{
	enum { MANY = 20, BEHIND = ROCI_PACE_FULL - 1 };
	struct roci_conn *active[MANY], *passive[MANY];
	unsigned reported = 0;
	struct pair p;

	pair_open(&p, 0);
	for (unsigned i = 0; i < MANY; i++)
		active[i] = pair_connect(&p, 0x1000 + i);
	pair_carry(&p);
	for (unsigned i = 0; i < MANY; i++) {
		assert_int_equal(p.event_count, 1);
		assert_int_equal(p.events[0].kind, ROCI_CM_REQ_RECEIVED);
		passive[reported++] = p.events[0].conn;
		pair_clear(&p);
		if (i >= BEHIND)
			assert_int_equal(pair_accept(&p, passive[i - BEHIND], 0x2000 + i), 0);
		pair_wait(&p, 19 * MS);
		assert_int_equal(p.event_count, i >= BEHIND); /* a REP */
		pair_clear(&p);
		pair_wait(&p, 1 * MS);
	}
	for (unsigned i = 0; i < MANY; i++) {
		roci_conn_destroy(passive[i], p.now);
		roci_conn_destroy(active[i], p.now);
	}
	pair_close(&p);
}

/* The consumer fetches nothing: requests that wait are rejected within two seconds. */
static void a_full_backlog_rejects(void **state)
{
	struct roci_conn *active[4], *reported;
	unsigned counts[ROCI_CM_EVENT_KINDS];
	struct pair p;

	pair_open(&p, 1);
	for (unsigned i = 0; i < 4; i++)
		active[i] = pair_connect(&p, 0x1000 + i);
	pair_carry(&p);
	reported = p.events[0].conn;
	pair_wait(&p, 2 * SECOND);
	count_events(&p, counts);
	assert_int_equal(counts[ROCI_CM_REQ_RECEIVED], 1);
	assert_int_equal(counts[ROCI_CM_REJ_RECEIVED], 3);
	for (unsigned i = 1; i < p.event_count; i++)
		assert_int_equal(p.events[i].reason, ROCI_REJ_NO_RESOURCES);
	assert_int_equal(p.b->stats.backlog_rejects, 3);
	for (unsigned i = 0; i < 4; i++)
		roci_conn_destroy(active[i], p.now);
	roci_conn_destroy(reported, p.now);
	pair_close(&p);
}

static void a_waiting_request_is_withdrawn(void **state)
{
	struct roci_conn *first, *second;
	struct pair p;

	pair_open(&p, 1);
	first = pair_connect(&p, 0x1000);
	second = pair_connect(&p, 0x1001);
	pair_carry(&p);
	assert_int_equal(p.b->waiting_count, 1);
	roci_conn_destroy(second, p.now);
	pair_carry(&p);
	assert_int_equal(p.b->waiting_count, 0);
	pair_only_event(&p, ROCI_CM_REQ_RECEIVED);
	roci_conn_destroy(p.events[0].conn, p.now);
	roci_conn_destroy(first, p.now);
	pair_close(&p);
}

/* A peer connects and withdraws, again and again, while the consumer fetches nothing. */
static void a_withdrawn_request_keeps_its_place(void **state)
{
	unsigned counts[ROCI_CM_EVENT_KINDS];
	struct roci_conn *active;
	struct pair p;

	pair_open(&p, 2);
	for (unsigned i = 0; i < 10; i++) {
		active = pair_connect(&p, 0x1000 + i);
		pair_carry(&p);
		roci_conn_destroy(active, p.now);
		pair_carry(&p);
	}
	assert_int_equal(p.sent[ROCI_CM_ATTR_REQ], 10);
	count_events(&p, counts);
	assert_int_equal(counts[ROCI_CM_REQ_RECEIVED], 2); /* the second at once: the first is withdrawn */
	assert_int_equal(counts[ROCI_CM_REJ_RECEIVED], 2);
	for (unsigned i = 0; i < p.event_count; i++)
		if (p.events[i].kind == ROCI_CM_REQ_RECEIVED)
			roci_conn_destroy(p.events[i].conn, p.now);
	pair_clear(&p);
	active = pair_connect(&p, 0x2000);
	pair_carry(&p);
	roci_conn_destroy(pair_only_event(&p, ROCI_CM_REQ_RECEIVED)->conn, p.now);
	roci_conn_destroy(active, p.now);
	pair_close(&p);
}

static void a_destroyed_listener_rejects(void **state)
{
	struct roci_conn *active[3], *reported;
	unsigned counts[ROCI_CM_EVENT_KINDS];
	struct pair p;

	pair_open(&p, 1);
	for (unsigned i = 0; i < 3; i++)
		active[i] = pair_connect(&p, 0x1000 + i);
	pair_carry(&p);
	reported = p.events[0].conn;
	roci_listener_destroy(p.listener, p.now);
	p.listener = NULL;
	pair_carry(&p);
	count_events(&p, counts);
	assert_int_equal(counts[ROCI_CM_REJ_RECEIVED], 2);
	assert_int_equal(pair_accept(&p, reported, 0x2000), 0); /* what was reported lives on */
	pair_carry(&p);
	count_events(&p, counts);
	assert_int_equal(counts[ROCI_CM_REP_RECEIVED], 1);
	for (unsigned i = 0; i < 3; i++)
		roci_conn_destroy(active[i], p.now);
	roci_conn_destroy(reported, p.now);
	pair_close(&p);
}

static struct roci_listener *find(struct roci_cm *cm, uint64_t service_id, const uint8_t address[16], uint32_t ifindex)
{
	const struct roci_cm_msg req = {.attribute = ROCI_CM_ATTR_REQ, .service_id = service_id};
	const struct roci_cm_source from = {pair_gid_a, address, ifindex, NULL};
	struct roci_cm_ip ip;
	bool has_ip;

	return roci_listener_for_request(cm, &from, &req, &ip, &has_ip);
}

static void the_closest_address_wins(void **state)
{
	static const uint8_t other[16] = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 9}, v6[16] = {0xfd, [15] = 1};
	struct roci_cm_listen listen = {.service_id = SERVICE};
	struct roci_listener *any4, *exact, *spare, *v6_only;
	struct pair p;

	pair_open(&p, 0);
	assert_int_equal(roci_cm_listen(p.b, &listen, &spare), -EADDRINUSE);
	listen.gid[10] = listen.gid[11] = 0xff;
	assert_int_equal(roci_cm_listen(p.b, &listen, &any4), 0);
	memcpy(listen.gid, pair_gid_b, 16);
	assert_int_equal(roci_cm_listen(p.b, &listen, &exact), 0);
	assert_ptr_equal(find(p.b, SERVICE, pair_gid_b, 7), exact);
	assert_ptr_equal(find(p.b, SERVICE, other, 7), any4);
	assert_ptr_equal(find(p.b, SERVICE, v6, 7), p.listener);
	assert_null(find(p.b, SERVICE + 1, pair_gid_b, 7));
	memset(listen.gid, 0, 16);
	listen.v6_only = true;
	listen.service_id = SERVICE + 1;
	assert_int_equal(roci_cm_listen(p.b, &listen, &v6_only), 0);
	assert_null(find(p.b, SERVICE + 1, pair_gid_b, 7));
	assert_ptr_equal(find(p.b, SERVICE + 1, v6, 7), v6_only);
	listen = (struct roci_cm_listen){.service_id = 0x4200, .service_mask = ~0xffull, .ifindex = 3};
	assert_int_equal(roci_cm_listen(p.b, &listen, &spare), 0);
	assert_ptr_equal(find(p.b, 0x4277, v6, 3), spare);
	assert_null(find(p.b, 0x4277, v6, 4));
	roci_listener_destroy(any4, p.now);
	roci_listener_destroy(exact, p.now);
	roci_listener_destroy(v6_only, p.now);
	roci_listener_destroy(spare, p.now);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_burst_waits_for_the_backlog),
		cmocka_unit_test(requests_are_paced),
		cmocka_unit_test(a_collecting_consumer_is_not_paced_for_long),
		cmocka_unit_test(a_consumer_that_answers_in_turn_is_not_paced),
		cmocka_unit_test(a_slow_consumer_keeps_the_pace),
		cmocka_unit_test(a_full_backlog_rejects),
		cmocka_unit_test(a_waiting_request_is_withdrawn),
		cmocka_unit_test(a_withdrawn_request_keeps_its_place),
		cmocka_unit_test(a_destroyed_listener_rejects),
		cmocka_unit_test(the_closest_address_wins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
