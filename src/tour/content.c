/* SPDX-License-Identifier: BSD-2-Clause */
#include "tour/content.h"

#include <netinet/in.h>
#include <string.h>

/* splitmix64: a different word for each place, number and seed. */
static uint64_t word(uint32_t seed, uint32_t seq, uint32_t place)
{
	uint64_t x = ((uint64_t)seed << 32 | seq) + (uint64_t)(place + 1) * UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* The bytes from 8 * place on, in an order that does not depend on the processor. */
static void make(uint8_t out[8], uint32_t len, uint32_t seed, uint32_t seq, uint32_t place)
{
	uint64_t w = word(seed, len < CONTENT_NUMBERED_BYTES ? 0 : seq, place);
	uint32_t number = htonl(seq);

	for (unsigned i = 0; i < 8; i++)
		out[i] = (uint8_t)(w >> 8 * i);
	if (!place && len >= CONTENT_NUMBERED_BYTES)
		memcpy(out, &number, sizeof(number));
}

void content_fill(uint8_t *bytes, uint32_t len, uint32_t seed, uint32_t seq)
{
	uint8_t eight[8];

	for (uint32_t at = 0; at < len; at += 8) {
		make(eight, len, seed, seq, at / 8);
		memcpy(bytes + at, eight, len - at < 8 ? len - at : 8);
	}
}

uint32_t content_check(const uint8_t *bytes, uint32_t len, uint32_t seed, uint32_t seq)
{
	uint8_t eight[8];

	for (uint32_t at = 0; at < len; at += 8) {
		uint32_t n = len - at < 8 ? len - at : 8;
		make(eight, len, seed, seq, at / 8);
		for (uint32_t i = 0; i < n; i++) {
			if (bytes[at + i] != eight[i])
				return at + i;
		}
	}
	return len;
}

uint32_t content_seq(const uint8_t *bytes, uint32_t len, uint32_t otherwise)
{
	uint32_t number;

	if (len < CONTENT_NUMBERED_BYTES)
		return otherwise;
	memcpy(&number, bytes, sizeof(number));
	return ntohl(number);
}
