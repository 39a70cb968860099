/* SPDX-License-Identifier: BSD-2-Clause */
/* A stream of requests nearby: which packets ask for an acknowledgement, and where batches end. */
#include "pair.h"

#include <string.h>

#include "engine/flight.h"
#include "engine/qp.h"

#define MS      UINT64_C(1000000)
#define LIFE    (10000 * MS) /* of the shortest round trip that was measured */
#define WRITES  16
#define PACKETS 16 /* of each */
#define LEN     (PACKETS * PAIR_MTU)
#define STEP    64 /* packets: a quarter of the first window, 128 KiB, of which packets of 256 bytes take 512 each */
#define WINDOW  (128u << 10) /* the first */

static struct {
	unsigned packets, asked, acks;
	bool asks_last; /* the newest packet asked */
} seen;

static bool watch(struct pair *p, int from, const struct roci_packet *pkt)
{
	if (from) {
		seen.acks += pkt->op->kind == ROCI_KIND_ACK;
		return true;
	}
	seen.packets++;
	seen.asked += pkt->ack_req;
	seen.asks_last = pkt->ack_req;
	return true;
}

/* The peer was heard of. */
static struct pair *make_with(uint64_t secret)
{
	struct pair_options o = pair_defaults();
	struct pair *p;

	o.timeout = 14;
	o.secret = secret;
	p = pair_create(&o);
	pair_send(p, 0, ROCI_WR_RDMA_WRITE, 99, 0, 8, 0);
	pair_run(p);
	pair_expect(p, 0, 99, ROCI_WC_SUCCESS);
	memset(&seen, 0, sizeof(seen));
	p->filter = watch;
	return p;
}

static struct pair *make(void)
{
	return make_with(0);
}

/* The next packets, which nobody gets; counts those that ask. */
static unsigned next_batch(struct pair *p, unsigned *asked)
{
	static struct roci_tx_batch batch;

	roci_engine_tx(p->side[0].e, p->now, &batch);
	roci_engine_tx_done(p->side[0].e, p->now);
	for (unsigned i = 0; asked && i < batch.count; i++)
		*asked += batch.packets[i].header[8] >> 7;
	return batch.count;
}

static void write_to(struct pair *p, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_WRITE, i, i * LEN % PAIR_MEMORY, LEN, 0), 0);
}

static void expect(struct pair *p, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		pair_expect(p, 0, i, ROCI_WC_SUCCESS);
}

/* IBTA 9.7.5.1.2: one acknowledgement does for all before it. */
static void asks_a_few_times(struct pair *p)
{
	write_to(p, WRITES);
	pair_run(p);
	expect(p, WRITES);
	assert_int_equal(seen.packets, WRITES * PACKETS);
	assert_true(seen.asked >= WRITES * PACKETS / STEP);
	assert_true(seen.asked <= WRITES * PACKETS / STEP + 2);
	assert_true(seen.asks_last);
	pair_free(p);
}

static void a_stream_asks_a_few_times_in_a_window(void **state)
{
	asks_a_few_times(make());
}

/* Likewise, over a line that has lost packets in its queue: the peer tells what is missing. */
static struct pair *make_agreed(void)
{
	struct pair *p = make_with(0x0123456789abcdef);
	struct roci_path *path = p->side[0].qp->path;

	path->base_rtt = ROCI_PATH_LINE_NS;
	path->lost_at = 1;
	write_to(p, 2);
	pair_run(p);
	expect(p, 2);
	path->lost_at = 0; /* it grows as fast as others */
	assert_true(p->side[0].qp->req.selective.agreed);
	assert_true(p->side[1].qp->resp.ranges.offered);
	assert_false(path->far);
	memset(&seen, 0, sizeof(seen));
	return p;
}

static void it_asks_as_seldom_where_the_peer_tells_what_is_missing(void **state)
{
	asks_a_few_times(make_agreed());
}

static bool lose_one(struct pair *p, int from, const struct roci_packet *pkt)
{
	return from || pkt->op->kind != ROCI_KIND_WRITE || p->count++ != STEP + 5;
}

/* The time stands still: no probe asks for what did not ask. */
static void a_hole_in_such_a_stream_is_told_at_once(void **state)
{
	struct pair *p = make_agreed();

	p->filter = lose_one;
	p->count = 0;
	write_to(p, WRITES);
	pair_run(p);
	expect(p, WRITES);
	assert_int_equal(p->dropped, 1);
	assert_int_equal(roci_engine_stats(p->side[0].e)->retransmits, 1);
	assert_int_equal(roci_engine_stats(p->side[0].e)->probes, 0);
	pair_free(p);
}

/* It is taken back at once: of what was sent beyond the window, no more may be without a question than fits then. */
static void what_goes_beyond_the_window_asks_as_often(void **state)
{
	struct pair *p = make();
	struct roci_path *path = p->side[0].qp->path;
	unsigned asked = 0;

	path->cwnd = path->ssthresh = 64 * (PAIR_MTU + ROCI_PATH_PACKET_BYTES); /* a quarter: 16 packets */
	write_to(p, WRITES);
	assert_int_equal(next_batch(p, NULL), 64);
	path->overdraft = WINDOW - path->cwnd;
	roci_flight_wake(path);
	assert_int_equal(next_batch(p, &asked), ROCI_TX_BATCH);
	assert_int_equal(asked, ROCI_TX_BATCH / 16);
	pair_free(p);
}

/* A peer that is far away, and is told nothing of what is missing: its acknowledgements are the clock of what is sent.
 */
static void a_stream_to_a_distant_peer_asks_often(void **state)
{
	struct pair *p = make();
	unsigned count, packets = 0, asked = 0;

	pair_send(p, 0, ROCI_WR_RDMA_WRITE, 99, 0, 8, 0);
	assert_true(pair_turn(p, 0));
	p->now += 2 * LIFE; /* what was measured before counts no more */
	pair_run(p);
	pair_expect(p, 0, 99, ROCI_WC_SUCCESS);
	write_to(p, WRITES);
	while ((count = next_batch(p, &asked)))
		packets += count;
	assert_true(packets > 2 * STEP);
	assert_true(asked >= packets / 8);
	pair_free(p);
}

/* How far apart packets ask has changed since these were sent: none of them asked, though one would now. */
static void what_fills_a_window_that_has_shrunk_asks(void **state)
{
	struct pair *p = make();
	const struct roci_qp *qp = p->side[0].qp;
	struct roci_send_window *w = &p->side[0].qp->req.window;
	unsigned asked = 0;

	write_to(p, WRITES);
	assert_int_equal(next_batch(p, NULL), STEP);
	assert_true(w->next % STEP > 16 && w->next % 8); /* else the next one asks anyway */
	w->una = (w->next & ~(STEP - 1u)) + 1;           /* an acknowledgement of the last one that asked */
	qp->path->cwnd = qp->path->ssthresh = (uint32_t)qp->path->flight + PAIR_MTU + ROCI_PATH_PACKET_BYTES;
	assert_int_equal(next_batch(p, &asked), 1);
	assert_int_equal(asked, 1);
	pair_free(p);
}

/* The oldest packet is missing. The last one that asked was answered, by RANGES, or not yet. */
static void what_fills_a_window_behind_a_hole_asks(void **state)
{
	for (unsigned answered = 0; answered < 2; answered++) {
		struct pair *p = make_agreed();
		struct roci_qp *qp = p->side[0].qp;
		struct roci_send_window *w = &qp->req.window;
		unsigned asked = 0;

		write_to(p, WRITES);
		assert_int_equal(next_batch(p, NULL), STEP);
		assert_true(w->next % STEP > 16 && w->next % 8); /* else the next one asks anyway */
		assert_true(w->una <= (w->next & ~(STEP - 1u)));
		qp->req.selective.board.high = (w->next & ~(STEP - 1u)) + answered;
		qp->path->cwnd = qp->path->ssthresh = qp->path->flight + PAIR_MTU + ROCI_PATH_PACKET_BYTES;
		assert_int_equal(next_batch(p, &asked), 1);
		assert_int_equal(asked, answered);
		pair_free(p);
	}
}

static void a_single_request_asks_with_its_last_packet(void **state)
{
	struct pair *p = make();

	write_to(p, 1);
	pair_run(p);
	expect(p, 1);
	assert_true(seen.asks_last);
	pair_free(p);
}

/* The time stands still: no probe asks for what did not ask. */
static void what_is_followed_by_something_that_waits_completes_at_once(void **state)
{
	struct pair *p = make();
	struct roci_sge sge = {(uintptr_t)p->side[0].memory, 8, p->side[0].key};
	struct roci_send_wr wr = {.wr_id = 2,
				  .opcode = ROCI_WR_RDMA_WRITE,
				  .flags = ROCI_SEND_SIGNALED | ROCI_SEND_FENCE,
				  .sges = &sge,
				  .num_sge = 1,
				  .remote_addr = (uintptr_t)p->side[1].memory,
				  .rkey = p->side[1].key};

	write_to(p, 1);
	pair_send(p, 0, ROCI_WR_RDMA_READ, 1, 0, 8, 0);
	assert_int_equal(roci_qp_post_send(p->side[0].qp, &wr), 0);
	while (!seen.asked && pair_turn(p, 0))
		;
	assert_int_equal(seen.packets, PACKETS + 1); /* the fenced one waits for the READ */
	pair_run(p);
	expect(p, 3);
	pair_free(p);
}

static void each_request_completes_where_acknowledgements_are_lost(void **state)
{
	struct pair *p = make();

	write_to(p, WRITES);
	for (p->filter = NULL; pair_turn(p, 0);)
		;
	expect(p, 0);
	pair_run_until(p, p->now + 1000 * MS);
	expect(p, WRITES);
	pair_free(p);
}

/* ---- many QPs ---- */

#define QPS 64

/* A QP of side `s` beside the pair's own one; they differ in their PSNs. */
static struct roci_qp *add_qp(struct pair *p, int s, uint32_t i)
{
	struct roci_qp_attr a = p->side[s].qp->attr;
	struct roci_qp_init init = {.qpn = 1000 + 2 * i + (uint32_t)s,
				    .type = ROCI_QPT_RC,
				    .pd = 1,
				    .send_cq = p->side[s].cq,
				    .recv_cq = p->side[s].cq,
				    .cap = {64, 64, 4, 4, 64}};
	struct roci_qp *qp;

	assert_int_equal(roci_qp_create(p->side[s].e, &init, &qp), 0);
	a.port_num = 1;
	a.path_mtu = 1;
	a.dest_qpn = 1000 + 2 * i + 1 - (uint32_t)s;
	a.rq_psn = a.sq_psn = 77 + 13 * i;
	a.state = ROCI_QPS_INIT;
	assert_int_equal(roci_qp_modify(qp, p->now, &a,
					ROCI_QP_STATE | ROCI_QP_PKEY_INDEX | ROCI_QP_PORT | ROCI_QP_ACCESS_FLAGS),
			 0);
	a.state = ROCI_QPS_RTR;
	assert_int_equal(roci_qp_modify(qp, p->now, &a,
					ROCI_QP_STATE | ROCI_QP_AV | ROCI_QP_PATH_MTU | ROCI_QP_DEST_QPN |
						ROCI_QP_RQ_PSN | ROCI_QP_MAX_DEST_RD_ATOMIC | ROCI_QP_MIN_RNR_TIMER),
			 0);
	a.state = ROCI_QPS_RTS;
	assert_int_equal(roci_qp_modify(qp, p->now, &a,
					ROCI_QP_STATE | ROCI_QP_SQ_PSN | ROCI_QP_TIMEOUT | ROCI_QP_RETRY_CNT |
						ROCI_QP_RNR_RETRY | ROCI_QP_MAX_QP_RD_ATOMIC),
			 0);
	return qp;
}

/* Many QPs share a window, and each has but a few packets in it: these are asked for, too. */
static void many_streams_fill_the_window(void **state)
{
	struct pair *p = make();
	struct roci_sge sge = {(uintptr_t)p->side[0].memory, 4 * PAIR_MTU, p->side[0].key};
	struct roci_send_wr wr = {.opcode = ROCI_WR_RDMA_WRITE,
				  .sges = &sge,
				  .num_sge = 1,
				  .remote_addr = (uintptr_t)p->side[1].memory,
				  .rkey = p->side[1].key};
	struct roci_qp *qps[QPS];

	for (uint32_t i = 0; i < QPS; i++) {
		qps[i] = add_qp(p, 0, i);
		add_qp(p, 1, i);
		for (unsigned k = 0; k < 60; k++)
			assert_int_equal(roci_qp_post_send(qps[i], &wr), 0);
	}
	qps[0]->path->cwnd = qps[0]->path->ssthresh = 512u << 10; /* 16 packets for each */
	for (unsigned i = 0; i < 30; i++) {                       /* twice what full windows take */
		pair_drain(p, 0);
		p->now += MS / 10;
		pair_drain(p, 1);
		p->now += MS / 10;
	}
	assert_int_equal(roci_engine_stats(p->side[0].e)->probes, 0);
	for (unsigned i = 0; i < QPS; i++)
		assert_int_equal(qps[i]->sq.head, 60);
	pair_free(p);
}

/* ---- where batches end ---- */

/* A request that does not fit behind others begins a batch of its own: so its packets are one run. */
static void a_batch_ends_where_the_next_message_would_be_cut(void **state)
{
	struct pair *p = make();

	pair_send(p, 0, ROCI_WR_RDMA_WRITE, 0, 0, 20 * PAIR_MTU, 0);
	pair_send(p, 0, ROCI_WR_RDMA_WRITE, 1, 0, 50 * PAIR_MTU, 0);
	pair_send(p, 0, ROCI_WR_RDMA_WRITE, 2, 0, 64 * PAIR_MTU, 0);
	assert_int_equal(next_batch(p, NULL), 20);
	assert_int_equal(next_batch(p, NULL), 50);
	assert_int_equal(next_batch(p, NULL), 64);
	pair_free(p);
}

static void a_short_batch_takes_what_fits(void **state)
{
	struct pair *p = make();

	pair_send(p, 0, ROCI_WR_RDMA_WRITE, 0, 0, 2 * PAIR_MTU, 0);
	pair_send(p, 0, ROCI_WR_RDMA_WRITE, 1, 0, 64 * PAIR_MTU, 0);
	assert_int_equal(next_batch(p, NULL), ROCI_TX_BATCH);
	assert_int_equal(next_batch(p, NULL), 2);
	pair_free(p);
}

/* Packets of 1,024 bytes: 62 go in one message. */
static void a_batch_of_a_long_message_ends_with_a_run(void **state)
{
	struct pair_options o = pair_defaults();
	struct pair *p;
	struct roci_sge sges[2];
	struct roci_send_wr wr = {.opcode = ROCI_WR_SEND, .sges = sges, .num_sge = 2};

	o.path_mtu = 3;
	p = pair_create(&o);
	pair_send(p, 0, ROCI_WR_RDMA_WRITE, 99, 0, 8, 0);
	pair_run(p);
	sges[0] = sges[1] = (struct roci_sge){(uintptr_t)p->side[0].memory, PAIR_MEMORY, p->side[0].key};
	assert_int_equal(roci_qp_post_send(p->side[0].qp, &wr), 0);
	assert_int_equal(next_batch(p, NULL), 62);
	assert_int_equal(next_batch(p, NULL), WINDOW / (1024 + 256) - 62); /* what the first window has room for */
	pair_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stream_asks_a_few_times_in_a_window),
		cmocka_unit_test(it_asks_as_seldom_where_the_peer_tells_what_is_missing),
		cmocka_unit_test(a_hole_in_such_a_stream_is_told_at_once),
		cmocka_unit_test(what_goes_beyond_the_window_asks_as_often),
		cmocka_unit_test(a_stream_to_a_distant_peer_asks_often),
		cmocka_unit_test(what_fills_a_window_that_has_shrunk_asks),
		cmocka_unit_test(what_fills_a_window_behind_a_hole_asks),
		cmocka_unit_test(a_single_request_asks_with_its_last_packet),
		cmocka_unit_test(what_is_followed_by_something_that_waits_completes_at_once),
		cmocka_unit_test(each_request_completes_where_acknowledgements_are_lost),
		cmocka_unit_test(many_streams_fill_the_window),
		cmocka_unit_test(a_batch_ends_where_the_next_message_would_be_cut),
		cmocka_unit_test(a_short_batch_takes_what_fits),
		cmocka_unit_test(a_batch_of_a_long_message_ends_with_a_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
