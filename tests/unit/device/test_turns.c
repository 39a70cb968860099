/* SPDX-License-Identifier: BSD-2-Clause */
/* Who drives: when the thread sleeps, naps, stands in and stays awake. */
#include "turns_clock.h"

/* ---- sleep ---- */

static void nothing_to_do_sleeps_until_the_deadline(void **state)
{
	struct roci_turn turn;

	drive(0);
	turn = roci_turns_next(&turns, now, last_call, now + 5 * MS);
	assert_int_equal(turn.what, ROCI_TURN_SLEEP);
	assert_int_equal(turn.until, now + 5 * MS);
	now += 5 * MS;
	awake();
	drive(0);
	turn = roci_turns_next(&turns, now, last_call, NEVER);
	assert_int_equal(turn.what, ROCI_TURN_SLEEP);
	assert_true(turn.until == NEVER);
}

static void a_packet_wakes_it_and_it_drives(void **state)
{
	sleep_for(10 * MS);
	drive(1);
	drive(2);
	drive(0);
}

static void only_an_earlier_deadline_wakes_it_and_only_once(void **state)
{
	assert_false(roci_turns_wake(&turns, 0)); /* it is awake */
	drive(0);
	assert_int_equal(roci_turns_next(&turns, now, last_call, now + 5 * MS).what, ROCI_TURN_SLEEP);
	assert_false(roci_turns_wake(&turns, now + 5 * MS));
	assert_false(roci_turns_wake(&turns, now + 6 * MS));
	assert_true(roci_turns_wake(&turns, now + 4 * MS));
	assert_false(roci_turns_wake(&turns, now + 3 * MS));
	awake();
	assert_false(roci_turns_wake(&turns, 0));
}

static void one_that_naps_is_not_woken(void **state)
{
	last_call = now;
	assert_int_equal(next().what, ROCI_TURN_NAP);
	assert_false(roci_turns_wake(&turns, 0));
}

/* ---- naps ---- */

static void polls_make_it_nap_longer_and_longer(void **state)
{
	static const unsigned expected[] = {50, 100, 200, 400, 800, 1000, 1000};

	last_call = now;
	for (unsigned i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
		assert_int_equal(nap_while_polled(), expected[i] * US);
}

static void a_stale_call_is_none(void **state)
{
	last_call = now - 11 * US;
	drive(0);
}

static void a_call_after_now_is_fresh(void **state)
{
	last_call = now + 1 * US; /* another processor's, while we waited for the lock */
	assert_int_equal(next().what, ROCI_TURN_NAP);
}

/* A program that polls a little, then spins on memory: the first packet must not wait for a nap. */
static void when_polls_stop_it_stays_on_the_sockets(void **state)
{
	last_call = now;
	nap_while_polled();
	nap_alone();
	while (next().what == ROCI_TURN_STAND_IN)
		roci_turns_stood_in(&turns, false);
	sleep_for(500 * US);
	last_call = now; /* now and then a call, but the processor is not the program's all the time */
	drive(1);
	now += 500 * US;
	last_call = now;
	drive(1);
	now += 2 * MS;
	last_call = now;
	assert_int_equal(nap_while_polled(), 50 * US); /* begins anew */
}

/* The age counts when the thread awakes: it is the driving before the next decision that made it old. */
static void calls_are_judged_when_it_awakes(void **state)
{
	last_call = now;
	nap_while_polled();
	now += 1 * MS;
	assert_int_equal(next().what, ROCI_TURN_NAP);
}

/* While it drives without a pause, the program may be waiting for it. */
/* The thread takes turns of `ns` that find nothing, as many as it takes it to sleep. */
static void find_nothing(uint64_t ns)
{
	struct roci_turn turn;

	do {
		assert_int_equal(next().what, ROCI_TURN_DRIVE);
		roci_turns_drove(&turns, now, 0);
		now += ns;
		turn = next();
	} while (turn.what == ROCI_TURN_BUSY_POLL);
	assert_int_equal(turn.what, ROCI_TURN_SLEEP);
}

/* When the thread wakes for a packet, the program's last call was `ns` ago. */
static int turn_after_call(uint64_t ns)
{
	now += 1 * MS;
	last_call = now - ns;
	awake();
	return next().what;
}

/* An emulated processor takes 20 us for a turn, and for a poll. */
static void on_a_slow_machine_a_program_that_polls_calls_less_often(void **state)
{
	find_nothing(1 * US);
	assert_int_equal(turn_after_call(30 * US), ROCI_TURN_DRIVE);
	start(NULL);
	find_nothing(20 * US);
	assert_int_equal(turn_after_call(30 * US), ROCI_TURN_NAP);
	start(NULL);
	find_nothing(20 * US);
	assert_int_equal(turn_after_call(80 * US), ROCI_TURN_DRIVE);
}

/* Somebody else had the processor: the next turn tells that the machine is as fast as before. */
static void a_turn_that_was_interrupted_says_nothing(void **state)
{
	find_nothing(5 * MS);
	assert_int_equal(turn_after_call(200 * US), ROCI_TURN_DRIVE);
	roci_turns_drove(&turns, now, 0);
	now += 1 * US;
	assert_int_equal(next().what, ROCI_TURN_SLEEP);
	assert_int_equal(turn_after_call(30 * US), ROCI_TURN_DRIVE);
	for (int i = 0; i < 10; i++) {
		roci_turns_drove(&turns, now, 0);
		now += 5 * MS;
		assert_int_equal(next().what, ROCI_TURN_SLEEP);
		assert_int_equal(turn_after_call(30 * US), ROCI_TURN_DRIVE);
	}
}

static void a_long_streak_ends_in_one_nap(void **state)
{
	sleep_for(1 * MS);
	last_call = now - 15 * US; /* when it awoke: stopped, so it stays */
	drive(1);
	now += 2 * MS;
	last_call = now - 1 * MS; /* recent, not fresh */
	assert_int_equal(next().what, ROCI_TURN_NAP);
	now += 50 * US;
	awake();
	assert_int_equal(next().what, ROCI_TURN_STAND_IN);
	roci_turns_stood_in(&turns, false);
	drive(1);
}

static void a_long_streak_goes_on_without_a_recent_call(void **state)
{
	sleep_for(1 * MS);
	drive(1);
	for (unsigned i = 0; i < 10000; i++)
		drive(1);
}

/* ---- what the thread leaves to the program's next call ---- */

/* The thread receives so many packets. Returns whether it sends. */
static bool drive_received(unsigned received)
{
	bool sends;

	assert_int_equal(next().what, ROCI_TURN_DRIVE);
	sends = roci_turns_send_after_turn(&turns, now, received, last_call);
	roci_turns_drove(&turns, now, received);
	now += 1 * US;
	return sends;
}

/* It sleeps; its packet comes while the program, which called `age` ago, spins on memory. */
static bool receive_after_call(unsigned received, uint64_t age)
{
	now += 1 * MS; /* no busy polling */
	sleep_for(3 * MS);
	last_call = now - age;
	awake();
	return drive_received(received);
}

static void left_in_vain(void)
{
	assert_false(receive_after_call(1, 30 * US));
	assert_int_equal(next().what, ROCI_TURN_SLEEP);
	now += 50 * US;
	awake();
	assert_true(drive_received(1));
	roci_turns_sent(&turns, now);
}

static void an_acknowledgement_is_left_to_the_next_call(void **state)
{
	struct roci_turn turn;

	assert_false(receive_after_call(1, 30 * US));
	turn = next();
	assert_int_equal(turn.what, ROCI_TURN_SLEEP);
	assert_int_equal(turn.until, now - 1 * US + 50 * US);
	assert_true(roci_turns_send_after_call(&turns));
}

static void it_is_sent_where_no_call_comes(void **state)
{
	left_in_vain();
	drive(0);
}

static void after_two_vain_attempts_it_is_rarely_left(void **state)
{
	unsigned left = 0;

	left_in_vain();
	left_in_vain();
	for (unsigned i = 0; i < 64; i++) {
		if (receive_after_call(1, 30 * US))
			continue;
		left++;
		assert_int_equal(next().what, ROCI_TURN_SLEEP);
		now += 50 * US;
		awake();
		assert_true(drive_received(1));
		roci_turns_sent(&turns, now);
	}
	assert_int_equal(left, 2);
}

static void packets_of_a_stream_are_answered_at_once(void **state)
{
	assert_true(receive_after_call(3, 30 * US));
}

static void nothing_is_left_to_a_program_that_does_not_call(void **state)
{
	assert_true(receive_after_call(1, 1100 * US));
}

/* ib_write_lat polls for its own completion, so it finds the peer's answer itself. */
static void a_program_that_polls_between_receives_the_answer(void **state)
{
	assert_false(receive_after_call(1, 30 * US));
	assert_int_equal(next().what, ROCI_TURN_SLEEP);
	roci_turns_sent(&turns, now); /* by a call */
	roci_turns_polled(&turns, 0, 1);
	last_call = now;
	now += 30 * US;
	awake();
	assert_false(drive_received(1));
	assert_int_equal(next().what, ROCI_TURN_NAP);
	roci_turns_sent(&turns, now);
	roci_turns_polled(&turns, 0, 1);
	now += 50 * US;
	last_call = now;
	awake();
	assert_int_equal(nap_while_polled(), 100 * US); /* though it stays otherwise: the call before was stale */
}

/* The program polls until the thread takes its place, which may take long. */
static void a_late_awakening_makes_no_call_stale(void **state)
{
	struct roci_turn turn;

	last_call = now;
	turn = next();
	assert_int_equal(turn.what, ROCI_TURN_NAP);
	last_call = turn.until - 1 * US;
	roci_turns_polled(&turns, 0, 0);
	now = turn.until + 30 * US;
	awake();
	assert_int_equal(next().what, ROCI_TURN_NAP);
}

/* ---- after a nap in which nobody polled ---- */

static void it_stands_in_for_polls_that_did_not_come(void **state)
{
	last_call = now;
	nap_alone();
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(next().what, ROCI_TURN_STAND_IN);
		roci_turns_stood_in(&turns, true);
		now += 1 * US;
	}
	assert_int_equal(next().what, ROCI_TURN_STAND_IN);
	roci_turns_stood_in(&turns, false);
	drive(0);
}

static void it_stands_in_no_longer_than_it_napped(void **state)
{
	uint64_t end;

	last_call = now;
	nap_alone();
	end = now + 50 * US;
	for (; now <= end; now += 1 * US) {
		assert_int_equal(next().what, ROCI_TURN_STAND_IN);
		roci_turns_stood_in(&turns, true);
	}
	assert_int_equal(next().what, ROCI_TURN_DRIVE);
}

static void a_poll_meanwhile_ends_that(void **state)
{
	last_call = now;
	nap_alone();
	assert_int_equal(next().what, ROCI_TURN_STAND_IN);
	roci_turns_stood_in(&turns, true);
	roci_turns_polled(&turns, 0, 1);
	assert_int_not_equal(next().what, ROCI_TURN_STAND_IN);
}

static void a_nap_with_polls_needs_no_stand_in(void **state)
{
	last_call = now;
	nap_while_polled();
	assert_int_equal(next().what, ROCI_TURN_NAP);
}

static void a_sleep_needs_no_stand_in(void **state)
{
	sleep_for(1 * MS);
	drive(0);
}

/* ---- busy polling ---- */

/* Packets moved; then nothing for `quiet` turns of 1 us, and the thread sleeps. Returns how often it stayed awake. */
static unsigned quiet_after_packets(void)
{
	unsigned stayed = 0;

	drive(1);
	for (;;) {
		drive(0);
		if (next().what == ROCI_TURN_SLEEP)
			break;
		stayed++;
	}
	now += 1 * MS;
	awake();
	return stayed;
}

/* Packets come `times` times, 10 us after each other. */
static void packets_in_a_row(unsigned times)
{
	for (unsigned i = 0; i < times; i++) {
		drive(1);
		for (unsigned k = 0; k < 9; k++) {
			drive(0);
			if (next().what == ROCI_TURN_SLEEP) {
				now += (9 - k) * US;
				awake();
				break;
			}
		}
	}
}

static void it_tries_busy_polling_now_and_then(void **state)
{
	unsigned tries = 0;

	for (unsigned i = 0; i < 320; i++)
		tries += quiet_after_packets() != 0;
	assert_int_equal(tries, 10);
}

static void it_busy_polls_while_that_pays(void **state)
{
	packets_in_a_row(100);
	assert_int_equal(turns.busy_poll_worth, 16);
	/* Each sleep after 20 us of nothing is a failure, and it takes 16 to stop. */
	for (unsigned i = 0; i < 16; i++)
		assert_in_range(quiet_after_packets(), 19, 21);
	assert_int_equal(turns.busy_poll_worth, 0);
	assert_int_equal(quiet_after_packets(), 0);
}

static void a_busy_poll_that_pays_again_restores_the_trust(void **state)
{
	packets_in_a_row(100);
	for (unsigned i = 0; i < 8; i++)
		quiet_after_packets();
	packets_in_a_row(100);
	assert_int_equal(turns.busy_poll_worth, 16);
}

/* The waiter's turn of 1 us. */
static unsigned waiter_turn(unsigned moved)
{
	struct roci_turn turn = roci_turns_waiter_next(&turns, now, 0, NEVER);

	if (turn.what == ROCI_TURN_BUSY_POLL)
		turn = roci_turns_waiter_next(&turns, now, 0, NEVER);
	if (turn.what != ROCI_TURN_DRIVE)
		return turn.what;
	roci_turns_drove(&turns, now, moved);
	now += 1 * US;
	return turn.what;
}

/* Packets come 150 us after each other, since the peer slept before it sent each: that is too rare for the thread. */
static void a_waiter_stays_awake_longer_than_the_thread(void **state)
{
	unsigned slept = 0;

	assert_true(roci_turns_wait_begin(&turns));
	for (unsigned i = 0; i < 100; i++) {
		waiter_turn(1);
		for (unsigned k = 0; k < 149; k++) {
			if (waiter_turn(0) != ROCI_TURN_SLEEP)
				continue;
			slept++;
			now += (149 - k) * US;
			roci_turns_waiter_awoke(&turns, now, 0);
			break;
		}
	}
	assert_in_range(slept, 0, 40); /* until the first attempt that pays */
	waiter_turn(1);
	now += 201 * US;
	waiter_turn(0);
	assert_int_equal(waiter_turn(0), ROCI_TURN_SLEEP);
}

static void a_program_that_polls_ends_busy_polling(void **state)
{
	packets_in_a_row(100);
	drive(0);
	assert_int_equal(next().what, ROCI_TURN_BUSY_POLL);
	now += 3 * MS; /* past the time after its last sleep in which it stays */
	last_call = now;
	assert_int_equal(next().what, ROCI_TURN_NAP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(nothing_to_do_sleeps_until_the_deadline),
		CASE(a_packet_wakes_it_and_it_drives),
		CASE(only_an_earlier_deadline_wakes_it_and_only_once),
		CASE(one_that_naps_is_not_woken),
		CASE(polls_make_it_nap_longer_and_longer),
		CASE(a_stale_call_is_none),
		CASE(a_call_after_now_is_fresh),
		CASE(when_polls_stop_it_stays_on_the_sockets),
		CASE(calls_are_judged_when_it_awakes),
		CASE(an_acknowledgement_is_left_to_the_next_call),
		CASE(it_is_sent_where_no_call_comes),
		CASE(after_two_vain_attempts_it_is_rarely_left),
		CASE(packets_of_a_stream_are_answered_at_once),
		CASE(nothing_is_left_to_a_program_that_does_not_call),
		CASE(a_program_that_polls_between_receives_the_answer),
		CASE(a_late_awakening_makes_no_call_stale),
		CASE(on_a_slow_machine_a_program_that_polls_calls_less_often),
		CASE(a_turn_that_was_interrupted_says_nothing),
		CASE(a_long_streak_ends_in_one_nap),
		CASE(a_long_streak_goes_on_without_a_recent_call),
		CASE(it_stands_in_for_polls_that_did_not_come),
		CASE(it_stands_in_no_longer_than_it_napped),
		CASE(a_poll_meanwhile_ends_that),
		CASE(a_nap_with_polls_needs_no_stand_in),
		CASE(a_sleep_needs_no_stand_in),
		CASE(it_tries_busy_polling_now_and_then),
		CASE(it_busy_polls_while_that_pays),
		CASE(a_busy_poll_that_pays_again_restores_the_trust),
		CASE(a_program_that_polls_ends_busy_polling),
		CASE(a_waiter_stays_awake_longer_than_the_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
