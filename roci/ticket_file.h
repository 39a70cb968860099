/* SPDX-License-Identifier: BSD-2-Clause */
/* The file in which the receiver publishes its ticket. */
#ifndef ROCI_TICKET_FILE_H
#define ROCI_TICKET_FILE_H

#include <sys/types.h>

#include "mover/ticket.h"

struct ticket_file {
	const char *path;
	dev_t dev; /* of the file that was written last */
	ino_t ino; /* 0: no file was written */
};

/* Writes the ticket to `path` with mode 0600. The file appears complete, by rename(2), or not at all. 0 or
 * -errno; -EEXIST: `path` is neither a ticket nor empty, and is left as it is. */
int ticket_file_write(struct ticket_file *file, const struct mover_ticket *ticket);

/* Removes the file, unless somebody has replaced it. Call it when the ticket is no longer valid. */
void ticket_file_remove(struct ticket_file *file);

#endif
