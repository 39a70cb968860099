/* SPDX-License-Identifier: BSD-2-Clause */
/* Loads our libraries in front of the system's into the next program that this process executes. */
#ifndef ROCI_PRELOAD_H
#define ROCI_PRELOAD_H

struct command;

/* Sets LD_PRELOAD and LD_LIBRARY_PATH. Returns 0, or -1 after a complaint. */
int preload_environment(const struct command *command);

#endif
