/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device's lock. No thread is cancelled while it holds it (rping cancels threads), and the device's thread lets
 * others have it who wait. To hold off cancellation costs as much as the lock itself. Short calls, in which no function
 * is a cancellation point (pthreads(7)), do without.
 */
#ifndef ROCI_DEVICE_LOCK_H
#define ROCI_DEVICE_LOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define ROCI_LOCK_BRIEF (-1)

struct roci_lock {
	pthread_mutex_t mutex;
	atomic_uint waiting; /* threads that want it and cannot do without */
	int cancel_state;    /* of the holder, before it took the lock; ROCI_LOCK_BRIEF: it can still be cancelled */
	atomic_bool asked;   /* the device's thread asks the holder to take its turn */
};

void roci_lock_init(struct roci_lock *lock);
void roci_lock_destroy(struct roci_lock *lock);
void roci_lock_take(struct roci_lock *lock);
/* Likewise, but the holder can be cancelled: it reaches no cancellation point before roci_lock_hold_off(), which may be
 * called whether or not cancellation is held off. */
void roci_lock_take_briefly(struct roci_lock *lock);
void roci_lock_hold_off(struct roci_lock *lock);
/* False: somebody else has it. */
bool roci_lock_try(struct roci_lock *lock);
/* Waits for a second at most. False: somebody else has it. */
bool roci_lock_take_soon(struct roci_lock *lock);
void roci_lock_release(struct roci_lock *lock);
/* For the device's thread, whose turn it is. False: somebody else has the lock, and is asked to take that turn. To wait
 * for a lock that a program releases for a moment only would make each of its releases wake the thread, which then
 * comes too late. It waits where it has asked before, and nobody has listened. */
bool roci_lock_try_or_ask(struct roci_lock *lock);
/* Whether nobody has taken that turn yet. */
bool roci_lock_is_asked(const struct roci_lock *lock);
/* By the holder, before it releases the lock. True, once: it was asked. */
bool roci_lock_was_asked(struct roci_lock *lock);
/* Lets those have the lock who wait for it: a mutex alone would give it to the caller again and again. */
void roci_lock_give_way(struct roci_lock *lock);
/* In a forked child, whose parent's thread took the lock before it forked. */
void roci_lock_reset(struct roci_lock *lock);

#endif
