/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/scoreboard.h"

#include <stdlib.h>

#include "engine/psn.h"
#include "wire/packet.h"

#define FIRST_BITS   1024
#define MAX_BITS     (UINT32_C(1) << 20)
#define FIRST_LOSSES 64
#define MAX_LOSSES   (UINT32_C(1) << 18)

static uint32_t *word(const struct roci_scoreboard *b, uint32_t psn)
{
	return &b->bits[(psn & b->mask) / 32];
}

static bool is_old(const struct roci_scoreboard *b, uint32_t psn)
{
	return roci_psn_diff(psn, b->done) < 0;
}

void roci_scoreboard_reset(struct roci_scoreboard *b, uint32_t una)
{
	if (b->have)
		for (uint32_t i = 0; i <= b->mask / 32; i++)
			b->bits[i] = 0;
	b->una = b->done = b->high = b->scan = una;
	b->have = b->first = b->next = b->end = 0;
	b->came_at = 0;
}

void roci_scoreboard_fini(struct roci_scoreboard *b)
{
	free(b->bits);
	free(b->losses);
	*b = (struct roci_scoreboard){0};
}

/* ---- marks ---- */

/* Room for `span` PSNs from una's word on. */
static bool reserve(struct roci_scoreboard *b, uint32_t span)
{
	uint32_t room = b->bits ? b->mask + 1 : FIRST_BITS, *old = b->bits, old_mask = b->mask;

	if (b->bits && span <= room)
		return true;
	if (span > MAX_BITS)
		return false;
	while (room < span)
		room *= 2;
	b->bits = calloc(room / 32, sizeof(*b->bits));
	if (!b->bits) {
		b->bits = old;
		return false;
	}
	b->mask = room - 1;
	for (uint32_t i = 0, psn = b->una; old && i <= old_mask / 32; i++, psn = roci_psn_add(psn, 32))
		*word(b, psn) = old[(psn & old_mask) / 32];
	free(old);
	return true;
}

bool roci_scoreboard_has(const struct roci_scoreboard *b, uint32_t psn)
{
	return b->have && roci_psn_diff(psn, b->high) < 0 && *word(b, psn) >> (psn & 31) & 1;
}

unsigned roci_scoreboard_mark(struct roci_scoreboard *b, uint32_t begin, uint32_t bits, uint32_t max, uint32_t *newest)
{
	int32_t before = roci_psn_diff(b->una, begin), beyond = roci_psn_diff(max, begin);
	uint32_t fresh;

	if (before >= 32 || beyond <= 0)
		return 0;
	if (before > 0)
		bits &= UINT32_MAX << before;
	if (beyond < 32)
		bits &= (UINT32_C(1) << beyond) - 1;
	if (!bits || !reserve(b, (uint32_t)roci_psn_diff(begin, b->una & ~31u) + 32))
		return 0;
	fresh = bits & ~*word(b, begin);
	if (!fresh)
		return 0;
	*word(b, begin) |= fresh;
	*newest = roci_psn_add(begin, 31 - (uint32_t)__builtin_clz(fresh));
	if (roci_psn_diff(*newest, b->high) >= 0)
		b->high = roci_psn_add(*newest, 1);
	b->have += (uint32_t)__builtin_popcount(fresh);
	return (unsigned)__builtin_popcount(fresh);
}

uint32_t roci_scoreboard_missing(const struct roci_scoreboard *b, uint32_t psn, uint32_t limit)
{
	uint32_t missing = 0, i = b->una;

	while (roci_psn_diff(i, psn) < 0 && missing < limit) {
		uint32_t count = 32 - (i & 31), left = (uint32_t)roci_psn_diff(psn, i), bits = 0;

		if (count > left)
			count = left;
		if (b->have && roci_psn_diff(i, b->high) < 0)
			bits = *word(b, i) >> (i & 31);
		if (count < 32)
			bits &= (UINT32_C(1) << count) - 1;
		missing += count - (uint32_t)__builtin_popcount(bits);
		i = roci_psn_add(i, count);
	}
	return missing < limit ? missing : limit;
}

unsigned roci_scoreboard_advance(struct roci_scoreboard *b, uint32_t una)
{
	unsigned dropped = 0;

	while (b->have && b->una != una && roci_psn_diff(b->una, b->high) < 0) {
		uint32_t *w = word(b, b->una), from = b->una & 31, n = 32 - from;
		uint32_t left = (uint32_t)roci_psn_diff(una, b->una), gone = UINT32_MAX << from;

		if (left < n) {
			n = left;
			gone &= (UINT32_C(1) << (from + n)) - 1;
		}
		dropped += (unsigned)__builtin_popcount(*w & gone);
		*w &= ~gone;
		b->una = roci_psn_add(b->una, n);
	}
	b->have -= dropped;
	b->una = una;
	if (roci_psn_diff(b->high, una) < 0)
		b->high = una;
	roci_scoreboard_done(b, una);
	return dropped;
}

void roci_scoreboard_done(struct roci_scoreboard *b, uint32_t done)
{
	if (roci_psn_diff(done, b->done) > 0)
		b->done = done;
	if (roci_psn_diff(b->scan, b->done) < 0)
		b->scan = b->done;
}

bool roci_scoreboard_scan(struct roci_scoreboard *b, uint32_t limit)
{
	while (roci_psn_diff(b->scan, limit) < 0) {
		uint32_t missing;

		if (roci_psn_diff(b->scan, b->high) >= 0 || !b->have)
			return true;
		missing = ~*word(b, b->scan) >> (b->scan & 31);
		if (missing & 1)
			return true;
		b->scan = roci_psn_add(b->scan, missing ? (uint32_t)__builtin_ctz(missing) : 32 - (b->scan & 31));
	}
	if (roci_psn_diff(b->scan, limit) > 0)
		b->scan = limit;
	return false;
}

/* ---- losses ---- */

static struct roci_loss *loss(const struct roci_scoreboard *b, uint32_t i)
{
	return &b->losses[i & b->loss_mask];
}

static bool grow(struct roci_scoreboard *b)
{
	uint32_t room = b->losses ? 2 * (b->loss_mask + 1) : FIRST_LOSSES, count = b->end - b->first;
	struct roci_loss *losses;

	if (room > MAX_LOSSES)
		return false;
	losses = malloc(room * sizeof(*losses));
	if (!losses)
		return false;
	for (uint32_t i = 0; i < count; i++)
		losses[i] = *loss(b, b->first + i);
	free(b->losses);
	b->losses = losses;
	b->loss_mask = room - 1;
	b->next -= b->first;
	b->first = 0;
	b->end = count;
	return true;
}

bool roci_scoreboard_lose(struct roci_scoreboard *b, uint32_t psn)
{
	if ((!b->losses || b->end - b->first > b->loss_mask) && !grow(b))
		return false;
	*loss(b, b->end++) = (struct roci_loss){.psn = psn};
	return true;
}

/* It came after all, or something newer says so. */
static bool came(const struct roci_scoreboard *b, uint32_t psn)
{
	return is_old(b, psn) || roci_scoreboard_has(b, psn);
}

bool roci_scoreboard_next(struct roci_scoreboard *b, uint32_t *psn)
{
	while (b->next != b->end && came(b, loss(b, b->next)->psn))
		*loss(b, b->next++) = (struct roci_loss){.psn = roci_psn_add(b->una, ROCI_PSN_MASK)};
	if (b->next == b->end)
		return false;
	*psn = loss(b, b->next)->psn;
	return true;
}

void roci_scoreboard_resent(struct roci_scoreboard *b, uint64_t now)
{
	loss(b, b->next++)->sent_at = now;
}

const struct roci_loss *roci_scoreboard_oldest(struct roci_scoreboard *b)
{
	for (; b->first != b->next && came(b, loss(b, b->first)->psn); b->first++)
		if (loss(b, b->first)->sent_at > b->came_at)
			b->came_at = loss(b, b->first)->sent_at;
	return b->first != b->next ? loss(b, b->first) : NULL;
}

void roci_scoreboard_lose_again(struct roci_scoreboard *b)
{
	uint32_t psn = loss(b, b->first++)->psn;

	roci_scoreboard_lose(b, psn); /* a place is free now */
}
