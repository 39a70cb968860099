/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who has UDP port 4791 of an address: the sockets of all users and containers of the network namespace, as
 * /proc/net/udp and /proc/net/udp6 list them.
 */
#ifndef ROCI_DEVICE_PORT_HOLDER_H
#define ROCI_DEVICE_PORT_HOLDER_H

#include <stdbool.h>
#include <stdint.h>

struct roci_port_holder {
	uint8_t gid[16]; /* that the socket is bound to; all zero, or ::ffff:0.0.0.0: every address */
	uint32_t uid;    /* 65534: of a user that this user namespace does not have */
	uint32_t inode;
};

/* Calls `see` for each socket that receives what comes to port 4791 of `gid`, until it returns false. Where the lists
 * cannot be read, there is none. */
typedef bool roci_port_holder_fn(void *context, const struct roci_port_holder *holder);
void roci_port_holders(const uint8_t gid[16], roci_port_holder_fn *see, void *context);

#endif
