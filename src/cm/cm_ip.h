/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RDMA IP CM service (IBTA annex A11): connection by IP address and port. The port becomes a service id, the addresses
 * travel in the first 36 bytes of the private data of REQ and SIDR_REQ.
 */
#ifndef ROCI_CM_CM_IP_H
#define ROCI_CM_CM_IP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROCI_CM_IP_BYTES 36

/* enum rdma_port_space; port spaces of the service id are the IP protocol's number, and 0x3f for IB. */
enum roci_port_space {
	ROCI_PS_IPOIB = 0x0002,
	ROCI_PS_TCP = 0x0106,
	ROCI_PS_UDP = 0x0111,
	ROCI_PS_IB = 0x013f,
};

/* A11.3.1: 0x0000000001, protocol, port. The low 16 bits of the port space and the port (host byte order). */
static inline uint64_t roci_cm_service_id(enum roci_port_space ps, uint16_t port)
{
	return (uint64_t)ps << 16 | port;
}

/* True where the service id is one of the above, so that the private data starts with the IP CM header. */
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

/* Addresses in GID form: IPv4 as ::ffff:a.b.c.d; source is who asks. */
struct roci_cm_ip {
	uint8_t src[16], dst[16];
	uint16_t src_port; /* host byte order */
	bool ipv4;
};

void roci_cm_ip_build(const struct roci_cm_ip *ip, uint8_t out[ROCI_CM_IP_BYTES]);
/* False where the bytes are no such header: another version, neither IPv4 nor IPv6. */
bool roci_cm_ip_parse(struct roci_cm_ip *ip, const void *private, size_t len);

#endif
