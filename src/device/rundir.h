/* SPDX-License-Identifier: BSD-2-Clause */
/* The directory of this user where Rocinante's processes meet: host registry, side doors, the verbs layer's sysfs. */
#ifndef ROCI_DEVICE_RUNDIR_H
#define ROCI_DEVICE_RUNDIR_H

#include <stddef.h>

#define ROCI_RUNDIR_MAX 72 /* bytes: a side door's name behind it must fit in sockaddr_un */

/* Writes the path of the directory to `path`, creating it where needed: $ROCI_RUNDIR if it is set, else
 * /dev/shm/roci-UID, else /tmp/roci-UID. It is a true directory, ours, closed to others (0700), or it is not taken
 * (D9). Returns 0, -ENAMETOOLONG, or why the last candidate was refused.
 *
 * Not $XDG_RUNTIME_DIR: a user's login has it, the same user's service or cron job does not, and processes that share
 * UDP port 4791 must meet in one registry. */
int roci_rundir(char *path, size_t size);

#endif
