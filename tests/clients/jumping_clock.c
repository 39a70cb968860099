/* SPDX-License-Identifier: BSD-2-Clause */
/* Preloaded: the wall's clock is set again and again, a day ahead and back each quarter of a second, as far as the
 * program and its libraries see. Only the kernel's own clocks go on (no container has a wall's clock of its own). */
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define DAY_S   86400
#define JUMP_NS 250000000

static long jump_s(void)
{
	struct timespec now;

	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
	return now.tv_nsec / JUMP_NS % 2 ? DAY_S : 0;
}

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	int result = (int)syscall(SYS_clock_gettime, clock, ts);

	if (!result && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI))
		ts->tv_sec += jump_s();
	return result;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
	int result = (int)syscall(SYS_gettimeofday, tv, zone);

	if (!result)
		tv->tv_sec += jump_s();
	return result;
}

time_t time(time_t *to)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	if (to)
		*to = ts.tv_sec;
	return ts.tv_sec;
}
