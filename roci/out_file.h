/* SPDX-License-Identifier: BSD-2-Clause */
/* A file that is written when all work is done: whether that will go is asked before. */
#ifndef ROCI_OUT_FILE_H
#define ROCI_OUT_FILE_H

#include <stdbool.h>

/* 0 if a file can be written at `path` as things are now, else -errno. Makes nothing. `beside`: an earlier file is
 * replaced by a new one from the same folder, not overwritten. */
int out_file_check(const char *path, bool beside);

#endif
