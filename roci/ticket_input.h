/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the sender takes the receiver's ticket from: a file, a descriptor, or whoever sits at the terminal. Never from
 * the command line, which everybody on the machine can read. */
#ifndef ROCI_TICKET_INPUT_H
#define ROCI_TICKET_INPUT_H

#include "show.h"

/* Reads the ticket from `file`; or if that is NULL from descriptor `fd`; or if that is negative asks on the terminal,
 * without echo. Tells of what is wrong by `show`. Returns MOVER_OK or the exit status. */
enum mover_status ticket_input(struct show *show, const char *file, int fd, struct mover_ticket *ticket);

#endif
