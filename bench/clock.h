/* SPDX-License-Identifier: BSD-2-Clause */
/* The clock of the programs in this directory. */
#ifndef ROCI_BENCH_CLOCK_H
#define ROCI_BENCH_CLOCK_H

/* Seconds of CLOCK_MONOTONIC. */
double clock_seconds(void);
/* Processor time of this process without the calling thread, in seconds. */
double clock_cpu_of_others_seconds(void);
/* Sorts the values and returns the one in the middle. */
double clock_median(double *values, int count);

#endif
