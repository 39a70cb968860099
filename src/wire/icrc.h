/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The invariant CRC (IBTA A17.3 for RoCEv2): CRC-32 with zlib's polynomial over a masked image of IP and UDP header and
 * the packet, stored little-endian behind the pad. Computed with ISA-L.
 *
 * The image has ones where routers may write: IPv4 TOS, TTL, checksum; IPv6 traffic class, flow label, hop limit; UDP
 * checksum; BTH byte 4. It does cover the IPv4 identification, which a UDP socket neither chooses nor sees: see
 * roci_icrc_ipv4_id().
 */
#ifndef ROCI_WIRE_ICRC_H
#define ROCI_WIRE_ICRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Addresses in GID form (wire/gid.h), of one family. Ports in host byte order. */
struct roci_flow {
	uint8_t src[16], dst[16];
	uint16_t src_port, dst_port;
};

/* Starts the ICRC of a packet whose UDP payload is `udp_payload_len` bytes long (BTH to ICRC). `ip_id` is the IPv4
 * identification in host byte order (ignored for IPv6); DF is taken as set, fragment offset as 0. Returns the running
 * value for roci_icrc_update(). */
uint32_t roci_icrc_begin(const struct roci_flow *flow, uint16_t ip_id, size_t udp_payload_len);

/* Adds the BTH and what follows it in `headers` (`len` >= 12 bytes, at most ROCI_MAX_HEADER_BYTES): byte 4 is masked.
 */
uint32_t roci_icrc_headers(uint32_t crc, const uint8_t *headers, size_t len);

/* Adds `len` bytes as they are: payload, pad. */
uint32_t roci_icrc_update(uint32_t crc, const void *bytes, size_t len);

/* Ends the computation and writes the four bytes as they go on the wire. */
void roci_icrc_store(uint32_t crc, uint8_t out[4]);

/* What Soft-RoCE (Linux 6.2 to 6.12 at least) does with the ICRC of a FLUSH: it goes on over the headers a second time,
 * unmasked. It drops a FLUSH with the ICRC of the standard. */
uint32_t roci_icrc_soft_roce_flush(uint32_t crc, const uint8_t *headers, size_t len);

/* Returns the identification with which the whole packet `bytes` is intact, 0 where it is IPv6; or -1 where it is
 * damaged. A FLUSH may also be as Soft-RoCE makes it. len >= 16. */
int roci_icrc_check(const struct roci_flow *flow, const uint8_t *bytes, size_t len);

/* For IPv4, where the receiver does not know the identification: `difference` is (received ICRC) xor (ICRC computed
 * with identification 0), both read little-endian, and `len` the UDP payload length. Returns the identification
 * (0..65535) with which the packet is intact, or -1 where there is none: the packet is damaged. A random error passes
 * with a probability of 2^-16 (docs/DEPARTURES.md). */
int roci_icrc_ipv4_id(uint32_t difference, size_t len);

#endif
