/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RDMA IP CM service (IBTA annex A11): connections by IP address and port. The port is part of the service id. The
 * addresses are in the IP CM header: the first 36 bytes of the private data of a REQ or SIDR_REQ.
 */
#ifndef ROCI_CM_CM_IP_H
#define ROCI_CM_CM_IP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROCI_CM_IP_BYTES 36

/* As enum rdma_port_space. The low byte is the IP protocol's number, or 0x3f for IB. */
enum roci_port_space {
	ROCI_PS_IPOIB = 0x0002,
	ROCI_PS_TCP = 0x0106,
	ROCI_PS_UDP = 0x0111,
	ROCI_PS_IB = 0x013f,
};

/* A11.3.1: 0x0000000001, protocol, port. `port` is in host byte order. */
static inline uint64_t roci_cm_service_id(enum roci_port_space ps, uint16_t port)
{
	return (uint64_t)ps << 16 | port;
}

/* True for the service ids that roci_cm_service_id() makes: the private data starts with the IP CM header. */
static inline bool roci_cm_service_is_ip(uint64_t service_id)
{
	return service_id >> 24 == 1;
}

static inline uint16_t roci_cm_service_port(uint64_t service_id)
{
	return (uint16_t)service_id;
}

static inline unsigned roci_cm_service_ps(uint64_t service_id)
{
	return (unsigned)(service_id >> 16) & 0xffff;
}

/* The IP CM header, A11.3.2. Addresses are GIDs: IPv4 as ::ffff:a.b.c.d. The source is the active side. */
struct roci_cm_ip {
	uint8_t src[16], dst[16];
	uint16_t src_port; /* host byte order */
	bool ipv4;
};

void roci_cm_ip_build(const struct roci_cm_ip *ip, uint8_t out[ROCI_CM_IP_BYTES]);
/* False: the bytes are not an IP CM header (too short, another version, neither IPv4 nor IPv6). */
bool roci_cm_ip_parse(struct roci_cm_ip *ip, const void *private, size_t len);

#endif
