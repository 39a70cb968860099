/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who drives the engine: the device's thread or the program that calls. Pure: no lock, socket, thread or clock is in
 * it. What happened goes in, with the time; what to do comes out. Times are nanoseconds of one monotonic clock.
 *
 * The thread sleeps on the sockets. It drives when a packet arrives or a deadline comes. That serves one-sided targets
 * and programs that sleep or spin on memory. A program that polls drives the engine itself, and a thread that woke for
 * each packet would only be in its way. So while the program calls, the thread naps, and takes over when calls stop.
 *
 * A program that posts in a stream without polling also makes the thread nap: while it naps, it is known to check again
 * soon, so posts need not be sent one by one. (ib_send_bw of 64 bytes went from 0.2 to 1.3 million messages a second.)
 * Where it does not nap, posts wait for the next call or poll, too, if the program posts again and again quickly, or
 * has more completions to poll: the first goes at once, and the thread has a deadline for the others.
 *
 * But only polls receive and run timers. After a nap in which nobody polled, the thread stands in: it does what a poll
 * does, until nothing more comes, and no longer than it napped. The program may be posting to a full queue, which only
 * an acknowledgement empties, or it may be registering memory for a second.
 *
 * A program that spins on memory (ib_write_lat) answers at once what the thread received for it. So the thread leaves
 * the acknowledgement to the program's next call, as polls do, and sleeps for a moment to give it the processor. Then
 * the answer and the acknowledgement are one message, and a peer that polls for the one finds both.
 *
 * A program that blocks until an event comes (ibv_get_cq_event()) would pay for two wake-ups: the thread's, and its
 * own. So a thread of the program that waits takes the thread's part: it sleeps on the sockets and takes every decision
 * above, while the thread stands by. The waiting thread is gone when its event comes, perhaps for long, perhaps to wait
 * again at once; so the thread takes over a moment later if nobody waits then. It takes over at once where other
 * threads wait. They only wait: one that took the part each time would hand it back each time.
 *
 * How long "recent", "soon" and "a moment" are depends on the machine: on an emulated processor a program that polls
 * without a pause calls every 30 us. So the thread learns from its own turns how long one takes that finds nothing.
 */
#ifndef ROCI_DEVICE_TURNS_H
#define ROCI_DEVICE_TURNS_H

#include <stdbool.h>
#include <stdint.h>

struct roci_turns {
	/* The thread. */
	bool napping;           /* it neither drives nor listens, and is back soon */
	uint64_t wake_at;       /* when the sleeping thread wakes by itself; 0: awake, napping, or being woken */
	bool rested;            /* it slept or napped since the last decision who drives */
	uint64_t call_age;      /* age of the program's last call, when the thread awoke */
	uint64_t rest_until;    /* of its last sleep or nap */
	uint64_t stay_until;    /* until then calls do not make it nap */
	uint64_t driving_since; /* when packets first moved after the last sleep or nap; 0: not yet */
	uint64_t nap_ns;        /* the current or last nap; 0: it did not nap */
	uint64_t nap_end;       /* when it awoke from the nap */
	bool standing_in;       /* for polls, after a nap without any */
	bool standing_by;       /* a thread of the program had or has its part; an alarm brings it back */
	bool alarm_set;
	unsigned polled_before; /* `polled` when it began to rest */

	uint64_t turn_ns; /* what a turn that finds nothing takes on this machine, about the least */

	/* Acknowledgements that it leaves to the program's next call. */
	bool left;                /* and no call has sent them yet */
	uint64_t leave_until;     /* it sends them itself then; 0: it left none */
	bool leave_pays;          /* the last time a call came before */
	unsigned leave_failures;  /* in a row: no call came in time */
	unsigned not_left;        /* turns in which it was not tried because of them */
	unsigned polled_at_leave; /* `polled` when it last left something */

	/* Threads of the program that wait for events. */
	unsigned waiting;         /* all of them */
	uint64_t wait_ended;      /* when the last one that had the thread's part ended its wait */
	bool has_waiter;          /* one has the thread's part */
	uint64_t thread_wakes_at; /* `wake_at` of a thread that was asleep when the waiter began */

	/* Its busy polling: turns without sleeping though nothing came. */
	uint64_t drove_at, moved_at; /* its last turn, and the last in which packets moved */
	bool idle;                   /* nothing moved in its last turn */
	bool busy_polled;            /* since packets moved */
	unsigned busy_poll_worth;    /* how often it paid lately, up to a limit */
	unsigned sleeps;             /* without busy polling, since it stopped paying */

	/* The program's calls. */
	bool deferred;           /* something may be ready that a call did not send */
	unsigned calls;          /* since the last poll */
	unsigned sent_alone;     /* calls that sent each for itself */
	uint64_t posted_at;      /* the end of the last post */
	unsigned quick_posts;    /* in a row, each soon after the one before */
	uint64_t defer_until;    /* what posts deferred while the thread does not nap is sent then; 0: nothing */
	unsigned defer_failures; /* in a row: no call came in time, and no post soon before */
	unsigned not_deferred;   /* posts that were not because of them */
	bool stream;             /* there were many such: the thread should see it and nap */
	unsigned polled;         /* polls that drove */
	unsigned idle_polls;     /* in a row that brought nothing */
};

/* ---- the thread ---- */

struct roci_turn {
	enum {
		ROCI_TURN_DRIVE,     /* receive, run timers, send; then roci_turns_drove() */
		ROCI_TURN_STAND_IN,  /* do as a poll of the program would; then roci_turns_stood_in() */
		ROCI_TURN_BUSY_POLL, /* stay awake: let others have the lock, then ask again */
		ROCI_TURN_NAP,       /* neither drive nor listen until then; then roci_turns_awoke() */
		ROCI_TURN_SLEEP,     /* wait for packets, a wake-up or that time; then roci_turns_awoke() */
		ROCI_TURN_STAND_BY,  /* set the alarm to that time, and wait for it only; then roci_turns_alarmed() */
	} what;
	uint64_t until; /* of NAP, SLEEP and STAND_BY */
};

/* What the thread does now. last_call: when the program last called, polls included; deadline: when the engine or the
 * connection manager has work, UINT64_MAX for never. */
struct roci_turn roci_turns_next(struct roci_turns *t, uint64_t now, uint64_t last_call, uint64_t deadline);
/* The thread, standing by, was woken by its alarm. */
void roci_turns_alarmed(struct roci_turns *t);
/* The thread's turn at `now` received so many packets. Returns true where what is ready is to be sent now, false where
 * that is left to the program's next call. */
bool roci_turns_send_after_turn(struct roci_turns *t, uint64_t now, unsigned received, uint64_t last_call);
/* The thread took a turn that began at `now`, in which `moved` packets were received or sent. */
void roci_turns_drove(struct roci_turns *t, uint64_t now, unsigned moved);
/* The thread stood in for the program's polls. more: packets came, or there is more to send. */
void roci_turns_stood_in(struct roci_turns *t, bool more);
/* The thread slept or napped until now. */
void roci_turns_awoke(struct roci_turns *t, uint64_t now, uint64_t last_call);
/* True, once, where the thread sleeps and has to be woken: a deadline is due before it wakes by itself, or the program
 * calls in a stream. */
bool roci_turns_wake(struct roci_turns *t, uint64_t deadline);

/* ---- threads of the program that wait for an event ---- */

/* Begins to wait. Returns true where the caller takes the thread's part: it asks roci_turns_waiter_next(), reports as
 * the thread does, and a nap ends when its event comes. False: it waits for its event only. */
bool roci_turns_wait_begin(struct roci_turns *t);
/* What the waiter with the thread's part does now, see roci_turns_next(). */
struct roci_turn roci_turns_waiter_next(struct roci_turns *t, uint64_t now, uint64_t last_call, uint64_t deadline);
/* It slept or napped until now. */
void roci_turns_waiter_awoke(struct roci_turns *t, uint64_t now, uint64_t last_call);
/* So many packets were received, and its event came. Returns true where what is ready is to be sent now, false where
 * that is deferred to the program's next call, as by roci_turns_send_after_poll(). */
bool roci_turns_send_before_event(struct roci_turns *t, unsigned received);
/* Ends the wait. drove: what the begin returned. Returns the time to which the thread's alarm is to be set; UINT64_MAX:
 * to none, or it is set. */
uint64_t roci_turns_wait_end(struct roci_turns *t, uint64_t now, bool drove);

/* ---- the program's calls ---- */

/* A poll received so many packets. Returns true where what is ready is to be sent now, false where that is deferred to
 * the next call: the program sees its completion earlier, and its answer goes with the acknowledgement. */
bool roci_turns_send_after_poll(struct roci_turns *t, unsigned received);
/* A call that is no poll changed something. Returns true where what is ready is to be sent now, false where that is
 * deferred: while the thread naps, the first call after a poll sends at once, for latency; later ones send together. */
bool roci_turns_send_after_call(struct roci_turns *t);
/* Likewise after work requests were posted. more: the program has more completions to poll, so it calls again soon. */
bool roci_turns_send_after_post(struct roci_turns *t, uint64_t now, bool more);
/* Such a post that has sent is over now. */
void roci_turns_posted(struct roci_turns *t, uint64_t now);
/* When what posts deferred is to be sent; UINT64_MAX: there is nothing, or a nap ends before. */
uint64_t roci_turns_deadline(const struct roci_turns *t);
/* All that was ready has been sent, at that time. */
void roci_turns_sent(struct roci_turns *t, uint64_t now);
/* The program polled, and drove, after `peeked` polls that only looked at memory. Returns true where its thread should
 * yield the processor: the peer, which is to send what the program waits for, may be waiting for that processor. */
bool roci_turns_polled(struct roci_turns *t, unsigned peeked, unsigned received);

#endif
