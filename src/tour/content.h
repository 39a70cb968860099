/* SPDX-License-Identifier: BSD-2-Clause */
/* What the bytes of an operation are, so that either end can check them without the other one's copy. */
#ifndef ROCI_TOUR_CONTENT_H
#define ROCI_TOUR_CONTENT_H

#include <stdbool.h>
#include <stdint.h>

/* From this size on the content begins with its sequence number, in network byte order. */
#define CONTENT_NUMBERED_BYTES 8u

/* Fills `len` bytes: those of operation `seq` of the session that has this seed. */
void content_fill(uint8_t *bytes, uint32_t len, uint32_t seed, uint32_t seq);

/* The place of the first byte that is not content_fill()'s; `len`: all are. */
uint32_t content_check(const uint8_t *bytes, uint32_t len, uint32_t seed, uint32_t seq);

/* The number that the bytes begin with. `otherwise` if they are too short to have one. */
uint32_t content_seq(const uint8_t *bytes, uint32_t len, uint32_t otherwise);

#endif
