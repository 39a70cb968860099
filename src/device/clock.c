/* SPDX-License-Identifier: BSD-2-Clause */
/* From the operating system: the time, and numbers that nobody can guess. */
#include "device/device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

uint64_t roci_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Each thread has its own, so that it needs no lock, and a fork finds it whole. */
static _Thread_local struct {
	uint32_t numbers[32];
	unsigned left;
	pid_t owner; /* a forked child must not draw its parent's numbers */
} pool;

static void refill(void)
{
	/* Requests of up to 256 bytes are filled or fail. */
	while (getrandom(pool.numbers, sizeof(pool.numbers), 0) != sizeof(pool.numbers)) {
		if (errno != EINTR) { /* predictable keys are worse than none */
			perror("roci: getrandom");
			abort();
		}
	}
	pool.left = sizeof(pool.numbers) / sizeof(pool.numbers[0]);
	pool.owner = getpid();
}

uint32_t roci_random32(void)
{
	uint32_t value;

	if (!pool.left || pool.owner != getpid())
		refill();
	value = pool.numbers[--pool.left];
	pool.numbers[pool.left] = 0;
	return value;
}
