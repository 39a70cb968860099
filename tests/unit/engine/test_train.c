/* SPDX-License-Identifier: BSD-2-Clause */
/* Trains of packets over a line of 100 bytes per us, whose round trip takes 100 ms. */
#include "../test.h"

#include "engine/train.h"

#define MS     UINT64_C(1000000)
#define RTT    (100 * MS)
#define PACKET 10000
#define LINE   UINT64_C(100000000)

struct sender {
	struct roci_train train;
	uint64_t sent_at, acked_at;
};

/* `packets`, one each `send_ns`; the acknowledgements come one each `ack_ns`. Returns the largest rate. */
static uint64_t go(struct sender *s, unsigned packets, uint64_t send_ns, uint64_t ack_ns)
{
	uint64_t most = 0, rate;

	while (packets--) {
		s->sent_at += send_ns;
		s->acked_at += ack_ns;
		rate = roci_train_acked(&s->train, s->acked_at, PACKET, s->sent_at, RTT);
		most = rate > most ? rate : most;
	}
	return most;
}

static struct sender begin(void)
{
	return (struct sender){.sent_at = MS, .acked_at = MS + RTT};
}

static void what_is_sent_too_fast_shows_the_line(void **state)
{
	struct sender s = begin();

	assert_int_equal(go(&s, 200, MS / 50, MS / 10), LINE);
	assert_true(s.train.reached);
}

static void what_is_sent_slower_shows_the_sender(void **state)
{
	struct sender s = begin();

	assert_int_equal(go(&s, 200, MS / 5, MS / 5), LINE / 2);
	assert_false(s.train.reached);
}

/* They waited somewhere on the way back. */
static void a_heap_of_acknowledgements_shows_no_more_than_was_sent(void **state)
{
	struct sender s = begin();

	assert_in_range(go(&s, 200, MS / 10, 1000), 1, LINE);
	assert_false(s.train.reached);
}

static void one_train_alone_shows_nothing(void **state)
{
	struct sender s = begin();

	assert_int_equal(go(&s, 50, MS / 50, MS / 10), 0);
}

static void few_acknowledgements_show_nothing(void **state)
{
	struct sender s = begin();

	for (unsigned i = 0; i < 20; i++) {
		assert_int_equal(go(&s, ROCI_TRAIN_ACKS, MS, MS), 0);
		s.sent_at += RTT; /* the sender paused */
		s.acked_at += RTT;
	}
}

static void two_trains_show_no_more_than_the_slower_one(void **state)
{
	struct sender s = begin();

	go(&s, 33, MS / 50, MS / 10);
	assert_int_equal(go(&s, 80, MS / 50, MS / 20), LINE);
}

static void packets_sent_at_an_unknown_time_end_a_train(void **state)
{
	struct sender s = begin();

	go(&s, 60, MS / 50, MS / 10);
	roci_train_stop(&s.train);
	assert_int_equal(go(&s, 50, MS / 50, MS / 10), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_sent_too_fast_shows_the_line),
		cmocka_unit_test(what_is_sent_slower_shows_the_sender),
		cmocka_unit_test(a_heap_of_acknowledgements_shows_no_more_than_was_sent),
		cmocka_unit_test(one_train_alone_shows_nothing),
		cmocka_unit_test(few_acknowledgements_show_nothing),
		cmocka_unit_test(two_trains_show_no_more_than_the_slower_one),
		cmocka_unit_test(packets_sent_at_an_unknown_time_end_a_train),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
