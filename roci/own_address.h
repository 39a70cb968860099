/* SPDX-License-Identifier: BSD-2-Clause */
/* The address under which others are most likely to reach this machine. */
#ifndef ROCI_OWN_ADDRESS_H
#define ROCI_OWN_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>

struct device_choice;

/* Of the addresses to which the device leads (of the embedded one: all): that from which the default route leaves, IPv4
 * first; else one of any interface that is up; else 127.0.0.1. Nothing is sent. */
void own_address(const struct device_choice *device, char address[INET6_ADDRSTRLEN]);

/* Whether any address of this machine leads to the device: none does where its network interface has no address, or is
 * in another network namespace, out of which the device is seen all the same. */
bool own_address_leads_to(const struct device_choice *device);

#endif
