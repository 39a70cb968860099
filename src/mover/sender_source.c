/* SPDX-License-Identifier: BSD-2-Clause */
/* Small files share a window. Long reads are under way in several windows at once. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mover/sender.h"

#define READ_AT_ONCE (64u << 10) /* shorter files are read where they are opened */

void source_fail(struct source_file *file, int err)
{
	file->failed = err == -ESTALE ? MOVER_MISMATCH : MOVER_LOCAL_IO;
	if (err == -ESTALE)
		snprintf(file->why, sizeof(file->why), "the file has changed since it was offered");
	else
		snprintf(file->why, sizeof(file->why), "it cannot be read: %s", strerrordesc_np(-err));
}

void source_fail_size(struct source_file *file)
{
	file->failed = MOVER_LOCAL_IO;
	snprintf(file->why, sizeof(file->why),
		 "its size is not that of its content, as in /proc and /sys; `roci send - < FILE` sends such a file");
}

/* pread(2), not interrupted: what it returns, or -errno. */
static ssize_t read_some(int fd, uint8_t *bytes, size_t len, uint64_t offset)
{
	ssize_t n;

	do
		n = pread(fd, bytes, len, (off_t)offset);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

/* Files in /proc have content, and a size of 0. */
static void check_empty(struct sender *x, struct source_file *file)
{
	uint8_t byte;
	ssize_t n = read_some(file->fd, &byte, sizeof(byte), 0);

	if (n < 0)
		source_fail(file, (int)n);
	else if (n && mover_walk_unchanged(x->walk, file->entry, file->fd))
		source_fail(file, -ESTALE);
	else if (n)
		source_fail_size(file);
}

enum added {
	ADDED,
	WINDOW_FULL,
	NOT_YET, /* standard input has nothing */
};

int source_init(struct sender *x)
{
	return disk_create(!x->s.common->no_uring, x->s.pool.count, &x->source.disk);
}

static void free_if_unused(struct sender *x, struct source_file *file)
{
	if (file->pieces || x->source.file == file)
		return;
	if (file->fd >= 0)
		close(file->fd);
	free(file);
}

void source_piece_done(struct sender *x, struct source_file *file)
{
	file->pieces--;
	free_if_unused(x, file);
}

/* All of the file is in packs, or nothing more will be. */
static void file_packed(struct sender *x)
{
	struct source_file *file = x->source.file;

	x->source.file = NULL;
	free_if_unused(x, file);
}

void source_destroy(struct sender *x)
{
	disk_destroy(x->source.disk);
	x->source.disk = NULL;
	if (x->source.file)
		file_packed(x);
}

static void close_pack(struct sender *x)
{
	pack_close(x, x->source.filling);
	x->source.filling = NULL;
}

/* The next entry that the receiver wants, opened. False: none for now. */
static bool next_file(struct sender *x)
{
	while (x->source.next_entry < x->offer.answered) {
		uint32_t entry = x->source.next_entry;
		const struct mover_entry *e = mover_walk_entry(x->walk, entry);
		struct source_file *file;

		if (e->kind == MOVER_STREAM && !x->lanes_up)
			return false; /* nobody can read it again, should a data connection not come up */
		x->source.next_entry++;
		if (entry < x->offer.finished || !offer_entry(x, entry)->wanted)
			continue;
		file = calloc(1, sizeof(*file));
		if (!file) {
			session_fail_memory(&x->s);
			return false;
		}
		file->entry = entry;
		file->size = e->size;
		file->stream = e->kind == MOVER_STREAM;
		if (file->stream && !x->s.report.stream)
			x->s.report.stream = MOVER_STDIN;
		file->fd = mover_walk_open(x->walk, entry);
		if (file->fd < 0)
			source_fail(file, file->fd);
		else if (!file->stream && !file->size)
			check_empty(x, file);
		x->source.file = file;
		return true;
	}
	return false;
}

static struct piece *new_piece(struct sender *x, struct source_file *file)
{
	struct pack *pack = x->source.filling;
	struct piece *piece = &pack->pieces[pack->count++];

	piece->file = file;
	piece->hole = piece->last = piece->sparse = false;
	piece->chunk = file->next_chunk;
	piece->count = 1;
	piece->at = pack->used;
	piece->len = 0;
	piece->got = 0;
	file->pieces++;
	return piece;
}

static void read_piece(struct sender *x, struct piece *piece)
{
	struct pack *pack = x->source.filling;
	uint8_t *bytes = pack->window->bytes + piece->at;
	uint64_t offset = piece->chunk * x->s.terms.chunk_bytes;

	if (piece->len <= READ_AT_ONCE) {
		piece->got = read_some(piece->file->fd, bytes, piece->len, offset);
		return;
	}
	piece->op = (struct disk_op){
		.owner = pack, .fd = piece->file->fd, .buffer = bytes, .len = piece->len, .offset = offset};
	pack->reading++;
	disk_submit(x->source.disk, &piece->op);
}

/* How many chunks, beginning with `chunk`, lie in a hole. */
static uint64_t hole_chunks(struct sender *x, struct source_file *file, uint64_t chunk)
{
	uint64_t chunk_bytes = x->s.terms.chunk_bytes, begin = chunk * chunk_bytes;
	uint64_t chunks = (file->size + chunk_bytes - 1) / chunk_bytes;

	if (file->size <= READ_AT_ONCE || begin >= file->size)
		return 0;
	if (begin >= file->data_end &&
	    !mover_walk_data(file->fd, begin, file->size, &file->data_begin, &file->data_end)) {
		file->data_begin = file->data_end = file->size;
		return chunks - chunk;
	}
	if (file->data_begin >= file->size)
		return chunks - chunk;
	return file->data_begin > begin ? (file->data_begin - begin) / chunk_bytes : 0;
}

static enum added add_chunk(struct sender *x, struct source_file *file)
{
	uint64_t chunk_bytes = x->s.terms.chunk_bytes, hole = hole_chunks(x, file, file->next_chunk);
	uint64_t left = file->size - file->next_chunk * chunk_bytes;
	uint32_t len = (uint32_t)(left < chunk_bytes ? left : chunk_bytes);
	struct piece *piece;

	if (!hole && x->source.filling->used + len > chunk_bytes)
		return WINDOW_FULL;
	piece = new_piece(x, file);
	if (hole) {
		piece->hole = true;
		piece->count = hole;
	} else {
		uint64_t begin = piece->chunk * chunk_bytes;
		piece->len = len;
		piece->sparse = file->data_end && (begin < file->data_begin || begin + len > file->data_end);
		x->source.filling->used += len;
		if (len)
			read_piece(x, piece);
	}
	file->next_chunk += piece->count;
	piece->last = file->next_chunk * chunk_bytes >= file->size;
	if (piece->last)
		file_packed(x);
	return ADDED;
}

/* Reads as much of a stream as there is now, one chunk per window. The piece and its window stay open until the chunk
 * is full or the stream ends. */
static enum added add_stream(struct sender *x, struct source_file *file)
{
	uint32_t chunk_bytes = x->s.terms.chunk_bytes;
	struct pack *pack = x->source.filling;
	struct piece *piece = pack->count ? &pack->pieces[pack->count - 1] : NULL;
	ssize_t n;

	if (!piece || piece->file != file) {
		if (pack->count)
			return WINDOW_FULL; /* a chunk of a stream needs a window of its own */
		piece = new_piece(x, file);
	}
	if (piece->len == chunk_bytes) {
		file->next_chunk++;
		return WINDOW_FULL;
	}
	x->source.stdin_waiting = poll(&(struct pollfd){.fd = file->fd, .events = POLLIN}, 1, 0) == 0;
	if (x->source.stdin_waiting)
		return NOT_YET;
	n = read(file->fd, pack->window->bytes + piece->at + piece->len, chunk_bytes - piece->len);
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return NOT_YET;
	if (n > 0) {
		piece->len += (uint32_t)n;
		piece->got = piece->len;
		pack->used = piece->len;
		return ADDED;
	}
	if (n < 0)
		piece->got = -errno;
	piece->last = true;
	file->size = file->next_chunk * chunk_bytes + piece->len;
	file_packed(x);
	return ADDED;
}

static enum added add_piece(struct sender *x)
{
	struct source_file *file = x->source.file;

	if (x->source.filling->count == PACK_MAX_PIECES)
		return WINDOW_FULL;
	if (offer_entry(x, file->entry)->refused && !file->failed)
		file->failed = MOVER_REMOTE_IO;
	if (!file->failed)
		return file->stream ? add_stream(x, file) : add_chunk(x, file);
	if (!file->given_up)
		new_piece(x, file); /* pack_pump() makes it a GIVEN_UP segment */
	file_packed(x);
	return ADDED;
}

static bool reap(struct sender *x)
{
	struct disk_op *op;
	bool any = false;

	while ((op = disk_reap(x->source.disk))) {
		struct piece *piece = (struct piece *)((char *)op - offsetof(struct piece, op));
		struct pack *pack = op->owner;
		piece->got = op->result;
		pack->reading--;
		any = true;
	}
	return any;
}

static bool fill(struct sender *x)
{
	bool any = false;

	while (x->s.status == MOVER_OK && (x->source.file || next_file(x))) {
		enum added added;
		if (!x->source.filling)
			x->source.filling = pack_take(x);
		if (!x->source.filling)
			return any;
		added = add_piece(x);
		if (added == NOT_YET)
			return any;
		any = true;
		if (added != WINDOW_FULL)
			continue;
		close_pack(x);
		return true; /* one at a time, so that the first is on the wire before the last is read */
	}
	/* There is nothing more to add now: send the pack if the wire is idle or this is the end. */
	if (x->source.filling && x->source.filling->count &&
	    (!x->packs.posted || x->source.next_entry == x->entry_count) && !x->packs.queued) {
		close_pack(x);
		any = true;
	}
	return any;
}

bool source_pump(struct sender *x)
{
	bool any = fill(x);

	disk_flush(x->source.disk);
	any |= reap(x); /* what the page cache has is there already */
	any |= pack_pump(x);
	return any;
}
