/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "random.h"
#include "wire/packet.h"

static struct captures captures;

static int load(void **state)
{
	return captures_load(&captures, NULL) ? 0 : -1;
}

static int unload(void **state)
{
	captures_free(&captures);
	return 0;
}

/* Reserved bits are not kept by struct roci_packet: zero on send, ignored on receive (IBTA 9.2). */
static void clear_reserved(uint8_t *headers, const struct roci_opcode_info *op)
{
	headers[4] &= 0xc0;
	headers[8] &= 0x80;
	if (op->headers & 1u << ROCI_HDR_DETH)
		headers[ROCI_BTH_BYTES + 4] = 0; /* it comes first */
}

static void captured_packets_parse_and_rebuild(void **state)
{
	for (size_t i = 0; i < captures.count; i++) {
		const struct capture_packet *captured = &captures.packets[i];
		uint8_t expected[ROCI_MAX_HEADER_BYTES], built[ROCI_MAX_HEADER_BYTES];
		struct roci_packet pkt;
		unsigned len;

		assert_int_equal(roci_packet_parse(&pkt, captured->bytes, captured->len), ROCI_PARSE_OK);
		len = roci_packet_build(&pkt, built);
		assert_int_equal(len, pkt.op->header_bytes);
		memcpy(expected, captured->bytes, len);
		clear_reserved(expected, pkt.op);
		assert_memory_equal(built, expected, len);
		assert_ptr_equal(pkt.payload, captured->bytes + len);
		assert_int_equal(len + pkt.payload_len + roci_pad_bytes(pkt.payload_len) + ROCI_ICRC_BYTES,
				 captured->len);
	}
}

/* The kernel that was captured does not have FLUSH, ATOMIC WRITE, CNP, and our own. */
static void captures_cover_the_opcodes(void **state)
{
	bool seen[256] = {[ROCI_OP_FLUSH] = true,         [ROCI_OP_ATOMIC_WRITE] = true,  [ROCI_OPCODE_CNP] = true,
			  [ROCI_OPCODE_OFFER] = true,     [ROCI_OPCODE_RANGES] = true,    [ROCI_OPCODE_HELLO] = true,
			  [ROCI_OPCODE_CHALLENGE] = true, [ROCI_OPCODE_MTU_PROBE] = true, [ROCI_OPCODE_PIECE] = true};
	bool ipv4 = false, ipv6 = false;

	for (size_t i = 0; i < captures.count; i++) {
		seen[captures.packets[i].bytes[0]] = true;
		ipv4 = ipv4 || captures.packets[i].ipv4;
		ipv6 = ipv6 || !captures.packets[i].ipv4;
	}
	for (unsigned opcode = 0; opcode < 256; opcode++)
		if (roci_opcode_info((uint8_t)opcode) && !seen[opcode])
			fail_msg("no capture has %s", roci_opcode_info((uint8_t)opcode)->name);
	assert_true(ipv4 && ipv6);
}

/* Random content that the headers of `opcode` can carry. */
static void random_packet(struct roci_packet *pkt, uint8_t opcode, uint64_t *seed)
{
	const struct roci_opcode_info *op = roci_opcode_info(opcode);
	unsigned headers = op->headers;

	memset(pkt, 0, sizeof(*pkt));
	pkt->op = op;
	pkt->opcode = opcode;
	pkt->solicited = random_below(seed, 2);
	pkt->mig_req = random_below(seed, 2);
	pkt->ack_req = random_below(seed, 2);
	pkt->fecn = random_below(seed, 2);
	pkt->becn = random_below(seed, 2);
	pkt->pkey = (uint16_t)random_next(seed);
	pkt->dest_qpn = (uint32_t)random_next(seed) & ROCI_QPN_MASK;
	pkt->psn = (uint32_t)random_next(seed) & ROCI_PSN_MASK;
	if (headers & 1u << ROCI_HDR_DETH) {
		pkt->qkey = (uint32_t)random_next(seed);
		pkt->src_qpn = (uint32_t)random_next(seed) & ROCI_QPN_MASK;
	}
	if (headers & (1u << ROCI_HDR_RETH | 1u << ROCI_HDR_ATOMICETH)) {
		pkt->va = random_next(seed);
		pkt->rkey = (uint32_t)random_next(seed);
	}
	if (headers & 1u << ROCI_HDR_RETH)
		pkt->dma_len = (uint32_t)random_next(seed);
	if (headers & 1u << ROCI_HDR_ATOMICETH) {
		pkt->swap_add = random_next(seed);
		pkt->compare = random_next(seed);
	}
	if (headers & 1u << ROCI_HDR_AETH) {
		pkt->syndrome = (uint8_t)random_next(seed);
		pkt->msn = (uint32_t)random_next(seed) & 0xffffff;
	}
	if (headers & 1u << ROCI_HDR_ATOMICACKETH)
		pkt->atomic_orig = random_next(seed);
	if (headers & 1u << ROCI_HDR_IMMDT)
		pkt->imm = (uint32_t)random_next(seed);
	if (headers & 1u << ROCI_HDR_IETH)
		pkt->inv_rkey = (uint32_t)random_next(seed);
	if (headers & 1u << ROCI_HDR_FETH)
		pkt->feth = (uint32_t)random_next(seed);
}

/* The one payload length that this opcode must have, or `otherwise`. */
static uint32_t fixed_payload_len(uint8_t opcode, uint32_t otherwise)
{
	if (opcode == ROCI_OPCODE_CNP)
		return 16;
	if (opcode == (ROCI_TRANSPORT_RC | ROCI_OP_ATOMIC_WRITE))
		return 8;
	return roci_opcode_info(opcode)->payload ? otherwise : 0;
}

static void every_opcode_survives_the_round_trip(void **state)
{
	uint64_t seed = 1;

	for (unsigned round = 0; round < 256 * 64; round++) {
		uint8_t opcode = (uint8_t)round, bytes[ROCI_MAX_HEADER_BYTES + 2048 + 4] = {0};
		struct roci_packet sent, got;
		size_t len;

		if (!roci_opcode_info(opcode))
			continue;
		random_packet(&sent, opcode, &seed);
		sent.payload_len = fixed_payload_len(opcode, (uint32_t)random_below(&seed, 2049));
		len = roci_packet_build(&sent, bytes);
		sent.payload = bytes + len;
		len += sent.payload_len + roci_pad_bytes(sent.payload_len) + ROCI_ICRC_BYTES;
		assert_int_equal(roci_packet_parse(&got, bytes, len), ROCI_PARSE_OK);
		assert_memory_equal(&sent, &got, sizeof(got)); /* both were zeroed, padding included */
	}
}

static void every_truncation_is_too_short(void **state)
{
	for (unsigned opcode = 0; opcode < 256; opcode++) {
		const struct roci_opcode_info *op = roci_opcode_info((uint8_t)opcode);
		struct roci_packet pkt;

		for (size_t len = 0; op && len < (size_t)op->header_bytes + ROCI_ICRC_BYTES; len++) {
			uint8_t *bytes =
				calloc(1, len + 1); /* an allocation of its own, so that a sanitizer sees an overrun */

			bytes[0] = (uint8_t)opcode;
			assert_int_equal(roci_packet_parse(&pkt, bytes, len), ROCI_PARSE_TOO_SHORT);
			free(bytes);
		}
	}
}

static void pad_must_be_there(void **state)
{
	uint8_t bytes[20] = {ROCI_OP_SEND_ONLY, 0x30};
	struct roci_packet pkt;

	assert_int_equal(roci_packet_parse(&pkt, bytes, 16), ROCI_PARSE_TOO_SHORT);
	assert_int_equal(roci_packet_parse(&pkt, bytes, 20), ROCI_PARSE_OK);
	assert_int_equal(pkt.payload_len, 1);
}

static void length_is_a_multiple_of_four(void **state)
{
	uint8_t bytes[64] = {ROCI_OP_SEND_ONLY};
	struct roci_packet pkt;

	for (size_t len = 16; len <= sizeof(bytes); len++)
		assert_int_equal(roci_packet_parse(&pkt, bytes, len), len % 4 ? ROCI_PARSE_BAD_LENGTH : ROCI_PARSE_OK);
}

static void payload_length_fits_the_opcode(void **state)
{
	for (unsigned opcode = 0; opcode < 256; opcode++) {
		const struct roci_opcode_info *op = roci_opcode_info((uint8_t)opcode);

		for (uint32_t body = 0; op && body <= 32; body += 4) {
			for (uint32_t pad = 0; pad <= 3 && pad <= body; pad++) {
				uint8_t bytes[ROCI_MAX_HEADER_BYTES + 36] = {(uint8_t)opcode, (uint8_t)(pad << 4)};
				bool fits = fixed_payload_len((uint8_t)opcode, body - pad) == body - pad;
				struct roci_packet pkt;

				assert_int_equal(roci_packet_parse(&pkt, bytes, op->header_bytes + body + 4),
						 fits ? ROCI_PARSE_OK : ROCI_PARSE_BAD_LENGTH);
			}
		}
	}
}

static void rejects_version_and_opcode(void **state)
{
	uint8_t bytes[16] = {0};
	struct roci_packet pkt;

	for (uint8_t tver = 1; tver < 16; tver++) {
		bytes[1] = tver;
		assert_int_equal(roci_packet_parse(&pkt, bytes, sizeof(bytes)), ROCI_PARSE_BAD_TVER);
	}
	bytes[1] = 0;
	for (unsigned opcode = 0; opcode < 256; opcode++) {
		bytes[0] = (uint8_t)opcode;
		if (!roci_opcode_info(bytes[0]))
			assert_int_equal(roci_packet_parse(&pkt, bytes, sizeof(bytes)), ROCI_PARSE_BAD_OPCODE);
	}
}

/* A packet is valid whatever its MigReq, FECN, BECN and reserved bits are (IBTA 9.2.2 ff.). */
static void routers_and_reserved_bits_are_harmless(void **state)
{
	uint8_t bytes[16] = {ROCI_OP_SEND_ONLY, 0xc0, 0xff, 0xff, 0xff, 1, 2, 3, 0xff, 4, 5, 6};
	struct roci_packet pkt;

	assert_int_equal(roci_packet_parse(&pkt, bytes, sizeof(bytes)), ROCI_PARSE_OK);
	assert_true(pkt.solicited && pkt.mig_req && pkt.fecn && pkt.becn && pkt.ack_req);
	assert_int_equal(pkt.dest_qpn, 0x010203);
	assert_int_equal(pkt.psn, 0x040506);
}

static void any_alignment_will_do(void **state)
{
	uint8_t room[4200 + 8];

	for (size_t i = 0; i < captures.count; i++) {
		const struct capture_packet *captured = &captures.packets[i];
		struct roci_packet aligned, shifted;

		assert_int_equal(roci_packet_parse(&aligned, captured->bytes, captured->len), ROCI_PARSE_OK);
		for (size_t shift = 0; shift < 8; shift++) {
			memcpy(room + shift, captured->bytes, captured->len);
			assert_int_equal(roci_packet_parse(&shifted, room + shift, captured->len), ROCI_PARSE_OK);
			shifted.payload = aligned.payload;
			assert_memory_equal(&shifted, &aligned, sizeof(aligned));
		}
	}
}

/* IBTA A17.9.3; as a ConnectX-4 Lx sends it: BECN, PSN 0, 16 bytes of zero. */
static void accepts_a_cnp(void **state)
{
	uint8_t bytes[32] = {0x81, 0x00, 0xff, 0xff, 0x40, 0x00, 0x01, 0x0c}, built[ROCI_MAX_HEADER_BYTES];
	struct roci_packet pkt;

	assert_int_equal(roci_packet_parse(&pkt, bytes, sizeof(bytes)), ROCI_PARSE_OK);
	assert_int_equal(pkt.op->kind, ROCI_KIND_CNP);
	assert_true(pkt.becn);
	assert_int_equal(pkt.dest_qpn, 0x10c);
	assert_int_equal(pkt.payload_len, 16);
	assert_int_equal(roci_packet_build(&pkt, built), 12);
	assert_memory_equal(built, bytes, 12);
	assert_int_equal(roci_packet_parse(&pkt, bytes, 16), ROCI_PARSE_BAD_LENGTH);
}

/* IBTA A19: FETH, then RETH. */
static void flush_on_the_wire(void **state)
{
	static const uint8_t expected[32] = {28,   0, 0xff, 0xff, 0, 0, 0, 17, 0x80, 0, 0, 9, 0, 0, 0,    0x12,
					     0x11, 2, 3,    4,    5, 6, 7, 8,  0xa,  0, 0, 1, 0, 0, 0x20, 0};
	struct roci_packet pkt = {.opcode = ROCI_OP_FLUSH, .pkey = 0xffff, .dest_qpn = 17, .ack_req = true, .psn = 9};
	uint8_t built[ROCI_MAX_HEADER_BYTES];

	pkt.feth = 0x12;
	pkt.va = 0x1102030405060708;
	pkt.rkey = 0x0a000001;
	pkt.dma_len = 0x2000;
	assert_int_equal(roci_packet_build(&pkt, built), sizeof(expected));
	assert_memory_equal(built, expected, sizeof(expected));
}

static void numbers_are_cut_to_24_bits(void **state)
{
	struct roci_packet pkt = {.opcode = ROCI_OP_SEND_ONLY | ROCI_TRANSPORT_UD, .payload_len = 5}, got;
	uint8_t bytes[64] = {0};

	pkt.dest_qpn = 0xaa123456;
	pkt.src_qpn = 0xbb654321;
	pkt.psn = 0x1000000;
	assert_int_equal(roci_packet_build(&pkt, bytes), 20);
	assert_int_equal(roci_packet_parse(&got, bytes, 20 + 8 + 4), ROCI_PARSE_OK);
	assert_int_equal(got.dest_qpn, 0x123456);
	assert_int_equal(got.src_qpn, 0x654321);
	assert_int_equal(got.psn, 0);
	assert_int_equal(got.payload_len, 5);
	assert_int_equal(bytes[16], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(captured_packets_parse_and_rebuild),
		cmocka_unit_test(captures_cover_the_opcodes),
		cmocka_unit_test(every_opcode_survives_the_round_trip),
		cmocka_unit_test(every_truncation_is_too_short),
		cmocka_unit_test(pad_must_be_there),
		cmocka_unit_test(length_is_a_multiple_of_four),
		cmocka_unit_test(payload_length_fits_the_opcode),
		cmocka_unit_test(rejects_version_and_opcode),
		cmocka_unit_test(routers_and_reserved_bits_are_harmless),
		cmocka_unit_test(any_alignment_will_do),
		cmocka_unit_test(accepts_a_cnp),
		cmocka_unit_test(flush_on_the_wire),
		cmocka_unit_test(numbers_are_cut_to_24_bits),
	};

	return cmocka_run_group_tests(tests, load, unload);
}
