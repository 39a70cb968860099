/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the receiver leaves its ticket, for who may send to it. */
#ifndef ROCI_TICKET_FILE_H
#define ROCI_TICKET_FILE_H

#include <sys/types.h>

#include "mover/ticket.h"

struct ticket_file {
	const char *path;
	dev_t dev; /* of the file that was written last; 0: none was */
	ino_t ino;
};

/* Writes the ticket to path, mode 0600: whole or not at all, by rename. 0 or -errno. */
int ticket_file_write(struct ticket_file *file, const struct mover_ticket *ticket);

/* Removes the file, if it is still the one that was written: the ticket is worth nothing any more. */
void ticket_file_remove(struct ticket_file *file);

#endif
