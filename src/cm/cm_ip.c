/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/cm_ip.h"

#include <string.h>

#include "wire/bytes.h"
#include "wire/gid.h"

/* Where the fields are (A11.3.2). An IPv4 address is in the last four of its sixteen bytes; the others are zero. */
#define VERSION_AT 0
#define FAMILY_AT  1
#define PORT_AT    2
#define SRC_AT     4
#define DST_AT     20
#define VERSION    0

static void put_address(uint8_t *to, const uint8_t gid[16], bool ipv4)
{
	memset(to, 0, 16);
	if (ipv4)
		roci_gid_to_ipv4(gid, to + 12);
	else
		memcpy(to, gid, 16);
}

static void get_address(uint8_t gid[16], const uint8_t *from, bool ipv4)
{
	if (ipv4)
		roci_gid_from_ipv4(gid, from + 12);
	else
		memcpy(gid, from, 16);
}

void roci_cm_ip_build(const struct roci_cm_ip *ip, uint8_t out[ROCI_CM_IP_BYTES])
{
	out[VERSION_AT] = VERSION;
	out[FAMILY_AT] = ip->ipv4 ? 4 << 4 : 6 << 4;
	roci_put_be16(out + PORT_AT, ip->src_port);
	put_address(out + SRC_AT, ip->src, ip->ipv4);
	put_address(out + DST_AT, ip->dst, ip->ipv4);
}

bool roci_cm_ip_parse(struct roci_cm_ip *ip, const void *private, size_t len)
{
	const uint8_t *from = private;

	memset(ip, 0, sizeof(*ip));
	if (len < ROCI_CM_IP_BYTES || from[VERSION_AT] != VERSION ||
	    (from[FAMILY_AT] >> 4 != 4 && from[FAMILY_AT] >> 4 != 6))
		return false;
	ip->ipv4 = from[FAMILY_AT] >> 4 == 4;
	ip->src_port = roci_get_be16(from + PORT_AT);
	get_address(ip->src, from + SRC_AT, ip->ipv4);
	get_address(ip->dst, from + DST_AT, ip->ipv4);
	/* An IPv4 address has one form: IPv6 headers with IPv4-mapped addresses are refused. */
	return ip->ipv4 || (!roci_gid_is_ipv4(ip->src) && !roci_gid_is_ipv4(ip->dst));
}
