/* SPDX-License-Identifier: BSD-2-Clause */
/* The directory where a user's processes share files: host registry, side doors, the verbs layer's sysfs. */
#ifndef ROCI_DEVICE_RUNDIR_H
#define ROCI_DEVICE_RUNDIR_H

#include <stddef.h>

#define ROCI_RUNDIR_MAX 72 /* bytes: a side door's name behind it must fit in sockaddr_un */

/* Writes the path of the directory to `path`, and makes it where needed: $ROCI_RUNDIR if that is set, else
 * /dev/shm/roci-UID, else /tmp/roci-UID. It must be a directory, not a link, of this user, and of mode 0700: what
 * others could have planted is refused. Returns 0, -ENAMETOOLONG, or why the last candidate was refused.
 *
 * $XDG_RUNTIME_DIR is not used: a user's login has it, but the same user's service or cron job does not, and processes
 * that share UDP port 4791 must share one registry. */
int roci_rundir(char *path, size_t size);

#endif
