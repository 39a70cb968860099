/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/ranges.h"

#include <string.h>

#include "engine/limits.h"
#include "engine/plpmtu.h"
#include "wire/bytes.h"

#define VERSION 1

void roci_offer_build(const struct roci_offer *o, uint8_t payload[ROCI_OFFER_BYTES])
{
	memset(payload, 0, ROCI_OFFER_BYTES);
	payload[0] = VERSION;
	roci_put_be24(payload + 1, o->first_psn);
	payload[4] = o->flags;
	roci_put_be64(payload + 8, o->secret);
}

bool roci_offer_parse(const uint8_t *payload, uint32_t len, struct roci_offer *o)
{
	if (len < ROCI_OFFER_BYTES || len > ROCI_PLPMTU_PROBE_BYTES(ROCI_MAX_PAYLOAD) || payload[0] != VERSION)
		return false;
	o->probes_for = len > ROCI_PLPMTU_PROBE_BYTES(0) ? (uint16_t)(len - ROCI_PLPMTU_PROBE_BYTES(0)) : 0;
	o->first_psn = roci_get_be24(payload + 1);
	o->flags = payload[4];
	o->secret = roci_get_be64(payload + 8);
	return true;
}

uint32_t roci_ranges_build(const struct roci_ranges *r, uint8_t payload[ROCI_RANGES_MAX_BYTES])
{
	uint8_t *at = payload + ROCI_RANGES_HEAD;

	payload[0] = VERSION;
	payload[1] = r->flags;
	roci_put_be16(payload + 2, r->duplicates);
	roci_put_be64(payload + 4, r->secret);
	roci_put_be32(payload + 12, r->room);
	roci_put_be16(payload + 16, r->reads);
	roci_put_be16(payload + 18, r->longest);
	for (unsigned s = 0; s < ROCI_RANGES_SEGMENTS; s++) {
		const struct roci_ranges_segment *x = &r->segments[s];

		if (!x->count)
			continue;
		roci_put_be24(at, x->begin);
		at[3] = (uint8_t)x->count;
		at += 4;
		for (unsigned i = 0; i < x->count; i++, at += 4)
			roci_put_be32(at, x->words[i]);
	}
	return (uint32_t)(at - payload);
}

uint64_t roci_ranges_secret(const uint8_t *payload)
{
	return roci_get_be64(payload + 4);
}

bool roci_ranges_parse(const uint8_t *payload, uint32_t len, struct roci_ranges *r)
{
	const uint8_t *at = payload + ROCI_RANGES_HEAD, *end = payload + len;

	if (len < ROCI_RANGES_HEAD || payload[0] != VERSION)
		return false;
	r->flags = payload[1];
	r->duplicates = roci_get_be16(payload + 2);
	r->secret = roci_get_be64(payload + 4);
	r->room = roci_get_be32(payload + 12);
	r->reads = roci_get_be16(payload + 16);
	r->longest = roci_get_be16(payload + 18);
	for (unsigned s = 0; s < ROCI_RANGES_SEGMENTS; s++) {
		struct roci_ranges_segment *x = &r->segments[s];

		x->count = 0;
		if (at == end)
			continue;
		if (end - at < 4 || !at[3] || at[3] > ROCI_RANGES_WORDS || end - at < 4 + 4 * at[3] || at[2] & 31)
			return false;
		x->begin = roci_get_be24(at);
		x->count = at[3];
		at += 4;
		for (unsigned i = 0; i < x->count; i++, at += 4)
			x->words[i] = roci_get_be32(at);
	}
	return at == end;
}
