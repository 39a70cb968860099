/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The names of this process's rdma_cm ports in the network namespace (abstract_name.h). A request that comes to a
 * process of another user or container, which has UDP port 4791, finds the listener by them: their sockets take what a
 * side door takes.
 *
 * A name is that of a port, not of an address: processes of one registry share it. One of them has it; requests go from
 * there by the port table (ports.h). Those of another registry get -EADDRINUSE.
 */
#ifndef ROCI_DEVICE_PORT_NAMES_H
#define ROCI_DEVICE_PORT_NAMES_H

#include <stdbool.h>
#include <stdint.h>

struct roci_port_name {
	uint16_t ps, port;
	unsigned listeners; /* of this process */
	int fd;             /* -1: another process has the name */
	bool told;          /* somebody was, that requests come to the other address family */
};

struct roci_port_names {
	struct roci_port_name *names; /* owned */
	unsigned count, room;
	unsigned missing; /* whose fd is -1 */
	int epoll_fd;     /* of all their sockets */
};

/* Returns 0 or a negative errno. */
int roci_port_names_open(struct roci_port_names *all);
void roci_port_names_close(struct roci_port_names *all);
/* Closes the descriptors in a forked child, and nothing else. */
void roci_port_names_close_in_child(struct roci_port_names *all);

/* For a listener. shared: another process of this registry listens to the port, so it may have the name. -EADDRINUSE:
 * the name is another registry's; -ENOMEM, or another negative errno. */
int roci_port_names_add(struct roci_port_names *all, unsigned ps, uint16_t port, bool shared);
void roci_port_names_remove(struct roci_port_names *all, unsigned ps, uint16_t port);
/* NULL: this process does not listen to the port. Valid until the next call. */
struct roci_port_name *roci_port_names_find(struct roci_port_names *all, unsigned ps, uint16_t port);

/* Tries to take the missing names, whose owners may have ended. */
void roci_port_names_retry(struct roci_port_names *all);
/* A socket where something has arrived; -1: there is none. */
int roci_port_names_ready(const struct roci_port_names *all);

#endif
