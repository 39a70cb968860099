/* SPDX-License-Identifier: BSD-2-Clause */
/* The model on a pipe that is as simple as can be: rounds of one round trip, in which at most `capacity` passes. */
#include "../test.h"

#include "engine/bbr.h"
#include "engine/bbr_start.h"

#define MS      UINT64_C(1000000)
#define RTT     (20 * MS)
#define PER_RTT UINT64_C(1280000) /* what the pipe carries in a round trip: 64 MB/s */
#define RATE    (PER_RTT * 50)

struct pipe {
	struct roci_bbr b;
	uint64_t now, delivered;
	unsigned loss;   /* percent of what is sent */
	uint64_t others; /* ns: the queue that others keep */
	unsigned noise;  /* percent that samples of the rate are too high, right, too low, in turn */
	uint64_t train;  /* what trains of packets show, which came slower than they were sent; 0: nothing */
	bool held_up;    /* most of a round trip passes before anything is delivered */
};

static void begin(struct pipe *p)
{
	*p = (struct pipe){.now = 1000 * MS};
	roci_bbr_init(&p->b, p->now, 128 << 10, 0, RTT);
}

/* A round trip: what the model allows is sent, what fits is delivered, in 32 acknowledgements. */
static void round_trip(struct pipe *p)
{
	uint64_t by_rate = p->b.rate / 50, flight = by_rate < p->b.window ? by_rate : p->b.window;
	uint64_t good = flight - flight * p->loss / 100, passed = good < PER_RTT ? good : PER_RTT;
	uint64_t rate = p->held_up ? passed * 10 : passed * 50;
	uint64_t queued = p->others + (good > PER_RTT ? (good - PER_RTT) * RTT / PER_RTT : 0), prior = p->delivered;

	p->now += RTT + queued;
	for (unsigned i = 0; i < 32; i++) {
		struct roci_rate_sample rs = {.acked = passed / 32,
					      .rate = rate + rate * p->noise / 100 - rate * p->noise * (i % 3) / 100,
					      .train = p->train,
					      .train_reached = p->train,
					      .app_limited = p->held_up,
					      .held_up = p->held_up,
					      .rtt_ns = RTT + queued,
					      .tx_flight = flight,
					      .flight = flight,
					      .lost = flight * p->loss / 100,
					      .prior_delivered = prior,
					      .window_limited = by_rate >= p->b.window};

		for (uint64_t lost = 0; !i && lost < rs.lost; lost += ROCI_BBR_PACKET)
			roci_bbr_lost(&p->b, p->now,
				      &(struct roci_loss_sample){.bytes = ROCI_BBR_PACKET,
								 .tx_flight = flight,
								 .prior_delivered = prior,
								 .lost = lost});
		rs.delivered = p->delivered += rs.acked;
		roci_bbr_acked(&p->b, p->now, &rs);
	}
}

static void rounds(struct pipe *p, unsigned n)
{
	while (n--)
		round_trip(p);
}

static bool is_near_capacity(const struct pipe *p)
{
	return p->b.bw >= RATE * 95 / 100 && p->b.bw <= RATE * 105 / 100;
}

/* The first packet may be acknowledged late because the peer was stopped. */
static void a_first_round_trip_of_any_length_gives_a_rate(void **state)
{
	const uint64_t window = 16 << 10;
	struct roci_bbr b;

	for (uint64_t s = 1; s < 1000; s *= 3) {
		uint64_t rate = window * 277 / 100 / s;

		roci_bbr_init(&b, 1000 * MS, window, 0, s * 1000 * MS);
		assert_in_range(b.rate, rate - rate / 50 - 3, rate + 3);
	}
	roci_bbr_init(&b, 1000 * MS, UINT64_C(1) << 36, 0, RTT);
	assert_in_range(b.rate, UINT64_C(138) << 36, UINT64_C(139) << 36);
}

/* Trains of packets can show no more than the pace. */
static void the_first_pace_is_faster_far_below_what_the_path_has_shown(void **state)
{
	const uint64_t window = 256 << 10, enough = ROCI_BBR_START_SHOWN * window;
	struct roci_bbr plain, less, more;

	roci_bbr_init(&plain, 1000 * MS, window, 0, 300 * MS);
	roci_bbr_init(&less, 1000 * MS, window, enough - 1, 300 * MS);
	roci_bbr_init(&more, 1000 * MS, window, enough, 300 * MS);
	assert_int_equal(less.rate, plain.rate);
	assert_in_range(more.rate, 3 * plain.rate - 1000, 3 * plain.rate + 1000);
	assert_int_equal(more.window, window);
}

/* Rounds that the start takes after the rate was nearly found. */
static unsigned rounds_until_full(struct pipe *p)
{
	unsigned n = 0;

	while (p->b.bw < RATE * 7 / 8)
		round_trip(p);
	for (; !p->b.full; n++)
		round_trip(p);
	return n;
}

static void a_queue_ends_the_start_where_trains_have_shown_the_line(void **state)
{
	struct pipe plain, train;

	begin(&plain);
	begin(&train);
	train.train = RATE;
	assert_true(rounds_until_full(&train) < rounds_until_full(&plain));
	assert_true(is_near_capacity(&train));
}

static void finds_the_bandwidth_in_a_few_rounds(void **state)
{
	struct pipe p;

	begin(&p);
	rounds(&p, 14);
	assert_true(p.b.full);
	assert_true(is_near_capacity(&p));
	rounds(&p, 20);
	assert_true(p.b.state >= ROCI_BBR_DOWN);
	assert_true(p.b.window >= PER_RTT && p.b.window <= 3 * PER_RTT);
}

/* Loss that is there whatever is sent says nothing about the path. */
static void random_loss_does_not_slow_it_down(void **state)
{
	for (unsigned loss = 1; loss <= 5; loss += 2) {
		struct pipe p;

		begin(&p);
		p.loss = loss;
		rounds(&p, 400);
		assert_true(p.b.bw >= RATE * 85 / 100);
	}
}

/* A thousand packets were sent when nothing queued, and as many as ever were lost. */
static void what_many_packets_show_is_believed_at_once(void **state)
{
	struct pipe p;

	begin(&p);
	p.loss = 4;
	while (!p.b.random)
		round_trip(&p);
	assert_in_range(p.b.random, 36, 56); /* of 1024 */
}

/* At first the rate has to grow as long as packets are lost. It does not in a round that waited for a READ request. */
static void a_round_that_was_held_up_does_not_end_the_start(void **state)
{
	struct pipe p;

	begin(&p);
	p.loss = 5;
	rounds(&p, 2);
	p.held_up = true;
	rounds(&p, 2);
	assert_false(p.b.full);
	p.held_up = false;
	rounds(&p, 12);
	assert_true(p.b.full);
}

static void cruise(struct pipe *p)
{
	begin(p);
	rounds(p, 30);
	while (p->b.state != ROCI_BBR_CRUISE)
		round_trip(p);
}

/* Loss that begins while it sends as much as before, and stays for a round: the short-term bound follows. */
static void sudden_loss_lowers_the_rate_until_the_next_probe(void **state)
{
	struct pipe p;
	uint64_t before;

	cruise(&p);
	before = p.b.rate;
	p.loss = 30;
	rounds(&p, 4);
	assert_true(p.b.rate < before * 80 / 100);
	p.loss = 0;
	rounds(&p, 200);
	assert_true(is_near_capacity(&p));
}

/* So much is lost that all that is acknowledged was sent again: nothing of it is a sample. */
static void the_rate_falls_where_only_what_was_sent_again_arrives(void **state)
{
	struct pipe p;
	uint64_t before;

	cruise(&p);
	before = p.b.rate;
	for (unsigned i = 0; i < 50; i++) {
		roci_bbr_lost(&p.b, p.now,
			      &(struct roci_loss_sample){.bytes = PER_RTT / 2,
							 .tx_flight = PER_RTT,
							 .prior_delivered = p.delivered,
							 .lost = PER_RTT / 2});
		p.now += RTT;
		p.delivered += PER_RTT / 50;
		roci_bbr_acked(&p.b, p.now,
			       &(struct roci_rate_sample){.acked = PER_RTT / 50,
							  .delivered = p.delivered,
							  .flight = PER_RTT,
							  .tx_flight = PER_RTT});
	}
	assert_true(p.b.rate < before / 4);
	rounds(&p, 300);
	assert_true(is_near_capacity(&p));
}

/* How many of 600 rounds ask for the round trip. */
static unsigned rounds_in_rtt(struct pipe *p)
{
	unsigned count = 0;

	for (unsigned i = 0; i < 600; i++) {
		round_trip(p);
		if (p->b.state != ROCI_BBR_RTT)
			continue;
		count++;
		assert_true(p->b.window <= PER_RTT * 6 / 10);
	}
	return count;
}

/* Every five seconds, half of the pipe for 200 ms: others' queues would show, and a longer way. */
static void asks_for_the_round_trip_time_where_a_queue_stands(void **state)
{
	struct pipe p;

	begin(&p);
	rounds(&p, 30);
	p.others = 5 * MS;
	assert_in_range(rounds_in_rtt(&p), 10, 40);
	assert_true(p.b.bw >= RATE * 80 / 100);
}

/* Packets that meet no queue have told it already, or as good as none: programs wait for a processor, too. */
static void does_not_ask_for_the_round_trip_time_where_none_stands(void **state)
{
	struct pipe p;

	begin(&p);
	rounds(&p, 30);
	assert_int_equal(rounds_in_rtt(&p), 0);
	p.others = RTT / 9;
	assert_int_equal(rounds_in_rtt(&p), 0);
	assert_true(is_near_capacity(&p));
}

/* The margin lets a queue drain. Without one it would leave a part of the pipe empty. */
static void a_margin_is_left_where_a_queue_stands(void **state)
{
	struct pipe p;

	cruise(&p);
	assert_int_equal(p.b.rate, p.b.bw);
	p.others = 5 * MS;
	rounds(&p, 2);
	assert_int_equal(p.b.state, ROCI_BBR_CRUISE);
	assert_int_equal(p.b.rate, p.b.bw * 99 / 100);
}

/* CRUISE, where the largest samples are too large by most of `noise` percent. */
static void cruise_with_noise(struct pipe *p, unsigned noise)
{
	cruise(p);
	p->noise = noise;
	while (p->b.bw < RATE * (99 + noise) / 100 || p->b.state != ROCI_BBR_CRUISE)
		round_trip(p);
}

/* The largest samples are too large. To go on at such a rate would fill any queue. */
static void where_a_queue_stays_the_rate_is_what_was_delivered(void **state)
{
	struct pipe p;

	cruise_with_noise(&p, 3);
	assert_in_range(p.b.rate, RATE * 101 / 100, RATE * 104 / 100);
	p.others = 5 * MS;
	rounds(&p, 3);
	assert_int_equal(p.b.state, ROCI_BBR_CRUISE);
	assert_in_range(p.b.rate, RATE * 98 / 100, RATE * 995 / 1000);
	p.others = 0;
	rounds(&p, 3);
	assert_int_equal(p.b.state, ROCI_BBR_CRUISE);
	assert_in_range(p.b.rate, RATE * 101 / 100, RATE * 104 / 100);
}

/* Others may keep the queue: most of what a probe found is kept, or they would take the rest. */
static void where_a_queue_stays_most_of_the_rate_is_kept(void **state)
{
	struct pipe p;

	cruise_with_noise(&p, 20);
	p.others = 5 * MS;
	rounds(&p, 3);
	assert_int_equal(p.b.state, ROCI_BBR_CRUISE);
	assert_in_range(p.b.rate, p.b.bw * 95 / 100, p.b.bw * 96 / 100);
}

static void a_margin_is_left_where_a_probe_lost_too_much(void **state)
{
	struct pipe p;

	cruise(&p);
	p.b.inflight_hi = 4 * PER_RTT;
	round_trip(&p);
	assert_int_equal(p.b.rate, p.b.bw * 99 / 100);
}

/* What was sent before the path was known to be far has no rate. Its acknowledgements open the window all the same. */
static void the_first_acknowledgements_open_the_window(void **state)
{
	struct roci_rate_sample rs = {.acked = 100000, .delivered = 100000};
	struct pipe p;
	uint64_t before;

	begin(&p);
	before = p.b.window;
	roci_bbr_acked(&p.b, p.now, &rs);
	assert_int_equal(p.b.window, before + 100000);
}

/* It may have been the loss of a queue whose round trip nobody had seen shorter. */
static void random_loss_is_forgotten_where_a_queue_stands(void **state)
{
	struct pipe p;
	unsigned before;

	begin(&p);
	p.loss = 5;
	rounds(&p, 300);
	before = p.b.random;
	assert_true(before >= 30);
	p.others = 10 * MS;
	rounds(&p, 150);
	assert_true(p.b.random < before * 3 / 4);
}

/* A mark while it cruises makes it drain, and does not change what it believes of the path. */
static void a_mark_makes_it_drain(void **state)
{
	struct pipe p;
	uint64_t bw;

	cruise(&p);
	bw = p.b.bw;
	roci_bbr_marked(&p.b, p.now, PER_RTT);
	assert_int_equal(p.b.state, ROCI_BBR_DOWN);
	round_trip(&p);
	assert_true(p.b.rate < bw * 92 / 100);
	assert_true(p.b.bw >= bw * 95 / 100);
}

static void silence_closes_the_window_and_keeps_the_model(void **state)
{
	struct pipe p;
	uint64_t bw;

	begin(&p);
	rounds(&p, 30);
	bw = p.b.bw;
	roci_bbr_silent(&p.b);
	assert_int_equal(p.b.window, 4 * ROCI_BBR_PACKET);
	assert_int_equal(p.b.bw, bw);
	rounds(&p, 20);
	assert_true(is_near_capacity(&p));
}

/* A burst that was woken late: as late as it is, but no more than a queue and a switch bear. */
static void a_late_burst_catches_up_within_bounds(void **state)
{
	struct pipe p;
	uint64_t path;

	begin(&p);
	assert_int_equal(roci_bbr_catch_up_ns(&p.b, 2 * MS, 0), 0); /* at the start nobody knows the line */
	cruise(&p);
	path = p.b.bw / 50;
	assert_int_equal(roci_bbr_catch_up_ns(&p.b, 2 * MS, 0), 2 * MS);
	assert_int_equal(roci_bbr_catch_up_ns(&p.b, 100 * MS, 0), RTT / 4);
	assert_in_range(roci_bbr_catch_up_ns(&p.b, 4 * MS, path + path / 20), 3 * MS - MS / 100, 3 * MS + MS / 100);
	assert_int_equal(roci_bbr_catch_up_ns(&p.b, 100 * MS, path + path / 3), 0);
	p.b.rate = 16 * RATE; /* a megabyte takes a millisecond */
	assert_in_range(roci_bbr_catch_up_ns(&p.b, 4 * MS, 0), 1 * MS, 1 * MS + MS / 20);
	p.b.inflight_hi = 4 * PER_RTT;
	assert_int_equal(roci_bbr_catch_up_ns(&p.b, 2 * MS, 0), 0); /* the queue may be short */
}

/* Returns how many rounds the first phase takes in which a queue is left to drain. */
static unsigned rounds_in_down(unsigned loss)
{
	unsigned n = 0;
	struct pipe p;

	begin(&p);
	p.loss = loss;
	while (p.b.state != ROCI_BBR_DOWN)
		round_trip(&p);
	for (; p.b.state == ROCI_BBR_DOWN; n++)
		round_trip(&p);
	assert_int_equal(p.b.state, ROCI_BBR_CRUISE);
	return n;
}

/* What is lost while nothing queues takes three rounds to find out. */
static void a_path_that_loses_nothing_is_filled_again_at_once(void **state)
{
	assert_in_range(rounds_in_down(0), 1, 2);
	assert_in_range(rounds_in_down(2), 4, 5);
}

/* A probe and its end take some round trips, in which the rate is not that of the path. */
static void a_longer_round_trip_is_probed_less_often(void **state)
{
	struct pipe p;

	begin(&p);
	while (p.b.state != ROCI_BBR_DOWN)
		round_trip(&p);
	assert_in_range(p.b.probe_wait_ns, 2000 * MS, 3000 * MS);
	begin(&p);
	p.others = 280 * MS;
	roci_bbr_init(&p.b, p.now, 128 << 10, 0, RTT + p.others);
	while (p.b.state != ROCI_BBR_DOWN)
		round_trip(&p);
	assert_in_range(p.b.probe_wait_ns, 4800 * MS, 5800 * MS);
}

/* How long a queue stands until a shorter round trip is looked for. */
static uint64_t queue_until_rtt(uint64_t rtt_ns)
{
	struct pipe p;
	uint64_t since;

	begin(&p);
	p.others = rtt_ns - RTT;
	roci_bbr_init(&p.b, p.now, 128 << 10, 0, rtt_ns);
	while (p.b.state != ROCI_BBR_CRUISE)
		round_trip(&p);
	p.others += rtt_ns / 2;
	for (since = p.now; p.b.state != ROCI_BBR_RTT;)
		round_trip(&p);
	return p.now - since;
}

/* The look, and the way back from it, leave half of the line idle for two round trips. */
static void a_longer_round_trip_is_looked_for_less_often(void **state)
{
	assert_in_range(queue_until_rtt(100 * MS), 4000 * MS, 6000 * MS);
	assert_in_range(queue_until_rtt(600 * MS), 8000 * MS, 11000 * MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_first_round_trip_of_any_length_gives_a_rate),
		cmocka_unit_test(the_first_pace_is_faster_far_below_what_the_path_has_shown),
		cmocka_unit_test(a_queue_ends_the_start_where_trains_have_shown_the_line),
		cmocka_unit_test(finds_the_bandwidth_in_a_few_rounds),
		cmocka_unit_test(random_loss_does_not_slow_it_down),
		cmocka_unit_test(what_many_packets_show_is_believed_at_once),
		cmocka_unit_test(a_round_that_was_held_up_does_not_end_the_start),
		cmocka_unit_test(sudden_loss_lowers_the_rate_until_the_next_probe),
		cmocka_unit_test(the_rate_falls_where_only_what_was_sent_again_arrives),
		cmocka_unit_test(asks_for_the_round_trip_time_where_a_queue_stands),
		cmocka_unit_test(does_not_ask_for_the_round_trip_time_where_none_stands),
		cmocka_unit_test(a_margin_is_left_where_a_queue_stands),
		cmocka_unit_test(where_a_queue_stays_the_rate_is_what_was_delivered),
		cmocka_unit_test(where_a_queue_stays_most_of_the_rate_is_kept),
		cmocka_unit_test(a_margin_is_left_where_a_probe_lost_too_much),
		cmocka_unit_test(the_first_acknowledgements_open_the_window),
		cmocka_unit_test(random_loss_is_forgotten_where_a_queue_stands),
		cmocka_unit_test(a_mark_makes_it_drain),
		cmocka_unit_test(silence_closes_the_window_and_keeps_the_model),
		cmocka_unit_test(a_late_burst_catches_up_within_bounds),
		cmocka_unit_test(a_path_that_loses_nothing_is_filled_again_at_once),
		cmocka_unit_test(a_longer_round_trip_is_probed_less_often),
		cmocka_unit_test(a_longer_round_trip_is_looked_for_less_often),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
