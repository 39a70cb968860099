/* SPDX-License-Identifier: BSD-2-Clause */
/* Congestion notifications, genuine and forged: what each does to the path that all QPs to the peer share. */
#include "pair.h"

#include <string.h>

#include "engine/path.h"
#include "engine/qp.h"

#define MS 1000000ull

/* A CNP for side 0, as its peer, or somebody who knows addresses and QPN, would send it. */
static void notify(struct pair *p)
{
	const struct roci_qp *qp = p->side[0].qp;
	struct roci_rx rx = {.hop_limit = 64};

	rx.pkt = (struct roci_packet){.opcode = ROCI_OPCODE_CNP,
				      .op = roci_opcode_info(ROCI_OPCODE_CNP),
				      .pkey = ROCI_PKEY_DEFAULT,
				      .dest_qpn = qp->qpn,
				      .becn = true,
				      .payload_len = 16};
	memcpy(rx.sgid, qp->attr.av.dgid, 16);
	memcpy(rx.dgid, qp->attr.av.sgid, 16);
	roci_engine_rx(p->side[0].e, p->now, &rx);
}

static struct pair *make(void)
{
	struct pair_options o = pair_defaults();

	return pair_create(&o);
}

static void exchange(struct pair *p, int from, enum roci_wr_opcode op)
{
	if (op == ROCI_WR_SEND)
		assert_int_equal(pair_recv(p, !from, 1, 4096, 64), 0);
	assert_int_equal(pair_send(p, from, op, 2, 0, 64, 4096), 0);
	pair_run(p);
	pair_expect(p, from, 2, ROCI_WC_SUCCESS);
	if (op == ROCI_WR_SEND)
		pair_expect(p, !from, 1, ROCI_WC_SUCCESS);
}

/* What a QP did not send cannot have congested the network. */
static void of_an_idle_qp_it_counts_nothing(void **state)
{
	struct pair *p = make();
	struct roci_path *path = p->side[0].qp->path;
	uint64_t cwnd, rate = path->rate;

	cwnd = path->cwnd;
	notify(p); /* nothing sent yet */
	assert_int_equal(path->cwnd, cwnd);
	exchange(p, 1, ROCI_WR_SEND); /* an acknowledgement is no load */
	notify(p);
	assert_int_equal(path->cwnd, cwnd);
	exchange(p, 0, ROCI_WR_SEND);
	p->now += 200 * MS; /* too long ago */
	cwnd = path->cwnd;
	notify(p);
	assert_int_equal(path->cwnd, cwnd);
	assert_int_equal(path->rate, rate);
	pair_free(p);
}

static void of_a_sender_it_halves_the_window(void **state)
{
	struct pair *p = make();
	struct roci_path *path = p->side[0].qp->path;
	uint64_t cwnd;

	exchange(p, 0, ROCI_WR_SEND);
	cwnd = path->cwnd;
	p->now += MS;
	notify(p);
	assert_int_equal(path->cwnd, cwnd / 2);
	pair_free(p);
}

/* READ responses are load, too. */
static void of_a_responder_it_halves_the_rate(void **state)
{
	struct pair *p = make();
	struct roci_path *path = p->side[0].qp->path;
	uint64_t rate = path->rate;

	exchange(p, 1, ROCI_WR_RDMA_READ);
	p->now += MS;
	notify(p);
	assert_int_equal(path->rate, rate / 2);
	pair_free(p);
}

/* At most one cut per round trip, also while none was measured. */
static void a_flood_cuts_once_per_round_trip(void **state)
{
	struct pair *p = make();
	struct roci_path *path = p->side[0].qp->path;
	uint64_t cwnd = path->cwnd;

	assert_int_equal(path->srtt, 0);
	assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_WRITE, 2, 0, 64, 4096), 0);
	assert_true(pair_turn(p, 0));
	for (unsigned i = 0; i < 900; i++) {
		p->now += 1000;
		notify(p);
	}
	assert_int_equal(path->srtt, 0);
	assert_int_equal(path->cwnd, cwnd / 2);
	pair_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_an_idle_qp_it_counts_nothing),
		cmocka_unit_test(of_a_sender_it_halves_the_window),
		cmocka_unit_test(of_a_responder_it_halves_the_rate),
		cmocka_unit_test(a_flood_cuts_once_per_round_trip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
