/* SPDX-License-Identifier: BSD-2-Clause */
/* Random numbers that follow from a seed: splitmix64 seeds xoshiro256**. */
#ifndef ROCI_SIM_RNG_H
#define ROCI_SIM_RNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct rng {
	uint64_t s[4];
};

static inline uint64_t rng_splitmix(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

/* `stream` separates generators that share a seed: a change in one use must not change another's draws. */
static inline void rng_init(struct rng *r, uint64_t seed, unsigned stream)
{
	uint64_t state = seed * 0xd1342543de82ef95 + stream;

	for (int i = 0; i < 4; i++)
		r->s[i] = rng_splitmix(&state);
}

static inline uint64_t rng_rotl(uint64_t x, int k)
{
	return x << k | x >> (64 - k);
}

static inline uint64_t rng_next(struct rng *r)
{
	uint64_t result = rng_rotl(r->s[1] * 5, 7) * 9, t = r->s[1] << 17;

	r->s[2] ^= r->s[0];
	r->s[3] ^= r->s[1];
	r->s[1] ^= r->s[2];
	r->s[0] ^= r->s[3];
	r->s[2] ^= t;
	r->s[3] = rng_rotl(r->s[3], 45);
	return result;
}

/* 0..n-1; n > 0 */
static inline uint64_t rng_below(struct rng *r, uint64_t n)
{
	return rng_next(r) % n;
}

/* lo..hi, both included */
static inline uint64_t rng_range(struct rng *r, uint64_t lo, uint64_t hi)
{
	return lo + rng_below(r, hi - lo + 1);
}

/* True once in n. */
static inline bool rng_once_in(struct rng *r, unsigned n)
{
	return rng_below(r, n) == 0;
}

static inline void rng_fill(struct rng *r, uint8_t *out, size_t len)
{
	for (; len >= 8; out += 8, len -= 8) {
		uint64_t x = rng_next(r);

		memcpy(out, &x, 8);
	}
	if (len) {
		uint64_t x = rng_next(r);

		memcpy(out, &x, len);
	}
}

#endif
