/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/pieces.h"

#include <errno.h>
#include <stdlib.h>

#include "device/device.h"
#include "device/gid.h"
#include "device/say.h"
#include "device/seal.h"
#include "device/stats.h"
#include "wire/bytes.h"
#include "wire/mtu.h"
#include "wire/piece.h"

#define PACKET_BYTES (ROCI_PIECES_MOST * ROCI_PIECE_BYTES)

/* ---- cutting ---- */

struct cutter {
	struct roci_link link;
	struct roci_link *inner;
	struct roci_device_stats *stats;
	uint32_t number; /* of the last packet */
	bool reported;
	/* Of the packet that is being sent. */
	uint8_t bytes[PACKET_BYTES];
	uint8_t heads[ROCI_PIECES_MOST][ROCI_PIECE_HEAD], headers[ROCI_PIECES_MOST][ROCI_MAX_HEADER_BYTES];
	struct roci_span spans[ROCI_PIECES_MOST][2];
	struct roci_frame frames[ROCI_PIECES_MOST];
};

static bool must_be_cut(const struct roci_frame *f)
{
	return f->av->pieces && !roci_frame_fits(f) && !f->whole && f->len > ROCI_PIECE_BYTES && f->len <= PACKET_BYTES;
}

/* The first one says what it costs. */
static void count(struct cutter *c, const struct roci_frame *f)
{
	char text[ROCI_GID_TEXT];

	c->stats->sent_fragmented++;
	if (c->reported)
		return;
	c->reported = true;
	roci_gid_text(f->av->dgid, text);
	roci_device_say(
		"roci: packets of %u bytes do not arrive at %s. A router on the way has a smaller MTU and does not say "
		"so. They go in pieces: that is slow, and one lost piece loses the packet. Use a path MTU of at most "
		"%u (rdma_cm finds it by itself), or raise the MTU of the links on the way.\n",
		f->len, text, roci_mtu_bytes(roci_mtu_code_of_datagram(f->av->max_datagram)));
}

static void cut(struct cutter *c, const struct roci_frame *f)
{
	struct roci_piece piece = {.number = ++c->number, .total = (uint16_t)f->len};
	unsigned pieces = roci_piece_count(f->len);
	struct roci_av av = *f->av;

	av.max_datagram = ROCI_PIECE_DATAGRAM;
	roci_seal_packet(f, c->bytes);
	for (unsigned i = 0; i < pieces; i++) {
		uint32_t len = roci_piece_len(f->len, i);
		struct roci_packet pkt = {.opcode = ROCI_OPCODE_PIECE,
					  .pkey = ROCI_PKEY_DEFAULT,
					  .dest_qpn = roci_dest_qpn(f->header),
					  .psn = roci_get_be24(f->header + 9),
					  .payload_len = ROCI_PIECE_HEAD + len};

		piece.index = (uint8_t)i;
		roci_piece_build(&piece, c->heads[i]);
		c->spans[i][0] = (struct roci_span){c->heads[i], ROCI_PIECE_HEAD};
		c->spans[i][1] = (struct roci_span){c->bytes + i * ROCI_PIECE_BYTES, len};
		c->frames[i] = roci_frame(&av, c->headers[i], roci_packet_build(&pkt, c->headers[i]), c->spans[i], 2);
	}
	roci_link_send(c->inner, c->frames, pieces);
	count(c, f);
}

static void cutter_send(struct roci_link *link, struct roci_frame *frames, unsigned count)
{
	struct cutter *c = (struct cutter *)link;
	unsigned whole = 0;

	for (unsigned i = 0; i <= count; i++) {
		if (i < count && !must_be_cut(&frames[i])) {
			whole++;
			continue;
		}
		if (whole)
			roci_link_send(c->inner, frames + i - whole, whole);
		whole = 0;
		if (i < count)
			cut(c, &frames[i]);
	}
}

static unsigned cutter_recv(struct roci_link *link, struct roci_datagram *out)
{
	return roci_link_recv(((struct cutter *)link)->inner, out);
}

static void cutter_close(struct roci_link *link)
{
	roci_link_close(((struct cutter *)link)->inner);
	free(link);
}

int roci_pieces_open(struct roci_link *inner, struct roci_device_stats *stats, struct roci_link **out)
{
	static const struct roci_link_ops ops = {.send = cutter_send, .recv = cutter_recv, .close = cutter_close};
	struct cutter *c = malloc(sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->link.ops = &ops;
	c->inner = inner;
	c->stats = stats;
	c->number = roci_random32();
	c->reported = false;
	*out = &c->link;
	return 0;
}

/* ---- joining ---- */

struct roci_pieces_place {
	struct roci_flow from;
	uint32_t qpn, number;
	uint16_t total; /* 0: free */
	uint8_t have;   /* a bit for each piece */
	uint8_t bytes[PACKET_BYTES];
};

void roci_pieces_destroy(struct roci_pieces *p)
{
	free(p->places);
	*p = (struct roci_pieces){0};
}

static bool is_of(const struct roci_pieces_place *at, const struct roci_flow *from, const struct roci_packet *pkt,
		  const struct roci_piece *piece)
{
	return at->number == piece->number && at->total == piece->total && at->qpn == pkt->dest_qpn &&
	       !memcmp(&at->from, from, sizeof(*from));
}

/* The newest first: most pieces come behind others of their packet. */
static struct roci_pieces_place *find(struct roci_pieces *p, const struct roci_flow *from,
				      const struct roci_packet *pkt, const struct roci_piece *piece)
{
	struct roci_pieces_place *at;

	for (unsigned i = 0; i < ROCI_PIECES_PLACES; i++) {
		at = &p->places[(p->newest - i) % ROCI_PIECES_PLACES];
		if (is_of(at, from, pkt, piece))
			return at;
	}
	at = &p->places[++p->newest % ROCI_PIECES_PLACES];
	at->from = *from;
	at->qpn = pkt->dest_qpn;
	at->number = piece->number;
	at->total = piece->total;
	at->have = 0;
	return at;
}

uint32_t roci_pieces_join(struct roci_pieces *p, const struct roci_flow *from, const struct roci_packet *pkt,
			  uint8_t **packet)
{
	struct roci_pieces_place *at;
	struct roci_piece piece;

	if (!roci_piece_parse(&piece, pkt->payload, pkt->payload_len))
		return 0;
	if (!p->places)
		p->places = calloc(ROCI_PIECES_PLACES, sizeof(*p->places));
	if (!p->places)
		return 0; /* as if it was lost */
	at = find(p, from, pkt, &piece);
	at->have |= (uint8_t)(1u << piece.index);
	memcpy(at->bytes + piece.at, piece.bytes, piece.len);
	if (at->have != (1u << roci_piece_count(at->total)) - 1)
		return 0;
	at->total = 0;
	/* What they make is a packet for the same QP, and not a piece of another. */
	if (at->bytes[0] == ROCI_OPCODE_PIECE || roci_dest_qpn(at->bytes) != at->qpn)
		return 0;
	*packet = at->bytes;
	return piece.total;
}
