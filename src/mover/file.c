/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mover/io.h"
#include "mover/temp_file.h"
#include "mover/tree_internal.h"

#define COARSEST_TIME_S 2 /* FAT's times are of two seconds, exFAT's of 10 ms, SMB's of 100 ns */

uint64_t mover_file_chunk_count(const struct mover_file *file)
{
	return file->size == UNKNOWN_SIZE ? 0 : file->size / file->chunk_bytes + (file->size % file->chunk_bytes > 0);
}

size_t mover_file_chunk_len(const struct mover_file *file, uint64_t index)
{
	uint64_t left = file->size - index * file->chunk_bytes;

	return left < file->chunk_bytes ? (size_t)left : file->chunk_bytes;
}

int mover_file_fd(const struct mover_file *file)
{
	return file->fd;
}

void mover_file_use_cache(struct mover_file *file)
{
	if (file->direct)
		mover_change_direct(file->fd, false);
	file->direct = false;
}

static bool any_good(const struct mover_file *file, bool in_part_only)
{
	for (size_t i = 0; i < file->kept.count; i++)
		if (file->kept.chunks[i].good && !(in_part_only && file->kept.chunks[i].in_old))
			return true;
	return false;
}

bool mover_file_has_part(const struct mover_file *file)
{
	struct stat st;

	return !file->unnamed && !fstat(file->fd, &st) && mover_file_is_at(file->folder->fd, file->part, &st);
}

static void remove_names(struct mover_file *file)
{
	if (mover_file_has_part(file))
		unlinkat(file->folder->fd, file->part, 0);
	if (file->journal_fd >= 0)
		unlinkat(file->folder->fd, file->journal_name, 0);
}

static bool can_link(struct mover_tree *tree, const struct folder *folder)
{
	int can = atomic_load(&tree->unnamed);

	if (!can) {
		can = temp_file_can_link(folder->fd) ? 1 : -1;
		atomic_store(&tree->unnamed, can);
	}
	return can > 0;
}

/* A file of one chunk, in a folder where nothing can be that this session did not put there. */
static bool needs_no_name(struct mover_tree *tree, const struct mover_entry *entry, const struct mover_begin *begin,
			  const struct folder *folder)
{
	return begin->maker && folder->maker == begin->maker && entry->kind == MOVER_FILE &&
	       entry->size <= begin->chunk_bytes && can_link(tree, folder);
}

static bool open_unnamed(struct mover_file *file)
{
	file->fd = temp_file_unnamed(file->folder->fd, file->mode);
	file->unnamed = file->fd >= 0;
	if (file->unnamed)
		file->opened = atomic_fetch_add(&file->tree->opened, 1);
	return file->unnamed;
}

static int open_file(struct mover_file *file, const struct mover_begin *begin, const atomic_bool *stop)
{
	bool fresh;
	int err;

	temp_file_name(file->leaf, MOVER_PART_SUFFIX, file->part);
	file->fd = temp_file_open(file->folder->fd, file->part, &fresh);
	if (file->fd < 0)
		return file->fd;
	file->opened = atomic_fetch_add(&file->tree->opened, 1);
	err = mover_file_chunk_count(file) > 1 ? file_resume(file, begin, fresh, stop) : file_start_over(file, fresh);
	if (!err && begin->compare && file->kind == MOVER_FILE)
		err = file_compare_old(file, stop);
	if (err && fresh)
		remove_names(file);
	return err;
}

static struct mover_file *create(struct mover_tree *tree, const struct mover_entry *entry, uint32_t chunk_bytes)
{
	struct mover_file *file = calloc(1, sizeof(*file));

	if (!file)
		return NULL;
	file->tree = tree;
	file->kept.budget = &tree->kept_budget;
	file->fd = file->old_fd = file->journal_fd = -1;
	file->kind = entry->kind;
	file->mode = entry->mode & tree->modes;
	file->mtime = mover_entry_mtime(entry);
	file->size = entry->kind == MOVER_STREAM ? UNKNOWN_SIZE : entry->size;
	file->chunk_bytes = chunk_bytes;
	return file;
}

void mover_file_free(struct mover_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	if (file->old_fd >= 0)
		close(file->old_fd);
	if (file->journal_fd >= 0)
		close(file->journal_fd);
	if (file->folder)
		mover_folder_put(&file->tree->folders, file->folder);
	mover_kept_clear(&file->kept);
	free(file->journal);
	free(file);
}

/* Compares the entry with what has the name in `folder` now, and fills *st. Returns MOVER_HAVE_ALL (the mode may still
 * differ), MOVER_HAVE_NONE, or -errno if a file may not replace it. */
static int check_old(const struct mover_tree *tree, const struct folder *folder, const char *leaf,
		     const struct mover_entry *entry, bool compare, struct stat *st)
{
	if (fstatat(folder->fd, leaf, st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? MOVER_HAVE_NONE : -errno;
	if (S_ISDIR(st->st_mode))
		return -EISDIR;
	if (!S_ISREG(st->st_mode) && !S_ISLNK(st->st_mode))
		return -EEXIST;
	if ((compare && !tree->keep_existing) || !S_ISREG(st->st_mode) || entry->kind != MOVER_FILE ||
	    (uint64_t)st->st_size != entry->size || st->st_mtim.tv_sec != entry->mtime_s ||
	    (uint32_t)st->st_mtim.tv_nsec != entry->mtime_ns)
		return tree->keep_existing ? -EEXIST : MOVER_HAVE_NONE;
	return MOVER_HAVE_ALL;
}

/* Whether the file that has the name now may have the entry's time, as far as its file system stores it. */
static bool time_may_be_cut(const struct stat *old, const struct mover_entry *entry)
{
	uint64_t seconds = (uint64_t)entry->mtime_s - (uint64_t)old->st_mtim.tv_sec;
	int64_t ns;

	if (!S_ISREG(old->st_mode) || entry->kind != MOVER_FILE || (uint64_t)old->st_size != entry->size ||
	    seconds > COARSEST_TIME_S)
		return false;
	ns = (int64_t)seconds * 1000000000 + entry->mtime_ns - old->st_mtim.tv_nsec;
	return ns > 0 && ns < COARSEST_TIME_S * 1000000000ll;
}

/* Asks the file system, by a temporary file, whether it makes the time of `old` of the entry's. */
static bool time_is_cut(const struct folder *folder, const char *leaf, const struct mover_entry *entry,
			const struct stat *old)
{
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, mover_entry_mtime(entry)};
	char part[TEMP_NAME_BYTES];
	bool fresh, same;
	struct stat now;
	int fd;

	temp_file_name(leaf, MOVER_PART_SUFFIX, part);
	fd = temp_file_open(folder->fd, part, &fresh);
	if (fd < 0)
		return false;
	same = !futimens(fd, times) && !fstat(fd, &now) && now.st_mtim.tv_sec == old->st_mtim.tv_sec &&
	       now.st_mtim.tv_nsec == old->st_mtim.tv_nsec;
	if (fresh)
		unlinkat(folder->fd, part, 0);
	close(fd);
	return same;
}

/* As check_old(). Where the file system stores coarser times than the entry's, equal means that it would store the one
 * that is there. */
static int check_old_time(const struct mover_tree *tree, const struct folder *folder, const char *leaf,
			  const struct mover_entry *entry, bool compare, struct stat *st)
{
	int err;

	*st = (struct stat){0};
	err = check_old(tree, folder, leaf, entry, compare, st);
	if ((err != MOVER_HAVE_NONE && err != -EEXIST) || (compare && !tree->keep_existing) ||
	    !time_may_be_cut(st, entry) || !time_is_cut(folder, leaf, entry, st))
		return err;
	return MOVER_HAVE_ALL;
}

/* Gets the entry's folder and its name in it, which points into `name`. 0 or -errno. */
static int get_place(struct mover_tree *tree, const struct mover_entry *entry, char name[MOVER_PATH_MAX + 1],
		     struct folder **folder, const char **leaf)
{
	int err = mover_entry_name(entry, name);

	if (!err && (entry->mtime_ns > 999999999 || (entry->kind != MOVER_FILE && entry->kind != MOVER_STREAM)))
		err = -EINVAL;
	if (!err && entry->kind == MOVER_FILE && entry->size > INT64_MAX)
		err = -EFBIG;
	return err ? err : mover_folder_get(&tree->folders, name, folder, leaf);
}

int mover_file_probe(struct mover_tree *tree, const struct mover_entry *entry, bool compare)
{
	char name[MOVER_PATH_MAX + 1];
	struct folder *folder;
	const char *leaf;
	struct stat st;
	int err = get_place(tree, entry, name, &folder, &leaf);

	if (err)
		return err == -ENOENT ? MOVER_HAVE_NONE : err;
	err = check_old(tree, folder, leaf, entry, compare, &st);
	mover_folder_put(&tree->folders, folder);
	return err;
}

bool mover_file_part(struct mover_tree *tree, const struct mover_entry *entry,
		     char path[MOVER_PATH_MAX + MOVER_COMPONENT_MAX + 2])
{
	char part[TEMP_NAME_BYTES];
	struct folder *folder;
	const char *leaf;
	struct stat st;
	bool there;

	if (get_place(tree, entry, path, &folder, &leaf))
		return false;
	temp_file_name(leaf, MOVER_PART_SUFFIX, part);
	there = !fstatat(folder->fd, part, &st, AT_SYMLINK_NOFOLLOW);
	mover_folder_put(&tree->folders, folder);
	strcpy(path + (leaf - path), part);
	return there;
}

int mover_file_begin(struct mover_tree *tree, const struct mover_entry *entry, const struct mover_begin *begin,
		     const atomic_bool *stop, struct mover_file **file_out)
{
	mode_t mode = entry->mode & tree->modes;
	char name[MOVER_PATH_MAX + 1];
	struct mover_file *file;
	struct folder *folder;
	const char *leaf;
	struct stat st;
	bool unnamed;
	int err;

	*file_out = NULL;
	if (!begin->chunk_bytes || begin->chunk_bytes > CHUNK_BYTES_MAX)
		return -EINVAL;
	err = get_place(tree, entry, name, &folder, &leaf);
	if (err)
		return err;
	unnamed = needs_no_name(tree, entry, begin, folder);
	err = unnamed ? MOVER_HAVE_NONE : check_old_time(tree, folder, leaf, entry, begin->compare, &st);
	/* EPERM: another user's is replaced; for one of ours, the file system does not take the mode */
	if (err == MOVER_HAVE_ALL && !tree->keep_existing && (st.st_mode & PEER_MODE) != mode &&
	    fchmodat(folder->fd, leaf, (st.st_mode & 07000) | mode, AT_SYMLINK_NOFOLLOW))
		err = errno != EPERM ? -errno : st.st_uid != geteuid() ? MOVER_HAVE_NONE : MOVER_HAVE_ALL;
	if (err != MOVER_HAVE_NONE) {
		mover_folder_put(&tree->folders, folder);
		return err;
	}
	file = create(tree, entry, begin->chunk_bytes);
	if (!file) {
		mover_folder_put(&tree->folders, folder);
		return -ENOMEM;
	}
	file->folder = folder;
	file->stop = stop;
	strcpy(file->leaf, leaf);
	err = unnamed && open_unnamed(file) ? 0 : open_file(file, begin, stop);
	if (err) {
		mover_file_free(file);
		return err;
	}
	file->direct = entry->kind == MOVER_FILE && entry->size >= DIRECT_BYTES && mover_change_direct(file->fd, true);
	*file_out = file;
	return any_good(file, false) ? MOVER_HAVE_SOME : MOVER_HAVE_NONE;
}

bool mover_file_is_foreign(const struct mover_file *file)
{
	return file->journal && file->journal->foreign;
}

void mover_file_discard(struct mover_file *file)
{
	free(file->journal);
	file->journal = NULL;
	mover_kept_clear(&file->kept);
}

const struct mover_digest *mover_file_kept(const struct mover_file *file, uint64_t index)
{
	const struct kept_chunk *chunk = mover_kept_find(&file->kept, index);

	return chunk && chunk->good ? &chunk->digest : NULL;
}

uint64_t mover_file_next_kept(const struct mover_file *file, uint64_t index)
{
	for (size_t i = mover_kept_from(&file->kept, index); i < file->kept.count; i++)
		if (file->kept.chunks[i].good)
			return file->kept.chunks[i].index;
	return MOVER_NO_CHUNK;
}

int mover_file_wrote(struct mover_file *file, uint64_t index, const struct mover_digest *digest)
{
	struct kept_chunk *chunk = mover_kept_find(&file->kept, index);

	if (chunk && chunk->good && !memcmp(&chunk->digest, digest, sizeof(*digest)))
		return 0;
	if (chunk)
		chunk->good = false;
	file->wrote = true;
	return file->journal ? mover_journal_add(file->journal, index, digest) : 0;
}

static void forget(struct mover_file *file, struct kept_chunk *chunk)
{
	uint64_t begin = chunk->index * file->chunk_bytes;
	size_t len = mover_file_chunk_len(file, chunk->index);
	uint8_t *zeros;

	chunk->good = false;
	if (chunk->in_old || !file_punch(file->fd, begin, begin + len))
		return;
	/* This file system has no holes: write zeros. If that fails, the sync at the end will fail too. */
	mover_file_use_cache(file);
	zeros = calloc(1, len);
	if (zeros)
		mover_write_at(file->fd, zeros, len, begin);
	free(zeros);
}

void mover_file_forget(struct mover_file *file, uint64_t index, uint64_t count)
{
	for (size_t i = mover_kept_from(&file->kept, index);
	     i < file->kept.count && file->kept.chunks[i].index - index < count; i++)
		if (file->kept.chunks[i].good)
			forget(file, &file->kept.chunks[i]);
}

int mover_file_set_size(struct mover_file *file, uint64_t size)
{
	if (size > INT64_MAX)
		return -EFBIG;
	if (ftruncate(file->fd, (off_t)size))
		return -errno;
	file->size = size;
	return 0;
}

void mover_file_abandon(struct mover_file *file)
{
	bool worth = file->journal && (file->wrote || any_good(file, true));

	/* A failed flush (on a full disk) loses only the latest records. */
	if (worth && mover_journal_flush(file->journal))
		worth = file->journal->end > JOURNAL_HEADER_BYTES;
	if (!worth)
		remove_names(file);
	mover_file_free(file);
}
