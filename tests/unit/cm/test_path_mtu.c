/* SPDX-License-Identifier: BSD-2-Clause */
/* A REQ whose path does not bear its path MTU: IBTA 12.6.7.2 reason 26, wire/mtu_probe.h. */
#include "test.h"

#include "cm/msg.h"
#include "pair.h"

/* Carries the REQ, with probes for these path MTUs ahead of it. */
static void ask(struct pair *p, uint8_t shortest, uint8_t longest)
{
	struct roci_cm_msg req;
	struct roci_cm_tx tx;

	assert_true(roci_cm_tx(p->a, p->now, &tx));
	assert_int_equal(roci_cm_msg_parse(&req, tx.mad), ROCI_CM_PARSE_OK);
	assert_int_equal(req.attribute, ROCI_CM_ATTR_REQ);
	for (unsigned mtu = longest; mtu && mtu >= shortest; mtu--)
		roci_cm_mtu_probed(p->b, req.tid, (uint8_t)mtu);
	roci_cm_rx(p->b, p->now, tx.mad, tx.sgid, tx.dgid, 7);
}

/* The requests of this pair are for 1024 bytes. */
static void a_long_probe_came(void **state)
{
	struct roci_conn *active;
	struct pair p;

	pair_open(&p, 0);
	active = pair_connect(&p, 0x1000);
	ask(&p, 1, 3);
	pair_carry(&p);
	assert_int_equal(pair_only_event(&p, ROCI_CM_REQ_RECEIVED)->path->mtu, 3);
	roci_conn_destroy(p.events[0].conn, p.now);
	roci_conn_destroy(active, p.now);
	pair_close(&p);
}

static void only_shorter_ones_came(void **state)
{
	struct roci_conn *active;
	struct pair p;

	pair_open(&p, 0);
	active = pair_connect(&p, 0x1000);
	ask(&p, 1, 2);
	pair_carry(&p); /* a REJ, and the REQ again */
	assert_int_equal(p.sent[ROCI_CM_ATTR_REJ], 1);
	assert_int_equal(p.sent[ROCI_CM_ATTR_REQ], 1);
	assert_int_equal(pair_only_event(&p, ROCI_CM_REQ_RECEIVED)->path->mtu, 2);
	assert_int_equal(pair_accept(&p, p.events[0].conn, 0x2000), 0);
	pair_carry(&p);
	assert_int_equal(p.events[1].kind, ROCI_CM_REP_RECEIVED);
	assert_int_equal(p.events[1].path->mtu, 2);
	assert_int_equal(roci_conn_info(active)->path.mtu, 2);
	roci_conn_destroy(p.events[0].conn, p.now);
	roci_conn_destroy(active, p.now);
	pair_close(&p);
}

/* A copy of the first REQ is rejected again: that is not about the second one. */
static void the_first_req_comes_twice(void **state)
{
	struct roci_conn *active;
	struct roci_cm_tx first;
	struct roci_cm_msg req;
	struct pair p;

	pair_open(&p, 0);
	active = pair_connect(&p, 0x1000);
	assert_true(roci_cm_tx(p.a, p.now, &first));
	assert_int_equal(roci_cm_msg_parse(&req, first.mad), ROCI_CM_PARSE_OK);
	roci_cm_mtu_probed(p.b, req.tid, 1);
	roci_cm_rx(p.b, p.now, first.mad, first.sgid, first.dgid, 7);
	roci_cm_rx(p.b, p.now, first.mad, first.sgid, first.dgid, 7);
	pair_carry(&p);
	assert_int_equal(p.sent[ROCI_CM_ATTR_REJ], 2);
	assert_int_equal(pair_only_event(&p, ROCI_CM_REQ_RECEIVED)->path->mtu, 1);
	roci_conn_destroy(p.events[0].conn, p.now);
	roci_conn_destroy(active, p.now);
	pair_close(&p);
}

/* A REJ that does not ask for another REQ: the program hears of it, and nothing is sent. */
struct refusal {
	uint16_t reason;
	uint8_t about, info_len, info;
};

static void refuse(struct pair *p, const struct refusal *r, struct roci_cm_msg *rej)
{
	uint8_t mad[ROCI_CM_MAD_BYTES];

	rej->attribute = ROCI_CM_ATTR_REJ;
	rej->reason = r->reason;
	rej->about = r->about;
	rej->info_len = r->info_len;
	rej->info[0] = r->info;
	roci_cm_msg_build(rej, mad);
	pair_clear(p);
	roci_cm_rx(p->a, p->now, mad, pair_gid_b, pair_gid_a, 7);
	pair_carry(p);
	assert_int_equal(p->sent[ROCI_CM_ATTR_REQ], 0);
	assert_int_equal(pair_only_event(p, ROCI_CM_REJ_RECEIVED)->reason, r->reason);
}

/* The requests of this pair are for path MTU 3. */
static void the_program_is_told(void **state)
{
	static const struct refusal refusals[] = {
		{ROCI_REJ_INVALID_MTU, ROCI_CM_ABOUT_REQ, 1, 0},   /* no path MTU is 0 */
		{ROCI_REJ_INVALID_MTU, ROCI_CM_ABOUT_REQ, 1, 3},   /* not smaller */
		{ROCI_REJ_INVALID_MTU, ROCI_CM_ABOUT_REQ, 1, 5},   /* larger */
		{ROCI_REJ_INVALID_MTU, ROCI_CM_ABOUT_REQ, 1, 6},   /* no path MTU */
		{ROCI_REJ_INVALID_MTU, ROCI_CM_ABOUT_REQ, 1, 255}, /* the same */
		{ROCI_REJ_INVALID_MTU, ROCI_CM_ABOUT_REQ, 0, 0},   /* none is named */
		{ROCI_REJ_INVALID_MTU, ROCI_CM_ABOUT_OTHER, 1, 1}, {ROCI_REJ_CONSUMER_DEFINED, ROCI_CM_ABOUT_REQ, 1, 1},
	};

	for (unsigned i = 0; i < sizeof(refusals) / sizeof(*refusals); i++) {
		struct roci_cm_msg req, rej = {0};
		struct roci_conn *active;
		struct roci_cm_tx tx;
		struct pair p;

		pair_open(&p, 0);
		active = pair_connect(&p, 0x1000);
		assert_true(roci_cm_tx(p.a, p.now, &tx));
		assert_int_equal(roci_cm_msg_parse(&req, tx.mad), ROCI_CM_PARSE_OK);
		rej.tid = req.tid;
		rej.remote_id = req.local_id;
		refuse(&p, &refusals[i], &rej);
		roci_conn_destroy(active, p.now);
		pair_close(&p);
	}
}

/* The peer took the REQ before: this one does not go again. */
static void after_the_rep_too(void **state)
{
	static const struct refusal late = {ROCI_REJ_INVALID_MTU, ROCI_CM_ABOUT_REQ, 1, 1};
	struct roci_cm_msg rep, rej = {0};
	struct roci_conn *active, *passive;
	struct pair p;

	pair_open(&p, 0);
	pair_request(&p, 0x1000, &active, &passive);
	pair_clear(&p);
	assert_int_equal(pair_accept(&p, passive, 0x2000), 0);
	pair_carry(&p);
	pair_only_event(&p, ROCI_CM_REP_RECEIVED);
	assert_int_equal(roci_cm_msg_parse(&rep, p.last.mad), ROCI_CM_PARSE_OK);
	assert_int_equal(rep.attribute, ROCI_CM_ATTR_REP);
	rej.tid = rep.tid;
	rej.local_id = rep.local_id;
	rej.remote_id = rep.remote_id;
	refuse(&p, &late, &rej);
	roci_conn_destroy(passive, p.now);
	roci_conn_destroy(active, p.now);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_long_probe_came),         cmocka_unit_test(only_shorter_ones_came),
		cmocka_unit_test(the_first_req_comes_twice), cmocka_unit_test(the_program_is_told),
		cmocka_unit_test(after_the_rep_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
