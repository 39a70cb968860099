/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "mover/io.h"
#include "mover/tree_internal.h"

#define TRIES      8
#define TEMP_FLAGS (O_RDWR | OPEN_AS_IT_IS)

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

/* Whether the open file is what `name` says, and nobody else's. */
static bool is_ours(const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_nlink == 1 && st->st_uid == geteuid();
}

/* A temporary file of ours that may not be opened: we were killed after it got its final mode. */
static void make_writable(int dir_fd, const char *name)
{
	struct stat st;

	if (!fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) && is_ours(&st))
		(void)!fchmodat(dir_fd, name, 0600, AT_SYMLINK_NOFOLLOW);
}

/* Opens a temporary file that is there. Returns -EAGAIN for another try: it was gone, or was not ours and was removed.
 */
static int open_left(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, TEMP_FLAGS);

	if (fd < 0 && errno == EACCES) {
		make_writable(dir_fd, name);
		fd = openat(dir_fd, name, TEMP_FLAGS);
	}
	if (fd >= 0)
		return fd;
	if (errno == ENOENT)
		return -EAGAIN;
	if (errno != EACCES && errno != ELOOP && errno != ENXIO)
		return -errno;
	return unlinkat(dir_fd, name, 0) ? -errno : -EAGAIN;
}

/* Locks, and makes sure that the name still leads to this file: the one who held the lock may have renamed or removed
 * it. Returns -EAGAIN for another try. */
static int lock_temp(int dir_fd, const char *name, int fd, bool fresh)
{
	struct stat st, now;

	if (flock(fd, LOCK_EX | LOCK_NB))
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	if (fstat(fd, &st))
		return -errno;
	if (fstatat(dir_fd, name, &now, AT_SYMLINK_NOFOLLOW) || now.st_ino != st.st_ino || now.st_dev != st.st_dev)
		return -EAGAIN;
	if (fresh || is_ours(&st))
		return 0;
	return unlinkat(dir_fd, name, 0) ? -errno : -EAGAIN;
}

/* Opens and locks a temporary file. Returns the descriptor, or -EBUSY if another transfer has it, or -errno. */
static int open_temp(int dir_fd, const char *name, bool *fresh)
{
	for (int tries = TRIES; tries; tries--) {
		int fd = openat(dir_fd, name, TEMP_FLAGS | O_CREAT | O_EXCL, 0600), err;

		*fresh = fd >= 0;
		if (fd < 0 && errno != EEXIST)
			return -errno;
		if (fd < 0)
			fd = open_left(dir_fd, name);
		if (fd == -EAGAIN)
			continue;
		if (fd < 0)
			return fd;
		err = lock_temp(dir_fd, name, fd, *fresh);
		if (!err)
			return fd;
		close(fd);
		if (err != -EAGAIN)
			return err;
	}
	return -EBUSY;
}

static int note_record(void *context, uint64_t index, const struct mover_digest *digest)
{
	struct mover_file *file = context;
	struct kept_chunk chunk = {.index = index, .digest = *digest};

	return index < mover_file_chunk_count(file) ? mover_kept_add(&file->kept, &chunk) : 0;
}

static bool stopped(const atomic_bool *stop)
{
	return stop && atomic_load(stop);
}

/* Reads the chunks that the journal names. What cannot be read is not kept. 0 or -ECANCELED. */
static int check_kept(struct mover_file *file, uint8_t *buffer, const atomic_bool *stop)
{
	for (size_t i = 0; i < file->kept.count && !stopped(stop); i++) {
		struct kept_chunk *chunk = &file->kept.chunks[i];
		size_t len = mover_file_chunk_len(file, chunk->index);
		struct mover_digest digest;

		if (mover_read_at(file->fd, buffer, len, chunk->index * file->chunk_bytes))
			continue;
		digest = mover_digest_of(buffer, len);
		chunk->good = !memcmp(&digest, &chunk->digest, sizeof(digest));
	}
	return stopped(stop) ? -ECANCELED : 0;
}

static int punch(int fd, uint64_t begin, uint64_t end)
{
	if (begin >= end)
		return 0;
	return fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)begin, (off_t)(end - begin)) ? -errno
													     : 0;
}

/* Makes holes of all that is not kept: what a killed transfer wrote there must not show through where the file has a
 * hole now. */
static int clear_rest(struct mover_file *file)
{
	uint64_t begin = 0;
	struct stat st;
	int err = fstat(file->fd, &st) ? -errno : 0;

	for (size_t i = 0; i < file->kept.count && !err; i++) {
		const struct kept_chunk *chunk = &file->kept.chunks[i];

		if (!chunk->good)
			continue;
		err = punch(file->fd, begin, chunk->index * file->chunk_bytes);
		begin = chunk->index * file->chunk_bytes + mover_file_chunk_len(file, chunk->index);
	}
	if (!err && begin)
		err = punch(file->fd, begin, (uint64_t)st.st_size);
	if (!err && begin)
		return 0;
	/* nothing is good, or the file system makes no holes */
	mover_kept_clear(&file->kept);
	return ftruncate(file->fd, 0) ? -errno : 0;
}

/* The chunks of an interrupted transfer. */
static int resume(struct mover_file *file, bool fresh, const atomic_bool *stop)
{
	struct mover_digest name = mover_temp_name(file->leaf, MOVER_JOURNAL_SUFFIX, file->journal_name);
	bool fresh_journal;
	uint8_t *buffer;
	int err;

	file->journal = malloc(sizeof(*file->journal));
	if (!file->journal)
		return -ENOMEM;
	file->journal_fd = open_temp(file->folder->fd, file->journal_name, &fresh_journal);
	if (file->journal_fd < 0)
		return file->journal_fd;
	if (fresh && !fresh_journal && ftruncate(file->journal_fd, 0))
		return -errno;
	err = mover_journal_open(file->journal, file->journal_fd, file->chunk_bytes, &name, note_record, file);
	if (err)
		return err;
	if (file->kept.count) {
		mover_kept_sort(&file->kept);
		buffer = malloc(file->chunk_bytes);
		if (!buffer)
			return -ENOMEM;
		err = check_kept(file, buffer, stop);
		free(buffer);
	}
	if (!err && !fresh)
		err = clear_rest(file);
	if (!err && ftruncate(file->fd, (off_t)file->size))
		err = -errno;
	return err;
}

/* Nothing is resumed: of what was left, nothing stays. */
static int start_over(struct mover_file *file, bool fresh)
{
	char journal[TEMP_NAME_BYTES];

	if (fresh)
		return 0;
	mover_temp_name(file->leaf, MOVER_JOURNAL_SUFFIX, journal);
	unlinkat(file->folder->fd, journal, 0);
	return ftruncate(file->fd, 0) ? -errno : 0;
}

/* The chunks of the file that has the name now, where the temporary file has not got them. Whatever stands against it
 * is no error: then they are sent. 0, -ENOMEM or -ECANCELED. */
static int compare_old(struct mover_file *file, const atomic_bool *stop)
{
	uint64_t count = mover_file_chunk_count(file);
	size_t from_before = file->kept.count;
	uint8_t *buffer;
	struct stat st;
	int err = 0;

	file->old_fd = openat(file->folder->fd, file->leaf, O_RDONLY | OPEN_AS_IT_IS);
	if (file->old_fd < 0)
		return 0;
	buffer = malloc(file->chunk_bytes);
	if (!buffer)
		return -ENOMEM;
	if (fstat(file->old_fd, &st) || !S_ISREG(st.st_mode))
		st.st_size = 0;
	for (uint64_t i = 0; i < count && !err; i++) {
		struct kept known = {file->kept.chunks, from_before, 0};
		const struct kept_chunk *before = mover_kept_find(&known, i);
		struct kept_chunk chunk = {.index = i, .good = true, .in_old = true};
		size_t len = mover_file_chunk_len(file, i);

		if (i * file->chunk_bytes + len > (uint64_t)st.st_size)
			break;
		if (stopped(stop)) {
			err = -ECANCELED;
			break;
		}
		if ((before && before->good) || mover_read_at(file->old_fd, buffer, len, i * file->chunk_bytes))
			continue;
		chunk.digest = mover_digest_of(buffer, len);
		err = mover_kept_add(&file->kept, &chunk);
	}
	free(buffer);
	mover_kept_sort(&file->kept);
	return err;
}

static bool any_good(const struct mover_file *file, bool in_part_only)
{
	for (size_t i = 0; i < file->kept.count; i++)
		if (file->kept.chunks[i].good && !(in_part_only && file->kept.chunks[i].in_old))
			return true;
	return false;
}

static void remove_names(struct mover_file *file)
{
	unlinkat(file->folder->fd, file->part, 0);
	if (file->journal_fd >= 0)
		unlinkat(file->folder->fd, file->journal_name, 0);
}

static int fill(struct mover_file *file, bool compare, const atomic_bool *stop)
{
	bool fresh;
	int err;

	file->fd = open_temp(file->folder->fd, file->part, &fresh);
	if (file->fd < 0)
		return file->fd;
	file->opened = atomic_fetch_add(&file->tree->opened, 1);
	err = mover_file_chunk_count(file) > 1 ? resume(file, fresh, stop) : start_over(file, fresh);
	if (!err && compare)
		err = compare_old(file, stop);
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
	file->fd = file->old_fd = file->journal_fd = -1;
	file->kind = entry->kind;
	file->mode = entry->mode & PEER_MODE;
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

/* What has the name now, told by *st. Returns MOVER_HAVE_ALL (but for its mode), MOVER_HAVE_NONE, or -errno where it is
 * nothing that a file replaces. */
static int check_old(const struct folder *folder, const char *leaf, const struct mover_entry *entry, bool compare,
		     struct stat *st)
{
	if (fstatat(folder->fd, leaf, st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? MOVER_HAVE_NONE : -errno;
	if (S_ISDIR(st->st_mode))
		return -EISDIR;
	if (!S_ISREG(st->st_mode) && !S_ISLNK(st->st_mode))
		return -EEXIST;
	if (compare || !S_ISREG(st->st_mode) || entry->kind != MOVER_FILE || (uint64_t)st->st_size != entry->size ||
	    st->st_mtim.tv_sec != entry->mtime_s || (uint32_t)st->st_mtim.tv_nsec != entry->mtime_ns)
		return MOVER_HAVE_NONE;
	return MOVER_HAVE_ALL;
}

/* An entry's folder, held, and its name in it; `name` is where the latter lies. 0 or -errno. */
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
	err = check_old(folder, leaf, entry, compare, &st);
	mover_folder_put(&tree->folders, folder);
	return err;
}

int mover_file_begin(struct mover_tree *tree, const struct mover_entry *entry, uint32_t chunk_bytes, bool compare,
		     const atomic_bool *stop, struct mover_file **file_out)
{
	mode_t mode = entry->mode & PEER_MODE;
	char name[MOVER_PATH_MAX + 1];
	struct mover_file *file;
	struct folder *folder;
	const char *leaf;
	struct stat st;
	int err;

	*file_out = NULL;
	if (!chunk_bytes || chunk_bytes > CHUNK_BYTES_MAX)
		return -EINVAL;
	err = get_place(tree, entry, name, &folder, &leaf);
	if (err)
		return err;
	err = check_old(folder, leaf, entry, compare, &st);
	if (err == MOVER_HAVE_ALL && (st.st_mode & PEER_MODE) != mode &&
	    fchmodat(folder->fd, leaf, (st.st_mode & 07000) | mode, AT_SYMLINK_NOFOLLOW))
		err = errno == EPERM ? MOVER_HAVE_NONE : -errno; /* another user's: replaced */
	if (err != MOVER_HAVE_NONE) {
		mover_folder_put(&tree->folders, folder);
		return err;
	}
	file = create(tree, entry, chunk_bytes);
	if (!file) {
		mover_folder_put(&tree->folders, folder);
		return -ENOMEM;
	}
	file->folder = folder;
	strcpy(file->leaf, leaf);
	mover_temp_name(leaf, MOVER_PART_SUFFIX, file->part);
	err = fill(file, compare && entry->kind == MOVER_FILE, stop);
	if (err) {
		mover_file_free(file);
		return err;
	}
	*file_out = file;
	return any_good(file, false) ? MOVER_HAVE_SOME : MOVER_HAVE_NONE;
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
	if (chunk->in_old || !punch(file->fd, begin, begin + len))
		return;
	/* No holes here. Should this fail, then the disk has a fault that commit's sync will tell. */
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

	/* A flush that fails, on a full disk, loses the latest records only. */
	if (worth && mover_journal_flush(file->journal))
		worth = file->journal->end > JOURNAL_HEADER_BYTES;
	if (!worth)
		remove_names(file);
	mover_file_free(file);
}
