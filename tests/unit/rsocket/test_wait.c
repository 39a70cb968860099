/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include <errno.h>
#include <time.h>

#include "device/device.h"
#include "rsocket/rsocket.h"

uint64_t roci_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void rs_stream_progress(struct rs *rs)
{
}

static bool never(const struct rs *rs)
{
	return false;
}

/* Another thread sleeps, and nothing wakes it: the deadline holds all the same. */
static void a_deadline_holds_while_another_thread_sleeps(void **state)
{
	struct rs rs = {.sleeping = true, .wake_fd = -1};
	pthread_condattr_t monotonic;

	pthread_mutex_init(&rs.lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&rs.progressed, &monotonic);
	pthread_mutex_lock(&rs.lock);
	assert_int_equal(rs_wait_until(&rs, roci_now() + 1000000, never), -ETIMEDOUT);
	assert_int_equal(rs_wait_until(&rs, roci_now() - 1, never), -ETIMEDOUT);
	assert_int_equal(rs_wait_until(&rs, 0, never), -EAGAIN);
	assert_true(rs.sleeping);
	pthread_mutex_unlock(&rs.lock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_deadline_holds_while_another_thread_sleeps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
