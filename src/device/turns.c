/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/turns.h"

/* The times below suit a machine where a turn that finds nothing takes less than this. Where it takes longer (an
 * emulated processor: 20 us), all of them are that many times as long, up to a limit: a program that polls there
 * without a pause does not call within FRESH_NS either. */
#define ORDINARY_TURN_NS 4000
#define SLOWER_MAX       16
/* A turn may be interrupted, so what is known of how long it takes grows slowly, and falls at once. */
#define TURN_GROWTH 16
/* When the last call is no older than this, the program is polling: it calls again within a few microseconds. */
#define FRESH_NS 10000
/* Naps grow from the first to the longest while calls go on. The first is short, because calls may stop at once; the
 * longest bounds how late a packet can be seen when they do. */
#define NAP_FIRST_NS   50000
#define NAP_LONGEST_NS 1000000
/* Without a nap, once calls were found to have stopped: a program that polls a little and then spins on memory
 * (ib_write_lat) must not wait for the end of a nap. */
#define STAY_NS 2000000
/* A thread that has driven for so long naps once, if the last call is recent: its own driving may be what keeps the
 * program, which shares the processor or the lock, from calling. */
#define STREAK_NS 500000
#define RECENT_NS 5000000
/* To fall asleep and be woken costs more than to check again a few times, for this host and, on a virtual machine above
 * all, for its peer. So the thread stays awake this long after packets moved, if more mostly come within it. It does
 * not yield the processor: where a program spins on the same one, that would cost a whole time slice. But there nothing
 * comes while the thread stays awake, so that it soon stops trying. */
#define BUSY_POLL_NS 20000
/* A thread of the program that waits for an event is in nobody's way. Its peer may sleep in the same way: then the
 * answer takes a wake-up of the peer's (25 to 60 us on virtual machines). A thread that falls asleep before that lets
 * the peer wait as long, and so both go on sleeping (ib_send_lat -e: 77 us; 14 where both stay awake). */
#define WAITER_BUSY_POLL_NS 200000
/* How many failures it takes to stop after it paid for long, and how many sleeps it then takes to try again. */
#define BUSY_POLL_WORTH_MAX 16
#define BUSY_POLL_TRY_EVERY 32
/* A poll that received more packets than this sends at once: they are a stream, and the peer's window waits for their
 * acknowledgement. */
#define DEFER_RECEIVED_MAX 2
/* For what the thread receives, of a program that called so lately: how long it waits for the next call, after how many
 * failures it stops to do so, and how many turns it then takes to try again. */
#define LEAVE_RECENT_NS 1000000
#define LEAVE_NS        50000
#define LEAVE_FAILURES  2
#define LEAVE_TRY_EVERY 32
/* Calls that are sent together while the thread naps: what a message and its acknowledgement cost both kernels is the
 * same for few packets and for many. More of them gain nothing (64: no difference), and the wire would idle meanwhile.
 */
#define DEFER_CALLS 32
/* Posts follow each other quickly where so many in a row came so soon after the end of the last. A program that spins
 * on memory between two posts (ib_write_lat) waits for its peer's system call each time, and the peer's processor. */
#define QUICK_POSTS 6
#define QUICK_NS    2000
/* How long a post is deferred at most where the thread does not nap, but for AWAY_NS where it stands by; after how many
 * failures that is not tried, and how many posts it then takes to try again. */
#define DEFER_NS        100000
#define DEFER_FAILURES  2
#define DEFER_TRY_EVERY 1024
/* Calls that each sent for itself before the thread is woken to see the stream: a wake-up costs a few sends. */
#define STREAM_CALLS 64
/* How long a thread that waited may be away with its event before the device's thread takes over. Until then nobody
 * listens, as in a nap. */
#define AWAY_NS 1000000
/* Polls that brought nothing before the program's thread yields its processor: a system call each. */
#define YIELD_EVERY 32
/* As long as a poll takes, so many take that only peek at memory. */
#define PEEKS_A_POLL 4

/* A turn that found nothing took so long. */
static void learn_turn(struct roci_turns *t, uint64_t took)
{
	uint64_t slowly = t->turn_ns + t->turn_ns / TURN_GROWTH + 1;

	t->turn_ns = took < slowly || !t->turn_ns ? took : slowly;
}

/* A time, as long as this machine needs it. */
static uint64_t here(const struct roci_turns *t, uint64_t ns)
{
	uint64_t slower = 1 + t->turn_ns / ORDINARY_TURN_NS;

	return ns * (slower < SLOWER_MAX ? slower : SLOWER_MAX);
}

/* The age of the last call. After a sleep or nap it is the age at waking, since the program could have the processor
 * until then. */
static uint64_t call_age(struct roci_turns *t, uint64_t now, uint64_t last_call)
{
	uint64_t age = now > last_call ? now - last_call : 0;

	if (t->rested) {
		t->rested = false;
		age = t->call_age;
		if (age > here(t, FRESH_NS))
			t->stay_until = now + here(t, STAY_NS);
	}
	return age;
}

/* Decides whether the thread leaves the driving to the program, and for how long (nap_ns). */
static bool program_drives(struct roci_turns *t, uint64_t now, uint64_t last_call)
{
	uint64_t age = call_age(t, now, last_call);
	bool drives = false;

	if (now >= t->stay_until || t->leave_pays)
		drives = age <= here(t, FRESH_NS) ||
			 (t->driving_since && now - t->driving_since > here(t, STREAK_NS) && age < here(t, RECENT_NS));
	if (!drives)
		t->nap_ns = 0;
	else if (!t->nap_ns)
		t->nap_ns = here(t, NAP_FIRST_NS);
	else if (t->nap_ns < here(t, NAP_LONGEST_NS))
		t->nap_ns *= 2;
	if (t->nap_ns > here(t, NAP_LONGEST_NS))
		t->nap_ns = here(t, NAP_LONGEST_NS);
	return drives;
}

/* Whether to stay awake after a turn in which nothing moved. */
static bool busy_polls(struct roci_turns *t)
{
	if (t->drove_at - t->moved_at > here(t, t->has_waiter ? WAITER_BUSY_POLL_NS : BUSY_POLL_NS)) {
		if (t->busy_polled && t->busy_poll_worth)
			t->busy_poll_worth--;
		t->busy_polled = false;
		return false;
	}
	if (!t->busy_poll_worth && !t->busy_polled && ++t->sleeps % BUSY_POLL_TRY_EVERY)
		return false;
	t->busy_polled = true;
	return true;
}

static bool stands_in(struct roci_turns *t, uint64_t now)
{
	if (t->standing_in && (t->polled != t->polled_before || now - t->nap_end > t->nap_ns))
		t->standing_in = false;
	return t->standing_in;
}

static void begin_rest(struct roci_turns *t, uint64_t until)
{
	t->rest_until = until;
	t->polled_before = t->polled;
}

static struct roci_turn sleep_until(struct roci_turns *t, uint64_t until)
{
	begin_rest(t, until);
	t->wake_at = until;
	return (struct roci_turn){ROCI_TURN_SLEEP, until};
}

static struct roci_turn nap_until(struct roci_turns *t, uint64_t until)
{
	begin_rest(t, until);
	t->napping = true;
	return (struct roci_turn){ROCI_TURN_NAP, until};
}

/* The thread has left something to the program's next call, and gives it time. Where the program polls now and then, it
 * does not listen meanwhile: the program's next poll finds the peer's answer. */
static struct roci_turn leave(struct roci_turns *t, uint64_t deadline)
{
	bool polls = t->polled != t->polled_at_leave;

	t->polled_at_leave = t->polled;
	if (!polls)
		return sleep_until(t, deadline < t->leave_until ? deadline : t->leave_until);
	t->nap_ns = here(t, LEAVE_NS);
	return nap_until(t, t->leave_until);
}

/* It has rested since. */
static void end_leave(struct roci_turns *t)
{
	t->leave_until = 0;
	t->leave_failures = t->left ? t->leave_failures + 1 : 0;
	t->leave_pays = !t->left;
}

static struct roci_turn next(struct roci_turns *t, uint64_t now, uint64_t last_call, uint64_t deadline)
{
	bool idle = t->idle;

	if (idle)
		learn_turn(t, now - t->drove_at);
	t->idle = false;
	if (t->leave_until && !t->rested)
		return leave(t, deadline);
	if (t->leave_until)
		end_leave(t);
	if (idle && busy_polls(t))
		return (struct roci_turn){ROCI_TURN_BUSY_POLL, now};
	if (idle)
		return sleep_until(t, deadline);
	if (stands_in(t, now))
		return (struct roci_turn){ROCI_TURN_STAND_IN, now};
	if (!program_drives(t, now, last_call))
		return (struct roci_turn){ROCI_TURN_DRIVE, now};
	return nap_until(t, now + t->nap_ns);
}

struct roci_turn roci_turns_next(struct roci_turns *t, uint64_t now, uint64_t last_call, uint64_t deadline)
{
	uint64_t back_at = t->wait_ended + here(t, AWAY_NS);

	if (t->has_waiter) {
		t->standing_by = true;
		return (struct roci_turn){ROCI_TURN_STAND_BY, UINT64_MAX};
	}
	if (t->waiting || now >= back_at)
		return next(t, now, last_call, deadline);
	t->standing_by = t->alarm_set = true;
	return (struct roci_turn){ROCI_TURN_STAND_BY, back_at};
}

void roci_turns_alarmed(struct roci_turns *t)
{
	t->standing_by = t->alarm_set = false;
}

void roci_turns_drove(struct roci_turns *t, uint64_t now, unsigned moved)
{
	t->drove_at = now;
	t->idle = !moved;
	if (!moved)
		return;
	if (!t->driving_since)
		t->driving_since = now;
	if (t->busy_polled && t->busy_poll_worth < BUSY_POLL_WORTH_MAX)
		t->busy_poll_worth++;
	t->busy_polled = false;
	t->moved_at = now;
}

bool roci_turns_send_after_turn(struct roci_turns *t, uint64_t now, unsigned received, uint64_t last_call)
{
	if (!received || received > DEFER_RECEIVED_MAX || t->deferred || now > last_call + here(t, LEAVE_RECENT_NS))
		return true;
	if (t->leave_failures >= LEAVE_FAILURES && ++t->not_left % LEAVE_TRY_EVERY)
		return true;
	t->deferred = t->left = true;
	t->leave_until = now + here(t, LEAVE_NS);
	return false;
}

void roci_turns_stood_in(struct roci_turns *t, bool more)
{
	t->standing_in = more;
}

/* The age of the last call when the rest should have ended: to put the thread in the place of a program that polls may
 * take tens of microseconds, on a virtual machine above all. */
static uint64_t age_at_waking(const struct roci_turns *t, uint64_t now, uint64_t last_call)
{
	uint64_t due = now > t->rest_until ? t->rest_until : now;

	return due > last_call ? due - last_call : 0;
}

static void awoke(struct roci_turns *t, uint64_t now, uint64_t last_call)
{
	t->standing_in = t->napping;
	t->nap_end = now;
	t->napping = false;
	t->wake_at = 0;
	t->rested = true;
	t->call_age = age_at_waking(t, now, last_call);
	t->driving_since = 0;
}

void roci_turns_awoke(struct roci_turns *t, uint64_t now, uint64_t last_call)
{
	if (t->has_waiter)
		t->thread_wakes_at = 0;
	else
		awoke(t, now, last_call);
}

bool roci_turns_wait_begin(struct roci_turns *t)
{
	if (t->waiting++)
		return false;
	t->has_waiter = true;
	t->thread_wakes_at = t->wake_at;
	t->wake_at = 0;
	t->napping = t->idle = t->standing_in = false;
	t->leave_until = 0;
	return true;
}

struct roci_turn roci_turns_waiter_next(struct roci_turns *t, uint64_t now, uint64_t last_call, uint64_t deadline)
{
	return next(t, now, last_call, deadline);
}

void roci_turns_waiter_awoke(struct roci_turns *t, uint64_t now, uint64_t last_call)
{
	awoke(t, now, last_call);
}

bool roci_turns_send_before_event(struct roci_turns *t, unsigned received)
{
	/* A thread that does not stand by has no alarm, and would not send it if no call comes. */
	if (!received || received > DEFER_RECEIVED_MAX || !t->standing_by)
		return true;
	t->deferred = true;
	return false;
}

uint64_t roci_turns_wait_end(struct roci_turns *t, uint64_t now, bool drove)
{
	t->waiting--;
	if (!drove)
		return UINT64_MAX;
	t->wait_ended = now;
	t->has_waiter = t->napping = t->idle = false;
	t->wake_at = t->thread_wakes_at;
	if (!t->standing_by || (t->alarm_set && !t->waiting))
		return UINT64_MAX;
	t->alarm_set = true;
	return t->waiting ? now : now + here(t, AWAY_NS);
}

bool roci_turns_wake(struct roci_turns *t, uint64_t deadline)
{
	bool wake = t->wake_at && (t->stream || deadline < t->wake_at);

	t->stream = false;
	if (wake)
		t->wake_at = 0; /* once is enough */
	return wake;
}

bool roci_turns_send_after_poll(struct roci_turns *t, unsigned received)
{
	t->calls = 0;
	if (!received || received > DEFER_RECEIVED_MAX || !t->napping)
		return true;
	t->deferred = true;
	return false;
}

bool roci_turns_send_after_call(struct roci_turns *t)
{
	if (t->napping && t->calls && t->calls < DEFER_CALLS) {
		t->calls++;
		t->deferred = true;
		return false;
	}
	t->calls = 1;
	if (!t->napping && ++t->sent_alone == STREAM_CALLS) {
		t->sent_alone = 0;
		t->stream = true;
	}
	return true;
}

static bool is_quick(struct roci_turns *t, uint64_t now)
{
	t->quick_posts = now - t->posted_at <= here(t, QUICK_NS) ? t->quick_posts + 1 : 0;
	t->posted_at = now;
	return t->quick_posts >= QUICK_POSTS;
}

bool roci_turns_send_after_post(struct roci_turns *t, uint64_t now, bool more)
{
	bool soon = is_quick(t, now) || more;

	if (t->napping || !soon || !t->calls || t->calls >= DEFER_CALLS ||
	    (t->defer_failures >= DEFER_FAILURES && ++t->not_deferred % DEFER_TRY_EVERY))
		return roci_turns_send_after_call(t);
	t->calls++;
	t->deferred = true;
	if (!t->defer_until)
		t->defer_until = now + here(t, DEFER_NS);
	return false;
}

void roci_turns_posted(struct roci_turns *t, uint64_t now)
{
	t->posted_at = now;
}

uint64_t roci_turns_deadline(const struct roci_turns *t)
{
	return t->defer_until ? t->defer_until : UINT64_MAX;
}

/* Whoever sends what posts deferred, it is late where the program had stopped posting: the thread, the next poll, or a
 * thread that waits for an event. */
static bool is_late(const struct roci_turns *t, uint64_t now)
{
	return now >= t->defer_until && now - t->posted_at > here(t, QUICK_NS);
}

void roci_turns_sent(struct roci_turns *t, uint64_t now)
{
	t->deferred = t->left = false;
	if (t->defer_until)
		t->defer_failures = is_late(t, now) ? t->defer_failures + 1 : 0;
	t->defer_until = 0;
}

bool roci_turns_polled(struct roci_turns *t, unsigned peeked, unsigned received)
{
	unsigned before = t->idle_polls;

	t->polled++;
	t->idle_polls = received ? 0 : before + 1 + peeked / PEEKS_A_POLL;
	return t->idle_polls / YIELD_EVERY > before / YIELD_EVERY;
}
