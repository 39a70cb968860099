/* SPDX-License-Identifier: BSD-2-Clause */
#include "clock.h"

#include <stdlib.h>
#include <time.h>

static double seconds_of(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

double clock_seconds(void)
{
	return seconds_of(CLOCK_MONOTONIC);
}

double clock_cpu_of_others_seconds(void)
{
	return seconds_of(CLOCK_PROCESS_CPUTIME_ID) - seconds_of(CLOCK_THREAD_CPUTIME_ID);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double clock_median(double *values, int count)
{
	qsort(values, (size_t)count, sizeof(*values), compare);
	return values[count / 2];
}
