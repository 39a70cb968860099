/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture/psn_set.h"

#include <string.h>

#include "wire/packet.h"

static uint64_t *word(struct capture_psn_set *set, uint32_t psn, uint64_t *bit)
{
	uint32_t at = psn % CAPTURE_PSN_WINDOW;

	*bit = 1ull << at % 64;
	return &set->seen[at / 64];
}

static void put(struct capture_psn_set *set, uint32_t psn, bool seen)
{
	uint64_t bit, *at = word(set, psn, &bit);

	*at = seen ? *at | bit : *at & ~bit;
}

/* Moves `next` on over `count` PSNs. */
static void advance(struct capture_psn_set *set, uint32_t count, bool seen)
{
	uint32_t skip = count > CAPTURE_PSN_WINDOW ? count - CAPTURE_PSN_WINDOW : 0;

	for (uint32_t i = skip; i < count; i++)
		put(set, set->next + i, seen);
	set->next = (set->next + count) & ROCI_PSN_MASK;
}

enum capture_place capture_psn_take(struct capture_psn_set *set, uint32_t psn, uint32_t count, uint32_t *missing)
{
	int32_t ahead = capture_psn_diff(psn, set->next);
	uint64_t bit, *at;
	bool seen;

	*missing = 0;
	if (!set->begun || ahead > CAPTURE_PSN_JUMP || ahead < -CAPTURE_PSN_JUMP) {
		memset(set, 0, sizeof(*set));
		set->begun = true;
		set->next = psn;
		advance(set, count, true);
		return CAPTURE_IN_ORDER;
	}
	if (ahead >= 0) {
		bool expected = (uint32_t)ahead <= set->slack;

		*missing = expected ? 0 : (uint32_t)ahead;
		advance(set, (uint32_t)ahead, expected);
		advance(set, count, true);
		set->slack = 0;
		return expected ? CAPTURE_IN_ORDER : CAPTURE_AHEAD;
	}
	if (ahead < -CAPTURE_PSN_WINDOW)
		return CAPTURE_SEEN;
	at = word(set, psn, &bit);
	seen = *at & bit;
	*at |= bit;
	return seen ? CAPTURE_SEEN : CAPTURE_BEHIND;
}
