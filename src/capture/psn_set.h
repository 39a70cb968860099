/* SPDX-License-Identifier: BSD-2-Clause */
/* Which PSNs of a sender were seen, in the order of their coming. It remembers the last CAPTURE_PSN_WINDOW. */
#ifndef CAPTURE_PSN_SET_H
#define CAPTURE_PSN_SET_H

#include <stdbool.h>
#include <stdint.h>

#define CAPTURE_PSN_WINDOW 4096
/* A jump so far, forwards or backwards, is another connection with the same QPs. */
#define CAPTURE_PSN_JUMP (1 << 18)

struct capture_psn_set {
	bool begun;
	uint32_t next;  /* one more than the newest */
	uint32_t slack; /* so many PSNs may be left out before `next`, since nobody knows how many a READ took */
	uint64_t seen[CAPTURE_PSN_WINDOW / 64];
};

enum capture_place {
	CAPTURE_IN_ORDER,
	CAPTURE_AHEAD,  /* some before it are missing */
	CAPTURE_SEEN,   /* it was seen before, or is too old to tell */
	CAPTURE_BEHIND, /* older than the newest, and not seen before */
};

/* Takes `count` PSNs from `psn` on (at least 1). *missing is how many are missing before them: AHEAD only. */
enum capture_place capture_psn_take(struct capture_psn_set *set, uint32_t psn, uint32_t count, uint32_t *missing);

/* a - b for 24-bit numbers: negative where a is older. */
static inline int32_t capture_psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

#endif
