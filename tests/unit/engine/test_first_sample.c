/* SPDX-License-Identifier: BSD-2-Clause */
/* The first round trip of a path, where packets are lost. It takes 20 us, and the timer first expires after 100 ms. */
#include "pair.h"

#include <string.h>

#include "engine/path.h"
#include "engine/qp.h"

#define US         UINT64_C(1000)
#define MS         UINT64_C(1000000)
#define ROUND_TRIP (20 * US)
#define LEN        (20 * PAIR_MTU)
#define SEEDS      1000

static uint64_t random_state;

static bool lose_first(struct pair *p, int from, const struct roci_packet *pkt)
{
	return from || p->count++;
}

static bool lose_second(struct pair *p, int from, const struct roci_packet *pkt)
{
	return from || p->count++ != 1;
}

/* One of twelve packets. */
static bool lose_some(struct pair *p, int from, const struct roci_packet *pkt)
{
	random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (random_state >> 33) % 12;
}

static bool lose_all(struct pair *p, int from, const struct roci_packet *pkt)
{
	return false;
}

static struct pair *make(bool (*filter)(struct pair *p, int from, const struct roci_packet *pkt))
{
	struct pair_options o = pair_defaults();
	struct pair *p;

	o.timeout = 17; /* 0.5 s */
	p = pair_create(&o);
	p->filter = filter;
	return p;
}

static const struct roci_path *path(const struct pair *p)
{
	return p->side[0].qp->path;
}

static void round_trip(struct pair *p)
{
	pair_drain(p, 0);
	p->now += ROUND_TRIP;
	pair_drain(p, 1);
}

/* Where neither side has anything to send, until a timer expires. */
static void wait(struct pair *p)
{
	uint64_t at = roci_engine_deadline(p->side[0].e), other = roci_engine_deadline(p->side[1].e);

	p->now = at < other ? at : other;
}

/* Returns how long a message takes. */
static uint64_t send(struct pair *p)
{
	uint64_t begin = p->now;
	struct roci_cqe cqe;

	assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_WRITE, 1, 0, LEN, 0), 0);
	while (!roci_cq_poll(p->side[0].cq, &cqe, 1)) {
		unsigned before = p->sent[0] + p->sent[1];

		round_trip(p);
		if (p->sent[0] + p->sent[1] == before)
			wait(p);
	}
	assert_int_equal(cqe.status, ROCI_WC_SUCCESS);
	return p->now - begin;
}

/* It acknowledges the first packet, which did not ask. */
static void a_nak_is_the_first_answer(void **state)
{
	struct pair *p = make(lose_second);

	assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_WRITE, 1, 0, LEN, 0), 0);
	round_trip(p);
	assert_int_equal(path(p)->srtt, ROUND_TRIP);
	assert_false(path(p)->rtt_is_bound);
	pair_free(p);
}

/* The NAK names it, so it is sent again, and its acknowledgement may be about either. */
static void of_what_was_sent_twice_a_bound_is_known(void **state)
{
	struct pair *p = make(lose_first);

	assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_WRITE, 1, 0, LEN, 0), 0);
	round_trip(p);
	assert_int_equal(path(p)->srtt, 0);
	round_trip(p);
	assert_int_equal(path(p)->srtt, 2 * ROUND_TRIP);
	assert_true(path(p)->rtt_is_bound);
	pair_free(p);
}

/* Nothing of the first flight comes. The bound is 100 ms too long, and counts as little as it can. */
static void a_bound_gives_way_to_the_next_sample(void **state)
{
	struct pair *p = make(lose_all);

	assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_WRITE, 1, 0, LEN, 0), 0);
	pair_drain(p, 0);
	wait(p);
	p->filter = NULL;
	round_trip(p);
	assert_true(path(p)->rtt_is_bound);
	assert_int_equal(path(p)->srtt, 100 * MS + ROUND_TRIP);
	p->filter = lose_all;
	round_trip(p);
	assert_in_range(p->side[0].qp->timer.at - p->now, 100 * MS, 130 * MS);
	p->filter = NULL;
	pair_run_until(p, p->now + 1000 * MS);
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	send(p);
	assert_false(path(p)->rtt_is_bound);
	assert_in_range(path(p)->srtt, 1, 2 * ROUND_TRIP); /* it is no mean of the two */
	pair_free(p);
}

/* Each is the first of its path. The longest wait is that of a first packet that is lost three times. */
static void no_message_waits_for_long(void **state)
{
	uint64_t sum = 0;

	for (unsigned seed = 1; seed <= SEEDS; seed++) {
		struct pair *p = make(lose_some);
		uint64_t took;

		random_state = seed * UINT64_C(0x9e3779b97f4a7c15);
		took = send(p);
		assert_in_range(took, ROUND_TRIP, 2000 * MS);
		sum += took;
		pair_free(p);
	}
	assert_in_range(sum / SEEDS, MS, 20 * MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_nak_is_the_first_answer),
		cmocka_unit_test(of_what_was_sent_twice_a_bound_is_known),
		cmocka_unit_test(a_bound_gives_way_to_the_next_sample),
		cmocka_unit_test(no_message_waits_for_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
