/* SPDX-License-Identifier: BSD-2-Clause */
/* A tree of small files in the user's runtime directory, one per network namespace, shared by the user's processes. */
#ifndef ROCI_VERBS_SYSFS_TREE_H
#define ROCI_VERBS_SYSFS_TREE_H

#include <stddef.h>

#define VB_TREE_PATH_MAX 128

/*
 * Writes the tree's files from `text`, a sequence of records: PATH newline CONTENT NUL. A PATH that ends in a slash is
 * a directory, one that ends in '@' a symbolic link to CONTENT. Removes files that only the former text names. Does
 * nothing if the tree has the same text already. Writes the tree's path to `root`. Takes the first directory of
 * rundir.h that has room. Returns 0, or why the last one cannot be used, as a negative errno. Not for two threads at
 * once.
 */
int vb_tree_write(const char *text, size_t len, char root[VB_TREE_PATH_MAX]);

#endif
