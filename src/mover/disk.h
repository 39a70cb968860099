/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading and writing of files without waiting: io_uring, or a thread where there is none. */
#ifndef ROCI_MOVER_DISK_H
#define ROCI_MOVER_DISK_H

#include <stdbool.h>
#include <stdint.h>

#include "mover/worker.h"

#define DISK_SEQUENTIAL UINT64_MAX /* offset: where the descriptor stands. Only from a disk made without io_uring */

struct disk;

/* Embedded in what is to be read or written. `buffer` NULL writes zeros (sequential only). `result` is the bytes that
 * were moved: fewer than `len` only at the end of a file; or -errno. */
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

/* At most `depth` operations are under way; more may be submitted and wait. 0 or -errno. */
int disk_create(bool uring, unsigned depth, struct disk **disk);
/* What waits is not begun any more, and what is under way ends as soon as it can, whether or not anybody reads the pipe
 * that is written to: when this returns, none of it is. NULL is allowed. */
void disk_destroy(struct disk *disk);

/* An eventfd, as worker_fd(). */
int disk_fd(const struct disk *disk);
void disk_submit(struct disk *disk, struct disk_op *op);
/* Hands what was submitted to the kernel: once per round of a loop. */
void disk_flush(struct disk *disk);
/* A finished operation, in any order, or NULL. */
struct disk_op *disk_reap(struct disk *disk);

#endif
