/* SPDX-License-Identifier: BSD-2-Clause */
#include "rdmacm/address.h"

#include <string.h>

#include "rdmacm/public.h"
#include "wire/gid.h"

socklen_t cma_addr_len(const struct sockaddr *addr)
{
	if (!addr)
		return 0;
	switch (addr->sa_family) {
	case AF_INET: return sizeof(struct sockaddr_in);
	case AF_INET6: return sizeof(struct sockaddr_in6);
	default: return 0;
	}
}

static const struct sockaddr_in *in4(const struct sockaddr *addr)
{
	return (const struct sockaddr_in *)addr;
}

static const struct sockaddr_in6 *in6(const struct sockaddr *addr)
{
	return (const struct sockaddr_in6 *)addr;
}

bool cma_addr_is_any(const struct sockaddr *addr)
{
	if (addr->sa_family == AF_INET)
		return in4(addr)->sin_addr.s_addr == htonl(INADDR_ANY);
	if (addr->sa_family == AF_INET6)
		return IN6_IS_ADDR_UNSPECIFIED(&in6(addr)->sin6_addr);
	return true; /* not set */
}

bool cma_addr_is_multicast(const struct sockaddr *addr)
{
	if (addr->sa_family == AF_INET)
		return IN_MULTICAST(ntohl(in4(addr)->sin_addr.s_addr));
	return addr->sa_family == AF_INET6 && IN6_IS_ADDR_MULTICAST(&in6(addr)->sin6_addr);
}

bool cma_addr_is_link_local(const struct sockaddr *addr)
{
	return addr->sa_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&in6(addr)->sin6_addr);
}

uint32_t cma_addr_scope(const struct sockaddr *addr)
{
	return cma_addr_is_link_local(addr) ? in6(addr)->sin6_scope_id : 0;
}

uint16_t cma_addr_port(const struct sockaddr *addr)
{
	switch (addr->sa_family) {
	case AF_INET: return ntohs(in4(addr)->sin_port);
	case AF_INET6: return ntohs(in6(addr)->sin6_port);
	default: return 0;
	}
}

void cma_addr_set_port(struct sockaddr *addr, uint16_t port)
{
	if (addr->sa_family == AF_INET)
		((struct sockaddr_in *)addr)->sin_port = htons(port);
	else if (addr->sa_family == AF_INET6)
		((struct sockaddr_in6 *)addr)->sin6_port = htons(port);
}

void cma_addr_to_gid(const struct sockaddr *addr, union ibv_gid *gid)
{
	if (addr->sa_family == AF_INET)
		roci_gid_from_ipv4(gid->raw, &in4(addr)->sin_addr);
	else if (addr->sa_family == AF_INET6)
		memcpy(gid->raw, &in6(addr)->sin6_addr, 16);
	else
		memset(gid, 0, sizeof(*gid));
}

void cma_addr_from_gid(const uint8_t gid[16], bool ipv4, uint32_t ifindex, struct sockaddr *addr)
{
	if (ipv4) {
		struct sockaddr_in sin = {.sin_family = AF_INET};
		roci_gid_to_ipv4(gid, &sin.sin_addr);
		memcpy(addr, &sin, sizeof(sin));
		return;
	}
	struct sockaddr_in6 sin6 = {.sin6_family = AF_INET6};
	memcpy(&sin6.sin6_addr, gid, 16);
	if (IN6_IS_ADDR_LINKLOCAL(&sin6.sin6_addr))
		sin6.sin6_scope_id = ifindex;
	memcpy(addr, &sin6, sizeof(sin6));
}

bool cma_addr_same_host(const struct sockaddr *a, const struct sockaddr *b)
{
	union ibv_gid ga, gb;
	cma_addr_to_gid(a, &ga);
	cma_addr_to_gid(b, &gb);
	return a->sa_family == b->sa_family && !memcmp(&ga, &gb, sizeof(ga));
}

__be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	return id ? htons(cma_addr_port(&id->route.addr.src_addr)) : 0;
}

__be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
	return id ? htons(cma_addr_port(&id->route.addr.dst_addr)) : 0;
}
