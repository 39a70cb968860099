/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/siphash.h"

#include <endian.h>
#include <string.h>

static uint64_t rotate(uint64_t x, unsigned bits)
{
	return x << bits | x >> (64 - bits);
}

static void mix(uint64_t v[4], unsigned rounds)
{
	while (rounds--) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = rotate(v[1], 13) ^ v[0];
		v[3] = rotate(v[3], 16) ^ v[2];
		v[0] = rotate(v[0], 32);
		v[2] += v[1];
		v[0] += v[3];
		v[1] = rotate(v[1], 17) ^ v[2];
		v[3] = rotate(v[3], 21) ^ v[0];
		v[2] = rotate(v[2], 32);
	}
}

/* Up to eight bytes, little-endian. */
static uint64_t word(const uint8_t *bytes, size_t len)
{
	uint64_t w = 0;

	memcpy(&w, bytes, len < sizeof(w) ? len : sizeof(w));
	return le64toh(w);
}

uint64_t roci_siphash(const struct roci_siphash_key *key, const void *bytes, size_t len)
{
	/* The paper's initial state: "somepseudorandomlygeneratedbytes". */
	uint64_t v[4] = {key->k[0] ^ 0x736f6d6570736575, key->k[1] ^ 0x646f72616e646f6d, key->k[0] ^ 0x6c7967656e657261,
			 key->k[1] ^ 0x7465646279746573};
	const uint8_t *at = bytes;
	uint64_t w;

	for (size_t left = len; left >= 8; left -= 8, at += 8) {
		w = word(at, 8);
		v[3] ^= w;
		mix(v, 2);
		v[0] ^= w;
	}
	w = word(at, len % 8) | (uint64_t)len << 56;
	v[3] ^= w;
	mix(v, 2);
	v[0] ^= w;
	v[2] ^= 0xff;
	mix(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}
