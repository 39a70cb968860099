/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections and SIDR exchanges whose active end is behind a NAT. */
#include "test.h"

#include "pair.h"

#define COOKIE 77
#define PORT   40001

static const uint8_t public[16] = {[10] = 0xff, [11] = 0xff, 203, 0, 113, 7};
static const uint8_t moved[16] = {[10] = 0xff, [11] = 0xff, 203, 0, 113, 8};

struct nat {
	struct pair p;
	const uint8_t *gid; /* where a's messages come from */
	uint64_t token;     /* of the exchange */
	unsigned challenges, hellos, lost;
};

static struct roci_nat_terms seen(const struct nat *n, uint64_t token)
{
	struct roci_nat_terms nat = {.port = PORT, .token = token};

	memcpy(nat.src, pair_gid_a, 16);
	memcpy(nat.dst, pair_gid_b, 16);
	return nat;
}

/* As the device does: a message without a cookie is answered with a CHALLENGE, if it is a request. */
static void from_hidden(struct nat *n, const struct roci_cm_tx *tx)
{
	struct roci_nat_terms nat = seen(n, tx->nat.token);
	struct roci_cm_msg msg;

	assert_int_equal(roci_cm_msg_parse(&msg, tx->mad), ROCI_CM_PARSE_OK);
	if (tx->nat.cookie == COOKIE) {
		n->hellos++;
		roci_cm_rx_nat(n->p.b, n->p.now, tx->mad, n->gid, pair_gid_b, 7, &nat);
		pair_drain(&n->p, n->p.b);
	} else if (msg.attribute == ROCI_CM_ATTR_REQ || msg.attribute == ROCI_CM_ATTR_SIDR_REQ) {
		n->challenges++;
		n->token = msg.tid;
		roci_cm_challenged(n->p.a, msg.local_id, msg.tid, COOKIE, pair_gid_b);
	}
}

static void from_open(struct nat *n, const struct roci_cm_tx *tx)
{
	if (memcmp(tx->dgid, n->gid, 16) || tx->nat.port != PORT || memcmp(tx->nat.src, pair_gid_a, 16) ||
	    memcmp(tx->nat.dst, pair_gid_b, 16)) {
		n->lost++;
		return;
	}
	roci_cm_rx(n->p.a, n->p.now, tx->mad, pair_gid_b, pair_gid_a, 7);
	pair_drain(&n->p, n->p.a);
}

static void carry(struct nat *n)
{
	struct roci_cm_tx tx;
	bool any = true;

	while (any) {
		any = false;
		for (; roci_cm_tx(n->p.a, n->p.now, &tx); any = true)
			from_hidden(n, &tx);
		for (; roci_cm_tx(n->p.b, n->p.now, &tx); any = true)
			from_open(n, &tx);
	}
}

static void establish(struct nat *n, struct roci_conn **active, struct roci_conn **passive)
{
	*n = (struct nat){.gid = public};
	pair_open(&n->p, 0);
	*active = pair_connect(&n->p, 0x1000);
	carry(n);
	*passive = pair_only_event(&n->p, ROCI_CM_REQ_RECEIVED)->conn;
	assert_memory_equal(n->p.events[0].ip.src, public, 16); /* as with TCP */
	pair_clear(&n->p);
	assert_int_equal(pair_accept(&n->p, *passive, 0x2000), 0);
	carry(n);
	pair_only_event(&n->p, ROCI_CM_REP_RECEIVED);
	pair_clear(&n->p);
	assert_int_equal(roci_conn_establish(*active, n->p.now, (struct roci_cm_bytes){"go", 3}), 0);
	carry(n);
	pair_only_event(&n->p, ROCI_CM_ESTABLISHED);
	pair_clear(&n->p);
	assert_int_equal(n->lost, 0);
}

static void finish(struct nat *n, struct roci_conn *active, struct roci_conn *passive)
{
	roci_conn_destroy(active, n->p.now);
	carry(n);
	roci_conn_destroy(passive, n->p.now);
	carry(n);
	pair_clear(&n->p);
	pair_close(&n->p);
}

/* One CHALLENGE, then every message has the cookie. Both sides' QPs find what they need. */
static void a_connection_is_made(void **state)
{
	struct roci_conn *active, *passive;
	struct roci_nat_terms found;
	struct nat n;

	establish(&n, &active, &passive);
	assert_int_equal(n.challenges, 1);
	assert_int_equal(n.hellos, 2); /* REQ, RTU */
	assert_memory_equal(roci_conn_info(passive)->path.dgid, public, 16);
	assert_true(roci_cm_find_nat(n.p.a, pair_gid_b, 0x2000, &found));
	assert_int_equal(found.port, 0);
	assert_int_equal(found.cookie, COOKIE);
	assert_int_equal(found.token, n.token);
	assert_true(roci_cm_find_nat(n.p.b, public, 0x1000, &found));
	assert_int_equal(found.port, PORT);
	assert_int_equal(found.token, n.token);
	assert_memory_equal(found.src, pair_gid_a, 16);
	assert_false(roci_cm_find_nat(n.p.b, public, 0x1001, &found));
	assert_false(roci_cm_find_nat(n.p.b, pair_gid_a, 0x1000, &found));
	finish(&n, active, passive);
}

/* The QP has moved, so messages go there; and a message with the token comes from there. */
static void a_move_is_followed(void **state)
{
	for (unsigned by_message = 0; by_message < 2; by_message++) {
		struct roci_conn *active, *passive;
		struct roci_nat_terms nat;
		struct nat n;

		establish(&n, &active, &passive);
		n.gid = moved;
		nat = seen(&n, n.token);
		if (!by_message)
			roci_cm_moved(n.p.b, moved, &nat);
		assert_int_equal(
			roci_conn_disconnect(by_message ? active : passive, n.p.now, (struct roci_cm_bytes){0}), 0);
		carry(&n);
		pair_only_event(&n.p, ROCI_CM_DREQ_RECEIVED);
		assert_int_equal(n.lost, 0);
		assert_memory_equal(roci_conn_info(passive)->path.dgid, moved, 16);
		finish(&n, active, passive);
	}
}

/* The IDs of a connection are not enough to take it along: each bit of the token counts. */
static void a_forged_move_is_dropped(void **state)
{
	struct roci_conn *active, *passive;
	struct roci_cm_tx dreq;
	struct nat n;

	establish(&n, &active, &passive);
	assert_int_equal(roci_conn_disconnect(active, n.p.now, (struct roci_cm_bytes){0}), 0);
	assert_true(roci_cm_tx(n.p.a, n.p.now, &dreq));
	for (unsigned bit = 0; bit < 64; bit++) {
		struct roci_nat_terms nat = seen(&n, n.token ^ UINT64_C(1) << bit);

		roci_cm_moved(n.p.b, moved, &nat);
		roci_cm_rx_nat(n.p.b, n.p.now, dreq.mad, moved, pair_gid_b, 7, &nat);
		pair_drain(&n.p, n.p.b);
		assert_int_equal(n.p.event_count, 0);
		assert_memory_equal(roci_conn_info(passive)->path.dgid, public, 16);
	}
	finish(&n, active, passive);
}

static void a_forged_challenge_is_dropped(void **state)
{
	struct roci_conn *active, *passive;
	uint32_t id;
	struct nat n;

	establish(&n, &active, &passive);
	id = roci_conn_info(active)->local_comm_id;
	for (unsigned bit = 0; bit < 64; bit++)
		roci_cm_challenged(n.p.a, id, n.token ^ UINT64_C(1) << bit, 1, pair_gid_b);
	roci_cm_challenged(n.p.a, id, n.token, 1, moved);
	roci_cm_challenged(n.p.a, id + 1, n.token, 1, pair_gid_b);
	roci_cm_challenged(n.p.b, roci_conn_info(passive)->local_comm_id, n.token, 1, public);
	roci_cm_challenged(n.p.a, id, n.token, COOKIE, pair_gid_b); /* a copy */
	carry(&n);
	assert_int_equal(n.hellos, 2);
	finish(&n, active, passive);
}

/* Without proof the addresses in a REQ must be those that it comes from, as ever. */
static void a_request_of_an_unproven_place_is_rejected(void **state)
{
	struct roci_cm_tx req, rej;
	struct roci_conn *active;
	struct roci_cm_msg msg;
	struct pair p;

	pair_open(&p, 0);
	active = pair_connect(&p, 0x1000);
	assert_true(roci_cm_tx(p.a, p.now, &req));
	roci_cm_rx(p.b, p.now, req.mad, public, pair_gid_b, 7);
	pair_drain(&p, p.b);
	assert_int_equal(p.event_count, 0);
	assert_true(roci_cm_tx(p.b, p.now, &rej));
	assert_int_equal(roci_cm_msg_parse(&msg, rej.mad), ROCI_CM_PARSE_OK);
	assert_int_equal(msg.reason, ROCI_REJ_INVALID_GID);
	roci_conn_destroy(active, p.now);
	pair_close(&p);
}

static void a_datagram_service_is_resolved(void **state)
{
	struct roci_cm_sidr_answer answer = {.status = ROCI_SIDR_SUCCESS, .qpn = 5, .qkey = 6};
	struct roci_sidr *active, *passive;
	struct nat n = {.gid = public};

	pair_open(&n.p, 0);
	active = pair_resolve(&n.p);
	carry(&n);
	passive = pair_only_event(&n.p, ROCI_CM_SIDR_REQ_RECEIVED)->sidr;
	pair_clear(&n.p);
	assert_int_equal(roci_sidr_answer(passive, n.p.now, &answer), 0);
	carry(&n);
	assert_int_equal(pair_only_event(&n.p, ROCI_CM_SIDR_REP_RECEIVED)->sidr_qpn, 5);
	assert_int_equal(n.lost, 0);
	roci_sidr_destroy(active, n.p.now);
	roci_sidr_destroy(passive, n.p.now);
	pair_clear(&n.p);
	pair_close(&n.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_connection_is_made),
		cmocka_unit_test(a_move_is_followed),
		cmocka_unit_test(a_forged_move_is_dropped),
		cmocka_unit_test(a_forged_challenge_is_dropped),
		cmocka_unit_test(a_request_of_an_unproven_place_is_rejected),
		cmocka_unit_test(a_datagram_service_is_resolved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
