/* SPDX-License-Identifier: BSD-2-Clause */
/* Socket addresses, as GIDs and the other way. All but cma_addr_len() take only families that it knows. */
#ifndef ROCI_RDMACM_ADDRESS_H
#define ROCI_RDMACM_ADDRESS_H

#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

/* Bytes of an IPv4 or IPv6 address; 0: another family, or NULL. */
socklen_t cma_addr_len(const struct sockaddr *addr);
/* Also true for an address that is not set (family 0). */
bool cma_addr_is_any(const struct sockaddr *addr);
bool cma_addr_is_multicast(const struct sockaddr *addr);
bool cma_addr_is_link_local(const struct sockaddr *addr);
uint32_t cma_addr_scope(const struct sockaddr *addr); /* interface index of a link-local address, else 0 */
uint16_t cma_addr_port(const struct sockaddr *addr);  /* host order */
void cma_addr_set_port(struct sockaddr *addr, uint16_t port);
/* The same address; ports may differ. */
bool cma_addr_same_host(const struct sockaddr *a, const struct sockaddr *b);

void cma_addr_to_gid(const struct sockaddr *addr, union ibv_gid *gid);
/* `ifindex` becomes the scope of a link-local address. */
void cma_addr_from_gid(const uint8_t gid[16], bool ipv4, uint32_t ifindex, struct sockaddr *addr);

#endif
