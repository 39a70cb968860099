/* SPDX-License-Identifier: BSD-2-Clause */
#include "../test.h"

#include "engine/engine.h"
#include "engine/pace.h"
#include "engine/path.h"

#define MS     UINT64_C(1000000)
#define RATE   UINT64_C(10000000) /* 10 bytes per us */
#define PACKET 1000u

/* Sends what is due, and returns how much that was. A late wake-up catches up to `most` ns. */
static unsigned late_burst(struct roci_pace *p, uint64_t now, uint64_t quantum, uint64_t most)
{
	unsigned n = 0;

	while (roci_pace_is_due(p, now, quantum, RATE, most)) {
		roci_pace_sent(p, now, PACKET, quantum, RATE);
		assert_true(++n < 1000);
	}
	return n;
}

static unsigned burst(struct roci_pace *p, uint64_t now, uint64_t quantum)
{
	return late_burst(p, now, quantum, 0);
}

/* Whoever asks at the times that it is told sends at the rate, in bursts of a quantum. */
static void sends_at_the_rate_in_bursts(void **state)
{
	struct roci_pace p = {.at = 100 * MS};
	uint64_t now = 100 * MS, sent = 0;

	while (now < 200 * MS) {
		unsigned n = burst(&p, now, 10 * PACKET);

		assert_int_equal(n, 10);
		sent += n * PACKET;
		assert_true(p.at > now);
		now = p.at;
	}
	assert_int_equal(sent, RATE / 10);
}

/* A late caller catches up by a quantum, and no more. */
static void a_late_caller_catches_up_a_little(void **state)
{
	struct roci_pace p = {.at = 100 * MS};

	assert_int_equal(burst(&p, 100 * MS, 10 * PACKET), 10);
	assert_int_equal(burst(&p, 101 * MS + MS / 2, 10 * PACKET), 15);
	assert_int_equal(burst(&p, 900 * MS, 10 * PACKET), 20);
}

/* Who waited for the next burst, and was woken late, loses nothing of the rate up to `most`. */
static void a_late_wake_up_catches_up_more(void **state)
{
	struct roci_pace p = {.at = 100 * MS};

	assert_int_equal(burst(&p, 100 * MS, 10 * PACKET), 10);
	assert_int_equal(p.at, 101 * MS);
	assert_int_equal(late_burst(&p, 105 * MS, 10 * PACKET, 8 * MS), 50);
	assert_int_equal(p.at, 106 * MS);
	assert_int_equal(late_burst(&p, 126 * MS, 10 * PACKET, 8 * MS), 90);
	assert_int_equal(p.at, 127 * MS);
}

/* Who did not wait for the pace, but for something else, was not late: neither before a late burst, nor after it. */
static void what_waited_for_something_else_is_not_late(void **state)
{
	struct roci_pace p = {.at = 100 * MS};

	assert_int_equal(late_burst(&p, 120 * MS, 10 * PACKET, 8 * MS), 20);
	assert_true(roci_pace_is_due(&p, 125 * MS, 10 * PACKET, RATE, 8 * MS)); /* 4 ms late, a packet goes, */
	roci_pace_sent(&p, 125 * MS, PACKET, 10 * PACKET, RATE);
	assert_int_equal(late_burst(&p, 140 * MS, 10 * PACKET, 8 * MS), 49); /* the rest waits for something else */
	assert_int_equal(late_burst(&p, p.at, 10 * PACKET, 8 * MS), 10);
	p.waiting = false;
	assert_int_equal(late_burst(&p, 160 * MS, 10 * PACKET, 8 * MS), 20);
}

/* A far path whose burst has ended, and a sender that waits for the next one, at `at`. */
struct paced {
	struct roci_engine *engine;
	struct roci_path *path;
	struct roci_list sender;
	uint64_t at;
};

static void begin_paced(struct paced *d)
{
	static const uint8_t gid[16] = {1};
	struct roci_sent_state state;

	d->engine = roci_engine_create();
	assert_non_null(d->engine);
	d->path = roci_path_get(d->engine, gid, gid);
	assert_non_null(d->path);
	assert_int_equal(roci_timers_reserve(d->path->timers, 1), 0);
	roci_list_init(&d->sender);
	roci_path_rtt(d->path, 100 * MS, 20 * MS, false);
	roci_path_agree(d->path, 100 * MS);
	assert_true(d->path->far);
	while (roci_path_admits(d->path, 100 * MS, true, &d->sender))
		roci_path_sent(d->path, 100 * MS, PACKET, &state);
	d->at = d->path->pace.at;
	assert_true(d->path->pace.waiting && d->at > 100 * MS);
}

static void end_paced(struct paced *d)
{
	roci_list_remove(&d->sender);
	roci_path_put(d->path);
	roci_engine_destroy(d->engine);
}

/* A sender that has nothing to send any more does not wait, and what comes after that was not late. Before its time the
 * next burst does not begin all the same. */
static void who_has_nothing_to_send_does_not_wait(void **state)
{
	struct paced d;

	begin_paced(&d);
	roci_path_unawaited(d.path, d.at);
	assert_true(d.path->pace.waiting); /* the sender is in the list */
	roci_list_remove(&d.sender);
	roci_path_unawaited(d.path, d.at - 1);
	assert_true(d.path->pace.waiting);
	roci_path_unawaited(d.path, d.at);
	assert_false(d.path->pace.waiting);
	end_paced(&d);
}

/* The sender is gone when its time comes. */
static void who_is_gone_does_not_wait(void **state)
{
	struct paced d;

	begin_paced(&d);
	roci_list_remove(&d.sender);
	d.path->timer.expire(&d.path->timer);
	assert_false(d.path->pace.waiting);
	end_paced(&d);
}

/* Nothing goes between two bursts. */
static void waits_for_the_next_burst(void **state)
{
	struct roci_pace p = {.at = 100 * MS};

	burst(&p, 100 * MS, 10 * PACKET);
	assert_int_equal(burst(&p, 101 * MS - 1, 10 * PACKET), 0);
	assert_int_equal(burst(&p, 101 * MS, 10 * PACKET), 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sends_at_the_rate_in_bursts),
		cmocka_unit_test(a_late_caller_catches_up_a_little),
		cmocka_unit_test(a_late_wake_up_catches_up_more),
		cmocka_unit_test(what_waited_for_something_else_is_not_late),
		cmocka_unit_test(waits_for_the_next_burst),
		cmocka_unit_test(who_has_nothing_to_send_does_not_wait),
		cmocka_unit_test(who_is_gone_does_not_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
