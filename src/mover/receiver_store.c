/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mover/chain.h"
#include "mover/disk.h"
#include "mover/io.h"
#include "mover/receiver.h"

#define WRITE_AT_ONCE (128u << 10) /* less goes into the page cache by a plain call */

/* One write of content. */
struct store_op {
	struct disk_op op;
	struct recv_entry *entry;
	struct recv_window *window;
	uint64_t chunk;
	struct mover_digest digest;
	struct store_op *next;  /* in free_ops */
	struct store_op *older; /* in all_ops */
};

int store_init(struct receiver *r)
{
	int err = disk_create(!r->s.common->no_uring, 2 * r->s.pool.count, &r->store.disk);
	if (!err && !r->tree)
		err = disk_create(false, 1, &r->store.out);
	return err;
}

/* A write has ended: its chunk is kept from now on. 0, or why not. */
static int record_write(const struct store_op *op)
{
	if (op->op.result < 0)
		return (int)op->op.result;
	if ((uint64_t)op->op.result != op->op.len)
		return -EIO;
	return op->entry->file ? mover_file_wrote(op->entry->file, op->chunk, &op->digest) : 0;
}

/* What was under way when the session ended is on the disk now: the next one need not send it again. */
static void keep_written(struct disk *disk)
{
	struct disk_op *op;

	disk_stop(disk);
	while ((op = disk_reap(disk)))
		record_write((struct store_op *)op);
}

void store_destroy(struct receiver *r)
{
	if (r->store.disk)
		keep_written(r->store.disk);
	disk_destroy(r->store.disk);
	disk_destroy(r->store.out);
	r->store.disk = r->store.out = NULL;
	r->store.free_ops = NULL;
	while (r->store.all_ops) { /* also those that nobody has reaped */
		struct store_op *older = r->store.all_ops->older;
		free(r->store.all_ops);
		r->store.all_ops = older;
	}
}

/* Writing */

static struct store_op *get_op(struct receiver *r)
{
	struct store_op *op = r->store.free_ops;

	if (op) {
		r->store.free_ops = op->next;
		return op;
	}
	op = malloc(sizeof(*op));
	if (!op) {
		session_fail_memory(&r->s);
		return NULL;
	}
	op->older = r->store.all_ops;
	r->store.all_ops = op;
	return op;
}

static void write_later(struct receiver *r, struct recv_entry *entry, const struct proto_segment *segment,
			uint8_t *bytes, uint64_t len, struct recv_window *window)
{
	struct store_op *op = get_op(r);

	if (!op)
		return;
	*op = (struct store_op){.entry = entry,
				.window = window,
				.chunk = segment->chunk,
				.digest = segment->digest,
				.older = op->older};
	op->op = (struct disk_op){
		.fd = entry->file ? mover_file_fd(entry->file) : STDOUT_FILENO,
		.write = true,
		.buffer = bytes,
		.len = len,
		.offset = entry->file ? segment->chunk * r->s.terms.chunk_bytes : DISK_SEQUENTIAL,
	};
	entry->writing++;
	if (window)
		window->writing++;
	disk_submit(entry->file ? r->store.disk : r->store.out, &op->op);
}

static void store_data(struct receiver *r, struct recv_entry *entry, const struct proto_segment *segment,
		       uint8_t *bytes, struct recv_window *window)
{
	uint64_t offset = segment->chunk * r->s.terms.chunk_bytes;
	int err;

	if (!segment->len)
		return;
	if (entry->file)
		mover_file_forget(entry->file, segment->chunk, 1);
	if (!entry->file || (segment->len > WRITE_AT_ONCE && !segment->sparse)) {
		write_later(r, entry, segment, bytes, segment->len, window);
		return;
	}
	mover_file_use_cache(entry->file);
	if (segment->sparse) {
		entry->holes = true;
		err = mover_write_sparse(mover_file_fd(entry->file), bytes, segment->len, offset);
	} else {
		err = mover_write_at(mover_file_fd(entry->file), bytes, segment->len, offset);
	}
	if (!err)
		err = mover_file_wrote(entry->file, segment->chunk, &segment->digest);
	if (err)
		entries_refuse_errno(r, entry, err);
}

static void reap_op(struct receiver *r, struct store_op *op)
{
	struct recv_entry *entry = op->entry;
	int err = record_write(op);

	entry->writing--;
	if (op->window)
		op->window->writing--;
	if (err && !entry->file)
		session_fail(&r->s, MOVER_LOCAL_IO, "writing standard output: %s", strerrordesc_np(-err));
	else if (err)
		entries_refuse_errno(r, entry, err);
	entries_advance(r, entry);
	op->next = r->store.free_ops;
	r->store.free_ops = op;
}

bool store_pump(struct receiver *r)
{
	bool any = false;
	struct disk_op *op;

	disk_flush(r->store.disk);
	while ((op = disk_reap(r->store.disk)) || (r->store.out && (op = disk_reap(r->store.out)))) {
		reap_op(r, (struct store_op *)op);
		any = true;
	}
	return any;
}

/* Segments */

static void store_hole(struct receiver *r, struct recv_entry *entry, const struct proto_segment *segment)
{
	uint64_t chunk_bytes = r->s.terms.chunk_bytes, begin = segment->chunk * chunk_bytes;
	uint64_t left = entry->info.size - begin, len = segment->count * chunk_bytes;

	if (len > left)
		len = left;
	entry->holes = true;
	r->s.totals.bytes_done += len;
	if (entry->file) /* chunks that are not kept are a hole already */
		mover_file_forget(entry->file, segment->chunk, segment->count);
	else
		write_later(r, entry, segment, NULL, len, NULL);
}

static void store_kept(struct receiver *r, struct recv_entry *entry, uint64_t chunk, const struct mover_digest *kept,
		       uint64_t len)
{
	struct mover_digest digest = *kept;
	int err = mover_file_wrote(entry->file, chunk, &digest);

	chain_chunk(&entry->whole, &digest);
	r->s.totals.bytes_kept += len;
	r->s.totals.bytes_done += len;
	if (err)
		entries_refuse_errno(r, entry, err);
}

/* Whether a segment is the next of its entry: chunks come one after the other, each in its whole length. */
static bool fits(const struct receiver *r, const struct recv_entry *entry, const struct proto_segment *segment)
{
	uint64_t chunk_bytes = r->s.terms.chunk_bytes, size = entry->info.size, chunks, left;

	if (segment->chunk != entry->next_chunk)
		return false;
	if (entry->info.kind == MOVER_STREAM)
		return segment->kind == PROTO_DATA && segment->chunk < INT64_MAX / PROTO_MAX_CHUNK - 1 &&
		       (segment->last ? segment->len <= chunk_bytes &&
						segment->size == segment->chunk * chunk_bytes + segment->len
				      : segment->len == chunk_bytes);
	chunks = size ? (size - 1) / chunk_bytes + 1 : 1;
	if (segment->chunk >= chunks || segment->count > chunks - segment->chunk)
		return false;
	if (segment->last != (segment->chunk + segment->count == chunks) || (segment->last && segment->size != size))
		return false;
	left = size - segment->chunk * chunk_bytes;
	return segment->kind != PROTO_DATA || segment->len == (left < chunk_bytes ? left : chunk_bytes);
}

/* After the last segment. */
static void finish(struct receiver *r, struct recv_entry *entry, const struct proto_segment *segment)
{
	int err = 0;

	entry->last = true;
	if (entry->state == RECV_ENTRY_WANTED && !digest_equal(&entry->whole, &segment->whole))
		entries_refuse(r, entry, MOVER_MISMATCH, "its chunks arrived, but not as they were sent");
	if (entry->state == RECV_ENTRY_WANTED && entry->file && (entry->holes || entry->info.kind == MOVER_STREAM))
		err = mover_file_set_size(entry->file, segment->size);
	if (err)
		entries_refuse_errno(r, entry, err);
	if (entry->info.kind == MOVER_STREAM)
		entry->info.size = segment->size;
	entries_advance(r, entry);
}

static void store_wanted(struct receiver *r, struct recv_entry *entry, const struct proto_segment *segment,
			 uint8_t *bytes, struct recv_window *window)
{
	const struct mover_digest *kept = NULL;
	uint64_t left = entry->info.size - segment->chunk * r->s.terms.chunk_bytes;
	struct mover_digest digest;

	switch (segment->kind) {
	case PROTO_KEEP:
		kept = entry->file ? mover_file_kept(entry->file, segment->chunk) : NULL;
		if (!kept) {
			session_fail_protocol(&r->s, "a chunk to keep that does not exist");
			return;
		}
		if (!digest_equal(kept, &segment->digest)) {
			mover_file_discard(entry->file);
			entries_refuse(r, entry, MOVER_MISMATCH, "what an earlier transfer left is of another file");
			return;
		}
		store_kept(r, entry, segment->chunk, kept,
			   left < r->s.terms.chunk_bytes ? left : r->s.terms.chunk_bytes);
		break;
	case PROTO_HOLE:
		chain_hole(&entry->whole, segment->count);
		store_hole(r, entry, segment);
		break;
	default:
		digest = mover_digest_of(bytes, segment->len);
		if (!digest_equal(&digest, &segment->digest)) {
			entries_refuse(r, entry, MOVER_MISMATCH, "a chunk did not arrive as it was sent");
			return;
		}
		chain_chunk(&entry->whole, &digest);
		r->s.totals.bytes_moved += segment->len;
		r->s.totals.bytes_done += segment->len;
		store_data(r, entry, segment, bytes, window);
	}
}

void store_segment(struct receiver *r, const struct proto_segment *segment, uint8_t *bytes, struct recv_window *window)
{
	struct recv_entry *entry = entries_at(r, segment->entry);

	if ((entry->state != RECV_ENTRY_WANTED && entry->state != RECV_ENTRY_REFUSED) ||
	    entry->number != segment->entry || entry->last) {
		session_fail_protocol(&r->s, "content of an entry that is not wanted");
		return;
	}
	if (segment->kind == PROTO_GIVEN_UP) {
		char text[128];

		proto_text_copy(text, sizeof(text), &segment->text);
		entries_given_up(r, entry, text);
		entry->last = true;
		entries_advance(r, entry);
		return;
	}
	if (!fits(r, entry, segment)) {
		session_fail_protocol(&r->s, "a chunk out of place");
		return;
	}
	entry->next_chunk += segment->count;
	if (entry->state == RECV_ENTRY_WANTED)
		store_wanted(r, entry, segment, bytes, window);
	if (segment->last && r->s.status == MOVER_OK)
		finish(r, entry, segment);
}
