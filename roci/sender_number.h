/* SPDX-License-Identifier: BSD-2-Clause */
/* The number of a transfer outlives its sender: a sender that was killed and started again continues the transfer, and
 * the receiver knows it by the number (docs/MOVER.md). */
#ifndef ROCI_SENDER_NUMBER_H
#define ROCI_SENDER_NUMBER_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "mover/mover.h"

struct sender_number {
	uint8_t bytes[MOVER_TRANSFER_BYTES];
	char path[PATH_MAX];
	int fd;     /* the file that has the number, locked while the sender runs; -1: none */
	bool found; /* an earlier sender left it */
};

/* Takes the number that an earlier sender of this user to the same receiver has left: with the same ticket, or open
 * (NULL) to the same host and port. Else makes a new one. While a sender runs, no other gets its number, because the
 * kernel keeps the lock as long as the process lives. False: none can be had, as without a run directory
 * (device/rundir.h). End it with sender_number_end(). */
bool sender_number_take(struct sender_number *n, const struct mover_ticket *ticket, const char *host, uint16_t port);

/* The sender has ended with that status. A transfer that may go on keeps its number. */
void sender_number_end(struct sender_number *n, enum mover_status status);

#endif
