/* SPDX-License-Identifier: BSD-2-Clause */
/* What tree.c and file*.c share: a tree, and a file that grows in it. */
#ifndef ROCI_MOVER_TREE_INTERNAL_H
#define ROCI_MOVER_TREE_INTERNAL_H

#include <stdatomic.h>
#include <sys/stat.h>
#include <time.h>

#include "mover/folder.h"
#include "mover/journal.h"
#include "mover/kept.h"
#include "mover/temp_file.h"
#include "mover/tree.h"

#define PEER_MODE       0777       /* of a peer's mode; setuid, setgid and sticky are not a peer's to give */
#define UNKNOWN_SIZE    UINT64_MAX /* of a stream, until its end */
#define CHUNK_BYTES_MAX (16u << 20)
#define KEPT_CHUNKS     (2u << 20)  /* of all files under way: 80 MiB of memory, 2 TiB of content in chunks of 1 MiB */
#define SYNC_ONE_BY_ONE 4           /* with more files of one file system, sync the file system as a whole */
#define DIRECT_BYTES    (16u << 20) /* files of this size and more bypass the page cache */

struct mover_tree {
	struct folders folders;
	atomic_ullong opened; /* temporary files so far */
	atomic_int unnamed;   /* whether files without a name can be linked: 1 or -1; 0: not tried yet */
	atomic_size_t kept_budget;
	bool keep_existing;
	mode_t modes; /* PEER_MODE without the umask: what a file or folder may get of a peer's mode */
};

struct mover_file {
	struct mover_tree *tree;
	struct folder *folder; /* with a reference */
	int fd;                /* the temporary file, locked as long as it is open, or without a name */
	bool unnamed;
	int old_fd; /* with `compare`, the file that has the name now; else -1 */
	unsigned long long opened;
	enum mover_kind kind;
	mode_t mode;
	struct timespec mtime;
	uint64_t size;
	uint32_t chunk_bytes;
	struct journal *journal; /* NULL where a transfer is not worth resuming: streams, and files of one chunk */
	int journal_fd;
	struct kept kept;
	const atomic_bool *stop; /* of mover_file_begin() */
	bool wrote;              /* a chunk has come */
	bool direct;             /* the descriptor has O_DIRECT */
	char part[TEMP_NAME_BYTES], journal_name[TEMP_NAME_BYTES];
	char leaf[MOVER_COMPONENT_MAX + 1];
};

/* The entry's name, checked and terminated. 0 or -EINVAL. */
int mover_entry_name(const struct mover_entry *entry, char name[MOVER_PATH_MAX + 1]);
struct timespec mover_entry_mtime(const struct mover_entry *entry);

/* Bytes of chunk `index`: the last one may be short. */
size_t mover_file_chunk_len(const struct mover_file *file, uint64_t index);

/* Whether the temporary file still has its name. Somebody may have removed it, and another transfer made its own. */
bool mover_file_has_part(const struct mover_file *file);

/* Closes and frees the file. Its names stay. */
void mover_file_free(struct mover_file *file);

/* file_resume.c. `stop` ends a long read with -ECANCELED; NULL: never. */
/* Reads the journal, checks the chunks that it names, and keeps the good ones. 0 or -errno. */
int file_resume(struct mover_file *file, const struct mover_begin *begin, bool fresh, const atomic_bool *stop);
/* Nothing can be resumed: removes what an interrupted transfer left. 0 or -errno. */
int file_start_over(struct mover_file *file, bool fresh);
/* Adds the chunks of the file that has the name now, where the temporary file has none. A chunk that cannot be read is
 * not kept, nor are chunks beyond the budget (KEPT_CHUNKS). 0, -ENOMEM or -ECANCELED. */
int file_compare_old(struct mover_file *file, const atomic_bool *stop);
/* NULL: never. */
bool file_stopped(const atomic_bool *stop);
/* Makes a hole. 0 or -errno. */
int file_punch(int fd, uint64_t begin, uint64_t end);

#endif
