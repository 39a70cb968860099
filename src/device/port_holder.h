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
	uint32_t uid;    /* roci_unmapped_user(): of whoever this user namespace has no number for */
	uint32_t inode;
};

#define ROCI_PORT_TABLES "/proc/self/net"

/* Calls `see` for each socket that has port 4791 of exactly `gid`, until it returns false. Where the lists cannot be
 * read, there is none. */
typedef bool roci_port_holder_fn(void *context, const struct roci_port_holder *holder);
void roci_port_holders(const uint8_t gid[16], roci_port_holder_fn *see, void *context);

/* The same for each socket that has port 4791 of any address, or of all. The lists are in `folder`. */
void roci_all_port_holders(const char *folder, roci_port_holder_fn *see, void *context);

/* How closely a socket bound to `bound` fits what comes to `gid`: the closest receives it. 0: it does not fit. The
 * lists show [::] alike whether it receives IPv4 or not (IPV6_V6ONLY), so for IPv4 it fits worst. */
unsigned roci_port_fit(const uint8_t bound[16], const uint8_t gid[16]);

#define ROCI_NO_USER 0xffffffffu /* (uid_t)-1, which nobody has */

/* The number that the kernel shows for every user that this user namespace has no number for. So it tells nobody from
 * anybody else. ROCI_NO_USER: all users have numbers. */
uint32_t roci_unmapped_user(const char *uid_map, const char *overflow);

#define ROCI_UID_MAP      "/proc/self/uid_map"
#define ROCI_OVERFLOW_UID "/proc/sys/kernel/overflowuid"

#endif
