/* SPDX-License-Identifier: BSD-2-Clause */
/* Who drives, by a virtual clock: what the tests of turns.h share. */
#ifndef ROCI_TESTS_DEVICE_TURNS_CLOCK_H
#define ROCI_TESTS_DEVICE_TURNS_CLOCK_H

#include "../test.h"

#include "device/turns.h"

#define US    1000u
#define MS    1000000u
#define START (1000u * MS)
#define NEVER UINT64_MAX

static struct roci_turns turns;
static uint64_t now, last_call;

static inline int start(void **state)
{
	turns = (struct roci_turns){0};
	now = START;
	last_call = 0;
	return 0;
}

static inline struct roci_turn next(void)
{
	return roci_turns_next(&turns, now, last_call, NEVER);
}

/* The thread takes a turn of 1 us. */
static inline void drive(unsigned moved)
{
	assert_int_equal(next().what, ROCI_TURN_DRIVE);
	roci_turns_drove(&turns, now, moved);
	now += 1 * US;
}

static inline void awake(void)
{
	roci_turns_awoke(&turns, now, last_call);
}

/* The thread finds nothing, and sleeps for `ns`. */
static inline void sleep_for(uint64_t ns)
{
	drive(0);
	assert_int_equal(next().what, ROCI_TURN_SLEEP);
	now += ns;
	awake();
}

/* The thread naps, while the program polls every microsecond. Returns how long the nap was. */
static inline uint64_t nap_while_polled(void)
{
	struct roci_turn turn = next();
	uint64_t began = now;

	assert_int_equal(turn.what, ROCI_TURN_NAP);
	for (; now < turn.until; now += 1 * US) {
		last_call = now;
		assert_true(roci_turns_send_after_poll(&turns, 0));
		roci_turns_polled(&turns, 0, 0);
	}
	awake();
	return turn.until - began;
}

/* The thread naps, and nobody calls. */
static inline void nap_alone(void)
{
	struct roci_turn turn = next();

	assert_int_equal(turn.what, ROCI_TURN_NAP);
	now = turn.until;
	awake();
}

/* The program has called, and the thread awakes from its sleep. */
static inline void call_while_asleep(void)
{
	sleep_for(1 * MS);
	now += 1 * MS;
	last_call = now - 1 * US;
	awake();
}

#define CASE(name) cmocka_unit_test_setup(name, start)

#endif
