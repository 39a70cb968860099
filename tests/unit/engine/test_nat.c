/* SPDX-License-Identifier: BSD-2-Clause */
/* A connection across a NAT: side 0 is behind it. The NAT forgets, and forgers say that they are the one who moved. */
#include "pair.h"

#include <stdio.h>
#include <string.h>

#include "engine/qp.h"
#include "wire/gid.h"

#define SECOND UINT64_C(1000000000)
#define OPEN   1 /* the side that is not behind the NAT */

static struct pair_place place(uint8_t last, uint16_t port)
{
	struct pair_place p = {.port = port};

	roci_gid_from_ipv4(p.gid, (uint8_t[]){203, 0, 113, last});
	return p;
}

static unsigned hellos, challenges;
static uint64_t hello_at, longest_pause;

static bool count(struct pair *p, int from, const struct roci_packet *pkt)
{
	hellos += pkt->op->kind == ROCI_KIND_HELLO;
	challenges += pkt->op->kind == ROCI_KIND_CHALLENGE;
	if (from == 0) {
		if (hello_at && p->now - hello_at > longest_pause)
			longest_pause = p->now - hello_at;
		hello_at = p->now;
	}
	return true;
}

static struct pair *connection_of(enum roci_qp_type type)
{
	struct pair_options o = pair_defaults();
	struct pair *p;

	o.type = type;
	o.nat = place(7, 40001);
	o.timeout = 18;
	o.retry_cnt = 7;
	p = pair_create(&o);
	hellos = challenges = 0;
	hello_at = longest_pause = 0;
	p->filter = count;
	return p;
}

static struct pair *connection(void)
{
	return connection_of(ROCI_QPT_RC);
}

static const struct roci_engine_stats *stats(const struct pair *p, int s)
{
	return roci_engine_stats(p->side[s].e);
}

/* One WRITE of this side completes within some seconds. */
static void writes(struct pair *p, int s)
{
	uint64_t until = p->now + 5 * SECOND;

	memset(p->side[s].memory, ++p->count, 1000);
	assert_int_equal(pair_send(p, s, ROCI_WR_RDMA_WRITE, 1, 0, 1000, 2000), 0);
	pair_run_until(p, until);
	pair_expect(p, s, 1, ROCI_WC_SUCCESS);
	assert_memory_equal(p->side[s].memory, p->side[1 - s].memory + 2000, 1000);
}

static void both_ends_write(void **state)
{
	struct pair *p = connection();

	writes(p, 0);
	writes(p, 1);
	assert_int_equal(p->nat_lost, 0);
	assert_int_equal(stats(p, OPEN)->peers_moved, 0);
	pair_free(p);
}

/* Whoever has something to say: the end behind the NAT notices. */
static void a_move_is_followed(void **state)
{
	for (int speaker = 0; speaker < 2; speaker++) {
		struct pair *p = connection();

		writes(p, 0);
		p->nat.port = 40002;
		writes(p, speaker);
		assert_int_equal(stats(p, OPEN)->peers_moved, 1);
		p->nat = place(8, 40002); /* another line to the Internet */
		writes(p, speaker);
		assert_int_equal(stats(p, OPEN)->peers_moved, 2);
		assert_memory_equal(p->side[OPEN].qp->attr.av.dgid, p->nat.gid, 16);
		assert_int_equal(challenges, 2);
		pair_free(p);
	}
}

static void uc_follows_too(void **state)
{
	struct pair *p = connection_of(ROCI_QPT_UC);

	writes(p, 0);
	p->nat.port = 40002;
	pair_run_until(p, p->now + 11 * SECOND);
	assert_int_equal(stats(p, OPEN)->peers_moved, 1);
	writes(p, OPEN);
	pair_free(p);
}

/* A NAT forgets after 30 seconds at the earliest. */
static void a_mapping_is_kept_alive(void **state)
{
	for (int type = ROCI_QPT_RC; type <= ROCI_QPT_UC; type++) {
		struct pair *p = connection_of((enum roci_qp_type)type);

		writes(p, 0);
		pair_run_until(p, p->now + 600 * SECOND);
		assert_true(longest_pause <= ROCI_NAT_HELLO_NS);
		assert_in_range(hellos, 190, 210);
		writes(p, OPEN);
		assert_int_equal(p->nat_lost, 0);
		pair_free(p);
	}
}

/* ---- forgers ---- */

/* A HELLO as the peer would send it from `from`, right in everything. */
struct forged {
	struct roci_rx rx;
	struct roci_hello hello;
	uint8_t payload[ROCI_HELLO_BYTES];
};

static void forge(struct forged *f, const struct pair *p, const struct pair_place *from)
{
	const struct roci_qp *qp = p->side[OPEN].qp;

	*f = (struct forged){.rx = {.src_port = from->port, .hop_limit = 64}};
	memcpy(f->rx.sgid, from->gid, 16);
	memcpy(f->rx.dgid, qp->attr.av.sgid, 16);
	f->hello = (struct roci_hello){.token = PAIR_TOKEN};
	memcpy(f->hello.src, qp->nat->terms.src, 16);
	memcpy(f->hello.dst, qp->nat->terms.dst, 16);
	f->hello.cookie = roci_nat_cookie(&p->side[OPEN].e->nat_key, p->now, from->gid, from->port);
}

static bool say(struct forged *f, struct pair *p)
{
	roci_hello_build(&f->hello, f->payload);
	f->rx.pkt = (struct roci_packet){.opcode = ROCI_OPCODE_HELLO,
					 .op = roci_opcode_info(ROCI_OPCODE_HELLO),
					 .pkey = ROCI_PKEY_DEFAULT,
					 .dest_qpn = p->side[OPEN].qp->qpn,
					 .payload = f->payload,
					 .payload_len = ROCI_HELLO_BYTES};
	return roci_engine_rx_hello(p->side[OPEN].e, p->now, &f->rx);
}

/* Nothing is sent, and the connection goes on. */
static void without_effect(struct pair *p, unsigned sent)
{
	pair_run(p);
	assert_int_equal(p->sent[OPEN], sent);
	assert_memory_equal(p->side[OPEN].qp->attr.av.dgid, p->nat.gid, 16);
	assert_int_equal(p->side[OPEN].qp->attr.av.nat->port, p->nat.port);
}

/* All that an attacker would have to know beside the QPN, one secret after the other: every bit of it counts. The
 * 24 bits of the QPN come on top: 2^88 for the token, and the cookie that only comes to who has it. */
static void a_forged_move_needs_every_bit(void **state)
{
	const struct pair_place attacker = place(66, 4791);
	struct pair *p = connection();
	unsigned effects = 0, sent;
	struct forged f;

	writes(p, 0);
	sent = p->sent[OPEN];
	for (unsigned bit = 0; bit < 64; bit++) {
		forge(&f, p, &attacker);
		f.hello.token ^= UINT64_C(1) << bit;
		effects += say(&f, p);
		without_effect(p, sent); /* not even a CHALLENGE: nobody can be made to get one */
	}
	for (unsigned bit = 0; bit < 64; bit++) {
		forge(&f, p, &attacker);
		f.hello.cookie ^= UINT64_C(1) << bit;
		effects += say(&f, p);
		without_effect(p, ++sent); /* the CHALLENGE goes to the attacker, and the QP stays */
	}
	assert_int_equal(effects, 0);
	assert_int_equal(challenges, 64);
	forge(&f, p, &attacker);
	assert_true(say(&f, p)); /* the test is able to fail */
	printf("a forged move: 2^%u\n", 24 + 64);
	pair_free(p);
}

/* A cookie proves one place: who has one cannot send the connection to a victim. */
static void a_cookie_is_good_for_one_place(void **state)
{
	const struct pair_place attacker = place(66, 4791), others[] = {place(67, 4791), place(66, 4792)};
	struct pair *p = connection();
	uint64_t cookie;
	struct forged f;

	writes(p, 0);
	forge(&f, p, &attacker);
	cookie = f.hello.cookie;
	for (unsigned i = 0; i < 2; i++) {
		forge(&f, p, &others[i]);
		f.hello.cookie = cookie;
		assert_false(say(&f, p));
		assert_int_equal(p->side[OPEN].qp->attr.av.nat->port, p->nat.port);
	}
	forge(&f, p, &attacker);
	p->now += UINT64_C(3) << 36; /* an old one */
	assert_false(say(&f, p));
	pair_free(p);
}

/* Packets of the connection from an unproven place do not move it, though one may be executed. */
static void packets_do_not_move_a_qp(void **state)
{
	const struct pair_place places[] = {place(7, 40002), place(66, 40001)};
	struct pair *p = connection();

	writes(p, 0);
	for (unsigned i = 0; i < 2; i++) {
		struct roci_rx rx = {.src_port = places[i].port, .hop_limit = 64};

		rx.pkt = (struct roci_packet){.opcode = ROCI_OP_WRITE_ONLY,
					      .op = roci_opcode_info(ROCI_OP_WRITE_ONLY),
					      .pkey = ROCI_PKEY_DEFAULT,
					      .dest_qpn = p->side[OPEN].qp->qpn,
					      .psn = p->side[OPEN].qp->resp.epsn,
					      .ack_req = true};
		memcpy(rx.sgid, places[i].gid, 16);
		memcpy(rx.dgid, p->side[OPEN].qp->attr.av.sgid, 16);
		roci_engine_rx(p->side[OPEN].e, p->now, &rx);
		assert_memory_equal(p->side[OPEN].qp->attr.av.dgid, p->nat.gid, 16);
		assert_int_equal(p->side[OPEN].qp->attr.av.nat->port, p->nat.port);
	}
	pair_free(p);
}

/* Without the token nobody makes the end behind the NAT say HELLO, or believe in another cookie. */
static void a_forged_challenge_is_dropped(void **state)
{
	struct pair *p = connection();
	const struct roci_qp *qp = p->side[0].qp;
	uint8_t payload[ROCI_CHALLENGE_BYTES];
	struct roci_rx rx = {.src_port = ROCI_UDP_PORT, .hop_limit = 64};
	unsigned said;

	writes(p, 0);
	said = hellos;
	memcpy(rx.sgid, qp->attr.av.dgid, 16);
	memcpy(rx.dgid, qp->attr.av.sgid, 16);
	rx.pkt = (struct roci_packet){.opcode = ROCI_OPCODE_CHALLENGE,
				      .op = roci_opcode_info(ROCI_OPCODE_CHALLENGE),
				      .pkey = ROCI_PKEY_DEFAULT,
				      .dest_qpn = qp->qpn,
				      .payload = payload,
				      .payload_len = sizeof(payload)};
	for (unsigned bit = 0; bit <= 64; bit++) {
		struct roci_challenge c = {.token = PAIR_TOKEN, .cookie = 99};

		if (bit < 64)
			c.token ^= UINT64_C(1) << bit;
		roci_challenge_build(&c, payload);
		roci_engine_rx(p->side[0].e, p->now, &rx);
		pair_run(p);
		assert_int_equal(hellos != said, bit == 64);
	}
	pair_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_ends_write),
		cmocka_unit_test(a_move_is_followed),
		cmocka_unit_test(uc_follows_too),
		cmocka_unit_test(a_mapping_is_kept_alive),
		cmocka_unit_test(a_forged_move_needs_every_bit),
		cmocka_unit_test(a_cookie_is_good_for_one_place),
		cmocka_unit_test(packets_do_not_move_a_qp),
		cmocka_unit_test(a_forged_challenge_is_dropped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
