/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/ip.h"

#include <string.h>

#include "wire/bytes.h"
#include "wire/gid.h"

#define DONT_FRAGMENT    0x4000
#define IPV4_CHECKSUM_AT 10

static unsigned build_ipv4(const struct roci_ip *ip, uint8_t *to)
{
	to[0] = 0x45;
	to[1] = ip->traffic_class;
	roci_put_be16(to + 2, (uint16_t)(ROCI_IPV4_BYTES + ip->udp_len));
	roci_put_be16(to + 4, ip->id);
	roci_put_be16(to + 6, DONT_FRAGMENT);
	to[8] = ip->hop_limit;
	to[9] = ROCI_IP_PROTO_UDP;
	roci_put_be16(to + IPV4_CHECKSUM_AT, 0);
	roci_gid_to_ipv4(ip->src, to + 12);
	roci_gid_to_ipv4(ip->dst, to + 16);
	return ROCI_IPV4_BYTES;
}

static unsigned build_ipv6(const struct roci_ip *ip, uint8_t *to)
{
	roci_put_be32(to, 6u << 28 | (uint32_t)ip->traffic_class << 20);
	roci_put_be16(to + 4, ip->udp_len);
	to[6] = ROCI_IP_PROTO_UDP;
	to[7] = ip->hop_limit;
	memcpy(to + 8, ip->src, 16);
	memcpy(to + 24, ip->dst, 16);
	return ROCI_IPV6_BYTES;
}

unsigned roci_ip_build(const struct roci_ip *ip, uint8_t *to)
{
	return roci_gid_is_ipv4(ip->src) ? build_ipv4(ip, to) : build_ipv6(ip, to);
}

uint32_t roci_ip_sum(uint32_t sum, const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i + 1 < len; i += 2)
		sum += (uint32_t)bytes[i] << 8 | bytes[i + 1];
	if (len & 1)
		sum += (uint32_t)bytes[len - 1] << 8;
	return sum;
}

uint16_t roci_ip_sum_end(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

void roci_ipv4_put_checksum(uint8_t header[ROCI_IPV4_BYTES])
{
	roci_put_be16(header + IPV4_CHECKSUM_AT, 0);
	roci_put_be16(header + IPV4_CHECKSUM_AT, roci_ip_sum_end(roci_ip_sum(0, header, ROCI_IPV4_BYTES)));
}

bool roci_ipv4_checksum_is_right(const uint8_t header[ROCI_IPV4_BYTES])
{
	return !roci_ip_sum_end(roci_ip_sum(0, header, ROCI_IPV4_BYTES));
}
