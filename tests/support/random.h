/* SPDX-License-Identifier: BSD-2-Clause */
/* Seeded randomness for tests (splitmix64): the same seed gives the same test on every machine. */
#ifndef ROCI_TESTS_RANDOM_H
#define ROCI_TESTS_RANDOM_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* 0 to limit - 1; limit > 0. Slightly biased, which does not matter to a test. */
static inline size_t random_below(uint64_t *state, size_t limit)
{
	return (size_t)(random_next(state) % limit);
}

static inline void random_fill(uint64_t *state, void *to, size_t len)
{
	for (size_t i = 0; i < len; i++)
		((uint8_t *)to)[i] = (uint8_t)random_next(state);
}

#endif
