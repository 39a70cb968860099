/* SPDX-License-Identifier: BSD-2-Clause */
/* From files into windows: opens what is wanted, in the order of the entries, and fills windows with chunks, small
 * files many to a window. Long reads are under way in several windows at once. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "mover/sender.h"

#define READ_AT_ONCE (64u << 10) /* shorter files are read where they are opened */

enum added {
	ADDED,
	WINDOW_FULL,
	NOT_YET, /* standard input has nothing */
};

int source_init(struct sender *x)
{
	struct window_pool *windows = &x->s.windows;

	for (unsigned i = 0; i < windows->count; i++) {
		struct pack *p = &x->packs[i];
		p->window = &windows->windows[i];
		p->pieces = malloc(PACK_MAX_PIECES * sizeof(*p->pieces));
		p->segments = malloc(PROTO_PAYLOAD_BYTES);
		if (!p->pieces || !p->segments)
			return -ENOMEM;
	}
	return disk_create(!x->s.common->no_uring, windows->count, &x->disk);
}

static void free_file(struct source_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	free(file);
}

/* After the last use of a file by a window, and by the packer. */
void source_release(struct sender *x, struct source_file *file)
{
	if (file->pieces || x->file == file)
		return;
	free_file(file);
}

void source_destroy(struct sender *x)
{
	disk_destroy(x->disk);
	for (unsigned i = 0; i < PROTO_MAX_WINDOWS; i++) {
		struct pack *p = &x->packs[i];
		for (unsigned k = 0; k < p->count; k++) {
			struct source_file *file = p->pieces[k].file;
			if (file && --file->pieces == 0 && file != x->file)
				free_file(file);
		}
		free(p->pieces);
		free(p->segments);
	}
	if (x->file)
		free_file(x->file);
}

bool source_idle(const struct sender *x)
{
	return !x->file && !x->filling && !x->queue_count && !x->posted && x->cursor == x->entries;
}

static struct pack *take_pack(struct sender *x)
{
	for (unsigned i = 0; i < x->s.windows.count; i++) {
		struct pack *p = &x->packs[i];
		if (p->state != PACK_FREE)
			continue;
		p->state = PACK_FILLING;
		p->count = p->reading = 0;
		p->used = p->wire_bytes = 0;
		return p;
	}
	return NULL;
}

static void close_pack(struct sender *x)
{
	x->filling->state = PACK_CLOSED;
	x->queue[(x->queue_first + x->queue_count++) % PROTO_MAX_WINDOWS] = x->filling;
	x->filling = NULL;
}

/* The next entry that the receiver wants, opened. False: none for now. */
static bool next_file(struct sender *x)
{
	while (x->cursor < x->judged) {
		uint32_t entry = x->cursor++;
		const struct mover_entry *e = mover_walk_entry(x->walk, entry);
		struct source_file *file;

		if (entry < x->finished || sender_slot(x, entry)->state != SLOT_WANTED)
			continue;
		file = calloc(1, sizeof(*file));
		if (!file) {
			session_fail(&x->s, MOVER_FAILED, "out of memory");
			return false;
		}
		file->entry = entry;
		file->size = e->size;
		file->stream = e->kind == MOVER_STREAM;
		file->fd = mover_walk_open(x->walk, entry);
		if (file->fd < 0) {
			file->failed = file->fd == -ESTALE ? MOVER_MISMATCH : MOVER_LOCAL_IO;
			file->why = file->fd == -ESTALE ? "the file has changed since it was looked at"
							: strerrordesc_np(-file->fd);
		}
		x->file = file;
		return true;
	}
	return false;
}

static struct piece *new_piece(struct sender *x, struct source_file *file)
{
	struct pack *pack = x->filling;
	struct piece *piece = &pack->pieces[pack->count++];

	piece->file = file;
	piece->hole = piece->last = piece->sparse = piece->reading = false;
	piece->chunk = file->next_chunk;
	piece->count = 1;
	piece->at = pack->used;
	piece->len = 0;
	piece->got = 0;
	file->pieces++;
	return piece;
}

static void packed(struct sender *x)
{
	struct source_file *file = x->file;
	x->file = NULL;
	file->packed = true;
	source_release(x, file);
}

static void read_piece(struct sender *x, struct piece *piece)
{
	struct pack *pack = x->filling;
	uint8_t *bytes = pack->window->bytes + piece->at;
	uint64_t offset = piece->chunk * x->s.terms.chunk_bytes;

	if (piece->len <= READ_AT_ONCE) {
		ssize_t n;
		do
			n = pread(piece->file->fd, bytes, piece->len, (off_t)offset);
		while (n < 0 && errno == EINTR);
		piece->got = n < 0 ? -errno : n;
		return;
	}
	piece->reading = true;
	piece->op = (struct disk_op){
		.owner = pack, .fd = piece->file->fd, .buffer = bytes, .len = piece->len, .offset = offset};
	pack->reading++;
	disk_submit(x->disk, &piece->op);
}

/* How many chunks from `chunk` on lie in a hole. */
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

	if (!hole && x->filling->used + len > chunk_bytes)
		return WINDOW_FULL;
	piece = new_piece(x, file);
	if (hole) {
		piece->hole = true;
		piece->count = hole;
	} else {
		uint64_t begin = piece->chunk * chunk_bytes;
		piece->len = len;
		piece->sparse = file->data_end && (begin < file->data_begin || begin + len > file->data_end);
		x->filling->used += len;
		if (len)
			read_piece(x, piece);
	}
	file->next_chunk += piece->count;
	piece->last = file->next_chunk * chunk_bytes >= file->size;
	if (piece->last)
		packed(x);
	return ADDED;
}

/* A stream: as much as there is now, a chunk per window. The piece stays open, and with it the window, until the chunk
 * is full or the stream ends. */
static enum added add_stream(struct sender *x, struct source_file *file)
{
	uint32_t chunk_bytes = x->s.terms.chunk_bytes;
	struct pack *pack = x->filling;
	struct piece *piece = pack->count ? &pack->pieces[pack->count - 1] : NULL;
	ssize_t n;

	if (!piece || piece->file != file) {
		if (pack->count)
			return WINDOW_FULL; /* a chunk of a stream needs all of the room */
		piece = new_piece(x, file);
	}
	if (piece->len == chunk_bytes) {
		file->next_chunk++;
		return WINDOW_FULL;
	}
	x->stdin_waiting = poll(&(struct pollfd){.fd = file->fd, .events = POLLIN}, 1, 0) == 0;
	if (x->stdin_waiting)
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
	packed(x);
	return ADDED;
}

static enum added add_piece(struct sender *x)
{
	struct source_file *file = x->file;

	if (x->filling->count == PACK_MAX_PIECES)
		return WINDOW_FULL;
	if (sender_slot(x, file->entry)->refused && !file->failed)
		file->failed = MOVER_REMOTE_IO;
	if (!file->failed)
		return file->stream ? add_stream(x, file) : add_chunk(x, file);
	if (!file->given_up)
		new_piece(x, file); /* which will tell of it */
	packed(x);
	return ADDED;
}

static bool reap(struct sender *x)
{
	struct disk_op *op;
	bool any = false;

	while ((op = disk_reap(x->disk))) {
		struct piece *piece = (struct piece *)((char *)op - offsetof(struct piece, op));
		struct pack *pack = op->owner;
		piece->got = op->result;
		piece->reading = false;
		pack->reading--;
		any = true;
	}
	return any;
}

static bool fill(struct sender *x)
{
	bool any = false;

	while (x->s.status == MOVER_OK && (x->file || next_file(x))) {
		enum added added;
		if (!x->filling)
			x->filling = take_pack(x);
		if (!x->filling)
			return any;
		added = add_piece(x);
		if (added == NOT_YET)
			return any;
		any = true;
		if (added == WINDOW_FULL)
			close_pack(x);
	}
	/* Nothing more to put in for now: off with it, if the wire is idle or this is the end. */
	if (x->filling && x->filling->count && (!x->posted || x->cursor == x->entries) && !x->queue_count) {
		close_pack(x);
		any = true;
	}
	return any;
}

static bool finish_packs(struct sender *x)
{
	bool any = false;

	for (unsigned i = 0; i < x->queue_count && x->s.status == MOVER_OK; i++) {
		struct pack *pack = x->queue[(x->queue_first + i) % PROTO_MAX_WINDOWS];
		if (pack->state == PACK_READY)
			continue;
		if (pack->reading)
			break;
		pack_finish(x, pack);
		any = true;
	}
	return any;
}

bool source_pump(struct sender *x)
{
	bool any = reap(x);
	any |= fill(x);
	disk_flush(x->disk);
	any |= finish_packs(x);
	return any;
}
