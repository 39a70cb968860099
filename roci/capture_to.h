/* SPDX-License-Identifier: BSD-2-Clause */
/* Where a program that this process is about to execute writes its capture. */
#ifndef ROCI_CAPTURE_TO_H
#define ROCI_CAPTURE_TO_H

struct command;

/* The program inherits `fd`, and each process of it writes there. What the program prints goes to standard error: the
 * capture may be on standard output. Returns 0, or -1 with errno. */
int capture_to_fd(int fd);

/* Executes argv[0] on roci0. Returns the exit status after a complaint, if that fails. */
int execute_on_roci0(const struct command *self, char **argv);

#endif
