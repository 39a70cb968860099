/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets in pieces: what leaves the link, and what becomes of it at the other end. */
#include "bench.h"

#include <string.h>

#include "device/pieces.h"
#include "icrc_difference.h"
#include "wire/piece.h"

#define QPN  0x1234
#define WIRE 256

static struct roci_av av;
static struct roci_device_stats stats;
static struct roci_pieces pieces;
static uint8_t memory[ROCI_MAX_PAYLOAD];

/* What left, as the peer gets it. */
static struct {
	uint8_t bytes[ROCI_MAX_HEADER_BYTES + ROCI_MAX_PAYLOAD + 8];
	uint32_t len;
} wire[WIRE];
static unsigned on_wire, longest_run;

static unsigned below_max_run(struct roci_link *link, const struct roci_av *to)
{
	return ROCI_LINK_MAX_RUN;
}

static void below_send(struct roci_link *link, struct roci_frame *sealed, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		const struct roci_frame *f = &sealed[i];
		uint8_t *at = wire[on_wire].bytes;

		assert_true(on_wire < WIRE);
		if (f->run > longest_run)
			longest_run = f->run;
		memcpy(at, f->header, f->header_len);
		at += f->header_len;
		for (unsigned k = 0; k < f->span_count; k++) {
			memcpy(at, f->spans[k].base, f->spans[k].len);
			at += f->spans[k].len;
		}
		memcpy(at, f->trailer, f->trailer_len);
		wire[on_wire++].len = f->len;
	}
}

static unsigned below_recv(struct roci_link *link, struct roci_datagram *out)
{
	return 0;
}

static void below_close(struct roci_link *link)
{
}

static struct roci_link *open_link(void)
{
	static const struct roci_link_ops ops = {below_max_run, below_send, below_recv, below_close};
	static struct roci_link below = {&ops};
	struct roci_link *seal, *link;

	assert_int_equal(roci_seal_open(&below, &seal), 0);
	assert_int_equal(roci_pieces_open(seal, &stats, &link), 0);
	return link;
}

static int setup(void **state)
{
	memset(&av, 0, sizeof(av));
	av.sgid[0] = av.dgid[0] = 0xfd;
	av.dgid[15] = 2;
	av.src_port = 50000;
	av.max_datagram = ROCI_PIECE_DATAGRAM;
	av.pieces = true;
	for (size_t i = 0; i < sizeof(memory); i++)
		memory[i] = (uint8_t)(i * 7);
	stats = (struct roci_device_stats){0};
	on_wire = longest_run = 0;
	*state = open_link();
	return 0;
}

static int teardown(void **state)
{
	roci_link_close(*state);
	roci_pieces_destroy(&pieces);
	return 0;
}

/* Sends packets of these lengths, with PSNs from 0 on. */
static void send_payloads(struct roci_link *link, const uint32_t *len, unsigned count)
{
	static uint8_t headers[ROCI_LINK_SEND_BATCH][ROCI_MAX_HEADER_BYTES];
	static struct roci_span spans[ROCI_LINK_SEND_BATCH];
	static struct roci_frame frames[ROCI_LINK_SEND_BATCH];

	for (unsigned i = 0; i < count; i++) {
		struct roci_packet pkt = {.opcode = ROCI_OP_SEND_MIDDLE,
					  .pkey = ROCI_PKEY_DEFAULT,
					  .dest_qpn = QPN,
					  .psn = i,
					  .payload_len = len[i]};

		spans[i] = (struct roci_span){memory, len[i]};
		frames[i] = roci_frame(&av, headers[i], roci_packet_build(&pkt, headers[i]), &spans[i], 1);
	}
	roci_link_send(link, frames, count);
}

/* The packet `i` of the wire arrives. Returns the length of the packet that it completes, or 0. */
static uint32_t arrive(unsigned i, const struct roci_flow *flow, uint8_t **packet)
{
	struct roci_packet pkt;

	assert_int_equal(roci_packet_parse(&pkt, wire[i].bytes, wire[i].len), ROCI_PARSE_OK);
	assert_int_equal(pkt.op->kind, ROCI_KIND_PIECE);
	return roci_pieces_join(&pieces, flow, &pkt, packet);
}

static struct roci_flow flow_of(void)
{
	struct roci_flow flow;

	roci_av_flow(&av, &flow);
	return flow;
}

/* A whole packet with that PSN and so much payload. */
static void expect_packet(const uint8_t *bytes, uint32_t total, uint32_t psn, uint32_t len)
{
	struct roci_flow flow = flow_of();
	struct roci_packet pkt;

	assert_int_equal(icrc_difference(&flow, 0, bytes, total), 0);
	assert_int_equal(roci_packet_parse(&pkt, bytes, total), ROCI_PARSE_OK);
	assert_int_equal(pkt.psn, psn);
	assert_int_equal(pkt.dest_qpn, QPN);
	assert_int_equal(pkt.payload_len, len);
	assert_memory_equal(pkt.payload, memory, len);
}

static void a_long_packet_arrives_in_pieces(void **state)
{
	static const uint32_t lengths[] = {1217, 2048, 4096, 4095, ROCI_MAX_PAYLOAD};
	struct roci_flow flow = flow_of();
	unsigned n = 0;
	uint8_t *packet;

	send_payloads(*state, lengths, 5);
	assert_int_equal(stats.sent_fragmented, 5);
	for (unsigned i = 0; i < 5; i++) {
		uint32_t total = ROCI_BTH_BYTES + lengths[i] + roci_pad_bytes(lengths[i]) + ROCI_ICRC_BYTES, got = 0;
		unsigned count = roci_piece_count(total);

		for (unsigned k = 0; k < count; k++, n++) {
			assert_true(wire[n].len <= ROCI_PIECE_DATAGRAM);
			assert_int_equal(icrc_difference(&flow, (uint16_t)k, wire[n].bytes, wire[n].len), 0);
			got = arrive(n, &flow, &packet);
			assert_int_equal(got, k + 1 == count ? total : 0);
		}
		expect_packet(packet, got, i, lengths[i]);
	}
	assert_int_equal(n, on_wire);
	assert_int_equal(longest_run, ROCI_PIECES_MOST); /* in one message for the kernel */
}

static void others_stay_whole_and_in_order(void **state)
{
	static const uint32_t lengths[] = {100, 1024, 4096, 256, 256};
	unsigned expected[] = {0, 1, 2, 2, 2, 2, 3, 4};

	send_payloads(*state, lengths, 5);
	assert_int_equal(on_wire, 8);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(wire[i].bytes[11], expected[i]);
	assert_int_equal(wire[1].bytes[0], ROCI_OP_SEND_MIDDLE);
	assert_int_equal(wire[2].bytes[0], ROCI_OPCODE_PIECE);
	assert_int_equal(wire[6].bytes[0], ROCI_OP_SEND_MIDDLE);
	on_wire = 0;
	av.pieces = false; /* the kernel cuts, or nobody */
	send_payloads(*state, lengths, 5);
	assert_int_equal(on_wire, 5);
	assert_int_equal(stats.sent_fragmented, 1);
}

static void order_does_not_matter_and_copies_do_no_harm(void **state)
{
	static const uint32_t lengths[] = {4096, 4096};
	static const unsigned order[] = {3, 7, 7, 4, 0, 2, 5, 3}; /* 0 to 3 and 4 to 7 are a packet */
	struct roci_flow flow = flow_of();
	uint8_t *packet;

	send_payloads(*state, lengths, 2);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(arrive(order[i], &flow, &packet), 0);
	expect_packet(packet, arrive(6, &flow, &packet), 1, 4096);
	expect_packet(packet, arrive(1, &flow, &packet), 0, 4096);
	assert_int_equal(arrive(1, &flow, &packet), 0); /* the first of another time */
}

/* Somebody else's number may be the same. */
static void pieces_of_two_senders_are_two_packets(void **state)
{
	static const uint32_t lengths[] = {2048};
	struct roci_flow one = flow_of(), other = one;
	uint8_t *packet;

	other.src_port++;
	send_payloads(*state, lengths, 1);
	assert_int_equal(arrive(0, &one, &packet), 0);
	assert_int_equal(arrive(1, &other, &packet), 0);
	assert_true(arrive(1, &one, &packet) > 0);
}

/* Where a piece was lost, the place is used again, and what comes late begins anew. */
static void places_are_used_again(void **state)
{
	static const uint32_t lengths[ROCI_PIECES_PLACES + 1] = {[0 ... ROCI_PIECES_PLACES] = 2048};
	struct roci_flow flow = flow_of();
	uint8_t *packet;

	for (unsigned i = 0; i <= ROCI_PIECES_PLACES; i += ROCI_LINK_SEND_BATCH)
		send_payloads(*state, lengths,
			      ROCI_PIECES_PLACES + 1 - i < ROCI_LINK_SEND_BATCH ? ROCI_PIECES_PLACES + 1 - i
										: ROCI_LINK_SEND_BATCH);
	for (unsigned i = 0; i <= ROCI_PIECES_PLACES; i++)
		assert_int_equal(arrive(2 * i, &flow, &packet), 0);
	assert_int_equal(arrive(1, &flow, &packet), 0);
	assert_true(arrive(2 * ROCI_PIECES_PLACES + 1, &flow, &packet) > 0);
}

/* A piece in pieces, or a packet for another QP. */
static void what_they_make_must_be_a_packet_of_the_qp(void **state)
{
	struct roci_piece piece = {.number = 1, .total = ROCI_PIECE_BYTES + 4};
	struct roci_packet pkt = {.dest_qpn = QPN};
	struct roci_flow flow = flow_of();
	uint8_t payload[ROCI_PIECE_HEAD + ROCI_PIECE_BYTES] = {0}, *packet;

	for (unsigned what = 0; what < 3; what++) {
		piece.number++;
		piece.index = 0;
		roci_piece_build(&piece, payload);
		payload[ROCI_PIECE_HEAD] = what == 1 ? ROCI_OPCODE_PIECE : ROCI_OP_SEND_ONLY;
		payload[ROCI_PIECE_HEAD + 6] = QPN >> 8;
		payload[ROCI_PIECE_HEAD + 7] = (uint8_t)(what == 2 ? 1 : QPN);
		pkt.payload = payload;
		pkt.payload_len = sizeof(payload);
		assert_int_equal(roci_pieces_join(&pieces, &flow, &pkt, &packet), 0);
		piece.index = 1;
		roci_piece_build(&piece, payload);
		pkt.payload_len = ROCI_PIECE_HEAD + 4;
		assert_int_equal(roci_pieces_join(&pieces, &flow, &pkt, &packet), what ? 0 : piece.total);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_long_packet_arrives_in_pieces, setup, teardown),
		cmocka_unit_test_setup_teardown(others_stay_whole_and_in_order, setup, teardown),
		cmocka_unit_test_setup_teardown(order_does_not_matter_and_copies_do_no_harm, setup, teardown),
		cmocka_unit_test_setup_teardown(pieces_of_two_senders_are_two_packets, setup, teardown),
		cmocka_unit_test_setup_teardown(places_are_used_again, setup, teardown),
		cmocka_unit_test_setup_teardown(what_they_make_must_be_a_packet_of_the_qp, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
