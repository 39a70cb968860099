/* SPDX-License-Identifier: BSD-2-Clause */
/* Tickets: a sender needs the receiver's ticket. `roci1:HOST:PORT:SECRET`; HOST is in brackets if it is IPv6. SECRET is
 * 26 characters of Crockford's base32 (128 bits), and two more that detect a typing error. */
#ifndef ROCI_MOVER_TICKET_H
#define ROCI_MOVER_TICKET_H

#include <stddef.h>
#include <stdint.h>

#define MOVER_SECRET_BYTES  16
#define MOVER_TICKET_CHARS  320 /* with the final NUL */
#define MOVER_TICKET_PREFIX "roci1:"

struct mover_ticket {
	char host[256]; /* name or address; empty if the receiver does not know it */
	uint16_t port;
	uint8_t secret[MOVER_SECRET_BYTES];
};

/* A fresh secret from getrandom(2). Returns 0 or -errno. */
int mover_ticket_create(struct mover_ticket *ticket, const char *host, uint16_t port);

/* Writes the ticket as one line without a line break. */
void mover_ticket_print(const struct mover_ticket *ticket, char line[MOVER_TICKET_CHARS]);

/* Reads a ticket, in upper or lower case, with white space around it. Returns 0, or -EINVAL with *why set to what is
 * wrong ("a character is missing or wrong", "not a ticket"). */
int mover_ticket_parse(const char *text, size_t len, struct mover_ticket *ticket, const char **why);

/* Overwrites the secret with zeros; the compiler does not remove it. */
void mover_ticket_forget(struct mover_ticket *ticket);

#endif
