/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mover/io.h"
#include "mover/spelling.h"
#include "mover/tree_internal.h"

/* A file on its way through commit. */
struct step {
	struct mover_file *file;
	int *result; /* 0, or where it stopped */
	dev_t dev;
	bool in_place;     /* the file that has the name now is the right one */
	bool mode_not_set; /* the file system does not take it */
	bool synced;
	bool alone; /* not with the whole file system */
};

static bool is_shorter(int fd, uint64_t size)
{
	struct stat st;

	return !fstat(fd, &st) && (uint64_t)st.st_size < size;
}

/* Copies the chunks that only the old file has into the new one. -ESTALE if one has changed since it was compared;
 * -ECANCELED: stopped. */
static int copy_old(struct mover_file *file)
{
	uint8_t *buffer = malloc(file->chunk_bytes);
	int err = buffer ? 0 : -ENOMEM;

	mover_file_use_cache(file);
	for (size_t i = 0; i < file->kept.count && !err; i++) {
		const struct kept_chunk *chunk = &file->kept.chunks[i];
		uint64_t at = chunk->index * file->chunk_bytes;
		size_t len = mover_file_chunk_len(file, chunk->index);
		struct mover_digest digest;

		if (!chunk->good || !chunk->in_old)
			continue;
		if (file_stopped(file->stop))
			err = -ECANCELED;
		else
			err = mover_read_at(file->old_fd, buffer, len, at);
		if (err == -EIO && is_shorter(file->old_fd, at + len))
			err = -ESTALE;
		if (err)
			break;
		digest = mover_digest_of(buffer, len);
		if (memcmp(&digest, &chunk->digest, sizeof(digest)))
			err = -ESTALE;
		else
			err = mover_write_sparse(file->fd, buffer, len, at);
	}
	free(buffer);
	return err;
}

/* Whether the old file has the right content: every chunk agrees, and it still has the name. */
static bool old_is_right(const struct mover_file *file, struct stat *old)
{
	uint64_t good = 0;

	for (size_t i = 0; i < file->kept.count; i++)
		good += file->kept.chunks[i].good && file->kept.chunks[i].in_old;
	return good == mover_file_chunk_count(file) && !fstat(file->old_fd, old) && S_ISREG(old->st_mode) &&
	       (uint64_t)old->st_size == file->size && mover_file_is_at(file->folder->fd, file->leaf, old);
}

static int set_mode_and_time(struct step *step, int fd, const struct stat *st)
{
	const struct mover_file *file = step->file;
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, file->mtime};

	if ((st->st_mode & PEER_MODE) != file->mode && fchmod(fd, (st->st_mode & 07000) | file->mode)) {
		if (errno != EPERM || (step->in_place && st->st_uid != geteuid()))
			return -errno;
		step->mode_not_set = true;
	}
	return futimens(fd, times) ? -errno : 0;
}

/* If the old file has the right content, sets its mode and time, and keeps it (step->in_place). 0 or -errno. */
static int keep_old(struct step *step)
{
	struct stat old;
	int err = 0;

	step->in_place = step->file->old_fd >= 0 && old_is_right(step->file, &old);
	if (step->in_place) {
		step->dev = old.st_dev;
		err = set_mode_and_time(step, step->file->old_fd, &old);
	}
	if (err != -EPERM)
		return err;
	step->in_place = false; /* another user's is replaced */
	return 0;
}

/* Makes content, size, mode and time right. Syncing and renaming come later. */
static int prepare(struct step *step)
{
	struct mover_file *file = step->file;
	struct stat st;
	int err = keep_old(step);

	if (!err && !step->in_place && file->old_fd >= 0)
		err = copy_old(file);
	if (err || step->in_place)
		return err;
	if (fstat(file->fd, &st))
		return -errno;
	step->dev = st.st_dev;
	if (file->size != UNKNOWN_SIZE && (uint64_t)st.st_size != file->size && ftruncate(file->fd, (off_t)file->size))
		return -errno;
	return set_mode_and_time(step, file->fd, &st);
}

/* Syncs the files of all steps on the file system of `first`, and sets their results. */
static void sync_device(struct step *first, struct step *end)
{
	struct step *earliest = first;
	size_t count = 0;
	int err = 0;

	/* syncfs(2) reports what failed since its descriptor was opened: take the one opened first. */
	for (struct step *step = first; step < end; step++)
		if (!*step->result && step->dev == first->dev) {
			count++;
			if (step->file->opened < earliest->file->opened)
				earliest = step;
		}
	if (count > SYNC_ONE_BY_ONE && syncfs(earliest->file->fd))
		err = -errno;
	for (struct step *step = first; step < end; step++) {
		if (*step->result || step->dev != first->dev)
			continue;
		step->synced = true;
		step->alone = count <= SYNC_ONE_BY_ONE;
		if (step->alone)
			err = fsync(step->in_place ? step->file->old_fd : step->file->fd) ? -errno : 0;
		*step->result = err;
	}
}

/* What has come to the name meanwhile is replaced, as by a rename. */
static int link_unnamed(const struct mover_file *file)
{
	int err = temp_file_link(file->fd, file->folder->fd, file->leaf);

	if (err != -EEXIST || file->tree->keep_existing)
		return err;
	if (mover_spelled_otherwise(file->folder->fd, file->leaf))
		return -ENOTUNIQ;
	return temp_file_replace(file->fd, file->folder->fd, file->leaf);
}

/* Renames the temporary file, unless something has the name. Not all file systems know RENAME_NOREPLACE; NFS does not.
 * There a link does the same in two steps. */
static int rename_alone(const struct mover_file *file)
{
	int dir_fd = file->folder->fd;

	if (!renameat2(dir_fd, file->part, dir_fd, file->leaf, RENAME_NOREPLACE))
		return 0;
	if (errno != EINVAL || linkat(dir_fd, file->part, dir_fd, file->leaf, 0))
		return -errno;
	return unlinkat(dir_fd, file->part, 0) ? -errno : 0;
}

static int rename_part(const struct mover_file *file)
{
	if (!mover_file_has_part(file))
		return -ESTALE;
	if (file->tree->keep_existing)
		return rename_alone(file);
	if (mover_spelled_otherwise(file->folder->fd, file->leaf))
		return -ENOTUNIQ;
	return renameat(file->folder->fd, file->part, file->folder->fd, file->leaf) ? -errno : 0;
}

/* Gives the file its name. Removes the journal last: its lock keeps the next transfer of this file from making a new
 * journal, which would be removed here. */
static int publish(const struct step *step)
{
	struct mover_file *file = step->file;
	int dir_fd = file->folder->fd, err = file->unnamed ? link_unnamed(file) : 0;

	/* btrfs leaves a file without a name out of its log: so once more, where the file system was not synced as a
	 * whole */
	if (!err && file->unnamed && step->alone && fsync(file->fd))
		err = -errno;
	if (err)
		return err;
	if (step->in_place && mover_file_has_part(file))
		unlinkat(dir_fd, file->part, 0);
	else if (!step->in_place && !file->unnamed)
		err = rename_part(file);
	if (err)
		return err;
	if (file->journal_fd >= 0)
		unlinkat(dir_fd, file->journal_name, 0);
	mover_folder_changed(&file->tree->folders, file->folder);
	return 0;
}

void mover_file_commit(struct mover_tree *tree, struct mover_file **files, size_t count, int *results)
{
	struct step *steps = calloc(count ? count : 1, sizeof(*steps));
	const struct folder *seen = NULL;
	bool in_place = false;

	for (size_t i = 0; i < count; i++) {
		if (steps)
			steps[i] = (struct step){.file = files[i], .result = &results[i]};
		results[i] = steps ? prepare(&steps[i]) : -ENOMEM;
	}
	for (size_t i = 0; i < count && steps; i++)
		if (!results[i] && !steps[i].synced)
			sync_device(&steps[i], steps + count);
	for (size_t i = 0; i < count; i++) {
		if (!results[i] && files[i]->folder != seen) {
			seen = files[i]->folder;
			in_place = mover_folder_in_place(&tree->folders, seen);
		}
		if (!results[i])
			results[i] = in_place ? publish(&steps[i]) : -ESTALE;
		if (results[i]) {
			mover_file_abandon(files[i]);
			continue;
		}
		mover_file_free(files[i]);
		if (steps[i].mode_not_set)
			results[i] = MOVER_MODE_NOT_SET;
	}
	free(steps);
}
