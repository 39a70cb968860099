/* SPDX-License-Identifier: BSD-2-Clause */
/* The receiver's temporary files: what they are called, and who may write them. The lock of an open one keeps other
 * transfers away, those of other processes too. */
#ifndef ROCI_MOVER_TEMP_FILE_H
#define ROCI_MOVER_TEMP_FILE_H

#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "mover/entry.h"

#define TEMP_NAME_BYTES 64

/* Flags to open what another user may have put there: do not follow a link, do not wait for the other end of a FIFO. */
#define OPEN_AS_IT_IS (O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

/* The name of a temporary file beside `leaf`: ".roci-", the hash of `leaf` as hex, and `suffix`. Returns the hash. */
struct mover_digest temp_file_name(const char *leaf, const char *suffix, char name[TEMP_NAME_BYTES]);

/* Opens a temporary file, or makes it (*fresh), and locks it. What has this name and is not a file of ours is removed.
 * Returns the descriptor, -EBUSY if another transfer has it, or another -errno. */
int temp_file_open(int dir_fd, const char *name, bool *fresh);

/* Whether the name in the folder is that of the file which fstat(2) describes. A link is not followed. */
bool mover_file_is_at(int dir_fd, const char *name, const struct stat *st);

/* A file without a name, which is gone when it is closed (O_TMPFILE). It needs no lock: nobody else can find it, so it
 * may have its final mode from the beginning, as far as the umask and the folder's ACL let it. The descriptor, or
 * -errno: not all file systems have such files. */
int temp_file_unnamed(int dir_fd, mode_t mode);
/* Gives such a file its name: 0, -EEXIST, or another -errno. */
int temp_file_link(int fd, int dir_fd, const char *name);
/* As temp_file_link(), but what has the name is replaced, unless it is a folder (-EISDIR). */
int temp_file_replace(int fd, int dir_fd, const char *name);
/* Whether temp_file_link() works in this folder: tries it. */
bool temp_file_can_link(int dir_fd);

#endif
