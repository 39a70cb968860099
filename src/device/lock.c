/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/lock.h"

#include <sched.h>
#include <time.h>

#define SPINS  100 /* some microseconds: most calls are shorter */
#define YIELDS 16  /* at most, when giving way: the waiting threads have run by then, or are on other processors */

void roci_lock_init(struct roci_lock *lock)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
	pthread_mutex_init(&lock->mutex, &attr);
	pthread_mutexattr_destroy(&attr);
	atomic_init(&lock->waiting, 0);
	atomic_init(&lock->asked, false);
}

void roci_lock_destroy(struct roci_lock *lock)
{
	pthread_mutex_destroy(&lock->mutex);
}

static int disable_cancel(void)
{
	int before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}

/* Apart: most calls do not wait. */
__attribute__((noinline)) static void wait_for(struct roci_lock *lock)
{
	atomic_fetch_add_explicit(&lock->waiting, 1, memory_order_relaxed);
	pthread_mutex_lock(&lock->mutex);
	atomic_fetch_sub_explicit(&lock->waiting, 1, memory_order_relaxed);
}

static void take(struct roci_lock *lock, int cancel_state)
{
	if (pthread_mutex_trylock(&lock->mutex))
		wait_for(lock);
	lock->cancel_state = cancel_state;
}

void roci_lock_take(struct roci_lock *lock)
{
	take(lock, disable_cancel());
}

void roci_lock_take_briefly(struct roci_lock *lock)
{
	take(lock, ROCI_LOCK_BRIEF);
}

void roci_lock_hold_off(struct roci_lock *lock)
{
	if (lock->cancel_state == ROCI_LOCK_BRIEF)
		lock->cancel_state = disable_cancel();
}

bool roci_lock_try(struct roci_lock *lock)
{
	int cancel_state;

	if (pthread_mutex_trylock(&lock->mutex))
		return false;
	cancel_state = disable_cancel();
	lock->cancel_state = cancel_state;
	return true;
}

/* The thread sanitizer of GCC 12 does not know pthread_mutex_clocklock(), and gets the wall's clock, which may be set
 * while a thread waits. */
#ifdef __SANITIZE_THREAD__
#define SOON_CLOCK                         CLOCK_REALTIME
#define lock_until(mutex, clock, deadline) pthread_mutex_timedlock(mutex, deadline)
#else
#define SOON_CLOCK                         CLOCK_MONOTONIC
#define lock_until(mutex, clock, deadline) pthread_mutex_clocklock(mutex, clock, deadline)
#endif

bool roci_lock_take_soon(struct roci_lock *lock)
{
	int cancel_state = disable_cancel(), err;
	struct timespec until;

	clock_gettime(SOON_CLOCK, &until);
	until.tv_sec++;
	atomic_fetch_add_explicit(&lock->waiting, 1, memory_order_relaxed);
	err = lock_until(&lock->mutex, SOON_CLOCK, &until);
	atomic_fetch_sub_explicit(&lock->waiting, 1, memory_order_relaxed);
	if (err)
		pthread_setcancelstate(cancel_state, NULL);
	else
		lock->cancel_state = cancel_state;
	return !err;
}

static bool try_for_a_moment(struct roci_lock *lock)
{
	bool got = roci_lock_try(lock);

	for (int i = 0; !got && i < SPINS; i++)
		got = roci_lock_try(lock);
	return got;
}

bool roci_lock_try_or_ask(struct roci_lock *lock)
{
	if (!try_for_a_moment(lock)) {
		if (!atomic_exchange(&lock->asked, true))
			return false;
		roci_lock_take(lock);
	}
	atomic_store_explicit(&lock->asked, false, memory_order_relaxed);
	return true;
}

bool roci_lock_is_asked(const struct roci_lock *lock)
{
	return atomic_load_explicit(&lock->asked, memory_order_relaxed);
}

bool roci_lock_was_asked(struct roci_lock *lock)
{
	bool asked = roci_lock_is_asked(lock);

	if (asked)
		atomic_store_explicit(&lock->asked, false, memory_order_relaxed);
	return asked;
}

void roci_lock_release(struct roci_lock *lock)
{
	int cancel_state = lock->cancel_state;

	pthread_mutex_unlock(&lock->mutex);
	if (cancel_state != ROCI_LOCK_BRIEF)
		pthread_setcancelstate(cancel_state, NULL);
}

void roci_lock_give_way(struct roci_lock *lock)
{
	if (!atomic_load_explicit(&lock->waiting, memory_order_relaxed))
		return;
	roci_lock_release(lock);
	for (int i = 0; i < YIELDS && atomic_load_explicit(&lock->waiting, memory_order_relaxed); i++)
		sched_yield();
	roci_lock_take(lock);
}

void roci_lock_reset(struct roci_lock *lock)
{
	pthread_setcancelstate(lock->cancel_state, NULL);
	roci_lock_init(lock);
}
