/* SPDX-License-Identifier: BSD-2-Clause */
/* The journal of a file that is being received: which chunks of its temporary file have been written, and their
 * digests. It is only a hint: every chunk is read and compared before it is used. So the journal need not be synced,
 * and may be cut or damaged anywhere.
 *
 * On disk, little-endian: a header of 64 bytes {"rocijrnl", version, chunk size, hash of the file's name, ticket,
 * source, zeros, check}, and records of 32 bytes {index, digest, check}. */
#ifndef ROCI_MOVER_JOURNAL_H
#define ROCI_MOVER_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "mover/entry.h"

#define JOURNAL_HEADER_BYTES 64
#define JOURNAL_RECORD_BYTES 32
#define JOURNAL_BATCH        256              /* most records that wait for a write */
#define JOURNAL_LOSS_BYTES   ((8u << 20) - 1) /* most content whose records wait: a kill makes it come again */

/* Whose journal it is. A sender that did not write it must not get its digests: they tell something of the content. */
struct journal_owner {
	uint64_t ticket; /* a hash of the ticket; 0: none */
	uint64_t source; /* a hash of the source file's size and mtime */
	bool any;        /* take every journal, whoever wrote it */
};

struct journal {
	int fd;       /* -1: there is no journal, and every call does nothing */
	bool foreign; /* another ticket's transfer has begun it: nobody may learn its digests */
	uint32_t chunk_bytes;
	off_t end; /* of the records in the file */
	unsigned waiting;
	uint8_t records[JOURNAL_BATCH][JOURNAL_RECORD_BYTES];
};

/* Called for each intact record, in order. Of several with one index the last counts. Returns 0 to continue. */
typedef int journal_record_fn(void *context, uint64_t index, const struct mover_digest *digest);

/* Reads the journal in `fd`, and sets `foreign`; the caller keeps ownership of `fd`. If the header is missing, or is
 * for another chunk size or name, or neither ticket nor source is the owner's, empties the file and begins anew.
 * Returns 0, what `record` returned, or -errno. */
int mover_journal_open(struct journal *journal, int fd, uint32_t chunk_bytes, const struct mover_digest *name,
		       const struct journal_owner *owner, journal_record_fn *record, void *context);

/* Adds a record; a batch of them is written at a time. flush writes them now. 0 or -errno. */
int mover_journal_add(struct journal *journal, uint64_t index, const struct mover_digest *digest);
int mover_journal_flush(struct journal *journal);

#endif
