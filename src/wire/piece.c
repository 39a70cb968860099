/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/piece.h"

#include "wire/bytes.h"

void roci_piece_build(const struct roci_piece *piece, uint8_t head[ROCI_PIECE_HEAD])
{
	roci_put_be32(head, piece->number);
	roci_put_be16(head + 4, piece->total);
	head[6] = piece->index;
	head[7] = 0;
}

bool roci_piece_parse(struct roci_piece *piece, const uint8_t *payload, uint32_t len)
{
	if (len <= ROCI_PIECE_HEAD)
		return false;
	*piece = (struct roci_piece){
		.number = roci_get_be32(payload),
		.total = roci_get_be16(payload + 4),
		.index = payload[6],
		.bytes = payload + ROCI_PIECE_HEAD,
		.at = payload[6] * ROCI_PIECE_BYTES,
		.len = len - ROCI_PIECE_HEAD,
	};
	return piece->total > ROCI_PIECE_BYTES && roci_piece_count(piece->total) <= ROCI_PIECES_MOST &&
	       piece->at < piece->total && piece->len == roci_piece_len(piece->total, piece->index);
}
