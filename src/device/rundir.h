/* SPDX-License-Identifier: BSD-2-Clause */
/* The directory where a user's processes share files: host registry, the verbs layer's sysfs. */
#ifndef ROCI_DEVICE_RUNDIR_H
#define ROCI_DEVICE_RUNDIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROCI_RUNDIR_MAX   72         /* bytes */
#define ROCI_RUNDIR_BYTES (4u << 20) /* room there for the host registry, and the sysfs tree of a few processes */

/* Writes the path of candidate `i` to `path`: $ROCI_RUNDIR alone if that is set, else /dev/shm/roci-UID,
 * /tmp/roci-UID, and roci-UID in $XDG_RUNTIME_DIR (/run/user/UID where that is not set). Returns 0, -ENAMETOOLONG, or
 * -ERANGE: there is no such candidate.
 *
 * $XDG_RUNTIME_DIR comes last: a user's login has it, but the same user's service or cron job does not, and processes
 * that share UDP port 4791 must share one registry. */
int roci_rundir_name(unsigned i, char *path, size_t size);

/* Makes the directory where needed. It must be a directory, not a link, of this user, and of mode 0700: what others
 * could have planted is refused. Returns 0; -EPERM: it is not this user's alone; or another negative errno. */
int roci_rundir_take(const char *path);

/* Whether the limit of this process for the sizes of files (RLIMIT_FSIZE) lets it make one of `bytes`. Who makes one
 * all the same is killed by SIGXFSZ. */
bool roci_rundir_may_hold(uint64_t bytes);

/* Why a directory cannot be used, in words: of an error of roci_rundir_take() or of a file in it. */
const char *roci_rundir_reason(int err);

#endif
