/* SPDX-License-Identifier: BSD-2-Clause */
/* The receiver's folder. Everything is opened beneath it (openat2(2), RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
 * RESOLVE_NO_MAGICLINKS), so that no name and no link that a peer has made leads out of it.
 *
 * A file grows under a temporary name beside its final one, `.roci-` and a hash of the name, `.part`; one of more than
 * one chunk has a journal `.journal` with the digests of the chunks that have been written. Both survive a crash. The
 * final name appears by rename, after the content was synced, and only from mover_file_commit(). */
#ifndef ROCI_MOVER_TREE_H
#define ROCI_MOVER_TREE_H

#include <stdatomic.h>

#include "entry.h"

#define MOVER_NO_CHUNK UINT64_MAX

struct mover_tree;
struct mover_file;

/* Opens an existing folder, or makes it (one level). 0 or -errno. One tree may serve several sessions, each from its
 * own thread. */
int mover_tree_open(const char *dir, struct mover_tree **tree);
void mover_tree_close(struct mover_tree *tree);

/* Makes a folder (with mode 0700 | mode for now) or finds it there. Its mode and mtime are set by mover_tree_finish(),
 * when all that is in it has come. 0 or -errno; -ENOTDIR where something else has the name. */
int mover_tree_folder(struct mover_tree *tree, const struct mover_entry *entry);

/* Makes a symbolic link in place of an old link or file (never of a folder: -EISDIR), with its mtime. Returns 1 if it
 * was there already, 0, or -errno. The target is stored as it stands, and never followed. */
int mover_tree_symlink(struct mover_tree *tree, const struct mover_entry *entry);

enum mover_have {
	MOVER_HAVE_NONE, /* send all of it */
	MOVER_HAVE_ALL,  /* same kind, size and mtime are there; its mode has been set. No file is opened */
	MOVER_HAVE_SOME, /* mover_file_kept() tells which chunks */
};

/* Only looks, and changes nothing: MOVER_HAVE_ALL or MOVER_HAVE_NONE (also where the entry's folder is still to be
 * made, and always with `compare`), or -errno where a file cannot have this name. */
int mover_file_probe(struct mover_tree *tree, const struct mover_entry *entry, bool compare);

/* Begins a file. `compare` makes MOVER_HAVE_ALL into MOVER_HAVE_SOME with the digests of the chunks of the file that is
 * there (--checksum). A partial of an interrupted transfer is read again, and the chunks in it that agree with their
 * journal are kept. Sets *file except with MOVER_HAVE_ALL. Returns enum mover_have, or -errno: -EBUSY if another
 * transfer writes this file, -EISDIR if a folder has its name, -ENOSPC if it cannot fit, -ENOENT if its folder is
 * missing; -ECANCELED soon after *stop (NULL: never) has become true, with what can be resumed as it was. */
int mover_file_begin(struct mover_tree *tree, const struct mover_entry *entry, uint32_t chunk_bytes, bool compare,
		     const atomic_bool *stop, struct mover_file **file);

/* Digest of chunk `index` if that chunk is kept, else NULL. */
const struct mover_digest *mover_file_kept(const struct mover_file *file, uint64_t index);
/* The first chunk from `index` on that is kept, or MOVER_NO_CHUNK. As quick as there are few, whatever the file's size.
 */
uint64_t mover_file_next_kept(const struct mover_file *file, uint64_t index);
uint64_t mover_file_chunk_count(const struct mover_file *file);

/* Where to write: the descriptor of the temporary file; positions are the file's own. */
int mover_file_fd(const struct mover_file *file);

/* Chunk `index` has been written in whole (or found kept and right): goes into the journal, which reaches the disk in
 * its own time. 0 or -errno. */
int mover_file_wrote(struct mover_file *file, uint64_t index, const struct mover_digest *digest);

/* Whichever of `count` chunks from `index` on had been kept are not what the sender has: forgets them. They are holes
 * in the temporary file then, as is all that was not kept. */
void mover_file_forget(struct mover_file *file, uint64_t index, uint64_t count);

/* Sets the size; what was never written is a hole. STREAM files are told their size here, at the end. 0 or -errno. */
int mover_file_set_size(struct mover_file *file, uint64_t size);

/* Syncs the files, sets mode and mtime, renames them to their final names, and frees them. results[i] is 0 or -errno of
 * files[i]. One sync for many small files where that is cheaper. The caller has checked every digest. */
void mover_file_commit(struct mover_tree *tree, struct mover_file **files, size_t count, int *results);

/* Gives a file up: what has been written stays for a resumed transfer if any chunk is worth it, else goes. Frees it. */
void mover_file_abandon(struct mover_file *file);

/* Sets modes and mtimes of the folders of a finished transfer, deepest first. The entries may be in any order.
 * results[i] is 0 or -errno of folders[i]; -EPERM: it was there, and is another user's. */
void mover_tree_finish(struct mover_tree *tree, const struct mover_entry *folders, size_t count, int *results);

/* Syncs the names that have changed. 0, or the -errno of any sync of this tree that has failed since
 * mover_tree_sync_failures() was `failures_before`: sessions sync for each other. */
int mover_tree_sync(struct mover_tree *tree, unsigned failures_before);
unsigned mover_tree_sync_failures(struct mover_tree *tree);

#endif
