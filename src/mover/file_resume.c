/* SPDX-License-Identifier: BSD-2-Clause */
/* Which chunks of a file are there already: in the temporary file of an interrupted transfer, or in the file that has
 * the name now. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mover/io.h"
#include "mover/temp_file.h"
#include "mover/tree_internal.h"

int file_punch(int fd, uint64_t begin, uint64_t end)
{
	if (begin >= end)
		return 0;
	return fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)begin, (off_t)(end - begin)) ? -errno
													     : 0;
}

static int note_record(void *context, uint64_t index, const struct mover_digest *digest)
{
	struct mover_file *file = context;
	struct kept_chunk chunk = {.index = index, .digest = *digest};

	int err = index < mover_file_chunk_count(file) ? mover_kept_add(&file->kept, &chunk) : 0;

	return err == -ENOBUFS ? 0 : err; /* this chunk comes again */
}

bool file_stopped(const atomic_bool *stop)
{
	return stop && atomic_load(stop);
}

/* Reads the chunks that the journal names. Those that can be read and agree are good. 0 or -ECANCELED. */
static int check_kept(struct mover_file *file, uint8_t *buffer, const atomic_bool *stop)
{
	for (size_t i = 0; i < file->kept.count && !file_stopped(stop); i++) {
		struct kept_chunk *chunk = &file->kept.chunks[i];
		size_t len = mover_file_chunk_len(file, chunk->index);
		struct mover_digest digest;

		if (mover_read_at(file->fd, buffer, len, chunk->index * file->chunk_bytes))
			continue;
		digest = mover_digest_of(buffer, len);
		chunk->good = !memcmp(&digest, &chunk->digest, sizeof(digest));
	}
	return file_stopped(stop) ? -ECANCELED : 0;
}

/* Makes holes of everything that is not kept. Otherwise what a killed transfer wrote would be seen where the file has a
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
		err = file_punch(file->fd, begin, chunk->index * file->chunk_bytes);
		begin = chunk->index * file->chunk_bytes + mover_file_chunk_len(file, chunk->index);
	}
	if (!err && begin)
		err = file_punch(file->fd, begin, (uint64_t)st.st_size);
	if (!err && begin)
		return 0;
	/* nothing is good, or this file system has no holes */
	mover_kept_clear(&file->kept);
	return ftruncate(file->fd, 0) ? -errno : 0;
}

/* A hash of the source file's size and mtime. Somebody who names both exactly may have the same file. */
static uint64_t source_of(const struct mover_file *file)
{
	const uint64_t facts[3] = {file->size, (uint64_t)file->mtime.tv_sec, (uint64_t)file->mtime.tv_nsec};
	struct mover_digest digest = mover_digest_of(facts, sizeof(facts));
	uint64_t hash;

	memcpy(&hash, digest.bytes, sizeof(hash));
	return hash;
}

int file_resume(struct mover_file *file, const struct mover_begin *begin, bool fresh, const atomic_bool *stop)
{
	const struct journal_owner owner = {
		.ticket = begin->ticket, .source = source_of(file), .any = begin->any_ticket};
	struct mover_digest name = temp_file_name(file->leaf, MOVER_JOURNAL_SUFFIX, file->journal_name);
	bool fresh_journal;
	uint8_t *buffer;
	int err;

	file->journal = malloc(sizeof(*file->journal));
	if (!file->journal)
		return -ENOMEM;
	file->journal_fd = temp_file_open(file->folder->fd, file->journal_name, &fresh_journal);
	if (file->journal_fd < 0)
		return file->journal_fd;
	if (fresh && !fresh_journal && ftruncate(file->journal_fd, 0))
		return -errno;
	err = mover_journal_open(file->journal, file->journal_fd, file->chunk_bytes, &name, &owner, note_record, file);
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

int file_start_over(struct mover_file *file, bool fresh)
{
	char journal[TEMP_NAME_BYTES];

	if (fresh)
		return 0;
	temp_file_name(file->leaf, MOVER_JOURNAL_SUFFIX, journal);
	unlinkat(file->folder->fd, journal, 0);
	return ftruncate(file->fd, 0) ? -errno : 0;
}

/* What is known of the holes of an old file. */
struct hole {
	uint64_t data;              /* as far as is known, the next data */
	size_t len;                 /* of `digest` */
	struct mover_digest digest; /* of zeros */
};

/* Whether these bytes are in a hole. *data: the first data at or after a position that was asked for before. */
static bool in_hole(int fd, uint64_t at, size_t len, uint64_t *data)
{
	if (*data < at) {
		off_t next = lseek(fd, (off_t)at, SEEK_DATA);

		*data = next >= 0 ? (uint64_t)next : errno == ENXIO ? UINT64_MAX : at;
	}
	return *data >= at + len;
}

/* Digests chunk `index` of the old file, and keeps it. A hole is not read: its size costs the sender nothing. */
static int compare_chunk(struct mover_file *file, uint64_t index, uint8_t *buffer, struct hole *hole)
{
	struct kept_chunk chunk = {.index = index, .good = true, .in_old = true};
	size_t len = mover_file_chunk_len(file, index);
	uint64_t at = index * file->chunk_bytes;

	if (in_hole(file->old_fd, at, len, &hole->data)) {
		if (hole->len != len) {
			memset(buffer, 0, len);
			hole->digest = mover_digest_of(buffer, len);
			hole->len = len;
		}
		chunk.digest = hole->digest;
	} else {
		if (mover_read_at(file->old_fd, buffer, len, at))
			return 0;
		chunk.digest = mover_digest_of(buffer, len);
	}
	return mover_kept_add(&file->kept, &chunk);
}

int file_compare_old(struct mover_file *file, const atomic_bool *stop)
{
	uint64_t count = mover_file_chunk_count(file);
	size_t from_before = file->kept.count;
	struct hole hole = {0};
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
		struct kept known = {.chunks = file->kept.chunks, .count = from_before};
		const struct kept_chunk *before = mover_kept_find(&known, i);
		size_t len = mover_file_chunk_len(file, i);

		if (i * file->chunk_bytes + len > (uint64_t)st.st_size)
			break;
		/* The digest of a prefix, of a length that the sender chooses, would tell the content byte by byte. */
		if (len < file->chunk_bytes && i * file->chunk_bytes + len != (uint64_t)st.st_size)
			break;
		if (file_stopped(stop)) {
			err = -ECANCELED;
			break;
		}
		if (!before || !before->good)
			err = compare_chunk(file, i, buffer, &hole);
	}
	free(buffer);
	mover_kept_sort(&file->kept);
	return err == -ENOBUFS ? 0 : err;
}
