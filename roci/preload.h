/* SPDX-License-Identifier: BSD-2-Clause */
/* Loads our libraries in front of the system's into the next program that this process executes. */
#ifndef ROCI_PRELOAD_H
#define ROCI_PRELOAD_H

#include <limits.h>
#include <stdbool.h>

struct command;

#define PRELOAD_IN_THE_WAY "LD_PRELOAD has %.300s, with which roci0 cannot work; unset LD_PRELOAD, or take it out"

/* Whether LD_PRELOAD names a libibverbs or librdmacm with which roci0 cannot work: that of the system. */
bool preload_is_in_the_way(char library[PATH_MAX]);

/* Sets LD_PRELOAD and LD_LIBRARY_PATH. Returns 0, or -1 after a complaint. */
int preload_environment(const struct command *command);

#endif
