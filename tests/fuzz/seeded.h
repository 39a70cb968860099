/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fuzz targets as programs of their own: TARGET [iterations [seed]]. Without a seed it is a fresh one. It is
 * printed first; TARGET with these two arguments is the same run again.
 */
#ifndef ROCI_TESTS_SEEDED_H
#define ROCI_TESTS_SEEDED_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "check.h"
#include "random.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len); /* the target */

struct seeded {
	unsigned long iterations, left;
	uint64_t seed; /* the state of random_*() */
};

static inline struct seeded seeded_begin(int argc, char **argv, unsigned long iterations)
{
	struct seeded run = {0};

	run.iterations = run.left = argc > 1 ? strtoul(argv[1], NULL, 0) : iterations;
	if (argc > 2)
		run.seed = strtoull(argv[2], NULL, 0);
	else
		CHECK(getrandom(&run.seed, 4, 0) == 4); /* short to type */
	printf("%s %lu %" PRIu64 "\n", argv[0], run.iterations, run.seed);
	fflush(stdout);
	return run;
}

/* Whether there is one more iteration to do. */
static inline bool seeded_next(struct seeded *run)
{
	if (!run->left)
		return false;
	run->left--;
	return true;
}

/* One iteration, on a random script of 16 to `max` bytes, in memory of just that size, for a sanitizer to see an
 * overrun. */
static inline void seeded_script(struct seeded *run, size_t max)
{
	size_t len = 16 + random_below(&run->seed, max - 15);
	uint8_t *bytes = malloc(len);

	CHECK(bytes);
	random_fill(&run->seed, bytes, len);
	LLVMFuzzerTestOneInput(bytes, len);
	free(bytes);
}

/* A target of scripts: all iterations. Returns how many there were. */
static inline unsigned long seeded_scripts(int argc, char **argv, unsigned long iterations, size_t max)
{
	struct seeded run = seeded_begin(argc, argv, iterations);

	while (seeded_next(&run))
		seeded_script(&run, max);
	return run.iterations;
}

#endif
