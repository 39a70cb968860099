/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mover/chunk_cipher.h"
#include "mover/chain.h"
#include "mover/sender.h"

#define WHY_MAX 100 /* so that PACK_MAX_PIECES of them fit into a descriptor */

int pack_init(struct sender *x)
{
	for (unsigned i = 0; i < x->s.pool.count; i++) {
		struct pack *pack = &x->packs.list[i];

		pack->window = &x->s.pool.windows[i];
		pack->pieces = malloc(PACK_MAX_PIECES * sizeof(*pack->pieces));
		pack->segments = malloc(PROTO_PAYLOAD_BYTES);
		if (!pack->pieces || !pack->segments)
			return -ENOMEM;
	}
	return 0;
}

void pack_destroy(struct sender *x)
{
	for (unsigned i = 0; i < PROTO_MAX_WINDOWS; i++) {
		struct pack *pack = &x->packs.list[i];

		for (unsigned k = 0; k < pack->count; k++)
			source_piece_done(x, pack->pieces[k].file);
		free(pack->pieces);
		free(pack->segments);
	}
}

struct pack *pack_take(struct sender *x)
{
	for (unsigned i = 0; i < x->s.pool.count; i++) {
		struct pack *pack = &x->packs.list[i];
		int err;

		if (pack->state != PACK_FREE)
			continue;
		err = window_open(&x->s.pool, pack->window);
		if (err) {
			session_fail_errno(&x->s, err, SESSION_NO_MEMORY);
			return NULL;
		}
		pack->state = PACK_FILLING;
		pack->count = pack->reading = 0;
		pack->used = pack->wire_bytes = 0;
		return pack;
	}
	return NULL;
}

void pack_close(struct sender *x, struct pack *pack)
{
	struct packs *packs = &x->packs;

	pack->state = PACK_CLOSED;
	packs->queue[(packs->first + packs->queued++) % PROTO_MAX_WINDOWS] = pack;
}

struct pack *pack_first_ready(const struct sender *x)
{
	struct pack *pack = x->packs.queued ? x->packs.queue[x->packs.first] : NULL;

	return pack && pack->state == PACK_READY ? pack : NULL;
}

void pack_remove_first(struct sender *x)
{
	x->packs.first = (x->packs.first + 1) % PROTO_MAX_WINDOWS;
	x->packs.queued--;
}

void pack_release(struct sender *x, struct pack *pack)
{
	window_revoke(pack->window);
	pack->state = PACK_FREE;
	x->packs.posted--;
}

/* Finishing */

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
	if (offer_entry(x, file->entry)->refused) {
		file->failed = MOVER_REMOTE_IO; /* no text: the receiver gave the reason */
	} else if (piece->got < 0) {
		source_fail(file, (int)piece->got);
	} else if (piece->got != piece->len && !mover_walk_unchanged(x->walk, file->entry, file->fd)) {
		source_fail_size(file);
	} else if (piece->got != piece->len ||
		   (piece->last && !file->stream && mover_walk_unchanged(x->walk, file->entry, file->fd))) {
		file->failed = MOVER_MISMATCH;
		snprintf(file->why, sizeof(file->why), "the file changed while it was read");
	}
}

/* Whether the receiver need not get this chunk again. Of an untold one it checks that itself. */
static bool has_chunk(const struct send_entry *e, uint64_t chunk, const struct mover_digest *digest)
{
	switch (e->present ? e->present[chunk] : CHUNK_ABSENT) {
	case CHUNK_TOLD: return digest_equal(&e->have[chunk], digest);
	case CHUNK_UNTOLD: return true;
	default: return false;
	}
}

static void put_data(struct sender *x, struct pack *pack, struct piece *piece, struct proto_segment *segment)
{
	const struct send_entry *e = offer_entry(x, segment->entry);
	uint8_t *bytes = pack->window->bytes + piece->at;

	segment->digest = mover_digest_of(bytes, piece->len);
	chain_chunk(&piece->file->whole, &segment->digest);
	if (piece->len && has_chunk(e, piece->chunk, &segment->digest)) {
		segment->kind = PROTO_KEEP;
		x->s.totals.bytes_kept += piece->len;
		return;
	}
	segment->kind = PROTO_DATA;
	segment->len = piece->len;
	segment->sparse = piece->sparse;
	if (pack->descriptor.bytes != piece->at) /* the receiver keeps pieces before it: close the gap */
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
		offer_give_up(x, entry, status, why);
		offer_sent(x, entry);
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
		offer_sent(x, file->entry);
}

static void finish_pack(struct sender *x, struct pack *pack)
{
	struct cursor_out out = cursor_out(pack->segments, PROTO_PAYLOAD_BYTES);

	pack->descriptor = (struct proto_descriptor){.window = PROTO_NO_WINDOW};
	for (unsigned i = 0; i < pack->count; i++) {
		struct piece *piece = &pack->pieces[i];
		finish_piece(x, pack, piece, &out);
		source_piece_done(x, piece->file);
	}
	pack->count = 0;
	pack->segments_len = cursor_written(&out);
	pack->wire_bytes = pack->descriptor.bytes;
	pack->state = PACK_READY;
	if (!pack->descriptor.count)
		return;
	pack->descriptor.seq = x->packs.next_seq++;
	if (!pack->wire_bytes)
		return;
	if (mover_secure_seal_chunk(x->s.control.secure, x->s.terms.encrypt, pack->descriptor.seq, pack->window->bytes,
				    pack->wire_bytes))
		session_fail(&x->s, MOVER_FAILED, "a chunk could not be sealed");
	pack->wire_bytes += CHUNK_CIPHER_TAG_BYTES;
}

bool pack_pump(struct sender *x)
{
	for (unsigned i = 0; i < x->packs.queued && x->s.status == MOVER_OK; i++) {
		struct pack *pack = x->packs.queue[(x->packs.first + i) % PROTO_MAX_WINDOWS];

		if (pack->state == PACK_READY)
			continue;
		if (pack->reading)
			break;
		finish_pack(x, pack);
		return true;
	}
	return false;
}
