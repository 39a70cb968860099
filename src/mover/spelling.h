/* SPDX-License-Identifier: BSD-2-Clause */
/* Names on file systems that ignore case, such as FAT, SMB, and folders of ext4 with casefold. */
#ifndef ROCI_MOVER_SPELLING_H
#define ROCI_MOVER_SPELLING_H

#include <stdbool.h>

/* Whether what has the name in the folder is spelled there in another way: "README" for "readme". To replace it would
 * be to lose it. Looks through the folder only if the file system ignores the case of the name's ASCII letters; a name
 * without such letters is not looked at. False as well if nothing has the name, or the folder cannot be read. */
bool mover_spelled_otherwise(int dir_fd, const char *leaf);

#endif
