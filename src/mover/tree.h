/* SPDX-License-Identifier: BSD-2-Clause */
/* The receiver's folder. Everything is opened beneath it (beneath.h), so no name and no link from a peer leads out of
 * it.
 *
 * A file grows under a temporary name beside its final one: `.roci-`, a hash of the name, `.part`. A file of more than
 * one chunk also has a journal, `.journal`, with the digests of the chunks that were written. Both survive a crash. The
 * file gets its final name by a rename in mover_file_commit(), after its content was synced.
 *
 * A file of one chunk in a folder that its session has made has no temporary name, where the file system can do without
 * (O_TMPFILE): nothing of it could be resumed, and there is nothing that it could replace. It gets its name by a link,
 * and two transfers of it do not wait for each other: the name leads to one of them, whole. */
#ifndef ROCI_MOVER_TREE_H
#define ROCI_MOVER_TREE_H

#include <stdatomic.h>

#include "mover/entry.h"

#define MOVER_NO_CHUNK UINT64_MAX

struct mover_tree;
struct mover_file;

/* Opens a folder, or makes it (one level). Files and folders get modes without the bits of the umask that the process
 * has now. 0 or -errno. Several sessions may share a tree, each from its own thread. */
int mover_tree_open(const char *dir, struct mover_tree **tree);
void mover_tree_close(struct mover_tree *tree);

/* From now on nothing that exists is replaced or changed by a file or symbolic link: -EEXIST, except for a file with
 * the same size and mtime, or the same link. To be called before the first session. */
void mover_tree_keep_existing(struct mover_tree *tree);

/* A batch of entries begins: whether their folders have been moved is looked up once in the batch. Without this call,
 * it is looked up for each entry. No file gets a name in a folder that has been moved: mover_file_commit(). */
void mover_tree_begin_batch(struct mover_tree *tree);

/* Makes a folder unless it exists. It gets mode 0700 | mode for now, and its final mode and mtime from
 * mover_tree_finish(). `maker`: the session's number, as in struct mover_begin; 0: none. 0 or -errno; -ENOTDIR if
 * something else has the name. */
int mover_tree_folder(struct mover_tree *tree, const struct mover_entry *entry, uint64_t maker);

/* Makes a symbolic link with its mtime. It replaces an old link or file, but no folder (-EISDIR). Returns 1 if the same
 * link existed, 0, or -errno (-ENOTUNIQ: spelling.h). The target is stored as it is, and never followed. */
int mover_tree_symlink(struct mover_tree *tree, const struct mover_entry *entry);

enum mover_have {
	MOVER_HAVE_NONE, /* send all of it */
	MOVER_HAVE_ALL,  /* a file with this size and mtime exists, as far as its file system stores times; it has the
			  * mode if its file system takes that */
	MOVER_HAVE_SOME, /* some chunks are there: mover_file_kept() */
};

/* As mover_file_begin(), but changes nothing: MOVER_HAVE_ALL; MOVER_HAVE_NONE, also if the entry's folder is missing,
 * where the file system stores coarser times, and always with `compare`; or -errno if a file may not have this name.
 */
int mover_file_probe(struct mover_tree *tree, const struct mover_entry *entry, bool compare);

/* How a file is begun. */
struct mover_begin {
	uint32_t chunk_bytes;
	uint64_t ticket; /* a hash of the sender's ticket; 0: it has none */
	bool compare;    /* --checksum */
	bool any_ticket; /* resume what any ticket's transfer has left */
	uint64_t maker;  /* the session's number; 0: none. In a folder that it made it looks for no older file */
};

/* Begins a file. The temporary file of an interrupted transfer is read again, and the chunks that agree with its
 * journal are kept, if the same ticket's transfer has left them, or a transfer of a file with the same size and mtime.
 * With `compare`, size and mtime are not trusted: the chunks of the existing file are kept in the same way, but only
 * whole ones and the one at its real end: the sender learns their digests, and must not learn those of any prefix. Sets
 * *file, except with MOVER_HAVE_ALL. Returns enum mover_have, or -errno: -EBUSY if another transfer writes this file,
 * -EISDIR if a folder has its name, -ENOSPC if it cannot fit, -ENOENT if its folder is missing, -ECANCELED soon after
 * *stop (NULL: never) has become true; the transfer can still be resumed then. `stop` outlives the file. */
int mover_file_begin(struct mover_tree *tree, const struct mover_entry *entry, const struct mover_begin *begin,
		     const atomic_bool *stop, struct mover_file **file);

/* Whether another ticket's transfer has left the kept chunks: the sender may learn which there are, but not their
 * digests.
 */
bool mover_file_is_foreign(const struct mover_file *file);
/* The sender has other content than a kept chunk of such a file: mover_file_abandon() will leave nothing. So a sender
 * can guess once. */
void mover_file_discard(struct mover_file *file);

/* Digest of chunk `index` if that chunk is kept, else NULL. */
const struct mover_digest *mover_file_kept(const struct mover_file *file, uint64_t index);
/* The first kept chunk at or after `index`, or MOVER_NO_CHUNK. Its cost depends on the number of kept chunks, not on
 * the size of the file. */
uint64_t mover_file_next_kept(const struct mover_file *file, uint64_t index);
uint64_t mover_file_chunk_count(const struct mover_file *file);

/* The descriptor of the temporary file. Content goes to the same positions as in the final file. That of a large file
 * has O_DIRECT, where the file system supports it: all of it has to be on the disk before the file gets its name, and
 * pages of the page cache would only cost time: to make them, to copy into them, and to wait for them at the end. */
int mover_file_fd(const struct mover_file *file);
/* Before writes that are not of whole pages: takes O_DIRECT away for good. */
void mover_file_use_cache(struct mover_file *file);

/* Chunk `index` has been written in whole, or was kept and is right: adds it to the journal, which is written in
 * batches. 0 or -errno. */
int mover_file_wrote(struct mover_file *file, uint64_t index, const struct mover_digest *digest);

/* The sender has other content than the kept ones of the `count` chunks from `index` on: turns them into holes of the
 * temporary file, like everything that was not kept. */
void mover_file_forget(struct mover_file *file, uint64_t index, uint64_t count);

/* Sets the size; what was not written is a hole. The size of a STREAM is known only at its end. 0 or -errno. */
int mover_file_set_size(struct mover_file *file, uint64_t size);

/* Of mover_file_commit(): the file has its name, but not its mode. FAT, for one, takes few modes. */
#define MOVER_MODE_NOT_SET 1

/* Sets mode and mtime of the files, syncs them, renames them to their final names, and frees them. results[i] is 0,
 * MOVER_MODE_NOT_SET, or -errno of files[i] (-ENOTUNIQ: spelling.h). Many small files share one sync. The caller has
 * checked every digest. -ECANCELED: *stop of mover_file_begin() has become true while chunks of the file that has the
 * name now were copied.
 */
void mover_file_commit(struct mover_tree *tree, struct mover_file **files, size_t count, int *results);

/* Whether a temporary file of the entry is there: that of an interrupted transfer, or of one under way. Writes its path
 * in the folder to `path`. */
bool mover_file_part(struct mover_tree *tree, const struct mover_entry *entry,
		     char path[MOVER_PATH_MAX + MOVER_COMPONENT_MAX + 2]);

/* Gives a file up and frees it. If a chunk was written, the temporary file stays for a resumed transfer. */
void mover_file_abandon(struct mover_file *file);

/* At the end of a transfer: sets the modes and mtimes of folders, deepest first. The entries may be in any order.
 * results[i] is 0 or -errno of folders[i]; -EPERM: the folder existed and belongs to another user. */
void mover_tree_finish(struct mover_tree *tree, const struct mover_entry *folders, size_t count, int *results);

/* Syncs the folders in which names have changed. Sessions sync for each other, so a failure concerns all of them: 0, or
 * the -errno of any sync that has failed since mover_tree_sync_failures() was `failures_before`. */
int mover_tree_sync(struct mover_tree *tree, unsigned failures_before);
unsigned mover_tree_sync_failures(struct mover_tree *tree);

#endif
