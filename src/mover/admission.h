/* SPDX-License-Identifier: BSD-2-Clause */
/* Which connection has to go when another comes, of those that have not finished the handshake yet. Pure.
 *
 * A source address is easily forged, and an eavesdropper can repeat a request with its proof. So a place is never safe
 * by being early: whoever is in the way is chosen at random, first among those of the same address. An honest sender
 * needs its place for milliseconds, and tries again if it loses it. Connections whose request proved the ticket and
 * those without a proof do not compete with each other. */
#ifndef ROCI_MOVER_ADMISSION_H
#define ROCI_MOVER_ADMISSION_H

#include <stdbool.h>
#include <stdint.h>

#define ADMISSION_MAX         32 /* connections of a kind that have not finished the handshake */
#define ADMISSION_PER_ADDRESS 16 /* ... of one address */

struct sockaddr;

struct admission_place {
	bool proved;      /* its request proved the ticket */
	uint8_t from[16]; /* whose: admission_address() */
};

/* The place in `places` that has to be given up before `next` gets one; -1: none. `random` chooses among equals. */
int admission_choose(const struct admission_place *places, unsigned count, const struct admission_place *next,
		     uint32_t random);

/* Whom an address belongs to: an IPv4 address, or an IPv6 network of 64 bits, of which a host may have all addresses.
 */
void admission_address(const struct sockaddr *address, uint8_t from[16]);

#endif
