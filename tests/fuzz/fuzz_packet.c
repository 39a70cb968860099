/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes through the parser, the builder, the printer and the ICRC: nothing may be read or written out of bounds,
 * and the parsed packet must be that of the bytes.
 *
 * With -DROCI_LIBFUZZER and -fsanitize=fuzzer a libFuzzer target; without, a program that mutates the packets of
 * tests/captures: fuzz_packet [iterations [seed]].
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "icrc_difference.h"
#include "seeded.h"
#include "wire/piece.h"
#include "wire/print.h"

static void check_packet(const struct roci_packet *pkt, const uint8_t *bytes, size_t len)
{
	uint8_t built[ROCI_MAX_HEADER_BYTES];
	struct roci_packet again;
	uint8_t *copy;

	CHECK(pkt->op && pkt->op == roci_opcode_info(bytes[0]));
	CHECK(pkt->payload == bytes + pkt->op->header_bytes);
	CHECK(len == (size_t)pkt->op->header_bytes + pkt->payload_len + roci_pad_bytes(pkt->payload_len) + 4);

	/* Built again and parsed again, it is the same packet. */
	CHECK(roci_packet_build(pkt, built) == pkt->op->header_bytes);
	copy = malloc(len);
	CHECK(copy);
	memcpy(copy, bytes, len);
	memcpy(copy, built, pkt->op->header_bytes);
	CHECK(roci_packet_parse(&again, copy, len) == ROCI_PARSE_OK);
	again.payload = pkt->payload;
	CHECK(memcmp(&again, pkt, sizeof(again)) == 0);
	free(copy);
}

static void check_piece(const uint8_t *payload, uint32_t len)
{
	struct roci_piece piece;

	if (!roci_piece_parse(&piece, payload, len))
		return;
	CHECK(piece.len && piece.bytes + piece.len == payload + len);
	CHECK(piece.at + piece.len <= piece.total && piece.total <= ROCI_PIECES_MOST * ROCI_PIECE_BYTES);
	CHECK(piece.index < roci_piece_count(piece.total));
}

static void check_print(const struct roci_packet *pkt, size_t size)
{
	char whole[512], *cut = malloc(size);
	int len = roci_packet_print(pkt, whole, sizeof(whole));

	CHECK(cut);
	CHECK(len > 0 && (size_t)len == strlen(whole));
	CHECK(roci_packet_print(pkt, cut, size) == len);
	CHECK(size == 0 || strlen(cut) == ((size_t)len < size ? (size_t)len : size - 1));
	free(cut);
}

static void check_icrc(const uint8_t *bytes, size_t len)
{
	struct roci_flow flow = {.src_port = 1, .dst_port = ROCI_UDP_PORT};
	int id;

	roci_icrc_check(&flow, bytes, len);
	memcpy(flow.src, (uint8_t[16]){[10] = 0xff, 0xff, 10, 0, 0, bytes[0]}, 16);
	memcpy(flow.dst, flow.src, 16);
	id = roci_icrc_ipv4_id(icrc_difference(&flow, 0, bytes, len), len);
	CHECK(id >= -1 && id <= 0xffff);
	CHECK(bytes[0] == ROCI_OP_FLUSH || roci_icrc_check(&flow, bytes, len) == id);
	if (id >= 0)
		CHECK(icrc_difference(&flow, (uint16_t)id, bytes, len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct roci_packet pkt;
	enum roci_parse_result result = roci_packet_parse(&pkt, bytes, len);

	CHECK(result < ROCI_PARSE_BAD_ICRC);
	if (len >= ROCI_MIN_PACKET_BYTES)
		check_icrc(bytes, len);
	if (result == ROCI_PARSE_OK) {
		check_packet(&pkt, bytes, len);
		check_piece(pkt.payload, pkt.payload_len);
		check_print(&pkt, bytes[len - 1]);
	}
	return 0;
}

#ifndef ROCI_LIBFUZZER

/* Returns a mutant of `packet` in memory of exactly *len bytes, so that a sanitizer sees any overrun. */
static uint8_t *mutate(const struct capture_packet *packet, uint64_t *seed, size_t *len)
{
	uint8_t *bytes;

	*len = packet->len;
	if (random_below(seed, 4) == 0)
		*len = random_below(seed, packet->len + 1);
	bytes = malloc(*len ? *len : 1);
	CHECK(bytes);
	memcpy(bytes, packet->bytes, *len);
	for (size_t n = random_below(seed, 6); *len && n > 0; n--) {
		/* mostly in the headers, where decisions are made */
		size_t at = random_below(seed, random_below(seed, 4) && *len > 40 ? 40 : *len);

		if (random_below(seed, 2))
			bytes[at] ^= (uint8_t)(1u << random_below(seed, 8));
		else
			bytes[at] = (uint8_t)random_next(seed);
	}
	if (*len && random_below(seed, 4) == 0)
		bytes[0] = (uint8_t)random_next(seed);
	return bytes;
}

int main(int argc, char **argv)
{
	struct seeded run = seeded_begin(argc, argv, 200000);
	struct captures captures;

	if (!captures_load(&captures, NULL))
		return 1;
	while (seeded_next(&run)) {
		size_t len;
		uint8_t *bytes = mutate(&captures.packets[random_below(&run.seed, captures.count)], &run.seed, &len);

		LLVMFuzzerTestOneInput(bytes, len);
		free(bytes);
	}
	captures_free(&captures);
	return 0;
}

#endif
