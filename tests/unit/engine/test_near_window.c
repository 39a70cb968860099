/* SPDX-License-Identifier: BSD-2-Clause */
/* The window of a path nearby, after packets were lost in a queue that was full, where they are lost by chance, and
 * while the peer is silent. */
#include <assert.h>

#include "../test.h"

#include "engine/path.h"

#define MS     UINT64_C(1000000)
#define NOW    (1000 * MS)
#define WINDOW (UINT64_C(128) << 10)

/* A round trip in which the window was full. Returns by how much it has grown. */
static uint64_t round_trip(struct roci_path *p)
{
	uint64_t before = p->cwnd;

	p->flight = before;
	for (unsigned i = 0; i < 16; i++)
		roci_path_acked(p, NOW, before / 16, NULL);
	return p->cwnd - before;
}

static struct roci_timers timers;

static struct roci_path path(uint64_t rtt_ns)
{
	struct roci_path p = {
		.cwnd = WINDOW, .ssthresh = WINDOW, .srtt = rtt_ns, .base_rtt = rtt_ns, .timers = &timers};

	roci_timer_init(&p.timer);
	return p;
}

static void it_grows_slowly_where_packets_were_lost(void **state)
{
	struct roci_path p = path(MS / 4);
	unsigned fast = 0, slow = 0;

	assert_in_range(round_trip(&p), 4000, 4096);
	p.cwnd = WINDOW;
	roci_path_lost(&p, NOW, 1024, NULL, 0);
	assert_int_equal(p.cwnd, WINDOW / 2);
	for (; p.cwnd < WINDOW - WINDOW / 8 - 4096; fast++)
		assert_in_range(round_trip(&p), 3900, 4096);
	assert_in_range(fast, 10, 14);
	round_trip(&p);
	for (; p.cwnd <= WINDOW; slow++)
		assert_in_range(round_trip(&p), 1, 256);
	assert_in_range(slow, 64, 80);
	p.cwnd = WINDOW + WINDOW / 8 + 1; /* the queue must be another one by now */
	assert_in_range(round_trip(&p), 4000, 4096);
}

/* There packets are lost by chance, and a round trip takes longer. */
static void it_does_not_where_the_path_is_far(void **state)
{
	struct roci_path p = path(20 * MS);

	roci_path_lost(&p, NOW, 1024, NULL, 0);
	p.cwnd = p.flight = WINDOW;
	roci_path_acked(&p, NOW, WINDOW / 16, NULL);
	assert_int_equal(p.cwnd - WINDOW, 4096 / 16);
}

/* `bytes` are delivered, then a packet is lost, `n` times, with round trips of `srtt`. */
static void lose(struct roci_path *p, unsigned n, uint64_t bytes, uint64_t srtt)
{
	static uint64_t now = NOW;

	p->srtt = srtt;
	while (n--) {
		roci_path_acked(p, now, bytes, NULL);
		now += 10 * MS;
		roci_path_lost(p, now, 1024, NULL, 0);
	}
}

static void losses_by_chance_make_it_lossy(void **state)
{
	struct roci_path p = path(MS / 4);

	lose(&p, 7, 256 << 10, MS / 4);
	assert_false(roci_path_may_be_far(&p));
	lose(&p, 1, 256 << 10, MS / 4);
	assert_true(roci_path_may_be_far(&p));
	assert_false(roci_path_may_be_long(&p));
}

/* Of those losses some come late. */
static void so_do_those_that_are_not_all_early(void **state)
{
	struct roci_path p = path(MS / 4), queued = path(MS / 4);

	for (unsigned i = 0; i < 4; i++) {
		assert_false(roci_path_may_be_far(&p));
		lose(&p, 2, 256 << 10, MS / 4);
		p.cwnd = p.lost_at;
		lose(&p, 1, 4 << 20, MS / 4);
	}
	assert_true(roci_path_may_be_far(&p));
	for (unsigned i = 0; i < 100; i++) {
		lose(&queued, 7, 256 << 10, MS / 4);
		lose(&queued, 1, 256 << 10, 2 * MS);
	}
	assert_false(roci_path_may_be_far(&queued));
}

/* The path of READ responses is measured no more while it is near, so nothing else would make it far again. */
static void a_lossy_path_whose_peer_has_agreed_is_far_at_once(void **state)
{
	struct roci_path p = path(MS / 4);

	p.agreed = p.was_near = true;
	lose(&p, 7, 256 << 10, MS / 4);
	assert_false(p.far);
	lose(&p, 1, 256 << 10, MS / 4);
	assert_true(p.far);
}

static void without_a_round_trip_nothing_is_known(void **state)
{
	struct roci_path p = path(0);

	lose(&p, 100, 256 << 10, 0);
	assert_false(roci_path_may_be_far(&p));
}

/* A full queue makes round trips longer, or the window has grown back before. */
static void losses_of_a_full_queue_do_not(void **state)
{
	struct roci_path queued = path(MS / 4), rare = path(MS / 4);

	lose(&queued, 100, 256 << 10, 2 * MS);
	assert_false(roci_path_may_be_far(&queued));
	for (unsigned i = 0; i < 100; i++) {
		lose(&rare, 1, 4 << 20, MS / 4);
		rare.cwnd = rare.lost_at;
	}
	assert_false(roci_path_may_be_far(&rare));
}

/* Round trips of `rtt_ns`, until the window has had time to be cut often. */
static uint64_t window_after(uint64_t rtt_ns)
{
	struct roci_path p = path(MS / 4);

	for (unsigned i = 0; i < 100; i++)
		roci_path_rtt(&p, NOW + i * rtt_ns, rtt_ns, false);
	return p.cwnd;
}

/* Of a queue, or of threads: where many processes share a processor, each waits for milliseconds. */
static void only_a_long_delay_shrinks_it(void **state)
{
	assert_int_equal(window_after(8 * MS), WINDOW);
	assert_in_range(window_after(10 * MS), 16 << 10, WINDOW / 4);
}

/* A round trip takes longer than a QP waits that knows of none: the first packets of the path are sent again, not all
 * of them, when the answers to the first time come. */
static void answers_to_what_was_sent_again_tell_the_first_window(void **state)
{
	struct roci_path p = path(600 * MS);

	p.cwnd = p.ssthresh = ROCI_FIRST_WINDOW;
	p.flight = 4 * 1280;
	roci_path_acked(&p, NOW, 9 * 1280, NULL);
	p.flight = 4 * 1280;
	roci_path_acked(&p, NOW + 200000, 4 * 1280, NULL);
	assert_true(p.first.done);
	assert_true(p.cwnd >= ROCI_FIRST_WINDOW_MOST);
}

/* A path of ours over a line of 200 us, which has lost packets in its queue; its window is full, and a QP waits. */
static struct roci_list waits;

static struct roci_path silent_path(void)
{
	struct roci_path p = path(MS);

	p.base_rtt = MS / 5;
	p.ours = true;
	p.lost_at = WINDOW;
	p.quiet_from = NOW;
	return p;
}

/* Who waits asks, then the path's timer expires. Returns the time, 0 where there is none. */
static uint64_t wait(struct roci_path *p, uint64_t now)
{
	struct roci_timer *expired;

	p->flight = roci_path_window(p);
	roci_list_init(&p->blocked);
	roci_list_init(&waits);
	assert_false(roci_path_admits(p, now, roci_path_fits(p, 1), &waits));
	expired = roci_timers_expired(&timers, now + 100 * MS);
	if (!expired)
		return 0;
	now = p->overdraw_at;
	roci_path_overdraw(p);
	roci_timers_expired(&timers, now + 100 * MS);
	return now;
}

static void while_the_peer_is_silent_the_line_is_filled(void **state)
{
	struct roci_path p = silent_path();
	uint64_t first = wait(&p, NOW), second;

	assert_int_equal(first, NOW + MS / 4);
	assert_int_equal(roci_path_window(&p), WINDOW + WINDOW / 8);
	second = wait(&p, first);
	assert_int_equal(second, first + MS / 8);
	assert_int_equal(roci_path_window(&p), WINDOW + WINDOW / 4);
	while (p.overdraft < 3 * WINDOW)
		second = wait(&p, second);
	assert_int_equal(wait(&p, second), 0);
	roci_path_acked(&p, second, 1024, NULL);
	assert_in_range(roci_path_window(&p), WINDOW, WINDOW + 1024);
}

static void a_peer_that_answers_is_not_silent(void **state)
{
	struct roci_path p = silent_path();

	p.flight = roci_path_window(&p);
	roci_path_acked(&p, NOW + MS / 8, 1024, NULL);
	assert_int_equal(wait(&p, NOW + MS / 8), NOW + MS / 8 + MS / 4);
	assert_int_not_equal(p.overdraft, 0);
}

/* Nor is one whose first answer is not due yet. */
static void silence_begins_when_an_answer_is_due(void **state)
{
	struct roci_path p = silent_path();

	p.quiet_from = 0; /* long ago */
	roci_path_begins(&p, NOW);
	assert_int_equal(wait(&p, NOW), NOW + MS + MS / 4);
}

/* It was too much, or all of it is lost. */
static void a_cut_takes_back_what_went_beyond_the_window(void **state)
{
	for (unsigned i = 0; i < 3; i++) {
		struct roci_path p = silent_path();
		uint64_t at = wait(&p, NOW);

		assert_int_not_equal(p.overdraft, 0);
		if (i == 0)
			roci_path_lost(&p, at, 1024, NULL, 0);
		else if (i == 1)
			roci_path_marked(&p, at);
		else
			roci_path_silent(&p, at);
		assert_int_equal(roci_path_window(&p), WINDOW / 2);
		assert_int_equal(p.quiet_from, at + MS);
	}
}

static void elsewhere_nothing_goes_beyond_the_window(void **state)
{
	struct roci_path p = silent_path();

	p.ours = false;
	assert_int_equal(wait(&p, NOW), 0);
	p = silent_path();
	p.base_rtt = MS / 10; /* memory, or a fast line */
	assert_int_equal(wait(&p, NOW), 0);
	p = silent_path();
	roci_path_room(&p, WINDOW); /* of the peer's buffer */
	assert_int_equal(wait(&p, NOW), 0);
	p = silent_path();
	p.lost_at = 0;
	assert_int_equal(wait(&p, NOW), 0);
	p = silent_path();
	roci_path_marked(&p, NOW); /* its socket fills up */
	assert_int_equal(wait(&p, NOW + 500 * MS), 0);
	assert_int_not_equal(wait(&p, NOW + 1100 * MS), 0);
}

/* What one full queue has dropped is known after two round trips, where the peer tells it. Another cut would take the
 * window that the first one left for the one that was too large. */
static void a_full_queue_cuts_once_where_the_peer_tells_what_is_missing(void **state)
{
	struct roci_path p = path(MS);

	p.was_near = p.agreed = true;
	roci_path_lost(&p, NOW, 1024, NULL, 0);
	roci_path_lost(&p, NOW + 2 * MS, 1024, NULL, 0);
	assert_int_equal(p.cwnd, WINDOW / 2);
	assert_int_equal(p.lost_at, WINDOW);
	roci_path_lost(&p, NOW + 2 * MS + 1, 1024, NULL, 0);
	assert_int_equal(p.cwnd, WINDOW / 4);
}

static void a_line_is_no_memory_and_has_lost_packets(void **state)
{
	struct roci_path p = path(MS / 5);

	assert_false(roci_path_is_line(&p));
	roci_path_lost(&p, NOW, 1024, NULL, 0);
	assert_true(roci_path_is_line(&p));
	p.base_rtt = MS / 10;
	assert_false(roci_path_is_line(&p));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_grows_slowly_where_packets_were_lost),
		cmocka_unit_test(it_does_not_where_the_path_is_far),
		cmocka_unit_test(losses_by_chance_make_it_lossy),
		cmocka_unit_test(so_do_those_that_are_not_all_early),
		cmocka_unit_test(a_lossy_path_whose_peer_has_agreed_is_far_at_once),
		cmocka_unit_test(without_a_round_trip_nothing_is_known),
		cmocka_unit_test(losses_of_a_full_queue_do_not),
		cmocka_unit_test(only_a_long_delay_shrinks_it),
		cmocka_unit_test(answers_to_what_was_sent_again_tell_the_first_window),
		cmocka_unit_test(while_the_peer_is_silent_the_line_is_filled),
		cmocka_unit_test(a_peer_that_answers_is_not_silent),
		cmocka_unit_test(silence_begins_when_an_answer_is_due),
		cmocka_unit_test(a_cut_takes_back_what_went_beyond_the_window),
		cmocka_unit_test(elsewhere_nothing_goes_beyond_the_window),
		cmocka_unit_test(a_full_queue_cuts_once_where_the_peer_tells_what_is_missing),
		cmocka_unit_test(a_line_is_no_memory_and_has_lost_packets),
	};
	int failed;

	assert(!roci_timers_reserve(&timers, 1));
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	roci_timers_free(&timers);
	return failed;
}
