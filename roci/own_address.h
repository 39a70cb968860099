/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the address at which others most likely reach this machine. */
#ifndef ROCI_OWN_ADDRESS_H
#define ROCI_OWN_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>

struct device_choice;

/* Takes an address that belongs to the device; all addresses belong to the embedded device. First choice: the address
 * from which the default route leaves, IPv4 before IPv6. Then: the address of any interface that is up. Then: a
 * link-local IPv6 address, without an interface (target_lacks_interface()). Else: 127.0.0.1. Sends nothing. */
void own_address(const struct device_choice *device, char address[INET6_ADDRSTRLEN]);

/* Whether an address of this machine belongs to the device. None does if the device's network interface has no address
 * or is in another network namespace; the device is visible there all the same. */
bool own_address_of_device(const struct device_choice *device);

#endif
