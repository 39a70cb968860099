/* SPDX-License-Identifier: BSD-2-Clause */
/* Tickets: what a receiver hands to the one who may send to it. `roci1:HOST:PORT:SECRET`, HOST in brackets if IPv6,
 * SECRET 26 characters of Crockford's base32 (128 bits), and two more that catch a typing error. */
#ifndef ROCI_MOVER_TICKET_H
#define ROCI_MOVER_TICKET_H

#include <stddef.h>
#include <stdint.h>

#define MOVER_SECRET_BYTES 16
#define MOVER_TICKET_CHARS 320 /* with the final NUL */

struct mover_ticket {
	char host[256]; /* name or address; empty if the receiver could not tell */
	uint16_t port;
	uint8_t secret[MOVER_SECRET_BYTES];
};

/* A fresh secret from getrandom(2). Returns 0 or -errno. */
int mover_ticket_create(struct mover_ticket *ticket, const char *host, uint16_t port);

/* Writes the ticket as one line without a line break. */
void mover_ticket_print(const struct mover_ticket *ticket, char line[MOVER_TICKET_CHARS]);

/* Reads what mover_ticket_print() wrote, with white space around it, in either case. Returns 0, or -EINVAL with *why
 * set to what is wrong ("a character is missing or wrong", "not a ticket"). */
int mover_ticket_parse(const char *text, size_t len, struct mover_ticket *ticket, const char **why);

/* Overwrites the secret with zeros, in a way the compiler keeps. */
void mover_ticket_forget(struct mover_ticket *ticket);

#endif
