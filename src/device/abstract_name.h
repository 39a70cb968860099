/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names in the network namespace: abstract Unix datagram sockets (unix(7)). They need no file system, so the processes
 * of all users and containers that share a network share them; a name belongs to one socket, and is free again when
 * that is closed, however its process ends. Whoever comes first has a name: it says nothing about who that is.
 */
#ifndef ROCI_DEVICE_ABSTRACT_NAME_H
#define ROCI_DEVICE_ABSTRACT_NAME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

struct roci_abstract_name {
	struct sockaddr_un addr;
	socklen_t len;
};

/* The name of the side door (side_door.h) of a slot (registry.h). */
struct roci_abstract_name roci_abstract_name_door(unsigned slot);

/* The name of an rdma_cm port (port_names.h). */
struct roci_abstract_name roci_abstract_name_port(unsigned ps, uint16_t port);

/* Takes a name. Returns a socket that does not block and learns who sends (SO_PASSCRED), or a negative errno:
 * -EADDRINUSE: somebody has the name. */
int roci_abstract_name_take(const struct roci_abstract_name *name);
/* Whether somebody has the name. `*asker`, -1 at first, is a socket that is kept for the next question. */
bool roci_abstract_name_taken(int *asker, const struct roci_abstract_name *name);
void roci_abstract_name_close(int *asker);

#endif
