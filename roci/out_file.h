/* SPDX-License-Identifier: BSD-2-Clause */
/* A file that is written when all work is done: whether that will go is asked before. */
#ifndef ROCI_OUT_FILE_H
#define ROCI_OUT_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* 0 if a file can be written at `path` as things are now, else -errno. Makes nothing. `beside`: an earlier file is
 * replaced by a new one from the same folder, not overwritten. */
int out_file_check(const char *path, bool beside);
/* Whether what is written may take the place of what is at `path`: nothing, an empty file, no file but a device or a
 * pipe, or a file that begins with one of the `count` texts. 0, -EEXIST for any other file, or -errno. */
int out_file_ours(const char *path, const char *const beginnings[], size_t count);

#endif
