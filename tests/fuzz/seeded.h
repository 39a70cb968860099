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

/* One more iteration, on a random script of 16 to `max` bytes, in memory of just that size, for a sanitizer to see an
 * overrun. Returns false when there was none left. */
static inline bool seeded_script(struct seeded *run, size_t max, int (*target)(const uint8_t *bytes, size_t len))
{
	size_t len = 16 + random_below(&run->seed, max - 15);
	uint8_t *script;

	if (!seeded_next(run))
		return false;
	script = malloc(len);
	CHECK(script);
	random_fill(&run->seed, script, len);
	target(script, len);
	free(script);
	return true;
}

#endif
