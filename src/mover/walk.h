/* SPDX-License-Identifier: BSD-2-Clause */
/* The sender's entries: its arguments, walked once. A folder comes before what is in it, and names are in byte order.
 * Symbolic links stay symbolic links. Sockets, FIFOs and devices are left out, with a warning. The last component of an
 * argument is the first component of its names (DIR/sub gives "sub/..."). An argument that ends in '/' or '/.' gives
 * the content of the folder without its name, as with rsync. Standard input ("-") gets the mode that a new file of this
 * process would have. */
#ifndef ROCI_MOVER_WALK_H
#define ROCI_MOVER_WALK_H

#include "mover/entry.h"

struct mover_walk;

/* Called for what is left out, with the path as the user wrote it. */
typedef void mover_walk_warn_fn(void *context, const char *path, const char *why);

/* Walks all arguments. Returns 0; or -errno with *bad set to the index of the argument that does not exist or cannot be
 * read. -EEXIST: two arguments give the same name. Destroy with mover_walk_destroy(). */
int mover_walk_create(const char *const *paths, size_t count, const char *stdin_name, mover_walk_warn_fn *warn,
		      void *context, struct mover_walk **walk, size_t *bad);
void mover_walk_destroy(struct mover_walk *walk);

size_t mover_walk_count(const struct mover_walk *walk);
/* How many folders and names are left out because they could not be read. What is never sent (FIFOs, sockets, devices,
 * names of unfinished transfers) does not count. */
size_t mover_walk_unread(const struct mover_walk *walk);
uint64_t mover_walk_bytes(const struct mover_walk *walk); /* of all files */
/* Entry `index`; lives as long as the walk. */
const struct mover_entry *mover_walk_entry(const struct mover_walk *walk, size_t index);

/* Opens the file of an entry for reading. Does not follow a link, and does not block on a FIFO. Returns the
 * descriptor, or -errno: -ESTALE if it is no longer the regular file that was walked (device, inode, size or mtime
 * differ). Standard input gives a duplicate of descriptor 0. */
int mover_walk_open(struct mover_walk *walk, size_t index);

/* Whether the open file is still as it was walked. To be asked after the last byte was read. 0 or -ESTALE. */
int mover_walk_unchanged(const struct mover_walk *walk, size_t index, int fd);

/* The next stretch of data of a sparse file at or after `offset`: sets its begin and end, end <= size. Returns 1, or 0
 * if there is only a hole up to `size`. If the file system cannot say, or would take long to find that there is no hole
 * (tmpfs), everything is data. lseek(2) SEEK_DATA, SEEK_HOLE.
 */
int mover_walk_data(int fd, uint64_t offset, uint64_t size, uint64_t *begin, uint64_t *end);

#endif
