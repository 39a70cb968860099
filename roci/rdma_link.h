/* SPDX-License-Identifier: BSD-2-Clause */
/* Software RDMA devices of the kernel on network interfaces: rxe (Soft-RoCE) and siw (iWARP). The kernel's RDMA netlink
 * (rdma/rdma_netlink.h) lists, makes and removes them, as rdma-link(8) does. */
#ifndef ROCI_RDMA_LINK_H
#define ROCI_RDMA_LINK_H

#include <stdint.h>

#define RDMA_LINK_NAME_CHARS 64

struct rdma_link {
	uint32_t index;
	char name[RDMA_LINK_NAME_CHARS];
};

/* The netlink socket, or a negative errno. -EPROTONOSUPPORT: the kernel has no RDMA, not even as a module. */
int rdma_link_open(void);

/* Whether there is any device. 1, 0, or a negative errno. */
int rdma_link_any(int fd);

/* Finds the device of a kind ("rxe", "siw") on an interface. 1; 0: there is none; or a negative errno. */
int rdma_link_find(int fd, const char *kind, const char *iface, struct rdma_link *found);

/* 0 or a negative errno. -EPERM: needs CAP_NET_ADMIN in the machine's first user namespace. -EINVAL: the kernel knows
 * no such kind; or (remove) the device is not a software device. */
int rdma_link_add(int fd, const char *kind, const char *iface, const char *name);
int rdma_link_remove(int fd, const struct rdma_link *link);

#endif
