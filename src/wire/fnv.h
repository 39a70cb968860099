/* SPDX-License-Identifier: BSD-2-Clause */
/* FNV-1a with 32 bits: a hash for tables and names. */
#ifndef ROCI_WIRE_FNV_H
#define ROCI_WIRE_FNV_H

#include <stddef.h>
#include <stdint.h>

#define ROCI_FNV_BEGIN 2166136261u /* the hash of nothing */

/* The hash of what `hash` is of, and of `len` bytes behind that. */
static inline uint32_t roci_fnv(uint32_t hash, const void *bytes, size_t len)
{
	const uint8_t *at = bytes;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ at[i]) * 16777619u;
	return hash;
}

#endif
