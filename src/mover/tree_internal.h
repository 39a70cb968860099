/* SPDX-License-Identifier: BSD-2-Clause */
/* What tree.c, partial.c and commit.c share: a tree, and a file that grows in it. */
#ifndef ROCI_MOVER_TREE_INTERNAL_H
#define ROCI_MOVER_TREE_INTERNAL_H

#include <stdatomic.h>
#include <sys/stat.h>
#include <time.h>

#include "mover/folder.h"
#include "mover/journal.h"
#include "mover/kept.h"
#include "mover/tree.h"

#define PEER_MODE       0777       /* of a peer's mode; setuid, setgid and sticky are not a peer's to give */
#define UNKNOWN_SIZE    UINT64_MAX /* of a stream, until its end */
#define TEMP_NAME_BYTES 64
#define OPEN_AS_IT_IS   (O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) /* neither a link's target, nor a FIFO's end */
#define CHUNK_BYTES_MAX (16u << 20)
#define SYNC_ONE_BY_ONE 4 /* files of one file system; of more, it is synced as a whole */

struct mover_tree {
	struct folders folders;
	atomic_ullong opened; /* temporary files so far */
};

struct mover_file {
	struct mover_tree *tree;
	struct folder *folder; /* held */
	int fd;                /* the temporary file, locked as long as it is open */
	int old_fd;            /* with `compare`, the file that has the name now; else -1 */
	unsigned long long opened;
	enum mover_kind kind;
	mode_t mode;
	struct timespec mtime;
	uint64_t size;
	uint32_t chunk_bytes;
	struct journal *journal; /* NULL where a transfer is not worth resuming: streams, and files of one chunk */
	int journal_fd;
	struct kept kept;
	bool wrote; /* a chunk has come */
	char part[TEMP_NAME_BYTES], journal_name[TEMP_NAME_BYTES];
	char leaf[MOVER_COMPONENT_MAX + 1];
};

/* The entry's name, checked and terminated. 0 or -EINVAL. */
int mover_entry_name(const struct mover_entry *entry, char name[MOVER_PATH_MAX + 1]);
struct timespec mover_entry_mtime(const struct mover_entry *entry);

/* Names beside `leaf`: ".roci-" and the hash of `leaf` as hex and `suffix`. Returns the hash. */
struct mover_digest mover_temp_name(const char *leaf, const char *suffix, char name[TEMP_NAME_BYTES]);

/* Bytes of chunk `index`: the last one may be short. */
size_t mover_file_chunk_len(const struct mover_file *file, uint64_t index);

/* Closes, gives back and frees; the names stay. */
void mover_file_free(struct mover_file *file);

#endif
