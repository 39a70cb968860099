/* SPDX-License-Identifier: BSD-2-Clause */
/* The journal of a file that is being received: which chunks of its temporary file have been written, and their
 * digests. It is a hint only: what it says is checked against the file before it is believed, so it need not be synced,
 * and may be cut or damaged anywhere.
 *
 * On disk, little-endian: a header of 64 bytes {"rocijrnl", version, chunk size, hash of the file's name, check}, and
 * records of 32 bytes {index, digest, check}. */
#ifndef ROCI_MOVER_JOURNAL_H
#define ROCI_MOVER_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "mover/entry.h"

#define JOURNAL_HEADER_BYTES 64
#define JOURNAL_RECORD_BYTES 32
#define JOURNAL_BATCH        256              /* records that wait for a write at most */
#define JOURNAL_LOSS_BYTES   ((8u << 20) - 1) /* of content whose records wait at most, when a kill comes */

struct journal {
	int fd; /* -1: none is kept, and every call does nothing */
	uint32_t chunk_bytes;
	off_t end; /* of what is in the file and good */
	unsigned waiting;
	uint8_t records[JOURNAL_BATCH][JOURNAL_RECORD_BYTES];
};

/* Called for each good record, in their order; a later one of the same index counts. Returns 0 to go on. */
typedef int journal_record_fn(void *context, uint64_t index, const struct mover_digest *digest);

/* Reads the journal in `fd`, which stays the caller's. A header that is not for this chunk size and name, or no header:
 * the file is emptied and begun anew. Returns 0, what `record` returned, or -errno. */
int mover_journal_open(struct journal *journal, int fd, uint32_t chunk_bytes, const struct mover_digest *name,
		       journal_record_fn *record, void *context);

/* Adds a record. It reaches the file with others. 0 or -errno. */
int mover_journal_add(struct journal *journal, uint64_t index, const struct mover_digest *digest);
int mover_journal_flush(struct journal *journal);

#endif
