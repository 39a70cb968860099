/* SPDX-License-Identifier: BSD-2-Clause */
/* From files into packs: opens the wanted entries in their order and reads their chunks. */
#ifndef ROCI_MOVER_SENDER_SOURCE_H
#define ROCI_MOVER_SENDER_SOURCE_H

#include "mover/entry.h"
#include "mover/mover.h"

struct disk;
struct pack;
struct sender;

/* A file that is being read. It lives until the packer and the packs have finished with it. */
struct source_file {
	int fd;
	uint32_t entry;
	bool stream;
	bool given_up;   /* the receiver knows that no more comes */
	unsigned pieces; /* in packs that are not finished */
	uint64_t size, next_chunk;
	uint64_t data_begin, data_end; /* the stretch of data found last */
	struct mover_digest whole;     /* of the chunks so far */
	enum mover_status failed;      /* OK: not */
	char why[100];
};

struct source {
	uint32_t next_entry;
	struct source_file *file; /* that is being packed */
	struct pack *filling;
	struct disk *disk;
	bool stdin_waiting; /* standard input has nothing to read now */
};

/* 0 or -errno. */
int source_init(struct sender *x);
/* Waits for the reads under way. */
void source_destroy(struct sender *x);
bool source_pump(struct sender *x);
/* The file cannot be read: -errno, or -ESTALE: it has changed since it was offered. */
void source_fail(struct source_file *file, int err);
/* What can be read is more or less than the size says, and the file has not changed: its content is made as it is read.
 */
void source_fail_size(struct source_file *file);
/* A piece of this file is finished. Frees the file with its last use. */
void source_piece_done(struct sender *x, struct source_file *file);

#endif
