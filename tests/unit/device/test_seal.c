/* SPDX-License-Identifier: BSD-2-Clause */
/* What is sealed stays sealed: programs write to the memory that peers read. */
#include "bench.h"

#include <string.h>

static struct roci_tx_batch batch;
static struct roci_copies copies;
static struct roci_frame frames[ROCI_LINK_SEND_BATCH];
static uint8_t memory[2 * ROCI_MAX_MTU];
static struct roci_av av = {.src_port = ROCI_UDP_PORT};

/* Appends a packet of `len` bytes, from two places of the memory. */
static void add(uint32_t len, bool copy_payload)
{
	struct roci_tx_packet *packet = &batch.packets[batch.count];
	struct roci_packet pkt = {.opcode = ROCI_OP_SEND_ONLY, .psn = batch.count++, .payload_len = len};

	packet->av = &av;
	packet->payload_len = len;
	packet->copy_payload = copy_payload;
	packet->header_len = (uint8_t)roci_packet_build(&pkt, packet->header);
	packet->first_span = (uint16_t)batch.span_count;
	packet->span_count = 2;
	batch.spans[batch.span_count++] = (struct roci_span){memory + 100, len / 3};
	batch.spans[batch.span_count++] = (struct roci_span){memory + ROCI_MAX_MTU, len - len / 3};
}

/* What a link sends of it now: its ICRC is the right one. */
static bool goes_out_whole(const struct roci_frame *frame)
{
	uint8_t bytes[ROCI_MAX_HEADER_BYTES + ROCI_MAX_MTU + sizeof(frame->trailer)], *at = bytes;
	struct roci_flow flow;

	memcpy(at, frame->header, frame->header_len);
	at += frame->header_len;
	for (unsigned i = 0; i < frame->span_count; i++) {
		memcpy(at, frame->spans[i].base, frame->spans[i].len);
		at += frame->spans[i].len;
	}
	memcpy(at, frame->trailer, frame->trailer_len);
	at += frame->trailer_len;
	assert_int_equal(at - bytes, frame->len);
	roci_av_flow(&av, &flow);
	return roci_icrc_difference(&flow, 0, bytes, frame->len) == 0;
}

static void marked_and_short_payload_is_copied(void **state)
{
	static const struct {
		uint32_t len;
		bool copy_payload, whole;
	} cases[] = {{8, false, true},   {256, false, true},         {257, false, false},
		     {1001, true, true}, {ROCI_MAX_MTU, true, true}, {ROCI_MAX_MTU, false, false}};
	const unsigned count = sizeof(cases) / sizeof(cases[0]);

	batch.count = batch.span_count = 0;
	gid_of("127.77.0.1", av.sgid);
	gid_of("127.77.0.2", av.dgid);
	for (unsigned i = 0; i < count; i++)
		add(cases[i].len, cases[i].copy_payload);
	assert_int_equal(roci_frames_from(&batch, &copies, frames), count);
	roci_frames_seal_singly(frames, count);
	for (unsigned i = 0; i < count; i++)
		assert_true(goes_out_whole(&frames[i]));
	memset(memory, 0xa5, sizeof(memory));
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(goes_out_whole(&frames[i]), cases[i].whole);
}

/* No packet's copy lies in another's, however many and long they are. */
static void a_batch_of_the_longest_has_room(void **state)
{
	batch.count = batch.span_count = 0;
	for (unsigned i = 0; i < ROCI_TX_BATCH; i++)
		add(ROCI_MAX_MTU, true);
	assert_int_equal(roci_frames_from(&batch, &copies, frames), ROCI_TX_BATCH);
	for (unsigned i = 0; i < ROCI_TX_BATCH; i++) {
		assert_int_equal(frames[i].span_count, 1);
		assert_int_equal(frames[i].spans[0].len, ROCI_MAX_MTU);
		assert_ptr_equal(frames[i].spans[0].base, copies.bytes + i * ROCI_MAX_MTU);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(marked_and_short_payload_is_copied),
		cmocka_unit_test(a_batch_of_the_longest_has_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
