/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses in GID form: 16 bytes in network order. RoCEv2 writes an IPv4 address as ::ffff:a.b.c.d (IBTA A17.4.2), and
 * an IPv6 address as it is.
 */
#ifndef ROCI_WIRE_GID_H
#define ROCI_WIRE_GID_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define ROCI_GID_IPV4_AT 12 /* where the four bytes of an IPv4 address are */

/* True for ::ffff:0:0/96. */
static inline bool roci_gid_is_ipv4(const uint8_t gid[16])
{
	static const uint8_t prefix[ROCI_GID_IPV4_AT] = {[10] = 0xff, [11] = 0xff};
	return !memcmp(gid, prefix, sizeof(prefix));
}

/* Writes the GID of an IPv4 address: four bytes in network order. */
static inline void roci_gid_from_ipv4(uint8_t gid[16], const void *ipv4)
{
	memset(gid, 0, 10);
	gid[10] = gid[11] = 0xff;
	memcpy(gid + ROCI_GID_IPV4_AT, ipv4, 4);
}

/* Copies the IPv4 address (four bytes in network order) from a GID for which roci_gid_is_ipv4() is true. */
static inline void roci_gid_to_ipv4(const uint8_t gid[16], void *ipv4)
{
	memcpy(ipv4, gid + ROCI_GID_IPV4_AT, 4);
}

/* True for the wildcard of IPv4, ::ffff:0.0.0.0. */
static inline bool roci_gid_is_any_ipv4(const uint8_t gid[16])
{
	static const uint8_t zero[4];
	return roci_gid_is_ipv4(gid) && !memcmp(gid + ROCI_GID_IPV4_AT, zero, sizeof(zero));
}

/* True for sixteen zeros: the wildcard of both families, or of IPv6. */
static inline bool roci_gid_is_any(const uint8_t gid[16])
{
	static const uint8_t zero[16];
	return !memcmp(gid, zero, sizeof(zero));
}

/* True for ff00::/8, and for 224.0.0.0/4 as a GID. */
static inline bool roci_gid_is_multicast(const uint8_t gid[16])
{
	return gid[0] == 0xff || (roci_gid_is_ipv4(gid) && (gid[ROCI_GID_IPV4_AT] & 0xf0) == 0xe0);
}

/* Writes the Ethernet address of a multicast GID: RFC 1112 s.6.4, RFC 2464 s.7. False, and nothing written: the GID is
 * no multicast GID. */
static inline bool roci_gid_multicast_mac(const uint8_t gid[16], uint8_t mac[6])
{
	if (!roci_gid_is_multicast(gid))
		return false;
	bool ipv4 = roci_gid_is_ipv4(gid);
	const uint8_t bytes[6] = {ipv4 ? 0x01 : 0x33,
				  ipv4 ? 0x00 : 0x33,
				  ipv4 ? 0x5e : gid[12],
				  ipv4 ? gid[13] & 0x7f : gid[13],
				  gid[14],
				  gid[15]};
	memcpy(mac, bytes, sizeof(bytes));
	return true;
}

#endif
