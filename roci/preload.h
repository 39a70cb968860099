/* SPDX-License-Identifier: BSD-2-Clause */
/* Our libraries in front of the system's, for a program that is about to be executed. */
#ifndef ROCI_PRELOAD_H
#define ROCI_PRELOAD_H

struct command;

/* Sets LD_PRELOAD and LD_LIBRARY_PATH. 0, or -1 after a complaint. */
int preload_environment(const struct command *command);

#endif
