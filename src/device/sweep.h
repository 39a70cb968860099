/* SPDX-License-Identifier: BSD-2-Clause */
/* Sweeps the run directory: removes files of network namespaces in which no process lives any more. */
#ifndef ROCI_DEVICE_SWEEP_H
#define ROCI_DEVICE_SWEEP_H

#include <stdbool.h>

/* Removes registry files and side doors of namespaces other than `netns` where nobody holds a lock. A process that
 * opens such a file at that moment finds that it has no name any more, and opens it again: see roci_registry_open(). */
void roci_sweep(const char *dir, unsigned long netns);

/* Removes the name of a file, `fd`, that nobody holds a lock of. It had the name when it was opened: if it has lost it
 * since, the name may be that of a new file, whose owner lives, and stays. So only who has the lock of a file may take
 * its name away, also to use it himself. Keeps the lock. Returns whether the name is removed. */
bool roci_sweep_file(int dir_fd, const char *name, int fd);
/* The same of the file that has the name now. dir_fd: as in openat(2). */
bool roci_sweep_name(int dir_fd, const char *name);

#endif
