/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets in pieces (wire/piece.h): the link above `seal` that cuts those for a peer whose IPv6 path swallows them
 * (roci_av.pieces), and where the pieces that came are joined. A place for each packet of which some pieces are missing
 * is taken again when others need it: a piece was lost then, and its packet is sent again.
 */
#ifndef ROCI_DEVICE_PIECES_H
#define ROCI_DEVICE_PIECES_H

#include "device/link.h"

#define ROCI_PIECES_PLACES 64

struct roci_device_stats;

/* Owns `inner` when it succeeds. -ENOMEM. */
int roci_pieces_open(struct roci_link *inner, struct roci_device_stats *stats, struct roci_link **out);

/* Zeroed: nothing has come. Memory is allocated for the first piece. */
struct roci_pieces {
	struct roci_pieces_place *places;
	unsigned newest;
};
void roci_pieces_destroy(struct roci_pieces *p);

/* A PIECE with a good ICRC came. Returns the packet's length once all its pieces have come, and *packet, which is valid
 * until the next call; else 0. Malformed ones are ignored. */
uint32_t roci_pieces_join(struct roci_pieces *p, const struct roci_flow *from, const struct roci_packet *pkt,
			  uint8_t **packet);

#endif
