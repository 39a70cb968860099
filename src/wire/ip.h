/* SPDX-License-Identifier: BSD-2-Clause */
/* IP headers in front of UDP, without options (RFC 791) and extension headers (RFC 8200). */
#ifndef ROCI_WIRE_IP_H
#define ROCI_WIRE_IP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROCI_IPV4_BYTES   20
#define ROCI_IPV6_BYTES   40
#define ROCI_UDP_BYTES    8
#define ROCI_IP_PROTO_UDP 17

struct roci_ip {
	const uint8_t *src, *dst; /* 16 bytes in GID form (wire/gid.h), of one family */
	uint8_t traffic_class, hop_limit;
	uint16_t id;      /* of IPv4 */
	uint16_t udp_len; /* bytes: UDP header and payload */
};

/* Writes the header: for IPv4 with DF, and with checksum 0; for IPv6 with flow label 0. Returns its length. */
unsigned roci_ip_build(const struct roci_ip *ip, uint8_t *to);
/* Writes the checksum of an IPv4 header. */
void roci_ipv4_put_checksum(uint8_t header[ROCI_IPV4_BYTES]);
bool roci_ipv4_checksum_is_right(const uint8_t header[ROCI_IPV4_BYTES]);

/* The Internet checksum (RFC 1071): adds up 16-bit words, an odd byte at the end counting as a high one; then the
 * complement of the folded sum, in host byte order. */
uint32_t roci_ip_sum(uint32_t sum, const uint8_t *bytes, size_t len);
uint16_t roci_ip_sum_end(uint32_t sum);

#endif
