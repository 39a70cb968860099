/* SPDX-License-Identifier: BSD-2-Clause */
#include "../test.h"

#include "engine/ack_timer.h"

#define US  UINT64_C(1000)
#define MS  UINT64_C(1000000)
#define NOW (1000 * MS)

static struct roci_ack_timer started(unsigned timeout, unsigned retries)
{
	struct roci_ack_timer t = {.retries_left = (uint8_t)retries};

	roci_ack_timer_restart(&t, NOW, timeout, 0, 0);
	return t;
}

static void some_round_trips_of_silence_are_a_probe(void **state)
{
	struct roci_ack_timer t = started(20, 7);

	assert_int_equal(roci_ack_timer_next(&t, NOW, 10 * MS, false, true), NOW + 40 * MS);
	assert_int_equal(roci_ack_timer_next(&t, NOW, 10 * US, false, true), NOW + 4 * MS); /* not sooner */
	assert_int_equal(roci_ack_timer_next(&t, NOW, 0, false, true), NOW + 100 * MS);     /* nothing measured yet */
	assert_int_equal(roci_ack_timer_expire(&t, NOW + 40 * MS, true), ROCI_ACK_PROBE);
	assert_int_equal(t.retries_left, 7);
}

static void each_probe_doubles_the_wait(void **state)
{
	struct roci_ack_timer t = started(0, 7);
	uint64_t now = NOW, wait = 4 * MS;

	for (int i = 0; i < 20; i++) {
		uint64_t at = roci_ack_timer_next(&t, now, 1 * MS, false, true);

		assert_int_equal(at - now, wait);
		assert_int_equal(roci_ack_timer_expire(&t, at, true), i < 4 ? ROCI_ACK_PROBE : ROCI_ACK_RESEND);
		now = at;
		wait = wait < 256 * 4 * MS ? 2 * wait : wait;
	}
	roci_ack_timer_restart(&t, now, 0, 0, 0);
	assert_int_equal(roci_ack_timer_next(&t, now, 1 * MS, false, true), now + 4 * MS);
}

static void a_peer_that_has_acknowledged_nothing_is_not_asked(void **state)
{
	struct roci_ack_timer t = started(20, 7);

	assert_int_equal(roci_ack_timer_next(&t, NOW, 10 * US, false, false), NOW + 100 * MS);
	assert_int_equal(roci_ack_timer_expire(&t, NOW + 1, false), ROCI_ACK_RESEND);
	assert_int_equal(t.retries_left, 7);
}

/* A second QP of a far path: its first packets are not late when those of the first QP would not be. */
static void a_far_peer_that_has_acknowledged_nothing_gets_its_round_trips(void **state)
{
	struct roci_ack_timer t = started(20, 7);

	assert_int_equal(roci_ack_timer_next(&t, NOW, 101 * MS, false, false), NOW + 404 * MS);
}

/* The bound may be far too long, but an answer never takes longer. */
static void a_bound_of_the_round_trip_is_waited_for_once(void **state)
{
	struct roci_ack_timer t = started(20, 7);

	assert_int_equal(roci_ack_timer_next(&t, NOW, 300 * MS, true, true), NOW + 375 * MS);
	assert_int_equal(roci_ack_timer_next(&t, NOW, 40 * US, true, true), NOW + 4 * MS);
	assert_int_equal(roci_ack_timer_next(&t, NOW, 40 * US, true, false), NOW + 100 * MS);
}

static struct roci_ack_timer answered(unsigned timeout, uint64_t answer)
{
	struct roci_ack_timer t = {.retries_left = 7};

	roci_ack_timer_restart(&t, NOW, timeout, 0, answer);
	return t;
}

/* Until a round trip is measured, what the connection's exchange has told is waited for, but not for long. */
static void the_first_wait_is_for_as_long_as_an_answer_took(void **state)
{
	struct roci_ack_timer t = answered(20, 600 * MS);

	assert_int_equal(roci_ack_timer_next(&t, NOW, 0, false, false), NOW + 750 * MS);
	assert_int_equal(roci_ack_timer_next(&t, NOW, 0, false, true), NOW + 750 * MS);
	assert_int_equal(roci_ack_timer_expire(&t, NOW + 750 * MS, false), ROCI_ACK_RESEND);
	assert_int_equal(roci_ack_timer_next(&t, NOW, 0, false, false), NOW + 1500 * MS);
	t = answered(20, 5 * MS);
	assert_int_equal(roci_ack_timer_next(&t, NOW, 0, false, false), NOW + 100 * MS);
	for (uint64_t answer = 800 * MS; answer && answer <= UINT64_MAX / 2; answer *= 2) {
		t = answered(20, answer); /* its program was slow */
		assert_int_equal(roci_ack_timer_next(&t, NOW, 0, false, false), NOW + 1000 * MS);
	}
}

static void a_round_trip_is_believed_before_an_answer(void **state)
{
	struct roci_ack_timer t = answered(14, 600 * MS);

	assert_int_equal(roci_ack_timer_next(&t, NOW, 10 * US, false, true), NOW + 4 * MS);
	assert_int_equal(roci_ack_timer_next(&t, NOW, 10 * US, false, false), NOW + 100 * MS);
	assert_int_equal(roci_ack_timer_next(&t, NOW, 40 * US, true, true), NOW + 4 * MS);
	roci_ack_timer_restart(&t, NOW, 14, 10 * US, 600 * MS);
	assert_int_equal(t.timeout_at, started(14, 7).timeout_at);
}

/* The probe's answer comes before it, too. An answer that came soon changes nothing. */
static void a_timeout_is_longer_than_an_answer_took(void **state)
{
	for (uint64_t answer = 1 * MS; answer <= 5000 * MS; answer *= 2) {
		struct roci_ack_timer near = started(14, 7), t = answered(14, answer);
		uint64_t round_trip = answer < 800 * MS ? answer : 800 * MS;

		if (answer <= 80 * MS)
			assert_int_equal(t.timeout_at, near.timeout_at);
		else
			assert_true(t.timeout_at > NOW + round_trip + round_trip / 4 + round_trip);
		assert_true(t.timeout_at <= NOW + 2200 * MS);
		assert_true(answered(0, answer).timeout_at == UINT64_MAX);
	}
}

/* rdma_cm's QPs have timeouts of 67 ms or so, and a satellite is 600 ms away. */
static void a_timeout_is_longer_than_a_long_round_trip(void **state)
{
	for (uint64_t srtt = 10 * US; srtt <= 5000 * MS; srtt *= 2) {
		struct roci_ack_timer near = started(14, 7), t = near;

		roci_ack_timer_restart(&t, NOW, 14, srtt, 0);
		assert_true(t.timeout_at >= near.timeout_at && t.timeout_at <= NOW + 3200 * MS);
		assert_true(t.timeout_at >= NOW + (srtt < 750 * MS ? 4 * srtt : 3000 * MS));
		if (srtt < 1 * MS)
			assert_int_equal(t.timeout_at, near.timeout_at);
		roci_ack_timer_restart(&t, NOW, 0, srtt, 0);
		assert_true(t.timeout_at == UINT64_MAX);
	}
}

/* IBTA 9.7.6.1.3: not before 4.096 us * 2^timeout, and not after four times that. */
static void a_timeout_keeps_the_standards_bounds(void **state)
{
	for (unsigned timeout = 1; timeout <= 31; timeout++) {
		struct roci_ack_timer t = started(timeout, 1);
		uint64_t least = UINT64_C(4096) << timeout, at = NOW;

		while (roci_ack_timer_expire(&t, at, true) <= ROCI_ACK_RESEND)
			at = roci_ack_timer_next(&t, at, 1 * MS, false, true);
		assert_in_range(at - NOW, least, 4 * least);
		assert_true(at - NOW <= least + 200 * MS);
	}
}

static void it_gives_up_after_the_last_retry(void **state)
{
	struct roci_ack_timer t = started(14, 2);

	assert_int_equal(roci_ack_timer_expire(&t, t.timeout_at, true), ROCI_ACK_RETRY);
	roci_ack_timer_restart(&t, t.timeout_at, 14, 0, 0);
	assert_int_equal(roci_ack_timer_expire(&t, t.timeout_at, true), ROCI_ACK_RETRY);
	roci_ack_timer_restart(&t, t.timeout_at, 14, 0, 0);
	assert_int_equal(roci_ack_timer_expire(&t, t.timeout_at, true), ROCI_ACK_GIVE_UP);
}

static void timeout_zero_is_never(void **state)
{
	struct roci_ack_timer t = started(0, 0);

	assert_int_equal(roci_ack_timer_expire(&t, NOW + (UINT64_C(1) << 60), true), ROCI_ACK_PROBE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(some_round_trips_of_silence_are_a_probe),
		cmocka_unit_test(each_probe_doubles_the_wait),
		cmocka_unit_test(a_peer_that_has_acknowledged_nothing_is_not_asked),
		cmocka_unit_test(a_far_peer_that_has_acknowledged_nothing_gets_its_round_trips),
		cmocka_unit_test(a_bound_of_the_round_trip_is_waited_for_once),
		cmocka_unit_test(the_first_wait_is_for_as_long_as_an_answer_took),
		cmocka_unit_test(a_round_trip_is_believed_before_an_answer),
		cmocka_unit_test(a_timeout_is_longer_than_an_answer_took),
		cmocka_unit_test(a_timeout_keeps_the_standards_bounds),
		cmocka_unit_test(a_timeout_is_longer_than_a_long_round_trip),
		cmocka_unit_test(it_gives_up_after_the_last_retry),
		cmocka_unit_test(timeout_zero_is_never),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
