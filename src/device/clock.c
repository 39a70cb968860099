/* SPDX-License-Identifier: BSD-2-Clause */
/* From the operating system: the time, and numbers that nobody can guess. */
#include "device/device.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
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
	uint32_t life; /* of the process that drew them: a forked child must not draw its parent's numbers */
} pool;

#define PAGE 4096

/* A number of this process: the kernel zeroes it in a forked child, which then takes another one. It has a page for
 * itself. Where that cannot be had, each number is drawn when it is needed. */
static _Alignas(PAGE) struct {
	_Atomic uint32_t life;
	uint8_t rest[PAGE - sizeof(uint32_t)];
} page;
static bool wiped_on_fork;

static void wipe_on_fork(void)
{
	wiped_on_fork = sysconf(_SC_PAGESIZE) == PAGE && !madvise(&page, PAGE, MADV_WIPEONFORK);
}

static uint32_t this_life(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	static _Atomic uint32_t lives; /* taken, by this process and its forebears */
	uint32_t none = 0;

	pthread_once(&once, wipe_on_fork);
	if (!wiped_on_fork)
		return 0;
	if (!atomic_load_explicit(&page.life, memory_order_relaxed))
		atomic_compare_exchange_strong(&page.life, &none, atomic_fetch_add(&lives, 1) + 1);
	return atomic_load_explicit(&page.life, memory_order_relaxed);
}

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
	pool.life = this_life();
}

uint32_t roci_random32(void)
{
	uint32_t value;

	if (!pool.left || !pool.life || atomic_load_explicit(&page.life, memory_order_relaxed) != pool.life)
		refill();
	value = pool.numbers[--pool.left];
	pool.numbers[pool.left] = 0;
	return value;
}
