/* SPDX-License-Identifier: BSD-2-Clause */
/* Who drives: threads of the program that wait, and what its calls and polls send. */
#include "turns_clock.h"

/* ---- a thread of the program that waits for an event ---- */

/* The thread asks what to do, and stands by. Returns for when its alarm is set. */
static uint64_t stands_by(void)
{
	struct roci_turn turn = next();

	assert_int_equal(turn.what, ROCI_TURN_STAND_BY);
	return turn.until;
}

/* A thread waits, and gets its event with the first packet. Returns for when the thread's alarm is set. */
static uint64_t wait_for_a_packet(void)
{
	assert_true(roci_turns_wait_begin(&turns));
	assert_int_equal(roci_turns_waiter_next(&turns, now, 0, NEVER).what, ROCI_TURN_DRIVE);
	roci_turns_drove(&turns, now, 0);
	assert_int_equal(roci_turns_waiter_next(&turns, now, 0, NEVER).what, ROCI_TURN_SLEEP);
	now += 10 * US;
	roci_turns_waiter_awoke(&turns, now, 0);
	assert_int_equal(roci_turns_waiter_next(&turns, now, 0, NEVER).what, ROCI_TURN_DRIVE);
	roci_turns_drove(&turns, now, 1);
	return roci_turns_wait_end(&turns, now, true);
}

static void a_waiter_takes_the_threads_part(void **state)
{
	assert_true(roci_turns_wait_begin(&turns));
	assert_true(stands_by() == NEVER);
	assert_int_equal(roci_turns_waiter_next(&turns, now, 0, NEVER).what, ROCI_TURN_DRIVE);
	roci_turns_drove(&turns, now, 0);
	assert_int_equal(roci_turns_waiter_next(&turns, now, 0, now + 5 * MS).what, ROCI_TURN_SLEEP);
	assert_true(roci_turns_wake(&turns, now + 4 * MS)); /* it keeps the deadlines */
}

static void it_naps_while_others_poll(void **state)
{
	assert_true(roci_turns_wait_begin(&turns));
	assert_int_equal(roci_turns_waiter_next(&turns, now, now, NEVER).what, ROCI_TURN_NAP);
}

static void the_thread_stays_away_while_waits_follow_each_other(void **state)
{
	uint64_t alarm;

	assert_true(roci_turns_wait_begin(&turns));
	stands_by();
	alarm = roci_turns_wait_end(&turns, now, true);
	assert_int_equal(alarm, now + 1 * MS);
	for (unsigned i = 0; i < 10; i++) {
		now += 50 * US;
		assert_true(wait_for_a_packet() == NEVER); /* it is set */
	}
	now = alarm;
	roci_turns_alarmed(&turns);
	assert_int_equal(stands_by(), alarm - 400 * US + 1 * MS); /* the last wait ended 400 us before */
}

static void the_thread_takes_over_when_no_wait_follows(void **state)
{
	assert_true(roci_turns_wait_begin(&turns));
	stands_by();
	now = roci_turns_wait_end(&turns, now, true);
	roci_turns_alarmed(&turns);
	drive(0);
	assert_int_equal(next().what, ROCI_TURN_SLEEP);
}

static void a_sleeping_thread_goes_on_sleeping_and_listens_after_the_wait(void **state)
{
	drive(0);
	assert_int_equal(roci_turns_next(&turns, now, last_call, now + 5 * MS).what, ROCI_TURN_SLEEP);
	assert_true(wait_for_a_packet() == NEVER);
	assert_true(roci_turns_wake(&turns, now + 1 * MS)); /* it sleeps still */
	awake();
	assert_int_equal(next().what, ROCI_TURN_STAND_BY); /* the next wait may follow */
}

static void only_one_has_the_part_and_others_get_the_thread_at_once(void **state)
{
	assert_true(roci_turns_wait_begin(&turns));
	stands_by();
	assert_false(roci_turns_wait_begin(&turns));
	assert_int_equal(roci_turns_wait_end(&turns, now, true), now);
	roci_turns_alarmed(&turns);
	drive(0);
	assert_false(roci_turns_wait_begin(&turns)); /* while another waits */
	assert_true(roci_turns_wait_end(&turns, now, false) == NEVER);
	assert_true(roci_turns_wait_end(&turns, now, false) == NEVER);
	assert_true(roci_turns_wait_begin(&turns));
}

static void an_event_defers_the_acknowledgement_of_a_packet_or_two(void **state)
{
	assert_true(roci_turns_wait_begin(&turns));
	assert_true(roci_turns_send_before_event(&turns, 1)); /* no alarm would send it */
	stands_by();
	assert_true(roci_turns_send_before_event(&turns, 0));
	assert_true(roci_turns_send_before_event(&turns, 3)); /* a stream */
	assert_false(turns.deferred);
	assert_false(roci_turns_send_before_event(&turns, 2));
	assert_true(turns.deferred);
}

/* ---- what is sent when ---- */

static void a_poll_sends_at_once_while_the_thread_does_not_nap(void **state)
{
	assert_true(roci_turns_send_after_poll(&turns, 0));
	assert_true(roci_turns_send_after_poll(&turns, 1));
	drive(0);
	next();
	assert_true(roci_turns_send_after_poll(&turns, 1)); /* it sleeps: nobody else would send */
	assert_false(turns.deferred);
}

static void a_poll_defers_the_acknowledgement_of_a_packet_or_two(void **state)
{
	last_call = now;
	assert_int_equal(next().what, ROCI_TURN_NAP);
	assert_true(roci_turns_send_after_poll(&turns, 0));
	assert_false(turns.deferred);
	assert_false(roci_turns_send_after_poll(&turns, 1));
	assert_true(turns.deferred);
	roci_turns_sent(&turns, now);
	assert_false(roci_turns_send_after_poll(&turns, 2));
	assert_true(turns.deferred);
	roci_turns_sent(&turns, now);
	assert_false(turns.deferred);
	assert_true(roci_turns_send_after_poll(&turns, 3)); /* a stream */
}

static void the_first_call_after_a_poll_sends_and_others_are_sent_together(void **state)
{
	last_call = now;
	assert_int_equal(next().what, ROCI_TURN_NAP);
	for (unsigned round = 0; round < 3; round++) {
		roci_turns_send_after_poll(&turns, 0);
		assert_true(roci_turns_send_after_call(&turns));
		roci_turns_sent(&turns, now);
		for (unsigned i = 1; i < 32; i++) {
			assert_false(roci_turns_send_after_call(&turns));
			assert_true(turns.deferred);
		}
		assert_true(roci_turns_send_after_call(&turns)); /* 32 are enough */
		roci_turns_sent(&turns, now);
		assert_false(roci_turns_send_after_call(&turns));
	}
}

static void a_call_sends_at_once_while_the_thread_does_not_nap(void **state)
{
	for (unsigned i = 0; i < 1000; i++)
		assert_true(roci_turns_send_after_call(&turns));
	assert_false(turns.deferred);
}

/* Posts `count` times, `gap` apart. Returns how many were deferred. */
static unsigned post(unsigned count, uint64_t gap, bool more)
{
	unsigned deferred = 0;

	for (unsigned i = 0; i < count; i++, now += gap) {
		if (roci_turns_send_after_post(&turns, now, more))
			roci_turns_sent(&turns, now);
		else
			deferred++;
	}
	return deferred;
}

/* The first goes alone, for latency. */
static void posts_of_a_program_with_completions_to_poll_are_sent_together(void **state)
{
	roci_turns_send_after_poll(&turns, 0);
	assert_int_equal(post(1, 20 * US, true), 0);
	assert_true(roci_turns_deadline(&turns) == NEVER);
	assert_int_equal(post(31, 20 * US, true), 31);
	assert_true(turns.deferred);
	assert_true(roci_turns_deadline(&turns) == START + 120 * US); /* of the first that waits */
	assert_int_equal(post(1, 20 * US, true), 0);                  /* 32 are enough */
	assert_true(roci_turns_deadline(&turns) == NEVER);
	assert_int_equal(post(3, 20 * US, true), 3);
	assert_int_equal(post(1, 20 * US, false), 0); /* the last */
}

static void posts_that_follow_each_other_quickly_are_sent_together(void **state)
{
	roci_turns_send_after_poll(&turns, 0);
	assert_int_equal(post(6, 2 * US, false), 0);
	assert_int_equal(post(26, 2 * US, false), 26);
	now += 1 * US;
	assert_int_equal(post(100, 3 * US, false), 0); /* the peer's answer for each */
	assert_int_equal(post(6, 2 * US, false), 0);
	assert_int_equal(post(1, 2 * US, false), 1);
}

/* What it takes to send is not the program's time. */
static void posts_are_quick_though_each_takes_long_to_send(void **state)
{
	roci_turns_send_after_poll(&turns, 0);
	for (unsigned i = 0; i < 6; i++) {
		assert_int_equal(post(1, 20 * US, false), 0);
		roci_turns_posted(&turns, now);
		now += 1 * US;
	}
	assert_int_equal(post(1, 2 * US, false), 1);
}

/* The sleeping thread sends what the program left behind. */
static void the_thread_comes_back_for_deferred_posts(void **state)
{
	drive(0);
	assert_int_equal(next().what, ROCI_TURN_SLEEP);
	assert_int_equal(post(3, 1 * US, true), 2);
	assert_true(roci_turns_wake(&turns, roci_turns_deadline(&turns)));
	assert_false(roci_turns_wake(&turns, roci_turns_deadline(&turns))); /* once is enough */
	last_call = now - 1 * MS;
	awake();
	assert_int_equal(next().what, ROCI_TURN_DRIVE);
}

/* A program that posts a few, and then spins on memory: after two times in which the thread had to send them, it is
 * tried now and then. */
static void posts_are_not_deferred_where_no_call_follows(void **state)
{
	unsigned deferred = 0;

	for (unsigned i = 0; i < 10; i++) {
		roci_turns_send_after_poll(&turns, 0);
		deferred += post(3, 1 * US, true);
		now += 200 * US;
		last_call = 0;
		roci_turns_send_after_turn(&turns, now, 0, last_call);
		roci_turns_sent(&turns, now);
	}
	assert_int_equal(deferred, 4);
}

/* Likewise where a poll comes too late, or a thread that waits for an event sends them at the deadline. */
static void posts_that_anybody_sends_late_are_deferred_no_more(void **state)
{
	unsigned deferred = 0;

	for (unsigned i = 0; i < 10; i++) {
		roci_turns_send_after_poll(&turns, 0);
		deferred += post(3, 1 * US, true);
		now += i & 1 ? 98 * US : 500 * US;
		roci_turns_sent(&turns, now);
	}
	assert_int_equal(deferred, 4);
}

/* The last of 32 comes after the deadline: the program has called all the time. */
static void a_stream_is_not_late(void **state)
{
	roci_turns_send_after_poll(&turns, 0);
	assert_int_equal(post(6, 2 * US, false), 0);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(post(64, 2 * US, false), 62);
}

/* A program that posts in a stream, and never polls: the sleeping thread is woken to see it, and naps. */
static void a_stream_of_calls_wakes_the_thread(void **state)
{
	unsigned calls;

	drive(0);
	assert_int_equal(next().what, ROCI_TURN_SLEEP);
	for (calls = 1; calls < 100; calls++) {
		roci_turns_send_after_call(&turns);
		last_call = now;
		if (roci_turns_wake(&turns, NEVER))
			break;
		now += 1 * US;
	}
	assert_int_equal(calls, 64);
	awake();
	assert_int_equal(next().what, ROCI_TURN_NAP);
	assert_true(roci_turns_send_after_call(&turns) + roci_turns_send_after_call(&turns) < 2);
}

static void a_stream_while_it_is_awake_wakes_nobody_later(void **state)
{
	for (unsigned i = 0; i < 64; i++) {
		roci_turns_send_after_call(&turns);
		assert_false(roci_turns_wake(&turns, NEVER));
	}
	drive(0);
	assert_int_equal(next().what, ROCI_TURN_SLEEP);
	roci_turns_send_after_call(&turns);
	assert_false(roci_turns_wake(&turns, NEVER));
}

static void a_call_while_it_sleeps_makes_it_nap_when_it_awakes(void **state)
{
	call_while_asleep();
	assert_int_equal(next().what, ROCI_TURN_NAP);
}

static void every_32nd_idle_poll_yields(void **state)
{
	unsigned yields = 0;

	for (unsigned i = 0; i < 31; i++)
		assert_false(roci_turns_polled(&turns, 0, 0));
	assert_true(roci_turns_polled(&turns, 0, 0));
	assert_false(roci_turns_polled(&turns, 0, 1));
	for (unsigned i = 0; i < 320; i++)
		yields += roci_turns_polled(&turns, 0, 0);
	assert_int_equal(yields, 10);
}

/* Polls that only look at memory take less time, so it takes more of them. */
static void polls_that_peek_count_less(void **state)
{
	unsigned yields = 0;

	for (unsigned i = 0; i < 320; i++)
		yields += roci_turns_polled(&turns, 31, 0);
	assert_in_range(yields, 60, 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_waiter_takes_the_threads_part),
		CASE(it_naps_while_others_poll),
		CASE(the_thread_stays_away_while_waits_follow_each_other),
		CASE(the_thread_takes_over_when_no_wait_follows),
		CASE(a_sleeping_thread_goes_on_sleeping_and_listens_after_the_wait),
		CASE(only_one_has_the_part_and_others_get_the_thread_at_once),
		CASE(an_event_defers_the_acknowledgement_of_a_packet_or_two),
		CASE(a_poll_sends_at_once_while_the_thread_does_not_nap),
		CASE(a_poll_defers_the_acknowledgement_of_a_packet_or_two),
		CASE(the_first_call_after_a_poll_sends_and_others_are_sent_together),
		CASE(a_call_sends_at_once_while_the_thread_does_not_nap),
		CASE(posts_of_a_program_with_completions_to_poll_are_sent_together),
		CASE(posts_that_follow_each_other_quickly_are_sent_together),
		CASE(posts_are_quick_though_each_takes_long_to_send),
		CASE(the_thread_comes_back_for_deferred_posts),
		CASE(posts_are_not_deferred_where_no_call_follows),
		CASE(posts_that_anybody_sends_late_are_deferred_no_more),
		CASE(a_stream_is_not_late),
		CASE(a_stream_of_calls_wakes_the_thread),
		CASE(a_stream_while_it_is_awake_wakes_nobody_later),
		CASE(a_call_while_it_sleeps_makes_it_nap_when_it_awakes),
		CASE(every_32nd_idle_poll_yields),
		CASE(polls_that_peek_count_less),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
