/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the receiver's ticket from a file, a file descriptor or the terminal. Never from the command line, which every
 * user of the machine can read. */
#ifndef ROCI_TICKET_INPUT_H
#define ROCI_TICKET_INPUT_H

#include "show.h"

/* Reads the ticket from `file`; if that is NULL, from `fd`; if that is negative, from the terminal, without echo. Shows
 * a failure. Returns MOVER_OK or the exit status. */
enum mover_status ticket_input(struct show *show, const char *file, int fd, struct mover_ticket *ticket);

#endif
