/* SPDX-License-Identifier: BSD-2-Clause */
/* 24-bit packet sequence numbers (IBTA 9.7.1): half of them are older than a given one, half are newer. */
#ifndef ROCI_ENGINE_PSN_H
#define ROCI_ENGINE_PSN_H

#include <stdint.h>

static inline uint32_t roci_psn_add(uint32_t psn, uint32_t n)
{
	return (psn + n) & 0xffffff;
}

/* a - b, -2^23 .. 2^23-1: negative where a is older than b. */
static inline int32_t roci_psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

#endif
