/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests that arrive without a listener. */
#include "test.h"

#include "pair.h"

static void a_listener_comes_in_time(void **state)
{
	struct roci_conn *active, *passive;
	struct roci_sidr *asking;
	struct pair p;

	pair_open(&p, 0);
	pair_stop_listening(&p);
	active = pair_connect(&p, 0x1000);
	asking = pair_resolve(&p);
	pair_wait(&p, PENDING - MS);
	assert_int_equal(p.event_count, 0);
	assert_int_equal(roci_cm_pending_count(p.b), 2);
	assert_int_equal(cm_object_count(p.b), 2);
	pair_listen(&p, 0);
	pair_wait(&p, 20 * MS); /* the pace between two requests */
	assert_int_equal(p.event_count, 2);
	assert_int_equal(p.events[0].kind, ROCI_CM_REQ_RECEIVED);
	assert_ptr_equal(p.events[0].user, &p);
	assert_memory_equal((const char *)p.events[0].private.data + ROCI_CM_IP_BYTES, "hello", 6);
	assert_int_equal(p.events[1].kind, ROCI_CM_SIDR_REQ_RECEIVED);
	assert_int_equal(roci_cm_pending_count(p.b), 0);
	passive = p.events[0].conn;
	roci_sidr_destroy(p.events[1].sidr, p.now);
	pair_carry(&p);
	pair_clear(&p);
	assert_int_equal(pair_accept(&p, passive, 0x2000), 0);
	pair_carry(&p);
	pair_only_event(&p, ROCI_CM_REP_RECEIVED);
	roci_conn_destroy(active, p.now);
	roci_conn_destroy(passive, p.now);
	roci_sidr_destroy(asking, p.now);
	pair_close(&p);
}

static void a_listener_of_another_address_does_not_count(void **state)
{
	static const uint8_t other[16] = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 9};
	struct roci_cm_listen listen = {.service_id = SERVICE};
	struct roci_conn *active;
	struct pair p;

	pair_open(&p, 0);
	pair_stop_listening(&p);
	active = pair_connect(&p, 0x1000);
	pair_carry(&p);
	memcpy(listen.gid, other, 16);
	assert_int_equal(roci_cm_listen(p.b, &listen, &p.listener), 0);
	pair_wait(&p, PENDING - MS);
	assert_int_equal(p.event_count, 0);
	pair_wait(&p, MS);
	assert_int_equal(pair_only_event(&p, ROCI_CM_REJ_RECEIVED)->reason, ROCI_REJ_INVALID_SERVICE_ID);
	roci_conn_destroy(active, p.now);
	pair_close(&p);
}

/* A duplicated REQ takes one place and gets one REJ. When that REJ is lost, the next REQ gets another. */
static void duplicates_are_one(void **state)
{
	struct roci_conn *active;
	struct roci_cm_tx req;
	struct pair p;

	pair_open(&p, 0);
	pair_stop_listening(&p);
	active = pair_connect(&p, 0x1000);
	pair_carry(&p);
	req = p.last;
	roci_cm_rx(p.b, p.now, req.mad, req.sgid, req.dgid, 7);
	assert_int_equal(roci_cm_pending_count(p.b), 1);
	assert_int_equal(p.b->stats.rx_duplicate, 1);
	p.lose_only = ROCI_CM_ATTR_REJ;
	pair_wait(&p, 499 * MS);
	assert_int_equal(p.sent[ROCI_CM_ATTR_REJ], 1);
	pair_wait(&p, SECOND);
	assert_int_equal(p.sent[ROCI_CM_ATTR_REQ], 2);
	assert_int_equal(p.sent[ROCI_CM_ATTR_REJ], 2);
	pair_only_event(&p, ROCI_CM_REJ_RECEIVED);
	roci_conn_destroy(active, p.now);
	pair_close(&p);
}

/* It is not answered, and a listener that comes later has no event. */
static void a_pending_request_is_withdrawn(void **state)
{
	struct roci_conn *first, *second;
	struct pair p;

	pair_open(&p, 0);
	pair_stop_listening(&p);
	first = pair_connect(&p, 0x1000);
	second = pair_connect(&p, 0x1001);
	pair_carry(&p);
	roci_conn_destroy(second, p.now);
	pair_carry(&p);
	assert_int_equal(roci_cm_pending_count(p.b), 1);
	roci_conn_destroy(first, p.now);
	pair_carry(&p);
	assert_int_equal(roci_cm_pending_count(p.b), 0);
	pair_listen(&p, 0);
	pair_wait(&p, SECOND);
	assert_int_equal(p.event_count, 0);
	assert_int_equal(p.sent[ROCI_CM_ATTR_REJ], 2);
	pair_close(&p);
}

static void from_a(struct pair *p, enum roci_cm_attribute attribute, const struct roci_cm_msg *req, uint32_t remote_id)
{
	struct roci_cm_msg msg = {
		.attribute = attribute, .tid = req->tid, .local_id = req->local_id, .remote_id = remote_id};
	uint8_t mad[ROCI_CM_MAD_BYTES];

	roci_cm_msg_build(&msg, mad);
	roci_cm_rx(p->b, p->now, mad, pair_gid_a, pair_gid_b, 7);
}

/* What waits has no id of ours yet, so a REJ cannot name one. */
static void only_a_rej_without_our_id_withdraws(void **state)
{
	struct roci_conn *conn;
	struct roci_cm_msg req;
	struct pair p;

	pair_open(&p, 0);
	pair_stop_listening(&p);
	conn = pair_connect(&p, 0x1000);
	pair_carry(&p);
	assert_int_equal(roci_cm_msg_parse(&req, p.last.mad), ROCI_CM_PARSE_OK);
	from_a(&p, ROCI_CM_ATTR_REJ, &req, 1);
	from_a(&p, ROCI_CM_ATTR_REP, &req, 0);
	from_a(&p, ROCI_CM_ATTR_DREQ, &req, 0);
	assert_int_equal(roci_cm_pending_count(p.b), 1);
	from_a(&p, ROCI_CM_ATTR_REJ, &req, 0);
	assert_int_equal(roci_cm_pending_count(p.b), 0);
	roci_conn_destroy(conn, p.now);
	pair_close(&p);
}

/* A flood of requests fills a bounded table; all others are rejected at once. */
static void the_table_is_bounded(void **state)
{
	struct roci_cm_tx req, tx;
	struct roci_conn *active;
	unsigned rejected = 0;
	struct pair p;

	pair_open(&p, 0);
	pair_stop_listening(&p);
	active = pair_connect(&p, 0x1000);
	assert_true(roci_cm_tx(p.a, p.now, &req));
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < ROCI_CM_MAX_PENDING + 100; i++) {
			req.mad[ROCI_MAD_HEADER_BYTES] = (uint8_t)(1 + round); /* the peer's id */
			req.mad[ROCI_MAD_HEADER_BYTES + 2] = (uint8_t)(i >> 8);
			req.mad[ROCI_MAD_HEADER_BYTES + 3] = (uint8_t)i;
			roci_cm_rx(p.b, p.now, req.mad, req.sgid, req.dgid, 7);
			while (roci_cm_tx(p.b, p.now, &tx))
				rejected++;
		}
		assert_int_equal(roci_cm_pending_count(p.b), ROCI_CM_MAX_PENDING);
		assert_int_equal(rejected, 100);
		p.now += PENDING;
		assert_true(roci_cm_deadline(p.b) <= p.now);
		roci_cm_timers(p.b, p.now);
		assert_int_equal(roci_cm_pending_count(p.b), 0);
		for (rejected = 0; roci_cm_tx(p.b, p.now, &tx);)
			rejected++;
		assert_int_equal(rejected, ROCI_CM_MAX_REPLIES); /* as many as can be queued */
		rejected = 0;
	}
	roci_conn_destroy(active, p.now);
	pair_close(&p);
}

struct other {
	unsigned shown, take;
	struct roci_cm *cm;
	uint64_t now;
};

static bool pass(void *context, const struct roci_cm_tx *request)
{
	struct other *other = context;

	if (!(other->take & 1u << other->shown++))
		return false;
	roci_cm_rx(other->cm, other->now, request->mad, request->sgid, request->dgid, 7);
	return true;
}

/* Another process of the host has a listener by now. */
static void a_pending_request_is_forwarded(void **state)
{
	struct roci_cm_config config = {.id_base = 7u << 22, .id_mask = (1u << 22) - 1, .random = pair_random};
	struct roci_cm_listen listen = {.service_id = SERVICE};
	struct roci_conn *active[3];
	struct roci_listener *listener;
	struct roci_cm_event ev;
	struct other other = {.take = 2};
	struct pair p;

	pair_open(&p, 0);
	pair_stop_listening(&p);
	config.context = &p.seed;
	other.cm = roci_cm_create(&config);
	assert_int_equal(roci_cm_listen(other.cm, &listen, &listener), 0);
	for (unsigned i = 0; i < 3; i++)
		active[i] = pair_connect(&p, 0x1000 + i);
	pair_carry(&p);
	other.now = p.now;
	roci_cm_forward_pending(p.b, pass, &other);
	assert_int_equal(other.shown, 3);
	assert_int_equal(roci_cm_pending_count(p.b), 2);
	assert_true(roci_cm_next_event(other.cm, &ev));
	assert_int_equal(ev.kind, ROCI_CM_REQ_RECEIVED);
	assert_int_equal(ev.peer->qpn, 0x1001);
	assert_memory_equal(ev.path->dgid, pair_gid_a, 16);
	other = (struct other){.cm = other.cm, .now = p.now, .take = 3};
	roci_cm_forward_pending(p.b, pass, &other);
	assert_int_equal(other.shown, 2);
	assert_int_equal(roci_cm_pending_count(p.b), 0);
	pair_wait(&p, 300 * MS);
	assert_int_equal(p.event_count, 0); /* nothing is left to reject */
	roci_cm_destroy(other.cm);
	for (unsigned i = 0; i < 3; i++)
		roci_conn_destroy(active[i], p.now);
	pair_close(&p);
}

static void disconnect_all_rejects_pending_requests(void **state)
{
	struct roci_conn *active;
	struct pair p;

	pair_open(&p, 0);
	pair_stop_listening(&p);
	active = pair_connect(&p, 0x1000);
	pair_carry(&p);
	roci_cm_disconnect_all(p.b, p.now);
	pair_carry(&p);
	assert_int_equal(pair_only_event(&p, ROCI_CM_REJ_RECEIVED)->reason, ROCI_REJ_INVALID_SERVICE_ID);
	roci_conn_destroy(active, p.now);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_listener_comes_in_time),
		cmocka_unit_test(a_listener_of_another_address_does_not_count),
		cmocka_unit_test(duplicates_are_one),
		cmocka_unit_test(a_pending_request_is_withdrawn),
		cmocka_unit_test(only_a_rej_without_our_id_withdraws),
		cmocka_unit_test(the_table_is_bounded),
		cmocka_unit_test(a_pending_request_is_forwarded),
		cmocka_unit_test(disconnect_all_rejects_pending_requests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
