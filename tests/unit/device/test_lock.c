/* SPDX-License-Identifier: BSD-2-Clause */
#include "../test.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "device/lock.h"

/* The wall's clock is a day ahead while the lock looks at it, and then set back. */
static bool is_ahead;

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	int result = (int)syscall(SYS_clock_gettime, clock, ts);

	if (clock == CLOCK_REALTIME && is_ahead)
		ts->tv_sec += 86400;
	return result;
}

static struct roci_lock lock;
static atomic_bool taken;

static int start(void **state)
{
	roci_lock_init(&lock);
	atomic_store(&taken, false);
	return 0;
}

static int finish(void **state)
{
	roci_lock_destroy(&lock);
	return 0;
}

static int cancel_state(void)
{
	int before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	pthread_setcancelstate(before, NULL);
	return before;
}

static void nobody_is_cancelled_while_it_holds_it(void **state)
{
	roci_lock_take(&lock);
	assert_int_equal(cancel_state(), PTHREAD_CANCEL_DISABLE);
	roci_lock_release(&lock);
	assert_int_equal(cancel_state(), PTHREAD_CANCEL_ENABLE);
	assert_true(roci_lock_try(&lock));
	assert_int_equal(cancel_state(), PTHREAD_CANCEL_DISABLE);
	roci_lock_release(&lock);
	assert_int_equal(cancel_state(), PTHREAD_CANCEL_ENABLE);
	assert_true(roci_lock_take_soon(&lock));
	roci_lock_release(&lock);
	assert_int_equal(cancel_state(), PTHREAD_CANCEL_ENABLE);
}

/* Short calls hold cancellation off only where they come to a cancellation point. */
static void it_is_held_off_when_it_is_needed(void **state)
{
	roci_lock_take_briefly(&lock);
	assert_int_equal(cancel_state(), PTHREAD_CANCEL_ENABLE);
	roci_lock_release(&lock);
	assert_int_equal(cancel_state(), PTHREAD_CANCEL_ENABLE);
	roci_lock_take_briefly(&lock);
	for (int i = 0; i < 2; i++) {
		roci_lock_hold_off(&lock);
		assert_int_equal(cancel_state(), PTHREAD_CANCEL_DISABLE);
	}
	roci_lock_release(&lock);
	assert_int_equal(cancel_state(), PTHREAD_CANCEL_ENABLE);
}

/* Releases the lock if this thread has it. Returns `arg` then, else NULL. */
static void *released(bool got, void *arg)
{
	if (got)
		roci_lock_release(&lock);
	return got ? arg : NULL;
}

static void *try_it(void *arg)
{
	return released(roci_lock_try(&lock), arg);
}

static void *take_it_soon(void *arg)
{
	bool got = roci_lock_take_soon(&lock);

	assert_int_equal(cancel_state(), got ? PTHREAD_CANCEL_DISABLE : PTHREAD_CANCEL_ENABLE);
	return released(got, arg);
}

/* Returns whether another thread gets the lock by `how`. */
static bool another_gets_it(void *(*how)(void *))
{
	pthread_t thread;
	void *result;

	assert_int_equal(pthread_create(&thread, NULL, how, &lock), 0);
	pthread_join(thread, &result);
	return result != NULL;
}

static void one_that_is_held_is_refused(void **state)
{
	assert_true(another_gets_it(try_it));
	assert_true(another_gets_it(take_it_soon));
	roci_lock_take(&lock);
	assert_false(another_gets_it(try_it));
	assert_false(another_gets_it(take_it_soon)); /* after a second */
	roci_lock_release(&lock);
}

static void a_clock_that_is_set_lets_nobody_wait(void **state)
{
#ifdef __SANITIZE_THREAD__
	skip(); /* see roci_lock_take_soon() */
#endif
	is_ahead = true;
	alarm(60);
	roci_lock_take(&lock);
	assert_false(another_gets_it(take_it_soon)); /* after a second, not after a day */
	roci_lock_release(&lock);
	alarm(0);
	is_ahead = false;
}

static void *take_it(void *arg)
{
	roci_lock_take(&lock);
	atomic_store(&taken, true);
	roci_lock_release(&lock);
	return NULL;
}

/* A thread that never releases it for long, as one that drives, lets another have it. */
static void who_gives_way_lets_another_have_it(void **state)
{
	pthread_t thread;

	roci_lock_take(&lock);
	roci_lock_give_way(&lock); /* to nobody */
	assert_int_equal(pthread_create(&thread, NULL, take_it, NULL), 0);
	while (!atomic_load(&taken)) {
		roci_lock_give_way(&lock);
		sched_yield();
	}
	roci_lock_release(&lock);
	pthread_join(thread, NULL);
}

static void *try_or_ask(void *arg)
{
	return released(roci_lock_try_or_ask(&lock), arg);
}

static void *ask_again(void *arg)
{
	atomic_store(&taken, roci_lock_try_or_ask(&lock));
	roci_lock_release(&lock);
	return arg;
}

/* The device's thread does not wait while the program takes its turns. */
static void who_has_it_may_be_asked(void **state)
{
	pthread_t thread;

	assert_true(another_gets_it(try_or_ask));
	roci_lock_take(&lock);
	assert_false(roci_lock_was_asked(&lock));
	for (int i = 0; i < 3; i++) {
		assert_false(another_gets_it(try_or_ask));
		assert_true(roci_lock_was_asked(&lock));
		assert_false(roci_lock_was_asked(&lock)); /* once */
	}
	/* It asked, and nobody listened: it waits. */
	assert_false(another_gets_it(try_or_ask));
	assert_int_equal(pthread_create(&thread, NULL, ask_again, &lock), 0);
	while (!atomic_load(&lock.waiting))
		sched_yield();
	assert_false(atomic_load(&taken));
	roci_lock_release(&lock);
	pthread_join(thread, NULL);
	assert_true(atomic_load(&taken));
	assert_false(roci_lock_was_asked(&lock));
}

static void a_forked_child_may_take_it(void **state)
{
	roci_lock_take(&lock); /* before the fork */
	roci_lock_reset(&lock);
	assert_int_equal(cancel_state(), PTHREAD_CANCEL_ENABLE);
	assert_true(another_gets_it(try_it));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nobody_is_cancelled_while_it_holds_it, start, finish),
		cmocka_unit_test_setup_teardown(it_is_held_off_when_it_is_needed, start, finish),
		cmocka_unit_test_setup_teardown(one_that_is_held_is_refused, start, finish),
		cmocka_unit_test_setup_teardown(a_clock_that_is_set_lets_nobody_wait, start, finish),
		cmocka_unit_test_setup_teardown(who_gives_way_lets_another_have_it, start, finish),
		cmocka_unit_test_setup_teardown(who_has_it_may_be_asked, start, finish),
		cmocka_unit_test_setup_teardown(a_forked_child_may_take_it, start, finish),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
