/* SPDX-License-Identifier: BSD-2-Clause */
/* The order of receiving and timers, with an engine and sockets that only pretend. */
#include "../test.h"

#include "device/device_state.h"
#include "device/drive.h"
#include "device/watch.h"

#define NOW UINT64_C(1000)

static struct roci_device dev;
static unsigned waiting;     /* packets in the socket's buffer; each receive takes one */
static unsigned answered_by; /* the packet of them that is the answer which a timer waits for; 0: none */
static unsigned receives, ring_receives, expired, transmits;
static bool leave; /* a turn leaves what is ready to the program's next call */
static unsigned cm_drives, events;
static uint64_t deadline;
static bool in_ring, has_tx;
static unsigned calls, flushes; /* of a stream; of rings */
static struct roci_stats_file file;

unsigned roci_receive(struct roci_device *d, uint64_t now)
{
	receives++;
	if (!waiting)
		return 0;
	waiting--;
	if (receives == answered_by)
		deadline = NOW + 1000;
	return 1;
}

unsigned roci_receive_by_rings(struct roci_device *d, uint64_t now)
{
	ring_receives++;
	return 0;
}

bool roci_local_waits(const struct roci_local *l)
{
	return in_ring;
}

uint64_t roci_engine_deadline(const struct roci_engine *e)
{
	return deadline;
}

bool roci_engine_has_tx(const struct roci_engine *e)
{
	return has_tx;
}

void roci_engine_timers(struct roci_engine *e, uint64_t now)
{
	expired++;
	deadline = ROCI_NEVER;
}

uint64_t roci_udp_deadline(const struct roci_udp *udp)
{
	return ROCI_NEVER;
}

void roci_udp_timers(struct roci_udp *udp, uint64_t now)
{
}

unsigned roci_transmit(struct roci_device *d, uint64_t now)
{
	transmits++;
	return 0;
}

bool roci_engine_has_event(const struct roci_engine *e)
{
	return events;
}

void roci_local_flush(struct roci_local *l)
{
	flushes++;
}

void roci_turns_sent(struct roci_turns *t, uint64_t now)
{
}

void roci_watch_change(struct roci_device *d)
{
}

bool roci_engine_next_event(struct roci_engine *e, struct roci_event *ev)
{
	*ev = (struct roci_event){.kind = ROCI_EV_COMPLETION};
	return events && events--;
}

static void on_event(const struct roci_event *ev)
{
}

void roci_cm_host_qp_failed(struct roci_device *d)
{
}

void roci_cm_host_drive(struct roci_device *d, uint64_t now)
{
	cm_drives++;
}

bool roci_turns_send_after_poll(struct roci_turns *t, unsigned received)
{
	return true;
}

bool roci_turns_send_before_event(struct roci_turns *t, unsigned received)
{
	return false;
}

uint64_t roci_progress_last_call(const struct roci_device *d)
{
	return 0;
}

bool roci_turns_send_after_turn(struct roci_turns *t, uint64_t now, unsigned received, uint64_t last_call)
{
	return !leave;
}

bool roci_turns_send_after_call(struct roci_turns *t)
{
	calls++;
	return true;
}

bool roci_turns_send_after_post(struct roci_turns *t, uint64_t now, bool more)
{
	return roci_turns_send_after_call(t);
}

void roci_turns_posted(struct roci_turns *t, uint64_t now)
{
}

uint64_t roci_now(void)
{
	return 0;
}

static int reset(void **state)
{
	waiting = answered_by = receives = ring_receives = expired = transmits = 0;
	leave = has_tx = false;
	calls = flushes = 0;
	dev.stats_map.file = &file;
	dev.on_event = on_event;
	deadline = ROCI_NEVER;
	dev.local.peek.count = 0;
	dev.local.peek.sizes[1] = NULL;
	return 0;
}

static void without_a_deadline_one_receive_is_a_turn(void **state)
{
	waiting = 5;
	assert_int_equal(roci_drive(&dev, NOW), 1);
	assert_int_equal(receives, 1);
	assert_int_equal(expired, 0);
	assert_int_equal(transmits, 1);
}

/* The process could not run for a while: the timer has run out, and the answer is in the socket behind other packets.
 */
static void what_has_arrived_comes_before_silence(void **state)
{
	deadline = NOW - 1;
	waiting = 8;
	answered_by = 5;
	assert_int_equal(roci_drive(&dev, NOW), 5);
	assert_int_equal(expired, 0);
	deadline = NOW - 1;
	answered_by = 0;
	assert_int_equal(roci_drive_poll(&dev, NOW), 3);
	assert_int_equal(expired, 1);
}

static void a_turn_may_leave_its_answers_to_the_next_call(void **state)
{
	waiting = 1;
	leave = true;
	assert_int_equal(roci_drive(&dev, NOW), 1);
	assert_int_equal(transmits, 0);
}

static void an_empty_socket_is_silence(void **state)
{
	deadline = NOW;
	assert_int_equal(roci_drive(&dev, NOW), 0);
	assert_int_equal(receives, 1);
	assert_int_equal(expired, 1);
}

/* A flood delays no timer for long. */
static void a_flood_does_not_stop_the_timers(void **state)
{
	deadline = NOW;
	waiting = UINT32_MAX;
	assert_true(roci_drive(&dev, NOW) <= 16);
	assert_int_equal(expired, 1);
}

/* While packets come by rings a poll may leave the sockets out, but no timer expires by that. */
static void a_timer_that_is_due_reads_the_sockets(void **state)
{
	roci_local_glance_saw(&dev.receive.glance, NOW, 1, 0);
	dev.receive.glance.sockets_at = NOW;
	waiting = 1;
	roci_drive_poll(&dev, NOW);
	assert_int_equal(receives, 0);
	assert_int_equal(ring_receives, 0);
	in_ring = true;
	roci_drive_poll(&dev, NOW);
	assert_int_equal(receives, 0);
	assert_int_equal(ring_receives, 1);
	in_ring = false;
	transmits = 0;
	dev.turns.deferred = true; /* what an earlier call left */
	roci_drive_poll(&dev, NOW);
	assert_true(transmits > 0);
	dev.turns.deferred = false;
	deadline = NOW - 1;
	answered_by = 1;
	roci_drive_poll(&dev, NOW);
	assert_int_equal(receives, 1);
	assert_int_equal(expired, 0);
	/* Who sleeps on the sockets reads them, or is woken again at once. */
	roci_drive(&dev, NOW);
	assert_int_equal(receives, 2);
}

/* Most polls need neither the time nor the lock, unless something waits in a ring. */
static void a_poll_that_finds_nothing_needs_no_lock(void **state)
{
	_Atomic uint32_t size = 0;

	dev.receive.glance = (struct roci_local_glance){.peeks = 4, .granted = 4};
	dev.local.peek.sizes[1] = &size;
	dev.local.peek.count = 2;
	assert_true(roci_drive_peek(&dev));
	size = 64;
	assert_false(roci_drive_peek(&dev));
	size = 0;
	assert_true(roci_drive_peek(&dev));
	dev.local.peek.count = ROCI_LOCAL_PEEKED + 1;
	assert_false(roci_drive_peek(&dev));
	dev.local.peek.count = 2;
	assert_false(roci_drive_peek(&dev)); /* now and then one does */
}

/* What was left to the next poll does not wait for one that has the lock. */
static void what_is_deferred_ends_the_peeks(void **state)
{
	dev.receive.glance = (struct roci_local_glance){.peeks = 4, .granted = 4};
	roci_drive_post(&dev, NOW);
	assert_true(roci_drive_peek(&dev));
	dev.turns.deferred = true;
	roci_drive_post(&dev, NOW);
	assert_false(roci_drive_peek(&dev));
	dev.turns.deferred = false;
}

/* A request that was executed at once leaves nothing to be sent, and is no call of a stream. */
static void a_brief_post_shows_what_is_in_rings(void **state)
{
	assert_true(roci_drive_post_is_brief(&dev));
	roci_drive_post_briefly(&dev, 1);
	assert_int_equal(calls, 0);
	dev.local.unpublished = true;
	assert_true(roci_drive_post_is_brief(&dev));
	roci_drive_post_briefly(&dev, 1);
	assert_int_equal(calls, 1);
	assert_int_equal(flushes, 1);
	assert_int_equal(transmits, 0);
	dev.local.unpublished = false;
	dev.turns.deferred = true; /* by a call before */
	roci_drive_post_briefly(&dev, 1);
	assert_int_equal(flushes, 2);
	dev.turns.deferred = false;
}

/* What may call a function that is a cancellation point. */
static void packets_events_and_captures_are_not_brief(void **state)
{
	has_tx = true;
	assert_false(roci_drive_post_is_brief(&dev));
	has_tx = false;
	events = 1;
	assert_false(roci_drive_post_is_brief(&dev));
	events = 0;
	dev.transmit.more = true;
	assert_false(roci_drive_post_is_brief(&dev));
	dev.transmit.more = false;
	file.watcher = 1;
	assert_false(roci_drive_post_is_brief(&dev));
	file.watcher = 0;
	assert_true(roci_drive_post_is_brief(&dev));
}

/* Connections are driven with the sockets, or where a QP tells something. */
static void connections_are_driven_with_the_sockets(void **state)
{
	dev.receive.glance = (struct roci_local_glance){.until = NOW + 1, .sockets_at = NOW};
	in_ring = true;
	cm_drives = 0;
	roci_drive_poll(&dev, NOW);
	assert_int_equal(cm_drives, 0);
	events = 1;
	roci_drive_poll(&dev, NOW);
	assert_int_equal(cm_drives, 1);
	in_ring = false;
	roci_drive_poll(&dev, NOW + 1);
	assert_int_equal(receives, 1);
	assert_int_equal(cm_drives, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(without_a_deadline_one_receive_is_a_turn, reset),
		cmocka_unit_test_setup(what_has_arrived_comes_before_silence, reset),
		cmocka_unit_test_setup(a_turn_may_leave_its_answers_to_the_next_call, reset),
		cmocka_unit_test_setup(an_empty_socket_is_silence, reset),
		cmocka_unit_test_setup(a_flood_does_not_stop_the_timers, reset),
		cmocka_unit_test_setup(a_timer_that_is_due_reads_the_sockets, reset),
		cmocka_unit_test_setup(a_poll_that_finds_nothing_needs_no_lock, reset),
		cmocka_unit_test_setup(what_is_deferred_ends_the_peeks, reset),
		cmocka_unit_test_setup(a_brief_post_shows_what_is_in_rings, reset),
		cmocka_unit_test_setup(packets_events_and_captures_are_not_brief, reset),
		cmocka_unit_test_setup(connections_are_driven_with_the_sockets, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
