/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A packet beyond the standard, between two Rocinantes. An IPv6 path may swallow long packets and say nothing. No
 * router cuts IPv6 packets, and Linux cuts none that fit the MTU of its route, whatever IPV6_MTU says. So the sender
 * cuts a packet that is too long into pieces, once the engine has found out (engine/black_hole.h), and the receiver
 * joins them before it looks at the packet. As in IP, one lost piece loses the packet. The opcode is one of those that
 * the standard leaves to manufacturers (IBTA 9.2.1).
 *
 * PIECE goes to the QP of its packet. Its payload:
 *
 *      0  4  number of the packet: all its pieces have it
 *      4  2  bytes of the packet, from its BTH to its ICRC
 *      6  1  index of the piece
 *      7  1  0
 *      8     the piece: ROCI_PIECE_BYTES of the packet, the last one less
 */
#ifndef ROCI_WIRE_PIECE_H
#define ROCI_WIRE_PIECE_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/packet.h"

#define ROCI_PIECE_DATAGRAM 1232u /* UDP payload that every IPv6 path carries (RFC 8200 s.5) */
#define ROCI_PIECE_HEAD     8u
#define ROCI_PIECE_BYTES    (ROCI_PIECE_DATAGRAM - ROCI_BTH_BYTES - ROCI_PIECE_HEAD - ROCI_ICRC_BYTES)
#define ROCI_PIECES_MOST    8u

struct roci_piece {
	uint32_t number;
	uint16_t total;
	uint8_t index;
	const uint8_t *bytes; /* of the packet, from `at` on; into the payload */
	uint32_t at, len;
};

/* How many pieces a packet of `total` bytes has. */
static inline unsigned roci_piece_count(uint32_t total)
{
	return (total + ROCI_PIECE_BYTES - 1) / ROCI_PIECE_BYTES;
}
/* Bytes of the piece `index`, which is below the count. */
static inline uint32_t roci_piece_len(uint32_t total, unsigned index)
{
	uint32_t rest = total - index * ROCI_PIECE_BYTES;

	return rest < ROCI_PIECE_BYTES ? rest : ROCI_PIECE_BYTES;
}

/* Writes the first ROCI_PIECE_HEAD bytes of the payload. */
void roci_piece_build(const struct roci_piece *piece, uint8_t head[ROCI_PIECE_HEAD]);
/* Reads a payload. False: malformed. */
bool roci_piece_parse(struct roci_piece *piece, const uint8_t *payload, uint32_t len);

#endif
