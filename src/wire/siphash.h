/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SipHash-2-4 (Aumasson, Bernstein: "SipHash: a fast short-input PRF", 2012): a keyed hash of few bytes. Who does not
 * know the key cannot tell its values from random ones.
 */
#ifndef ROCI_WIRE_SIPHASH_H
#define ROCI_WIRE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

struct roci_siphash_key {
	uint64_t k[2];
};

uint64_t roci_siphash(const struct roci_siphash_key *key, const void *bytes, size_t len);

#endif
