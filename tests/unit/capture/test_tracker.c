/* SPDX-License-Identifier: BSD-2-Clause */
/* What is said of packets: each test is a conversation, and the lines that it must give. */
#include "test.h"

#include <infiniband/verbs.h>

#include "capture/tracker.h"
#include "capture_file.h"

#define MS 1000000ull

static struct capture_tracker *tracker;
static struct capture_event e;
static struct capture_frame frame;
static struct capture_record record;
static uint8_t bytes[9000];
static char meaning[CAPTURE_MEANING_CHARS];
static uint64_t now_ns;

static int setup(void **state)
{
	tracker = capture_tracker_create();
	record = (struct capture_record){.link_type = FILE_RAW};
	now_ns = 1700000000000 * MS;
	return tracker ? 0 : -1;
}

static int teardown(void **state)
{
	capture_tracker_destroy(tracker);
	return 0;
}

/* Hands the frame in `bytes` to the tracker. Returns what it means. */
static const char *take(uint32_t len, uint32_t original)
{
	now_ns += MS;
	record.number++;
	record.time_ns = now_ns;
	record.bytes = bytes;
	record.len = len;
	record.original_len = original;
	capture_tracker_take(tracker, &record, &frame, &e);
	return capture_meaning(&e, meaning);
}

static const char *send_from(unsigned src, unsigned dst, const struct roci_packet *pkt)
{
	uint32_t len = make_roce(bytes, src, dst, pkt);

	return take(len, len);
}

static struct roci_packet packet(unsigned operation, uint32_t qpn, uint32_t psn, uint32_t len)
{
	return (struct roci_packet){.opcode = (uint8_t)(ROCI_TRANSPORT_RC | operation),
				    .pkey = 0xffff,
				    .dest_qpn = qpn,
				    .psn = psn,
				    .payload_len = len};
}

/* Host 1's QP 0x11 asks; host 2's QP 0x22 answers. */
static const char *ask(unsigned operation, uint32_t psn, uint32_t len, uint32_t dma_len)
{
	struct roci_packet pkt = packet(operation, 0x22, psn, len);

	pkt.dma_len = dma_len;
	return send_from(1, 2, &pkt);
}

static const char *answer(unsigned operation, uint32_t psn, uint32_t len, uint8_t syndrome)
{
	struct roci_packet pkt = packet(operation, 0x11, psn, len);

	pkt.syndrome = syndrome;
	return send_from(2, 1, &pkt);
}

static const char *ack(uint32_t psn)
{
	return answer(ROCI_OP_ACKNOWLEDGE, psn, 0, 0x1f);
}

/* ---- records ---- */

static struct roci_record ready_to_receive(void)
{
	struct roci_record r = {.kind = ROCI_RECORD_QP_STATE,
				.qp_type = IBV_QPT_RC,
				.status = IBV_QPS_RTR,
				.qpn = 0x11,
				.peer = 0x22,
				.length = 1024,
				.time_ns = 1};

	roci_gid_from_ipv4(r.local_gid, (uint8_t[]){10, 0, 0, 1});
	roci_gid_from_ipv4(r.remote_gid, (uint8_t[]){10, 0, 0, 2});
	return r;
}

/* A QP that is ready to receive tells who talks, before any packet does. */
static void test_state(void **state)
{
	const struct roci_record ready = ready_to_receive();
	const struct roci_packet back = packet(ROCI_OP_SEND_ONLY, 0x11, 9, 4);

	capture_tracker_record(tracker, &ready);
	assert_string_equal(ask(ROCI_OP_READ_REQUEST, 5, 0, 2500), "READ 2500 bytes: asks for 3 packets");
	assert_true(e.src_qpn_known);
	assert_int_equal(e.src_qpn, 0x11);
	send_from(2, 1, &back);
	assert_true(e.src_qpn_known);
	assert_int_equal(e.src_qpn, 0x22);
	assert_int_equal(e.conversation, 1);
}

/* A capture that begins in the middle has no change of state, but what the QP does. One that is not connected tells
 * nothing. */
static void test_post(void **state)
{
	struct roci_record post = ready_to_receive();

	post.kind = ROCI_RECORD_POST_RECV;
	capture_tracker_record(tracker, &post);
	ask(ROCI_OP_SEND_ONLY, 5, 4, 0);
	assert_false(e.src_qpn_known);
	post.kind = ROCI_RECORD_POST_SEND;
	post.qpn = 0x12;
	post.peer = 0x23;
	capture_tracker_record(tracker, &post);
	const struct roci_packet other = packet(ROCI_OP_SEND_ONLY, 0x23, 5, 4);
	send_from(1, 2, &other);
	assert_true(e.src_qpn_known);
	assert_int_equal(e.src_qpn, 0x12);
}

/* The end that accepts is ready first, and the other one asks: end 0 is the one that is heard first all the same. */
static void test_state_of_the_other_end(void **state)
{
	struct roci_record ready = ready_to_receive();

	ready.qpn = 0x22;
	ready.peer = 0x11;
	roci_gid_from_ipv4(ready.local_gid, (uint8_t[]){10, 0, 0, 2});
	roci_gid_from_ipv4(ready.remote_gid, (uint8_t[]){10, 0, 0, 1});
	capture_tracker_record(tracker, &ready);
	ask(ROCI_OP_SEND_ONLY, 5, 4, 0);
	assert_int_equal(e.end, 0);
	assert_int_equal(e.src_qpn, 0x11);
	ack(5);
	assert_int_equal(e.end, 1);
	assert_int_equal(e.conversation, 1);
	assert_int_equal(e.acknowledged, 1);
}

static void count_talks(void *context, const struct capture_conversation *c)
{
	unsigned *count = context;

	(*count)++;
	assert_int_equal(c->first_ns, 1700000000001 * MS);
}

/* One without packets is none to show, and one begins with its first packet. */
static void test_state_alone(void **state)
{
	const struct roci_record ready = ready_to_receive();
	unsigned count = 0;

	capture_tracker_record(tracker, &ready);
	capture_tracker_each(tracker, count_talks, &count);
	assert_int_equal(count, 0);
	ask(ROCI_OP_SEND_ONLY, 5, 4, 0);
	capture_tracker_each(tracker, count_talks, &count);
	assert_int_equal(count, 1);
}

/* ---- messages ---- */

static void test_write(void **state)
{
	assert_string_equal(ask(ROCI_OP_WRITE_FIRST, 0xffffff, 1024, 2500), "WRITE 2500 bytes, packet 1 of 3");
	assert_false(e.src_qpn_known);
	assert_string_equal(ask(ROCI_OP_WRITE_MIDDLE, 0, 1024, 0), "WRITE 2500 bytes, packet 2 of 3");
	assert_string_equal(ask(ROCI_OP_WRITE_LAST, 1, 452, 0), "WRITE 2500 bytes, packet 3 of 3");
	assert_string_equal(ask(ROCI_OP_SEND_ONLY, 2, 7, 0), "SEND 7 bytes");
	assert_string_equal(ack(2), "acknowledges up to PSN 2, 2 requests, round trip 1 ms");
	assert_true(e.src_qpn_known);
	assert_int_equal(e.src_qpn, 0x22);
	assert_string_equal(ack(2), "acknowledges up to PSN 2");
	ask(ROCI_OP_SEND_ONLY, 3, 7, 0);
	assert_true(e.src_qpn_known); /* learned from the answer */
	assert_int_equal(e.src_qpn, 0x11);
	assert_int_equal(e.icrc, CAPTURE_ICRC_RIGHT);
}

static void test_send(void **state)
{
	assert_string_equal(ask(ROCI_OP_SEND_FIRST, 10, 256, 0), "SEND, packet 1");
	assert_string_equal(ask(ROCI_OP_SEND_MIDDLE, 11, 256, 0), "SEND, packet 2");
	assert_string_equal(ask(ROCI_OP_SEND_LAST, 12, 1, 0), "SEND 513 bytes, packet 3 of 3");
	assert_string_equal(ask(ROCI_OP_WRITE_ONLY, 13, 1 << 12, 1 << 12), "WRITE 4 KiB");
}

/* The beginning is not in the capture. */
static void test_middle_first(void **state)
{
	assert_string_equal(ask(ROCI_OP_SEND_MIDDLE, 11, 256, 0), "SEND, a packet of it");
	assert_string_equal(ask(ROCI_OP_SEND_LAST, 12, 1, 0), "SEND, last packet");
}

static void test_read(void **state)
{
	assert_string_equal(ask(ROCI_OP_READ_REQUEST, 5, 0, 2500), "READ 2500 bytes");
	assert_string_equal(answer(ROCI_OP_READ_RESPONSE_FIRST, 5, 1024, 0x1f),
			    "READ 2500 bytes, response packet 1 of 3, round trip 1 ms");
	assert_string_equal(answer(ROCI_OP_READ_RESPONSE_LAST, 7, 452, 0x1f),
			    "READ 2500 bytes, response packet 3 of 3, out of order: expected PSN 6, 1 missing");
	/* It asks for what is missing, and the next request has the PSN behind the response. */
	assert_string_equal(ask(ROCI_OP_READ_REQUEST, 6, 0, 1476),
			    "READ 1476 bytes, the rest of 2500 bytes, from packet 2 on, sent again");
	assert_string_equal(answer(ROCI_OP_READ_RESPONSE_FIRST, 6, 1024, 0x1f),
			    "READ 2500 bytes, response packet 2 of 3, late: packets behind it came first");
	assert_string_equal(answer(ROCI_OP_READ_RESPONSE_LAST, 7, 452, 0x1f),
			    "READ 2500 bytes, response packet 3 of 3, sent again");
	assert_string_equal(ask(ROCI_OP_READ_REQUEST, 8, 0, 100), "READ 100 bytes: asks for 1 packet");
	assert_int_equal(e.flags, 0);
}

static void test_read_before_mtu(void **state)
{
	ask(ROCI_OP_READ_REQUEST, 5, 0, 1 << 20); /* 256 to 4096 packets */
	assert_string_equal(ask(ROCI_OP_SEND_ONLY, 5 + 256, 1, 0), "SEND 1 byte");
	assert_int_equal(e.flags, 0);
}

static void test_atomics(void **state)
{
	struct roci_packet add = packet(ROCI_OP_FETCH_ADD, 0x22, 9, 0),
			   swap = packet(ROCI_OP_COMPARE_SWAP, 0x22, 10, 0);
	struct roci_packet was = packet(ROCI_OP_ATOMIC_ACKNOWLEDGE, 0x11, 9, 0);

	add.swap_add = 41;
	swap.compare = 1;
	swap.swap_add = 2;
	was.atomic_orig = 0xff;
	assert_string_equal(send_from(1, 2, &add), "FETCH AND ADD 41");
	assert_string_equal(send_from(2, 1, &was), "atomic is done, it was 0xff, round trip 1 ms");
	assert_string_equal(send_from(1, 2, &swap), "COMPARE AND SWAP: if it is 0x1, make it 0x2");
}

/* ---- trouble ---- */

static void test_nak(void **state)
{
	ask(ROCI_OP_SEND_ONLY, 76, 1, 0);
	assert_string_equal(ask(ROCI_OP_SEND_ONLY, 79, 1, 0), "SEND 1 byte, out of order: expected PSN 77, 2 missing");
	assert_string_equal(answer(ROCI_OP_ACKNOWLEDGE, 77, 0, 0x60), "NAK: PSN sequence error, expected 77");
	assert_int_equal(e.flags, CAPTURE_NAK);
	assert_string_equal(ask(ROCI_OP_SEND_ONLY, 77, 1, 0), "SEND 1 byte, sent again after a NAK");
	assert_string_equal(ask(ROCI_OP_SEND_ONLY, 78, 1, 0), "SEND 1 byte, sent again after a NAK");
	assert_string_equal(ask(ROCI_OP_SEND_ONLY, 79, 1, 0), "SEND 1 byte, sent again after a NAK");
	assert_string_equal(ack(79), "acknowledges up to PSN 79, 4 requests");
	assert_int_equal(e.round_trip_ns, 0); /* which of the two copies? */
}

/* A NAK that refuses a request asks for nothing: what comes again was on its way by a timeout. */
static void test_refusal(void **state)
{
	ask(ROCI_OP_SEND_ONLY, 76, 1, 0);
	answer(ROCI_OP_ACKNOWLEDGE, 76, 0, 0x62);
	assert_int_equal(e.flags, CAPTURE_NAK);
	assert_string_equal(ask(ROCI_OP_SEND_ONLY, 76, 1, 0), "SEND 1 byte, sent again after 2 ms");
}

static void test_rnr(void **state)
{
	ask(ROCI_OP_SEND_ONLY, 5, 1, 0);
	assert_string_equal(answer(ROCI_OP_ACKNOWLEDGE, 5, 0, 0x20 | 12),
			    "RNR NAK: no receive is posted for PSN 5, send again in 0.64 ms");
	assert_string_equal(answer(ROCI_OP_ACKNOWLEDGE, 5, 0, 0x60), "NAK: PSN sequence error, expected 5");
	assert_string_equal(ask(ROCI_OP_SEND_ONLY, 5, 1, 0), "SEND 1 byte, sent again after RNR 0.64 ms (waited 2 ms)");
	assert_string_equal(
		answer(ROCI_OP_ACKNOWLEDGE, 5, 0, 0x62),
		"NAK: remote access error, at PSN 5: the responder refused access to its memory; the requester "
		"completes with REM_ACCESS_ERR");
}

static void test_silence(void **state)
{
	ask(ROCI_OP_SEND_ONLY, 5, 1, 0);
	assert_string_equal(ask(ROCI_OP_SEND_ONLY, 5, 1, 0), "SEND 1 byte, sent again after 1 ms");
}

/* It is no message, and its answer tells nothing of how long the WRITE took. */
static void test_probe(void **state)
{
	ask(ROCI_OP_WRITE_ONLY, 5, 8, 8);
	assert_string_equal(ask(ROCI_OP_WRITE_ONLY, 5, 0, 0),
			    "probe: a WRITE of nothing with an old PSN, which asks for an acknowledgement");
	assert_int_equal(e.flags, CAPTURE_PROBE);
	assert_int_equal(e.message.id, 0);
	assert_string_equal(ack(5), "acknowledges up to PSN 5");
	ask(ROCI_OP_READ_REQUEST, 6, 0, 100);
	ask(ROCI_OP_WRITE_ONLY, 6, 0, 0);
	assert_int_equal(e.flags, CAPTURE_PROBE);
	/* A program may write nothing, too. */
	assert_string_equal(ask(ROCI_OP_WRITE_ONLY, 7, 0, 0), "WRITE 0 bytes");
	assert_string_equal(ask(ROCI_OP_WRITE_ONLY, 7, 0, 0), "WRITE 0 bytes, sent again after 1 ms");
}

static void test_late(void **state)
{
	ask(ROCI_OP_SEND_ONLY, 5, 1, 0);
	ask(ROCI_OP_SEND_ONLY, 7, 1, 0);
	assert_string_equal(ask(ROCI_OP_SEND_ONLY, 6, 1, 0), "SEND 1 byte, late: packets behind it came first");
}

static void test_damaged(void **state)
{
	struct roci_packet pkt = packet(ROCI_OP_SEND_ONLY, 0x22, 5, 8);
	uint32_t len = make_roce(bytes, 1, 2, &pkt);

	bytes[len - 6] ^= 1;
	assert_string_equal(take(len, len), "SEND 8 bytes, ICRC is wrong: damaged, its receiver drops it");
	assert_string_equal(ask(ROCI_OP_SEND_ONLY, 5, 8, 0), "SEND 8 bytes"); /* the other one does not count */
	make_roce(bytes, 1, 2, &pkt);
	bytes[4] ^= 1; /* the identification is covered: exactly, not "for some identification" */
	take(len, len);
	assert_int_equal(e.icrc, CAPTURE_ICRC_WRONG);
	make_roce(bytes, 1, 2, &pkt);
	bytes[1] = 0xff;
	bytes[8]--; /* routers write here */
	take(len, len);
	assert_int_equal(e.icrc, CAPTURE_ICRC_RIGHT);
	make_roce(bytes, 1, 2, &pkt);
	assert_string_equal(take(48, len), "SEND 8 bytes, sent again after 1 ms, 20 of 24 bytes captured");
	assert_int_equal(e.icrc, CAPTURE_ICRC_UNKNOWN);
	assert_int_equal(capture_payload(&e), 8);
}

/* ---- both ends in one capture ---- */

static void test_views(void **state)
{
	record.direction = CAPTURE_OUTBOUND;
	assert_string_equal(ask(ROCI_OP_SEND_ONLY, 5, 1, 0), "SEND 1 byte");
	record.direction = CAPTURE_INBOUND;
	assert_string_equal(ask(ROCI_OP_SEND_ONLY, 5, 1, 0), "SEND 1 byte, under way for 1 ms");
	assert_int_equal(e.sent_number, 1);
	assert_string_equal(ask(ROCI_OP_SEND_ONLY, 5, 1, 0), "SEND 1 byte, duplicate, under way for 2 ms");
	record.direction = CAPTURE_OUTBOUND;
	ask(ROCI_OP_SEND_ONLY, 6, 1, 0);
	ask(ROCI_OP_SEND_ONLY, 7, 1, 0);
	record.direction = CAPTURE_INBOUND;
	assert_string_equal(ask(ROCI_OP_SEND_ONLY, 7, 1, 0),
			    "SEND 1 byte, out of order: expected PSN 6, 1 missing, under way for 1 ms");
	record.direction = CAPTURE_OUTBOUND;
	assert_string_equal(ask(ROCI_OP_SEND_ONLY, 6, 1, 0), "SEND 1 byte, sent again after 3 ms");
	record.direction = CAPTURE_INBOUND;
	assert_string_equal(ask(ROCI_OP_SEND_ONLY, 6, 1, 0), "SEND 1 byte, sent again, under way for 1 ms");
	record.direction = CAPTURE_OUTBOUND; /* at the responder's end: no round trip */
	assert_string_equal(ack(7), "acknowledges up to PSN 7, 3 requests");
	record.direction = CAPTURE_INBOUND;
	assert_string_equal(ack(7), "acknowledges up to PSN 7, 3 requests, round trip 5 ms, under way for 1 ms");
}

static void keep(void *context, const struct capture_conversation *c)
{
	*(struct capture_conversation *)context = *c;
}

/* What was lost before the capture saw it counts when it comes. */
static void test_count_of_lost(void **state)
{
	struct capture_conversation c;

	test_nak(state);
	capture_tracker_each(tracker, keep, &c);
	assert_int_equal(c.ends[0].packets, 5);
	assert_int_equal(c.ends[0].sent_again, 3);
	assert_int_equal(c.ends[0].messages, 4);
	assert_int_equal(c.ends[0].bytes, 4);
	assert_int_equal(c.ends[1].naks, 1);
}

/* Each packet counts once. */
static void test_counts(void **state)
{
	struct capture_conversation c;

	test_views(state);
	capture_tracker_each(tracker, keep, &c);
	assert_int_equal(c.ends[0].packets, 4);
	assert_int_equal(c.ends[0].messages, 3);
	assert_int_equal(c.ends[0].bytes, 3);
	assert_int_equal(c.ends[0].sent_again, 1);
	assert_int_equal(c.ends[0].duplicates, 1);
	assert_int_equal(c.ends[0].out_of_order, 1);
	assert_int_equal(c.ends[0].qpn, 0x11);
	assert_int_equal(c.ends[1].packets, 1);
	assert_int_equal(c.ends[1].acks, 1);
	assert_int_equal(c.round_trips[0].count, 1);
	assert_int_equal(c.round_trips[0].most, 5 * MS);
}

/* ---- who talks with whom ---- */

static const char *ask_qp(uint32_t qpn, uint32_t psn)
{
	struct roci_packet pkt = packet(ROCI_OP_SEND_ONLY, qpn, psn, 1);

	return send_from(1, 2, &pkt);
}

/* Two conversations have the same PSNs: an answer could be of either, so nothing is said before one of them fits. */
static void test_ambiguous(void **state)
{
	uint32_t first;

	ask_qp(0x22, 5);
	first = e.conversation;
	ask_qp(0x23, 5);
	ack(5);
	assert_false(e.conversation == first || e.src_qpn_known);
	ask_qp(0x22, 6);
	ack(6);
	assert_int_equal(e.conversation, first);
	assert_true(e.merged);
	assert_int_equal(e.src_qpn, 0x22);
}

static unsigned gone;

static void count_gone(void *context, const struct capture_conversation *c)
{
	gone++;
	assert_int_equal(c->number, gone); /* the oldest first */
	assert_int_equal(c->ends[0].packets, 1);
}

static void test_bounded(void **state)
{
	const struct capture_totals *totals = capture_tracker_totals(tracker);

	gone = 0;
	capture_tracker_on_given_up(tracker, count_gone, NULL);
	for (uint32_t qpn = 2; qpn < 2 + CAPTURE_CONVERSATIONS + 100; qpn++)
		ask_qp(qpn, qpn * 100);
	assert_int_equal(gone, 100);
	assert_int_equal(totals->given_up, 100);
	assert_int_equal(totals->conversations, CAPTURE_CONVERSATIONS + 100);
	ask_qp(2 + 100, 99999);
	assert_int_equal(e.conversation, 101);
}

/* ---- what is around ---- */

static uint32_t as_ethernet(const uint8_t *link, uint32_t link_bytes, uint32_t ip_len)
{
	memmove(bytes + link_bytes, bytes, ip_len);
	memcpy(bytes, link, link_bytes);
	return link_bytes + ip_len;
}

static void test_links(void **state)
{
	static const struct {
		uint32_t link_type, len;
		uint8_t link[26];
	} rows[] = {
		{1, 14, {[12] = 0x08, 0x00}},
		{1, 18, {[12] = 0x81, 0x00, 0x20, 0x64, 0x08, 0x00}},
		{1, 22, {[12] = 0x88, 0xa8, 0x00, 0x01, 0x81, 0x00, 0x20, 0x64, 0x08, 0x00}},
		{113, 16, {[14] = 0x08, 0x00}},
		{276, 20, {[0] = 0x08, 0x00}},
		{0, 4, {2}},
		{228, 0, {0}},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct roci_packet pkt = packet(ROCI_OP_SEND_ONLY, 0x22, 5 + i, 3);
		uint32_t len = as_ethernet(rows[i].link, rows[i].len, make_roce(bytes, 1, 2, &pkt));

		record.link_type = rows[i].link_type;
		memset(bytes + len, 0x55, 4); /* a trailer is no part of the packet */
		assert_string_equal(take(len + 4, len + 4), "SEND 3 bytes");
		assert_int_equal(e.icrc, CAPTURE_ICRC_RIGHT);
		assert_int_equal(frame.vlan_count, i == 1 ? 1 : i == 2 ? 2 : 0);
	}
}

/* tcpdump sees packets of segmentation offload before they are divided: the lengths in IP and UDP are those of all. */
static void test_several_in_a_frame(void **state)
{
	static const unsigned ops[] = {ROCI_OP_SEND_FIRST, ROCI_OP_SEND_MIDDLE, ROCI_OP_SEND_LAST};
	static const char *const texts[] = {"SEND, packet 1", "SEND, packet 2", "SEND 2500 bytes, packet 3 of 3"};
	static uint8_t all[9000];
	uint32_t len = 28;

	for (unsigned i = 0; i < 3; i++) {
		struct roci_packet pkt = packet(ops[i], 0x22, 0xffffff + i, i < 2 ? 1024 : 452);
		uint32_t one;

		pkt.psn &= 0xffffff;
		one = make_roce(bytes, 1, 2, &pkt);
		roci_put_be16(bytes + 4, (uint16_t)(7 + i)); /* the identification that it will have */
		memset(bytes + one - 4, 0, 4);
		if (!i)
			memcpy(all, bytes, 28);
		/* Its ICRC is that of the packet alone. */
		struct roci_flow flow = {.src_port = 50000, .dst_port = ROCI_UDP_PORT};
		roci_gid_from_ipv4(flow.src, bytes + 12);
		roci_gid_from_ipv4(flow.dst, bytes + 16);
		uint32_t crc = roci_icrc_headers(roci_icrc_begin(&flow, (uint16_t)(7 + i), one - 28), bytes + 28, 12);
		roci_icrc_store(roci_icrc_update(crc, bytes + 40, one - 44), bytes + one - 4);
		memcpy(all + len, bytes + 28, one - 28);
		len += one - 28;
	}
	memcpy(bytes, all, len);
	roci_put_be16(bytes + 2, (uint16_t)len);
	roci_put_be16(bytes + 24, (uint16_t)(len - 20));
	assert_string_equal(take(len, len), texts[0]);
	assert_int_equal(e.icrc, CAPTURE_ICRC_RIGHT);
	for (unsigned i = 1; i < 3; i++) {
		assert_true(capture_tracker_more(tracker, &frame, &e));
		assert_string_equal(capture_meaning(&e, meaning), texts[i]);
		assert_int_equal(e.icrc, CAPTURE_ICRC_RIGHT);
		assert_int_equal(frame.segment, i);
	}
	assert_false(capture_tracker_more(tracker, &frame, &e));
}

/* IBTA A16: a GRH in the place of the IP and UDP headers. */
static void test_roce_v1(void **state)
{
	static const uint8_t ethernet[14] = {[12] = 0x89, 0x15};
	struct roci_packet pkt = packet(ROCI_OP_SEND_ONLY, 0x22, 5, 3);
	uint8_t grh[14 + 40] = {0}, masked[8 + 40];
	uint32_t len, crc;

	memcpy(grh, ethernet, sizeof(ethernet));
	grh[14] = 0x60;
	grh[14 + 6] = 0x1b;
	grh[14 + 7] = 1;
	grh[14 + 23] = 1;
	grh[14 + 39] = 2;
	len = make_roce(bytes, 1, 2, &pkt) - 28;
	memmove(bytes, bytes + 28, len);
	grh[14 + 5] = (uint8_t)len;
	memset(masked, 0xff, sizeof(masked));
	memcpy(masked + 8, grh + 14, 40);
	masked[8] = 0x6f;
	memset(masked + 9, 0xff, 3);
	masked[8 + 7] = 0xff;
	crc = roci_icrc_headers(roci_icrc_update(0, masked, sizeof(masked)), bytes, ROCI_BTH_BYTES);
	roci_icrc_store(roci_icrc_update(crc, bytes + ROCI_BTH_BYTES, len - 16), bytes + len - 4);
	record.link_type = FILE_ETHERNET;
	len = as_ethernet(grh, sizeof(grh), len);
	assert_string_equal(take(len, len), "SEND 3 bytes");
	assert_int_equal(frame.protocol, CAPTURE_ROCE_V1);
	assert_int_equal(e.icrc, CAPTURE_ICRC_RIGHT);
}

static uint32_t tcp(unsigned src, unsigned dst, const char *payload, size_t len)
{
	memset(bytes, 0, 40);
	bytes[0] = 0x45;
	bytes[3] = (uint8_t)(40 + len);
	bytes[9] = 6;
	memcpy(bytes + 12, (uint8_t[]){10, 0, 0, (uint8_t)src, 10, 0, 0, (uint8_t)dst}, 8);
	bytes[21] = (uint8_t)src;
	bytes[23] = (uint8_t)dst;
	bytes[32] = 0x50;
	memcpy(bytes + 40, payload, len);
	return (uint32_t)(40 + len);
}

static const char *take_tcp(unsigned src, unsigned dst, const char *payload, size_t len)
{
	uint32_t all = tcp(src, dst, payload, len);

	return take(all, all);
}

static void test_iwarp(void **state)
{
	assert_string_equal(take_tcp(1, 2, "GET / HTTP/1.1", 14), "TCP, no RDMA");
	assert_string_equal(take_tcp(1, 2, "MPA ID Req Frame\x40\x01\0\0", 20), "iWARP, MPA request");
	assert_string_equal(take_tcp(2, 1, "MPA ID Rep Frame\x40\x01\0\0", 20), "iWARP, MPA reply");
	assert_string_equal(take_tcp(1, 2, "\x00\x20\xc1\x40....", 8), "iWARP, RDMA WRITE");
	assert_string_equal(take_tcp(2, 1, "", 0), "iWARP, TCP");
	assert_string_equal(take_tcp(3, 2, "", 0), "TCP, no RDMA");
	assert_int_equal(capture_tracker_totals(tracker)->iwarp, 4);
}

static void test_not_understood(void **state)
{
	struct roci_packet pkt = packet(ROCI_OP_SEND_ONLY, 0x22, 5, 8);
	uint32_t len = make_roce(bytes, 1, 2, &pkt);

	bytes[28] = 0x1f;
	assert_string_equal(take(len, len), "not understood: the opcode is reserved, or of RD or XRC, 24 bytes");
	assert_int_equal(e.flags, CAPTURE_MALFORMED);
	assert_int_equal(frame.len, 24);
	make_roce(bytes, 1, 2, &pkt);
	bytes[29] |= 1;
	assert_string_equal(take(len, len), "not understood: another version of the transport header, 24 bytes");
	make_roce(bytes, 1, 2, &pkt);
	assert_string_equal(take(30, len), "not understood: too short for its headers (2 of 24 bytes captured)");
	assert_string_equal(take(0, 0), "unknown link layer, no RDMA");
	assert_string_equal(take(10, 60), "damaged IP header, no RDMA");
}

/* On the local path of roci0 each message is one packet with one PSN, also a READ; and the line says that no packet was
 * sent. Its payload was copied from memory to memory. */
static void test_made_up(void **state)
{
	struct roci_packet pkt = packet(ROCI_OP_WRITE_ONLY, 0x22, 6, 1000);
	const struct roci_record ready = ready_to_receive();
	uint32_t len;

	capture_tracker_record(tracker, &ready);
	record.made_up = true;
	assert_string_equal(ask(ROCI_OP_READ_REQUEST, 5, 0, 1 << 20),
			    "READ 1 MiB: asks for 1 packet, made up (local path)");
	len = make_roce(bytes, 1, 2, &pkt);
	bytes[2] = bytes[3] = bytes[24] = bytes[25] = 0; /* the lengths of IP and UDP */
	assert_string_equal(take(56, len - 1000 + 200000),
			    "WRITE 195.3 KiB, 28 of 200032 bytes captured, made up (local path)");
	assert_false(e.flags & CAPTURE_ERRORS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_state),
		TEST(test_state_of_the_other_end),
		TEST(test_post),
		TEST(test_state_alone),
		TEST(test_write),
		TEST(test_send),
		TEST(test_middle_first),
		TEST(test_read),
		TEST(test_read_before_mtu),
		TEST(test_atomics),
		TEST(test_nak),
		TEST(test_refusal),
		TEST(test_rnr),
		TEST(test_silence),
		TEST(test_probe),
		TEST(test_late),
		TEST(test_damaged),
		TEST(test_views),
		TEST(test_counts),
		TEST(test_count_of_lost),
		TEST(test_ambiguous),
		TEST(test_bounded),
		TEST(test_links),
		TEST(test_several_in_a_frame),
		TEST(test_roce_v1),
		TEST(test_iwarp),
		TEST(test_not_understood),
		TEST(test_made_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
