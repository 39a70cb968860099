/* SPDX-License-Identifier: BSD-2-Clause */
/* The code of a path MTU, in connection management messages and enum ibv_mtu: 1 to 5 for 256 to 4,096 bytes of payload.
 */
#ifndef ROCI_WIRE_MTU_H
#define ROCI_WIRE_MTU_H

#include <stdbool.h>
#include <stdint.h>

#define ROCI_MTU_CODE_MIN 1
#define ROCI_MTU_CODE_MAX 5

/* What a packet has beside its payload, at most: IP, UDP, the largest RoCE headers, ICRC. */
#define ROCI_MTU_OVERHEAD_BYTES 96

static inline bool roci_mtu_code_is_valid(unsigned code)
{
	return code >= ROCI_MTU_CODE_MIN && code <= ROCI_MTU_CODE_MAX;
}

/* Bytes of a valid code. */
static inline uint32_t roci_mtu_bytes(unsigned code)
{
	return 128u << code;
}

/* The largest code whose MTU fits into `bytes`; the smallest code where none fits. */
static inline uint8_t roci_mtu_code(uint32_t bytes)
{
	uint8_t code = ROCI_MTU_CODE_MAX;
	while (code > ROCI_MTU_CODE_MIN && roci_mtu_bytes(code) > bytes)
		code--;
	return code;
}

/* What a packet of a connection has in its datagram beside its payload, at most: BTH, RETH and immediate data (RDMA
 * WRITE Only with Immediate), ICRC. */
#define ROCI_MTU_HEADER_BYTES (12 + 16 + 4 + 4)

/* UDP payload of the longest packet of a connection with this code. */
static inline uint32_t roci_mtu_datagram_bytes(unsigned code)
{
	return roci_mtu_bytes(code) + ROCI_MTU_HEADER_BYTES;
}

/* The largest code whose packets fit into a datagram with `bytes` of UDP payload; the smallest code where none fits. */
static inline uint8_t roci_mtu_code_of_datagram(uint32_t bytes)
{
	return roci_mtu_code(bytes > ROCI_MTU_HEADER_BYTES ? bytes - ROCI_MTU_HEADER_BYTES : 0);
}

/* The largest code whose packets an interface with an MTU of `bytes` carries; the smallest code where none fits. */
static inline uint8_t roci_mtu_code_of_interface(uint32_t bytes)
{
	return roci_mtu_code(bytes > ROCI_MTU_OVERHEAD_BYTES ? bytes - ROCI_MTU_OVERHEAD_BYTES : 0);
}

#endif
