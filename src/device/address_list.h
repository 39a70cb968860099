/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The addresses of the host where a sandbox refuses netlink, and so getifaddrs(3): systemd's RestrictAddressFamilies=
 * for example. From SIOCGIFCONF (netdevice(7)) and /proc/net/if_inet6 (proc(5)).
 */
#ifndef ROCI_DEVICE_ADDRESS_LIST_H
#define ROCI_DEVICE_ADDRESS_LIST_H

#include <ifaddrs.h>

/* A list as getifaddrs() makes it, of IPv4 and IPv6 addresses, with ifa_name, ifa_flags and ifa_addr. To be freed with
 * free(). Returns 0 or a negative errno. */
int roci_address_list(struct ifaddrs **out);

#endif
