/* SPDX-License-Identifier: BSD-2-Clause */
/* The digest of a whole file: a chain over the digests of its chunks, in their order.
 *
 *     whole = 0 (16 bytes);  for each chunk or run of chunks:  whole = XXH3-128(whole | tag | digest or count)
 *
 * Each chunk is compared with its own digest, so the chain proves as much as a digest over all bytes. But kept chunks
 * need not be read a second time, and a hole of a terabyte costs nothing. */
#ifndef ROCI_MOVER_CHAIN_H
#define ROCI_MOVER_CHAIN_H

#include "mover/cursor.h"
#include "mover/entry.h"

static inline void chain_chunk(struct mover_digest *whole, const struct mover_digest *chunk)
{
	uint8_t record[33];
	memcpy(record, whole->bytes, 16);
	record[16] = 1;
	memcpy(record + 17, chunk->bytes, 16);
	*whole = mover_digest_of(record, sizeof(record));
}

static inline void chain_hole(struct mover_digest *whole, uint64_t chunks)
{
	uint8_t record[25];
	struct cursor_out out = cursor_out(record, sizeof(record));
	put_bytes(&out, whole->bytes, 16);
	put_u8(&out, 2);
	put_u64(&out, chunks);
	*whole = mover_digest_of(record, sizeof(record));
}

static inline bool digest_equal(const struct mover_digest *a, const struct mover_digest *b)
{
	return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

#endif
