/* SPDX-License-Identifier: BSD-2-Clause */
/* Congestion notifications, genuine and forged: what each does to the path that all QPs to the peer share. */
#include "pair.h"

#include <string.h>

#include "engine/path.h"
#include "engine/qp.h"

#define MS 1000000ull

/* A CNP for side 0 from `port`. */
static void notify_from(struct pair *p, uint16_t port, struct roci_cnp cnp)
{
	const struct roci_qp *qp = p->side[0].qp;
	uint8_t payload[ROCI_CNP_BYTES];
	struct roci_rx rx = {.src_port = port, .hop_limit = 64};

	roci_cnp_build(&cnp, payload);
	rx.pkt = (struct roci_packet){.opcode = ROCI_OPCODE_CNP,
				      .op = roci_opcode_info(ROCI_OPCODE_CNP),
				      .pkey = ROCI_PKEY_DEFAULT,
				      .dest_qpn = qp->qpn,
				      .becn = true,
				      .payload = payload,
				      .payload_len = ROCI_CNP_BYTES};
	memcpy(rx.sgid, qp->attr.av.dgid, 16);
	memcpy(rx.dgid, qp->attr.av.sgid, 16);
	roci_engine_rx(p->side[0].e, p->now, &rx);
}

/* One about the request that side 0 sent last, as its peer sends it. */
static void notify(struct pair *p)
{
	const struct roci_qp *qp = p->side[0].qp;
	struct roci_cnp cnp = {ROCI_CNP_REQUEST, roci_psn_add(qp->req.window.max, ROCI_PSN_MASK), qp->attr.sq_psn};

	notify_from(p, qp->peer.port, cnp);
}

/* One about the response that side 0 sent last. */
static void notify_response(struct pair *p)
{
	const struct roci_qp *qp = p->side[0].qp;
	struct roci_cnp cnp = {ROCI_CNP_RESPONSE, roci_psn_add(qp->resp.epsn, ROCI_PSN_MASK), qp->attr.rq_psn};

	notify_from(p, qp->peer.port, cnp);
}

static struct pair *make_with(uint8_t traffic_class)
{
	struct pair_options o = pair_defaults();

	o.traffic_class = traffic_class;
	return pair_create(&o);
}

static struct pair *make(void)
{
	return make_with(0);
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
	notify_response(p);
	assert_int_equal(path->rate, rate / 2);
	pair_free(p);
}

/* At most one cut per round trip, also while none was measured. */
static void a_flood_cuts_once_per_round_trip(void **state)
{
	struct pair *p = make();
	struct roci_path *path = p->side[0].qp->path;
	uint64_t cwnd = 128 << 10;

	exchange(p, 1, ROCI_WR_RDMA_READ);
	path->cwnd = cwnd;
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

/* No network marks packets that do not say that they understand ECN (RFC 3168 section 5). */
static void without_proof_it_counts_for_packets_with_ecn_only(void **state)
{
	static const struct roci_cnp standard = {.kind = ROCI_CNP_STANDARD};

	for (uint8_t ecn = 0; ecn < 3; ecn++) {
		struct pair *p = make_with(0x40 | ecn);
		struct roci_path *path = p->side[0].qp->path;
		uint64_t cwnd;

		exchange(p, 0, ROCI_WR_SEND);
		cwnd = path->cwnd;
		p->now += MS;
		notify_from(p, 0, standard); /* adapters send it from any port */
		assert_int_equal(path->cwnd, ecn ? cwnd / 2 : cwnd);
		assert_int_equal(roci_engine_stats(p->side[0].e)->cnp_refused, !ecn);
		pair_free(p);
	}
}

/* It must name a packet that was sent lately and the first one of its direction, and come from the peer's port. */
static void a_wrong_proof_counts_nothing(void **state)
{
	struct pair *p = make();
	const struct roci_qp *qp = p->side[0].qp;
	uint32_t max;

	exchange(p, 0, ROCI_WR_SEND);
	exchange(p, 1, ROCI_WR_RDMA_READ);
	max = qp->req.window.max;
	p->now += MS;
	notify_from(p, 77, (struct roci_cnp){ROCI_CNP_REQUEST, roci_psn_add(max, ROCI_PSN_MASK), qp->attr.sq_psn});
	for (unsigned kind = ROCI_CNP_REQUEST; kind < 256; kind++) {
		uint32_t end = kind == ROCI_CNP_RESPONSE ? qp->resp.epsn : max;
		uint32_t first = kind == ROCI_CNP_RESPONSE ? qp->attr.rq_psn : qp->attr.sq_psn;

		notify_from(p, qp->peer.port, (struct roci_cnp){(uint8_t)kind, end, first});
		notify_from(p, qp->peer.port,
			    (struct roci_cnp){(uint8_t)kind, (end - ROCI_CNP_WINDOW - 1) & ROCI_PSN_MASK, first});
		notify_from(p, qp->peer.port, (struct roci_cnp){(uint8_t)kind, (end - 1) & ROCI_PSN_MASK, first ^ 1});
		if (kind > ROCI_CNP_RESPONSE)
			notify_from(p, qp->peer.port,
				    (struct roci_cnp){(uint8_t)kind, (end - 1) & ROCI_PSN_MASK, first});
	}
	assert_int_equal(roci_engine_stats(p->side[0].e)->cnp_refused, roci_engine_stats(p->side[0].e)->cnp_received);
	notify(p);
	assert_int_equal(roci_engine_stats(p->side[0].e)->cnp_refused + 1,
			 roci_engine_stats(p->side[0].e)->cnp_received);
	pair_free(p);
}

/* From one engine to the other: requests and READ responses that meet congestion slow their sender down. */
static void the_sender_believes_its_peer(void **state)
{
	struct pair *p = make();
	struct roci_path *path = p->side[0].qp->path;
	uint64_t rate = path->rate;

	exchange(p, 0, ROCI_WR_SEND);
	exchange(p, 1, ROCI_WR_SEND);
	p->congested = true;
	p->now += MS;
	exchange(p, 0, ROCI_WR_SEND);
	assert_int_equal(path->rate, rate / 2);
	p->now += 10 * MS;
	exchange(p, 1, ROCI_WR_RDMA_READ);
	assert_int_equal(path->rate, rate / 4);
	assert_int_equal(roci_engine_stats(p->side[0].e)->cnp_refused, 0);
	pair_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_an_idle_qp_it_counts_nothing),
		cmocka_unit_test(of_a_sender_it_halves_the_window),
		cmocka_unit_test(of_a_responder_it_halves_the_rate),
		cmocka_unit_test(a_flood_cuts_once_per_round_trip),
		cmocka_unit_test(without_proof_it_counts_for_packets_with_ecn_only),
		cmocka_unit_test(a_wrong_proof_counts_nothing),
		cmocka_unit_test(the_sender_believes_its_peer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
