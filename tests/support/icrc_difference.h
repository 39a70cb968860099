/* SPDX-License-Identifier: BSD-2-Clause */
/* How far an ICRC is from the right one, for tests that know the IPv4 identification or damage packets. */
#ifndef ROCI_TESTS_ICRC_DIFFERENCE_H
#define ROCI_TESTS_ICRC_DIFFERENCE_H

#include <string.h>

#include "wire/icrc.h"
#include "wire/packet.h"

/* (received ICRC) xor (computed ICRC) of the whole packet `bytes`, which is `len` bytes long with its ICRC, both read
 * little-endian. 0: the packet is intact with this identification. len >= ROCI_MIN_PACKET_BYTES. */
static inline uint32_t icrc_difference(const struct roci_flow *flow, uint16_t ip_id, const uint8_t *bytes, size_t len)
{
	size_t covered = len - ROCI_ICRC_BYTES;
	uint32_t crc = roci_icrc_begin(flow, ip_id, len), difference = 0;
	uint8_t computed[ROCI_ICRC_BYTES];

	crc = roci_icrc_headers(crc, bytes, ROCI_BTH_BYTES);
	crc = roci_icrc_update(crc, bytes + ROCI_BTH_BYTES, covered - ROCI_BTH_BYTES);
	roci_icrc_store(crc, computed);
	for (unsigned i = 0; i < ROCI_ICRC_BYTES; i++)
		difference |= (uint32_t)(computed[i] ^ bytes[covered + i]) << 8 * i;
	return difference;
}

#endif
