/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads and writes files without blocking the session: by io_uring, or by a thread where there is none. */
#ifndef ROCI_MOVER_DISK_H
#define ROCI_MOVER_DISK_H

#include <stdbool.h>
#include <stdint.h>

#include "mover/worker.h"

#define DISK_SEQUENTIAL UINT64_MAX /* offset: the descriptor's own position. Only for a disk without io_uring */

struct disk;

/* One operation, embedded in the caller's struct. `buffer` NULL writes zeros (sequential only). `result` is the bytes
 * moved, fewer than `len` only at the end of a file, or -errno. If `fd` has O_DIRECT, and the file system does not take
 * this memory, length or position so, the descriptor loses O_DIRECT. */
struct disk_op {
	struct worker_job job;
	struct disk_op *next;
	struct disk *disk; /* set by disk_submit() */
	void *owner;
	int fd;
	bool write;
	uint8_t *buffer;
	uint64_t len, offset;
	int64_t result;
};

/* At most `depth` operations are under way at a time; further ones wait. 0 or -errno. */
int disk_create(bool uring, unsigned depth, struct disk **disk);
/* Waits for the operations under way, and drops those that have not begun. A write to a pipe that nobody reads is
 * stopped. disk_reap() still returns what has ended; disk_submit() may not be called any more. NULL is allowed. */
void disk_stop(struct disk *disk);
/* Likewise, and frees the disk. NULL is allowed. */
void disk_destroy(struct disk *disk);

/* An eventfd, like worker_fd(). */
int disk_fd(const struct disk *disk);
void disk_submit(struct disk *disk, struct disk_op *op);
/* Hands submitted operations to the kernel; to be called once per round of a loop. */
void disk_flush(struct disk *disk);
/* A finished operation, in any order, or NULL. After disk_stop(), `result` of one that was stopped is -ECANCELED. */
struct disk_op *disk_reap(struct disk *disk);

#endif
