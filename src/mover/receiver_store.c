/* SPDX-License-Identifier: BSD-2-Clause */
/* Content into files: each segment is checked against the entry it belongs to and against its digest, and then written.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "mover/chain.h"
#include "mover/io.h"
#include "mover/receiver.h"

#define WRITE_AT_ONCE (128u << 10) /* less is copied into the page cache right here */

int store_init(struct receiver *r)
{
	int err = disk_create(!r->s.common->no_uring, 2 * r->s.windows.count, &r->disk);
	if (!err && !r->tree)
		err = disk_create(false, 1, &r->out);
	return err;
}

/* Before the windows go, and before the files are given up. */
void store_destroy(struct receiver *r)
{
	disk_destroy(r->disk);
	disk_destroy(r->out);
	r->disk = r->out = NULL;
	r->free_ops = NULL;
	while (r->all_ops) { /* also those that were under way, and that nobody reaps any more */
		struct store_op *older = r->all_ops->older;
		free(r->all_ops);
		r->all_ops = older;
	}
}

/* Writing */

static struct store_op *take_op(struct receiver *r)
{
	struct store_op *op = r->free_ops;

	if (op) {
		r->free_ops = op->next;
		return op;
	}
	op = malloc(sizeof(*op));
	if (!op) {
		session_fail(&r->s, MOVER_FAILED, "out of memory");
		return NULL;
	}
	op->older = r->all_ops;
	r->all_ops = op;
	return op;
}

static void write_later(struct receiver *r, struct take *take, const struct proto_segment *segment, uint8_t *bytes,
			uint64_t len, struct hold *hold)
{
	struct store_op *op = take_op(r);

	if (!op)
		return;
	*op = (struct store_op){
		.take = take, .hold = hold, .chunk = segment->chunk, .digest = segment->digest, .older = op->older};
	op->op = (struct disk_op){
		.fd = take->file ? mover_file_fd(take->file) : STDOUT_FILENO,
		.write = true,
		.buffer = bytes,
		.len = len,
		.offset = take->file ? segment->chunk * r->s.terms.chunk_bytes : DISK_SEQUENTIAL,
	};
	take->writing++;
	if (hold)
		hold->writing++;
	disk_submit(take->file ? r->disk : r->out, &op->op);
}

static void store_data(struct receiver *r, struct take *take, const struct proto_segment *segment, uint8_t *bytes,
		       struct hold *hold)
{
	uint64_t offset = segment->chunk * r->s.terms.chunk_bytes;
	int err;

	if (!segment->len)
		return;
	if (take->file)
		mover_file_forget(take->file, segment->chunk, 1);
	if (!take->file || (segment->len > WRITE_AT_ONCE && !segment->sparse)) {
		write_later(r, take, segment, bytes, segment->len, hold);
		return;
	}
	if (segment->sparse) {
		take->holes = true;
		err = mover_write_sparse(mover_file_fd(take->file), bytes, segment->len, offset);
	} else {
		err = mover_write_at(mover_file_fd(take->file), bytes, segment->len, offset);
	}
	if (!err)
		err = mover_file_wrote(take->file, segment->chunk, &segment->digest);
	if (err)
		take_refuse_errno(r, take, err);
}

static void reap_op(struct receiver *r, struct store_op *op)
{
	struct take *take = op->take;
	int err = op->op.result < 0 ? (int)op->op.result : (uint64_t)op->op.result != op->op.len ? -EIO : 0;

	take->writing--;
	if (op->hold)
		op->hold->writing--;
	if (!err && take->file)
		err = mover_file_wrote(take->file, op->chunk, &op->digest);
	if (err && !take->file)
		session_fail(&r->s, MOVER_LOCAL_IO, "writing standard output: %s", strerrordesc_np(-err));
	else if (err)
		take_refuse_errno(r, take, err);
	take_advance(r, take);
	op->next = r->free_ops;
	r->free_ops = op;
}

bool store_pump(struct receiver *r)
{
	bool any = false;
	struct disk_op *op;

	disk_flush(r->disk);
	while ((op = disk_reap(r->disk)) || (r->out && (op = disk_reap(r->out)))) {
		reap_op(r, (struct store_op *)op);
		any = true;
	}
	return any;
}

/* Segments */

static void store_hole(struct receiver *r, struct take *take, const struct proto_segment *segment)
{
	uint64_t chunk_bytes = r->s.terms.chunk_bytes, begin = segment->chunk * chunk_bytes;
	uint64_t left = take->entry.size - begin, len = segment->count * chunk_bytes;

	if (len > left)
		len = left;
	take->holes = true;
	if (!take->file) {
		write_later(r, take, segment, NULL, len, NULL);
		return;
	}
	/* what is not kept is a hole already */
	mover_file_forget(take->file, segment->chunk, segment->count);
	r->s.totals.bytes_done += len;
}

static void store_kept(struct receiver *r, struct take *take, uint64_t chunk, const struct mover_digest *kept,
		       uint64_t len)
{
	struct mover_digest digest = *kept;
	int err = mover_file_wrote(take->file, chunk, &digest);

	chain_chunk(&take->whole, &digest);
	r->s.totals.bytes_kept += len;
	r->s.totals.bytes_done += len;
	if (err)
		take_refuse_errno(r, take, err);
}

/* The place of a segment in its entry: chunks come one after the other, each in its whole length. */
static bool fits(const struct receiver *r, const struct take *take, const struct proto_segment *segment)
{
	uint64_t chunk_bytes = r->s.terms.chunk_bytes, size = take->entry.size, chunks, left;

	if (segment->chunk != take->next_chunk)
		return false;
	if (take->entry.kind == MOVER_STREAM)
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
static void finish(struct receiver *r, struct take *take, const struct proto_segment *segment)
{
	int err = 0;

	take->last = true;
	if (take->state == TAKE_WANTED && !digest_equal(&take->whole, &segment->whole))
		take_refuse(r, take, MOVER_MISMATCH, "its parts arrived, but not as it was sent");
	if (take->state == TAKE_WANTED && take->file && (take->holes || take->entry.kind == MOVER_STREAM))
		err = mover_file_set_size(take->file, segment->size);
	if (err)
		take_refuse_errno(r, take, err);
	if (take->entry.kind == MOVER_STREAM)
		take->entry.size = segment->size;
	take_advance(r, take);
}

static void store_wanted(struct receiver *r, struct take *take, const struct proto_segment *segment, uint8_t *bytes,
			 struct hold *hold)
{
	const struct mover_digest *kept = NULL;
	uint64_t left = take->entry.size - segment->chunk * r->s.terms.chunk_bytes;
	struct mover_digest digest;

	switch (segment->kind) {
	case PROTO_KEEP:
		kept = take->file ? mover_file_kept(take->file, segment->chunk) : NULL;
		if (!kept) {
			session_fail_protocol(&r->s, "a chunk is to be kept that is not there");
			return;
		}
		store_kept(r, take, segment->chunk, kept,
			   left < r->s.terms.chunk_bytes ? left : r->s.terms.chunk_bytes);
		break;
	case PROTO_HOLE:
		chain_hole(&take->whole, segment->count);
		store_hole(r, take, segment);
		break;
	default:
		digest = mover_digest_of(bytes, segment->len);
		if (!digest_equal(&digest, &segment->digest)) {
			take_refuse(r, take, MOVER_MISMATCH, "a chunk did not arrive as it was sent");
			return;
		}
		chain_chunk(&take->whole, &digest);
		r->s.totals.bytes_moved += segment->len;
		r->s.totals.bytes_done += segment->len;
		store_data(r, take, segment, bytes, hold);
	}
}

static void given_up(struct receiver *r, struct take *take, const struct proto_segment *segment)
{
	if (take->state == TAKE_WANTED) {
		char text[128];
		proto_text_copy(text, sizeof(text), &segment->text);
		take->state = TAKE_REFUSED;
		take->settled = true;
		snprintf(take->why, sizeof(take->why), "the sender gave it up: %s", text);
		r->s.totals.entries_failed++;
		r->entry_status = MOVER_REMOTE_IO;
		session_entry_done(&r->s, take->entry.name, take->entry.name_len, take->entry.size, MOVER_REFUSED,
				   take->why);
	}
	take->last = true;
	take_advance(r, take);
}

void store_segment(struct receiver *r, const struct proto_segment *segment, uint8_t *bytes, struct hold *hold)
{
	struct take *take = receiver_take(r, segment->entry);

	if ((take->state != TAKE_WANTED && take->state != TAKE_REFUSED) || take->index != segment->entry ||
	    take->last) {
		session_fail_protocol(&r->s, "content of an entry that is not wanted");
		return;
	}
	if (segment->kind == PROTO_GIVEN_UP) {
		given_up(r, take, segment);
		return;
	}
	if (!fits(r, take, segment)) {
		session_fail_protocol(&r->s, "a chunk where none belongs");
		return;
	}
	take->next_chunk += segment->count;
	if (take->state == TAKE_WANTED)
		store_wanted(r, take, segment, bytes, hold);
	if (segment->last && r->s.status == MOVER_OK)
		finish(r, take, segment);
}
