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
 * But only polls receive and run timers. After a nap in which nobody polled, the thread stands in: it does what a poll
 * does, until nothing more comes, and no longer than it napped. The program may be posting to a full queue, which only
 * an acknowledgement empties, or it may be registering memory for a second.
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
	uint64_t stay_until;    /* until then calls do not make it nap */
	uint64_t driving_since; /* when packets first moved after the last sleep or nap; 0: not yet */
	uint64_t nap_ns;        /* the current or last nap; 0: it did not nap */
	uint64_t nap_end;       /* when it awoke from the nap */
	bool standing_in;       /* for polls, after a nap without any */
	unsigned polled_before; /* `polled` when the nap began */

	/* Its busy polling: turns without sleeping though nothing came. */
	uint64_t drove_at, moved_at; /* its last turn, and the last in which packets moved */
	bool idle;                   /* nothing moved in its last turn */
	bool busy_polled;            /* since packets moved */
	unsigned busy_poll_worth;    /* how often it paid lately, up to a limit */
	unsigned sleeps;             /* without busy polling, since it stopped paying */

	/* The program's calls. */
	bool deferred;       /* something may be ready that a call did not send */
	unsigned calls;      /* since the last poll */
	unsigned sent_alone; /* calls that sent each for itself */
	bool stream;         /* there were many such: the thread should see it and nap */
	unsigned polled;     /* polls that drove */
	unsigned idle_polls; /* in a row that brought nothing */
};

/* ---- the thread ---- */

struct roci_turn {
	enum {
		ROCI_TURN_DRIVE,     /* receive, run timers, send; then roci_turns_drove() */
		ROCI_TURN_STAND_IN,  /* do as a poll of the program would; then roci_turns_stood_in() */
		ROCI_TURN_BUSY_POLL, /* stay awake: let others have the lock, then ask again */
		ROCI_TURN_NAP,       /* neither drive nor listen until then; then roci_turns_awoke() */
		ROCI_TURN_SLEEP,     /* wait for packets, a wake-up or that time; then roci_turns_awoke() */
	} what;
	uint64_t until; /* of NAP and SLEEP */
};

/* What the thread does now. last_call: when the program last called, polls included; deadline: when the engine or the
 * connection manager has work, UINT64_MAX for never. */
struct roci_turn roci_turns_next(struct roci_turns *t, uint64_t now, uint64_t last_call, uint64_t deadline);
/* The thread took a turn that began at `now`, in which `moved` packets were received or sent. */
void roci_turns_drove(struct roci_turns *t, uint64_t now, unsigned moved);
/* The thread stood in for the program's polls. more: packets came, or there is more to send. */
void roci_turns_stood_in(struct roci_turns *t, bool more);
/* The thread slept or napped until now. */
void roci_turns_awoke(struct roci_turns *t, uint64_t now, uint64_t last_call);
/* True, once, where the thread sleeps and has to be woken: a deadline is due before it wakes by itself, or the program
 * calls in a stream. */
bool roci_turns_wake(struct roci_turns *t, uint64_t deadline);

/* ---- the program's calls ---- */

/* A poll received so many packets. Returns true where what is ready is to be sent now, false where that is deferred to
 * the next call: the program sees its completion earlier, and its answer goes with the acknowledgement. */
bool roci_turns_send_after_poll(struct roci_turns *t, unsigned received);
/* A call that is no poll changed something. Returns true where what is ready is to be sent now, false where that is
 * deferred: while the thread naps, the first call after a poll sends at once, for latency; later ones send together. */
bool roci_turns_send_after_call(struct roci_turns *t);
/* All that was ready has been sent. */
void roci_turns_sent(struct roci_turns *t);
/* The program polled, and drove. Returns true where its thread should yield the processor: the peer, which is to send
 * what the program waits for, may be waiting for that processor. */
bool roci_turns_polled(struct roci_turns *t, unsigned received);

#endif
