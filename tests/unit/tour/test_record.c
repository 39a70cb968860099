/* SPDX-License-Identifier: BSD-2-Clause */
/* Finding an operation's packets in a capture, as the device writes it: raw IP in enhanced packet blocks. */
#include "test.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tour/record.h"
#include "wire/packet.h"
#include "wire/record.h"

#define NEAR_QPN 0x111111u
#define FAR_QPN  0x222222u

static FILE *file;

static void put32(uint8_t *at, uint32_t value)
{
	memcpy(at, &value, sizeof(value));
}

/* Appends a block with a packet to `qpn`. direction: 1 in, 2 out. */
static void add(uint64_t time_ns, unsigned direction, uint8_t opcode, uint32_t qpn, uint32_t psn, uint32_t payload)
{
	struct roci_packet packet = {.opcode = opcode, .dest_qpn = qpn, .psn = psn, .payload_len = payload};
	uint8_t block[2048] = {0}, *ip = block + 28, *udp = ip + 20;
	unsigned header = roci_packet_build(&packet, udp + 8);
	uint32_t len = 28 + header + payload + roci_pad_bytes(payload) + ROCI_ICRC_BYTES, padded = (len + 3) & ~3u;

	ip[0] = 0x45;
	put32(block, 6);
	put32(block + 4, 28 + padded + 16);
	put32(block + 12, (uint32_t)(time_ns >> 32));
	put32(block + 16, (uint32_t)time_ns);
	put32(block + 20, len);
	put32(block + 24, len);
	block[28 + padded] = 2;
	block[28 + padded + 2] = 4;
	put32(block + 28 + padded + 4, direction);
	put32(block + 28 + padded + 12, 28 + padded + 16);
	assert_int_equal(fwrite(block, 28 + padded + 16, 1, file), 1);
	fflush(file);
}

/* Appends what the device records of its work, which is no packet. */
static void did(uint64_t time_ns, unsigned kind, uint32_t qpn, uint8_t opcode, uint64_t wr_id)
{
	struct roci_record record = {
		.time_ns = time_ns, .kind = (uint16_t)kind, .qpn = qpn, .opcode = opcode, .wr_id = wr_id};
	uint8_t block[ROCI_RECORD_BYTES + 12];

	put32(block, ROCI_RECORD_BLOCK);
	put32(block + 4, sizeof(block));
	roci_record_build(&record, block + 8);
	put32(block + sizeof(block) - 4, sizeof(block));
	assert_int_equal(fwrite(block, sizeof(block), 1, file), 1);
	fflush(file);
}

static struct record_operation find(off_t mark, bool near, enum tour_op op)
{
	struct record_operation found;

	record_find(mark, near, op, near ? NEAR_QPN : FAR_QPN, near ? FAR_QPN : NEAR_QPN, &found);
	return found;
}

/* A SEND of three packets, its ACK, the far end's answer, and the control that asks. */
static void a_send(void **state)
{
	off_t mark = record_mark();
	struct record_operation p;

	add(100, 2, ROCI_OP_SEND_FIRST, FAR_QPN, 10, 1024);
	add(101, 2, ROCI_OP_SEND_MIDDLE, FAR_QPN, 11, 1024);
	add(102, 2, ROCI_OP_SEND_LAST, FAR_QPN, 12, 5);
	add(110, 1, ROCI_OP_ACKNOWLEDGE, NEAR_QPN, 12, 0);
	add(111, 1, ROCI_OP_SEND_ONLY, NEAR_QPN, 500, 8);
	add(112, 2, ROCI_OP_ACKNOWLEDGE, FAR_QPN, 500, 0);
	add(120, 2, ROCI_OP_SEND_ONLY, FAR_QPN, 13, 20);
	add(121, 1, ROCI_OP_ACKNOWLEDGE, NEAR_QPN, 13, 0);
	p = find(mark, true, TOUR_SEND);
	assert_int_equal(p.request_ns, 100);
	assert_int_equal(p.request_packets, 3);
	assert_string_equal(p.request_name, "RC SEND First");
	assert_int_equal(p.response_ns, 110);
	assert_string_equal(p.response_name, "RC Acknowledge");
	assert_int_equal(p.response_packets, 1);
}

/* What verifies follows at once. Its acknowledgement and its response are not the operation's. */
static void only_its_own_response_counts(void **state)
{
	off_t mark = record_mark();
	struct record_operation p;

	add(600, 2, ROCI_OP_WRITE_ONLY, FAR_QPN, 30, 64);
	add(610, 1, ROCI_OP_ACKNOWLEDGE, NEAR_QPN, 30, 0);
	add(620, 2, ROCI_OP_READ_REQUEST, FAR_QPN, 31, 0);
	add(630, 1, ROCI_OP_READ_RESPONSE_ONLY, NEAR_QPN, 31, 64);
	add(640, 2, ROCI_OP_SEND_ONLY, FAR_QPN, 32, 20);
	add(650, 1, ROCI_OP_ACKNOWLEDGE, NEAR_QPN, 32, 0);
	p = find(mark, true, TOUR_WRITE);
	assert_int_equal(p.response_ns, 610);
	assert_int_equal(p.response_packets, 1);
	mark = record_mark();
	add(700, 2, ROCI_OP_SEND_ONLY, FAR_QPN, 40, 64);
	add(701, 2, ROCI_OP_SEND_ONLY, FAR_QPN, 41, 20);
	add(710, 1, ROCI_OP_ACKNOWLEDGE, NEAR_QPN, 41, 0);
	p = find(mark, true, TOUR_SEND);
	assert_int_equal(p.response_ns, 710);
	assert_int_equal(p.response_packets, 1);
}

/* The far end is asked by a SEND, so the SEND before is meant. An acknowledgement of earlier packets does not count. */
static void a_send_at_the_far_end(void **state)
{
	off_t mark = record_mark();
	struct record_operation p;

	add(190, 2, ROCI_OP_ACKNOWLEDGE, NEAR_QPN, 9, 0);
	add(200, 1, ROCI_OP_SEND_ONLY, FAR_QPN, 10, 64);
	add(210, 2, ROCI_OP_ACKNOWLEDGE, NEAR_QPN, 10, 0);
	add(220, 1, ROCI_OP_SEND_ONLY, FAR_QPN, 11, 20);
	p = find(mark, false, TOUR_SEND);
	assert_int_equal(p.request_ns, 200);
	assert_int_equal(p.response_ns, 210);
}

static void a_read(void **state)
{
	off_t mark = record_mark();
	struct record_operation p;

	add(300, 2, ROCI_OP_READ_REQUEST, FAR_QPN, 20, 0);
	add(310, 1, ROCI_OP_READ_RESPONSE_FIRST, NEAR_QPN, 20, 1024);
	add(311, 1, ROCI_OP_READ_RESPONSE_LAST, NEAR_QPN, 21, 10);
	p = find(mark, true, TOUR_READ);
	assert_int_equal(p.request_ns, 300);
	assert_int_equal(p.response_ns, 310);
	assert_int_equal(p.response_packets, 2);
}

/* A device sends again what is not acknowledged in time. The first time counts. */
static void what_is_sent_again_does_not_count(void **state)
{
	off_t mark = record_mark();
	struct record_operation p;

	add(500, 1, ROCI_OP_WRITE_ONLY_IMM, FAR_QPN, 0xffffff, 8);
	add(501, 2, ROCI_OP_ACKNOWLEDGE, NEAR_QPN, 0xffffff, 0);
	add(502, 1, ROCI_OP_WRITE_ONLY_IMM, FAR_QPN, 0xffffff, 8);
	add(503, 2, ROCI_OP_ACKNOWLEDGE, NEAR_QPN, 0xffffff, 0);
	p = find(mark, false, TOUR_WRITE_IMM);
	assert_int_equal(p.request_ns, 500);
	assert_int_equal(p.response_ns, 501);
	assert_int_equal(p.request_packets, 1);
	mark = record_mark();
	add(510, 1, ROCI_OP_SEND_FIRST, FAR_QPN, 0xffffff, 1024);
	add(511, 1, ROCI_OP_SEND_LAST, FAR_QPN, 0, 8);
	add(512, 1, ROCI_OP_SEND_FIRST, FAR_QPN, 0xffffff, 1024);
	add(513, 1, ROCI_OP_SEND_LAST, FAR_QPN, 0, 8);
	add(514, 2, ROCI_OP_ACKNOWLEDGE, NEAR_QPN, 0, 0);
	add(520, 1, ROCI_OP_SEND_ONLY, FAR_QPN, 1, 20);
	add(521, 1, ROCI_OP_SEND_ONLY, FAR_QPN, 1, 20);
	p = find(mark, false, TOUR_SEND);
	assert_int_equal(p.request_ns, 510);
	assert_int_equal(p.request_packets, 2);
	assert_int_equal(p.response_ns, 514);
}

static void others_do_not_count(void **state)
{
	off_t mark = record_mark();
	struct record_operation p;

	add(400, 2, ROCI_OP_SEND_ONLY, 0x333333, 10, 8);
	add(401, 1, ROCI_OP_SEND_ONLY, FAR_QPN, 10, 8);
	p = find(mark, true, TOUR_SEND);
	assert_int_equal(p.request_ns, 0);
	assert_int_equal(p.request_packets, 0);
}

#define WC_RECEIVE 128
#define WC_SEND    0

/* The WQE that the near device took last before the packet left is the operation's: FLUSH follows a WRITE. */
static void what_the_near_device_did(void **state)
{
	off_t mark = record_mark();
	struct record_operation p;

	did(800, ROCI_RECORD_SEND_TAKEN, NEAR_QPN, 0, 1);
	did(801, ROCI_RECORD_SEND_TAKEN, 0x333333, 0, 9);
	did(802, ROCI_RECORD_SEND_TAKEN, NEAR_QPN, 14, 2);
	add(803, 2, ROCI_OP_WRITE_ONLY, FAR_QPN, 10, 64);
	add(803, 2, ROCI_OP_FLUSH, FAR_QPN, 11, 0);
	did(804, ROCI_RECORD_COMPLETION, NEAR_QPN, WC_SEND, 1);
	add(810, 1, ROCI_OP_READ_RESPONSE_ONLY, NEAR_QPN, 11, 0);
	did(812, ROCI_RECORD_COMPLETION, NEAR_QPN, WC_RECEIVE, 2);
	did(813, ROCI_RECORD_COMPLETION, NEAR_QPN, WC_SEND, 2);
	did(820, ROCI_RECORD_SEND_TAKEN, NEAR_QPN, 0, 2);
	did(830, ROCI_RECORD_COMPLETION, NEAR_QPN, WC_SEND, 2);
	p = find(mark, true, TOUR_FLUSH);
	assert_int_equal(p.request_ns, 803);
	assert_int_equal(p.taken_ns, 802);
	assert_int_equal(p.cqe_ns, 813);
}

/* The first receive that is taken after the packet came is the operation's, not that of the control behind it. */
static void what_the_far_device_did(void **state)
{
	off_t mark = record_mark();
	struct record_operation p;

	did(890, ROCI_RECORD_RECV_TAKEN, FAR_QPN, 0, 4);
	did(891, ROCI_RECORD_COMPLETION, FAR_QPN, WC_RECEIVE, 4);
	add(900, 1, ROCI_OP_SEND_ONLY, FAR_QPN, 10, 64);
	did(901, ROCI_RECORD_RECV_TAKEN, FAR_QPN, 0, 5);
	did(902, ROCI_RECORD_COMPLETION, FAR_QPN, WC_RECEIVE, 5);
	add(910, 2, ROCI_OP_ACKNOWLEDGE, NEAR_QPN, 10, 0);
	add(920, 1, ROCI_OP_SEND_ONLY, FAR_QPN, 11, 20);
	did(921, ROCI_RECORD_RECV_TAKEN, FAR_QPN, 0, 6);
	p = find(mark, false, TOUR_SEND);
	assert_int_equal(p.request_ns, 900);
	assert_int_equal(p.taken_ns, 901);
	assert_int_equal(p.cqe_ns, 902);
}

/* A WRITE takes no receive, and completes nowhere at the far end. */
static void what_the_far_device_did_for_a_write(void **state)
{
	off_t mark = record_mark();
	struct record_operation p;

	add(950, 1, ROCI_OP_WRITE_FIRST, FAR_QPN, 10, 1024);
	add(951, 1, ROCI_OP_WRITE_LAST, FAR_QPN, 11, 8);
	did(952, ROCI_RECORD_EXECUTED, FAR_QPN, ROCI_OP_READ_REQUEST, 0);
	did(953, ROCI_RECORD_EXECUTED, FAR_QPN, ROCI_OP_WRITE_LAST, 0);
	add(954, 2, ROCI_OP_ACKNOWLEDGE, NEAR_QPN, 11, 0);
	add(960, 1, ROCI_OP_SEND_ONLY, FAR_QPN, 12, 20);
	did(961, ROCI_RECORD_RECV_TAKEN, FAR_QPN, 0, 0);
	did(962, ROCI_RECORD_COMPLETION, FAR_QPN, WC_RECEIVE, 0);
	p = find(mark, false, TOUR_WRITE);
	assert_int_equal(p.request_ns, 950);
	assert_int_equal(p.taken_ns, 953);
	assert_int_equal(p.cqe_ns, 0);
}

/* A file that is no capture, or half of one, ends the search. */
static void broken_records_end_the_search(void **state)
{
	static const uint8_t bytes[40] = {6, 0, 0, 0, 7};
	off_t mark = record_mark();

	assert_int_equal(fwrite(bytes, sizeof(bytes), 1, file), 1);
	fflush(file);
	assert_int_equal(find(mark, true, TOUR_SEND).request_ns, 0);
}

#define PIECE 40 /* bytes of a block that are written first */

static const uint8_t *rest;
static size_t rest_len;

static void *write_rest(void *unused)
{
	assert_int_equal(fwrite(rest, rest_len, 1, file), 1);
	fflush(file);
	return NULL;
}

/* While the device writes, the file may end within a block. A mark is where one begins. */
static void a_mark_is_not_within_a_block(void **state)
{
	static uint8_t block[8192];
	struct stat st;

	put32(block, 6);
	put32(block + 4, sizeof(block));
	put32(block + sizeof(block) - 4, sizeof(block));
	rest = block + PIECE;
	rest_len = sizeof(block) - PIECE;
	for (unsigned i = 0; i < 20; i++) {
		pthread_t writer;
		off_t mark;

		assert_int_equal(fwrite(block, PIECE, 1, file), 1);
		fflush(file);
		assert_int_equal(pthread_create(&writer, NULL, write_rest, NULL), 0);
		mark = record_mark();
		assert_int_equal(pthread_join(writer, NULL), 0);
		assert_int_equal(fstat(fileno(file), &st), 0);
		assert_int_equal(mark, st.st_size);
	}
}

int main(void)
{
	char name[] = "/tmp/roci-record-XXXXXX";
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_send),
		cmocka_unit_test(a_send_at_the_far_end),
		cmocka_unit_test(only_its_own_response_counts),
		cmocka_unit_test(a_read),
		cmocka_unit_test(what_is_sent_again_does_not_count),
		cmocka_unit_test(others_do_not_count),
		cmocka_unit_test(what_the_near_device_did),
		cmocka_unit_test(what_the_far_device_did),
		cmocka_unit_test(what_the_far_device_did_for_a_write),
		cmocka_unit_test(a_mark_is_not_within_a_block),
		cmocka_unit_test(broken_records_end_the_search),
	};
	int fd = mkstemp(name), failed;

	file = fdopen(fd, "w");
	setenv("ROCI_CAPTURE", name, 1);
	failed = !file || record_open() || cmocka_run_group_tests(tests, NULL, NULL);
	unlink(name);
	return failed;
}
