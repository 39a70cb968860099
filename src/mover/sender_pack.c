/* SPDX-License-Identifier: BSD-2-Clause */
/* What is in a window, once it has been read: digests, what the receiver has already, the descriptor. Windows are
 * finished in their order, so the chain over a file's chunks is simply continued. */
#include "mover/chain.h"
#include "mover/sender.h"

#define WHY_MAX 100 /* so that PACK_MAX_PIECES of them fit into a descriptor */

static void give_up(struct source_file *file, struct cursor_out *out, struct pack *pack)
{
	struct proto_segment segment = {.kind = PROTO_GIVEN_UP, .last = true, .entry = file->entry};

	file->given_up = true;
	segment.text = proto_text(file->why);
	if (segment.text.len > WHY_MAX)
		segment.text.len = WHY_MAX;
	proto_put_segment(out, &segment);
	pack->descriptor.count++;
}

/* Whether the file can still be sent, now that this piece has been read. */
static void check_piece(struct sender *x, const struct piece *piece)
{
	struct source_file *file = piece->file;

	if (file->failed)
		return;
	if (sender_slot(x, file->entry)->refused) {
		file->failed = MOVER_REMOTE_IO; /* no text: it was the receiver who said so */
	} else if (piece->got < 0) {
		file->failed = MOVER_LOCAL_IO;
		file->why = strerrordesc_np((int)-piece->got);
	} else if (piece->got != piece->len ||
		   (piece->last && !file->stream && mover_walk_unchanged(x->walk, file->entry, file->fd))) {
		file->failed = MOVER_MISMATCH;
		file->why = "the file changed while it was read";
	}
}

static void put_data(struct sender *x, struct pack *pack, struct piece *piece, struct proto_segment *segment)
{
	struct slot *slot = sender_slot(x, segment->entry);
	uint8_t *bytes = pack->window->bytes + piece->at;

	segment->digest = mover_digest_of(bytes, piece->len);
	chain_chunk(&piece->file->whole, &segment->digest);
	if (piece->len && slot->present && slot->present[piece->chunk] &&
	    digest_equal(&slot->have[piece->chunk], &segment->digest)) {
		segment->kind = PROTO_KEEP;
		x->s.totals.bytes_kept += piece->len;
		return;
	}
	segment->kind = PROTO_DATA;
	segment->len = piece->len;
	segment->sparse = piece->sparse;
	if (pack->descriptor.bytes != piece->at) /* pieces before it are kept: close the gap */
		memmove(pack->window->bytes + pack->descriptor.bytes, bytes, piece->len);
	pack->descriptor.bytes += piece->len;
}

static void finish_piece(struct sender *x, struct pack *pack, struct piece *piece, struct cursor_out *out)
{
	struct source_file *file = piece->file;
	struct proto_segment segment = {
		.last = piece->last, .entry = file->entry, .chunk = piece->chunk, .count = piece->count};

	if (file->given_up)
		return;
	if (!piece->hole || piece->last)
		check_piece(x, piece);
	if (file->failed) {
		uint32_t entry = file->entry;
		enum mover_status status = file->failed;
		const char *why = file->why;
		give_up(file, out, pack);
		if (!sender_slot(x, entry)->settled)
			sender_settle(x, entry, MOVER_REFUSED, status, why);
		sender_sent(x, entry);
		return;
	}
	if (piece->hole) {
		segment.kind = PROTO_HOLE;
		chain_hole(&file->whole, piece->count);
	} else {
		put_data(x, pack, piece, &segment);
	}
	if (piece->last) {
		segment.size = file->size;
		segment.whole = file->whole;
	}
	proto_put_segment(out, &segment);
	pack->descriptor.count++;
	if (piece->last)
		sender_sent(x, file->entry);
}

void pack_finish(struct sender *x, struct pack *pack)
{
	struct cursor_out out = cursor_out(pack->segments, PROTO_PAYLOAD_BYTES);

	pack->descriptor = (struct proto_descriptor){.window = PROTO_NO_WINDOW};
	for (unsigned i = 0; i < pack->count; i++) {
		struct piece *piece = &pack->pieces[i];
		finish_piece(x, pack, piece, &out);
		piece->file->pieces--;
		source_release(x, piece->file);
		piece->file = NULL;
	}
	pack->count = 0;
	pack->segments_len = cursor_written(&out);
	pack->wire_bytes = pack->descriptor.bytes;
	pack->state = PACK_READY;
	if (!pack->descriptor.count)
		return;
	pack->descriptor.seq = x->seq++;
	if (!x->s.terms.encrypt || !pack->wire_bytes)
		return;
	if (mover_secure_seal_chunk(x->s.control.secure, pack->descriptor.seq, pack->window->bytes, pack->wire_bytes))
		session_fail(&x->s, MOVER_FAILED, "a chunk could not be encrypted");
	pack->wire_bytes += SECURE_CHUNK_TAG_BYTES;
}
