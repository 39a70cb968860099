/* SPDX-License-Identifier: BSD-2-Clause */
/* Trees of small files in the user's runtime directory. The user's processes with the same text share one. */
#ifndef ROCI_VERBS_SYSFS_TREE_H
#define ROCI_VERBS_SYSFS_TREE_H

#include <stddef.h>

#define VB_TREE_PATH_MAX 128
#define VB_TREE_FORMER   3 /* trees that a process keeps beside its own */

/*
 * Writes the files of a tree from `text`, a sequence of records: PATH newline CONTENT NUL. A PATH that ends in a slash
 * is a directory, one that ends in '@' a symbolic link to CONTENT. Writes nothing if there is a tree of this text
 * already. Writes the tree's path to `root`. The process keeps this tree and its last
 * VB_TREE_FORMER ones: nobody removes them.
 * Takes the first directory of rundir.h that has room. Returns 0, or why the last one cannot be used, as a negative
 * errno. Not for two threads at once.
 */
int vb_tree_write(const char *text, size_t len, char root[VB_TREE_PATH_MAX]);

#endif
