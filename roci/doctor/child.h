/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs roci again, in a process of its own, and reads what it prints. */
#ifndef ROCI_DOCTOR_CHILD_H
#define ROCI_DOCTOR_CHILD_H

#include <stdbool.h>

struct command;

struct child {
	int status;      /* of waitpid(2); -1: it could not be started */
	char *out, *err; /* what it printed; NULL: no memory. child_free() frees them */
};

/* Runs /proc/self/exe with these arguments to its end. preload_for: with our libraries in front of the system's; a
 * complaint names that command. NULL: without. */
struct child child_run(const char *const argv[], const struct command *preload_for);
void child_free(struct child *child);

/* Whether it ended with exit status 0. */
bool child_succeeded(const struct child *child);

/* How it ended, in words: "exit status 1", "signal 11". */
const char *child_end(const struct child *child, char text[32]);

#endif
