/* SPDX-License-Identifier: BSD-2-Clause */
/* Mode READ: the receiver reads the sender's windows into its own. */
#ifndef ROCI_MOVER_RECEIVER_READ_H
#define ROCI_MOVER_RECEIVER_READ_H

#include <stdbool.h>

struct receiver;

struct reads {
	unsigned under_way; /* of all windows */
};

bool read_pump(struct receiver *r);
/* A READ has completed. */
void read_done(struct receiver *r, unsigned window);

#endif
