/* SPDX-License-Identifier: BSD-2-Clause */
/* rdma_getaddrinfo(): the answers of getaddrinfo(3) in rdma_cm's structure. */
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "rdmacm/address.h"
#include "rdmacm/error.h"
#include "rdmacm/public.h"

#define KNOWN_FLAGS (RAI_PASSIVE | RAI_NUMERICHOST | RAI_NOROUTE | RAI_FAMILY)

/* A copy in *out; false: out of memory. */
static bool copy_addr(struct sockaddr **out, socklen_t *out_len, const struct sockaddr *addr, socklen_t len)
{
	if (!addr || !len)
		return true;
	*out = malloc(len);
	if (!*out)
		return false;
	memcpy(*out, addr, len);
	*out_len = len;
	return true;
}

/* Chooses QP type and port space where the hints leave one open. 0, or EAI_SOCKTYPE (the manual's EAI_QPTYPE). */
static int choose_service(const struct rdma_addrinfo *hints, struct rdma_addrinfo *rai)
{
	int type = hints ? hints->ai_qp_type : 0, ps = hints ? hints->ai_port_space : 0;
	if (!ps)
		ps = type == IBV_QPT_UD ? RDMA_PS_UDP : RDMA_PS_TCP;
	if (!type)
		type = ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB ? IBV_QPT_UD : IBV_QPT_RC;
	bool datagram_space = ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB;
	if ((ps == RDMA_PS_TCP && type == IBV_QPT_UD) || (datagram_space && type != IBV_QPT_UD))
		return EAI_SOCKTYPE;
	rai->ai_qp_type = type;
	rai->ai_port_space = ps;
	return 0;
}

static struct rdma_addrinfo *make(const struct rdma_addrinfo *service, const struct rdma_addrinfo *hints,
				  const struct addrinfo *ai, bool passive)
{
	struct rdma_addrinfo *rai = calloc(1, sizeof(*rai));
	if (!rai)
		return NULL;
	rai->ai_flags = hints ? hints->ai_flags : 0;
	rai->ai_family = ai->ai_family;
	rai->ai_qp_type = service->ai_qp_type;
	rai->ai_port_space = service->ai_port_space;
	bool ok;
	if (passive)
		ok = copy_addr(&rai->ai_src_addr, &rai->ai_src_len, ai->ai_addr, ai->ai_addrlen);
	else
		ok = copy_addr(&rai->ai_dst_addr, &rai->ai_dst_len, ai->ai_addr, ai->ai_addrlen) &&
		     (!hints || copy_addr(&rai->ai_src_addr, &rai->ai_src_len, hints->ai_src_addr, hints->ai_src_len));
	char **canonname = passive ? &rai->ai_src_canonname : &rai->ai_dst_canonname;
	if (ok && ai->ai_canonname)
		ok = (*canonname = strdup(ai->ai_canonname)) != NULL;
	if (ok)
		return rai;
	rdma_freeaddrinfo(rai);
	return NULL;
}

static int from_resolver(const char *node, const char *service, const struct rdma_addrinfo *hints,
			 const struct rdma_addrinfo *kind, struct rdma_addrinfo **res)
{
	int flags = hints ? hints->ai_flags : 0;
	struct addrinfo ask = {.ai_socktype = SOCK_STREAM}, *list;
	if (flags & RAI_PASSIVE)
		ask.ai_flags |= AI_PASSIVE;
	if (flags & RAI_NUMERICHOST)
		ask.ai_flags |= AI_NUMERICHOST;
	/* AF_IB without RAI_FAMILY is a wish, and means any family here. */
	if (hints && hints->ai_family != AF_IB)
		ask.ai_family = hints->ai_family;
	int err = getaddrinfo(node, service, &ask, &list);
	if (err)
		return err;
	struct rdma_addrinfo **end = res;
	for (struct addrinfo *ai = list; ai; ai = ai->ai_next) {
		if (!cma_addr_len(ai->ai_addr))
			continue;
		*end = make(kind, hints, ai, flags & RAI_PASSIVE);
		if (!*end) {
			rdma_freeaddrinfo(*res);
			*res = NULL;
			err = EAI_MEMORY;
			break;
		}
		end = &(*end)->ai_next;
	}
	freeaddrinfo(list);
	return err ? err : *res ? 0 : EAI_FAMILY;
}

/* Without node and service the hints have the addresses. */
static int from_hints(const struct rdma_addrinfo *hints, const struct rdma_addrinfo *kind, struct rdma_addrinfo **res)
{
	struct rdma_addrinfo *rai = calloc(1, sizeof(*rai));
	if (!rai)
		return EAI_MEMORY;
	const struct sockaddr *addr = hints->ai_dst_addr ? hints->ai_dst_addr : hints->ai_src_addr;
	rai->ai_flags = hints->ai_flags;
	rai->ai_family = addr ? addr->sa_family : hints->ai_family;
	rai->ai_qp_type = kind->ai_qp_type;
	rai->ai_port_space = kind->ai_port_space;
	if (copy_addr(&rai->ai_src_addr, &rai->ai_src_len, hints->ai_src_addr, hints->ai_src_len) &&
	    copy_addr(&rai->ai_dst_addr, &rai->ai_dst_len, hints->ai_dst_addr, hints->ai_dst_len)) {
		*res = rai;
		return 0;
	}
	rdma_freeaddrinfo(rai);
	return EAI_MEMORY;
}

/* AF_IB names a port by its GID, without an IP address. There are no such ports on Ethernet. */
static bool is_foreign_family(const struct rdma_addrinfo *hints)
{
	return (hints->ai_flags & RAI_FAMILY) && hints->ai_family != AF_UNSPEC && hints->ai_family != AF_INET &&
	       hints->ai_family != AF_INET6;
}

int rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
		     struct rdma_addrinfo **res)
{
	struct rdma_addrinfo kind = {0};
	if (!res || (!node && !service && !hints))
		return cma_error(EINVAL);
	*res = NULL;
	if (hints && hints->ai_flags & ~KNOWN_FLAGS)
		return EAI_BADFLAGS;
	if (hints && is_foreign_family(hints))
		return EAI_FAMILY;
	int err = choose_service(hints, &kind);
	if (err)
		return err;
	if (node || service)
		return from_resolver(node, service, hints, &kind, res);
	return from_hints(hints, &kind, res);
}

void rdma_freeaddrinfo(struct rdma_addrinfo *res)
{
	while (res) {
		struct rdma_addrinfo *next = res->ai_next;
		free(res->ai_src_addr);
		free(res->ai_dst_addr);
		free(res->ai_src_canonname);
		free(res->ai_dst_canonname);
		free(res->ai_route);
		free(res->ai_connect);
		free(res);
		res = next;
	}
}
