/* SPDX-License-Identifier: BSD-2-Clause */
/* What leaves the seal link: runs, identifications, ICRCs; and payload that the program changes meanwhile. */
#include "bench.h"

#include <string.h>

#include "icrc_difference.h"

static struct roci_frame frames[ROCI_LINK_SEND_BATCH];
static struct roci_span spans[ROCI_LINK_SEND_BATCH][2];
static uint8_t headers[ROCI_LINK_SEND_BATCH][ROCI_MAX_HEADER_BYTES];
static unsigned frame_count;
static uint8_t memory[2 * ROCI_MAX_PAYLOAD];
static struct roci_av av, elsewhere;

/* The link below. */
static struct roci_link below;
static unsigned runs_allowed = ROCI_LINK_MAX_RUN, sent;
static void (*look)(const struct roci_frame *sealed, unsigned count);

static unsigned below_max_run(struct roci_link *link, const struct roci_av *to)
{
	return runs_allowed;
}

static void below_send(struct roci_link *link, struct roci_frame *sealed, unsigned count)
{
	sent = count;
	look(sealed, count);
}

static unsigned below_recv(struct roci_link *link, struct roci_datagram *out)
{
	out[0] = (struct roci_datagram){.bytes = memory, .len = 77};
	return 1;
}

static void below_close(struct roci_link *link)
{
	sent = 0;
}

/* A packet of `len` bytes, from two places of the memory. */
static struct roci_frame *add(const struct roci_av *to, uint32_t qpn, uint32_t len)
{
	unsigned i = frame_count++;
	struct roci_packet pkt = {.opcode = ROCI_OP_SEND_ONLY, .dest_qpn = qpn, .psn = i, .payload_len = len};

	spans[i][0] = (struct roci_span){memory + 100, len / 3};
	spans[i][1] = (struct roci_span){memory + ROCI_MAX_PAYLOAD, len - len / 3};
	frames[i] = roci_frame(to, headers[i], roci_packet_build(&pkt, headers[i]), spans[i], 2);
	return &frames[i];
}

/* Sends the frames through the link; the link below looks at them with `check`. */
static void send_through(void (*check)(const struct roci_frame *sealed, unsigned count))
{
	static const struct roci_link_ops ops = {below_max_run, below_send, below_recv, below_close};
	struct roci_link *link;

	below.ops = &ops;
	look = check;
	assert_int_equal(roci_seal_open(&below, &link), 0);
	roci_link_send(link, frames, frame_count);
	assert_int_equal(sent, frame_count);
	roci_link_close(link);
	assert_int_equal(sent, 0);
	frame_count = 0;
}

/* (ICRC of what would go out now) xor (the right one). */
static uint32_t frame_difference(const struct roci_frame *f)
{
	uint8_t bytes[ROCI_MAX_HEADER_BYTES + ROCI_MAX_PAYLOAD + sizeof(f->trailer)], *at = bytes;
	struct roci_flow flow;

	memcpy(at, f->header, f->header_len);
	at += f->header_len;
	for (unsigned i = 0; i < f->span_count; i++) {
		memcpy(at, f->spans[i].base, f->spans[i].len);
		at += f->spans[i].len;
	}
	memcpy(at, f->trailer, f->trailer_len);
	at += f->trailer_len;
	assert_int_equal(at - bytes, f->len);
	roci_av_flow(f->av, &flow);
	return icrc_difference(&flow, f->ip_id, bytes, f->len);
}

/* ---- copies ---- */

static const struct {
	uint32_t len;
	bool copy_payload, intact;
} payloads[] = {{8, false, true},   {256, false, true},         {257, false, false},
		{1001, true, true}, {ROCI_MAX_MTU, true, true}, {ROCI_MAX_MTU, false, false}};
#define PAYLOADS (sizeof(payloads) / sizeof(payloads[0]))

static void the_program_writes(const struct roci_frame *sealed, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(frame_difference(&sealed[i]), 0);
	memset(memory, 0xa5, sizeof(memory));
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(frame_difference(&sealed[i]) == 0, payloads[i].intact);
}

static void payload_is_copied_where_it_is_short_or_must_be(void **state)
{
	for (unsigned i = 0; i < PAYLOADS; i++)
		add(&av, 1, payloads[i].len)->copy_payload = payloads[i].copy_payload;
	send_through(the_program_writes);
}

static void copies_do_not_overlap(const struct roci_frame *sealed, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		assert_int_equal(sealed[i].span_count, 1);
		assert_int_equal(sealed[i].spans[0].len, ROCI_MAX_PAYLOAD);
		if (i)
			assert_ptr_equal(sealed[i].spans[0].base,
					 (uint8_t *)sealed[i - 1].spans[0].base + ROCI_MAX_PAYLOAD);
	}
}

static void a_batch_of_the_longest_has_room(void **state)
{
	for (unsigned i = 0; i < ROCI_LINK_SEND_BATCH; i++)
		add(&av, 1, ROCI_MAX_PAYLOAD)->copy_payload = true;
	send_through(copies_do_not_overlap);
}

/* ---- runs ---- */

static const unsigned *expected_runs;

static void runs_are_as_expected(const struct roci_frame *sealed, unsigned count)
{
	unsigned at = 0;

	for (unsigned r = 0; at < count; at += expected_runs[r++]) {
		for (unsigned k = 0; k < expected_runs[r]; k++) {
			assert_int_equal(sealed[at + k].run, k ? 0 : expected_runs[r]);
			assert_int_equal(sealed[at + k].ip_id, k);
			assert_int_equal(frame_difference(&sealed[at + k]), 0);
		}
	}
	assert_int_equal(at, count);
}

static void a_run_is_of_one_length_but_the_last(void **state)
{
	static const unsigned lens[] = {1024, 1024, 1024, 1024, 7, 0, 0, 0, 4096, 1024};

	for (unsigned i = 0; i < 10; i++)
		add(&av, 1, lens[i]);
	expected_runs = (const unsigned[]){5, 3, 2};
	send_through(runs_are_as_expected);
}

static void a_run_goes_one_way(void **state)
{
	struct roci_av shared = elsewhere;

	shared.peer_port = ROCI_UDP_PORT;
	add(&av, 1, 100);
	add(&shared, 1, 100);
	add(&shared, 1, 100);
	add(&shared, 2, 100); /* another process's, perhaps */
	add(&shared, 2, 100);
	expected_runs = (const unsigned[]){1, 2, 2};
	send_through(runs_are_as_expected);
}

/* Packets of several QPs to one process, which the peer's UDP port tells; port 4791 is that of all processes. */
static void a_run_is_for_one_process(void **state)
{
	struct roci_av avs[6];
	static const uint16_t ports[] = {0xc001, 0xc001, 0xc002, ROCI_UDP_PORT, ROCI_UDP_PORT, 0};

	for (unsigned i = 0; i < 6; i++) {
		avs[i] = av;
		avs[i].peer_port = ports[i];
		add(&avs[i], 1 + i, 100);
	}
	expected_runs = (const unsigned[]){2, 1, 1, 1, 1};
	send_through(runs_are_as_expected);
}

/* The first packets of new QPs: their process is not known yet, and most peers of a host are one process. A QP whose
 * peer is known goes apart. */
static void first_packets_of_new_qps_share_a_run(void **state)
{
	struct roci_av avs[5];
	static const uint16_t ports[] = {0, 0, 0, 0xc001, 0};

	for (unsigned i = 0; i < 5; i++) {
		avs[i] = av;
		avs[i].peer_port = ports[i];
		add(&avs[i], 2 + i, 100);
	}
	expected_runs = (const unsigned[]){3, 1, 1};
	send_through(runs_are_as_expected);
}

static void add_ack(const struct roci_av *to, uint32_t qpn)
{
	unsigned i = frame_count++;
	struct roci_packet pkt = {.opcode = ROCI_OP_ACKNOWLEDGE, .dest_qpn = qpn, .psn = i};

	frames[i] = roci_frame(to, headers[i], roci_packet_build(&pkt, headers[i]), spans[i], 0);
}

static void the_ack_is_second(const struct roci_frame *sealed, unsigned count)
{
	assert_int_equal(sealed[1].header[0], ROCI_OP_ACKNOWLEDGE);
	runs_are_as_expected(sealed, count);
}

static void the_ack_is_first(const struct roci_frame *sealed, unsigned count)
{
	assert_int_equal(sealed[0].header[0], ROCI_OP_ACKNOWLEDGE);
	runs_are_as_expected(sealed, count);
}

static void an_acknowledgement_joins_the_packet_behind_it(void **state)
{
	add_ack(&av, 1);
	add(&av, 1, 8);
	expected_runs = (const unsigned[]){2};
	send_through(the_ack_is_second);
	add_ack(&av, 1);
	add(&elsewhere, 1, 8);
	expected_runs = (const unsigned[]){1, 1};
	send_through(the_ack_is_first);
	add_ack(&av, 1);
	add(&av, 1, 0); /* shorter */
	expected_runs = (const unsigned[]){2};
	send_through(the_ack_is_first);
}

static void an_acknowledgement_before_a_stream_stays_first(void **state)
{
	add_ack(&av, 1);
	for (unsigned i = 0; i < 3; i++)
		add(&av, 1, 1024);
	expected_runs = (const unsigned[]){1, 3};
	send_through(the_ack_is_first);
}

static void a_run_fits_in_a_message(void **state)
{
	for (unsigned i = 0; i < 20; i++)
		add(&av, 1, ROCI_MAX_MTU);
	expected_runs = (const unsigned[]){15, 5}; /* of 4,112 bytes each */
	send_through(runs_are_as_expected);
}

static void a_run_is_no_longer_than_the_link_takes(void **state)
{
	static const unsigned ones[] = {1, 1, 1, 1, 1};

	runs_allowed = 1;
	for (unsigned i = 0; i < 5; i++)
		add(&av, 1, 100);
	expected_runs = ones;
	send_through(runs_are_as_expected);
	runs_allowed = ROCI_LINK_MAX_RUN;
}

/* A router that does not take the first would drop the message, and with it packets that it does take. */
static void what_must_not_be_cut_goes_alone(void **state)
{
	static const unsigned ones[] = {1, 1, 1, 1};

	for (unsigned i = 0; i < 4; i++)
		add(&av, 1, i < 2 ? 4096 : 1024)->whole = true;
	expected_runs = ones;
	send_through(runs_are_as_expected);
}

/* ---- the rest ---- */

static void only_the_second_is_damaged(const struct roci_frame *sealed, unsigned count)
{
	assert_int_equal(frame_difference(&sealed[0]), 0);
	assert_int_equal(frame_difference(&sealed[1]), 0x400);
	assert_int_equal(frame_difference(&sealed[2]), 0);
}

static void damage_is_of_the_icrc(void **state)
{
	for (unsigned i = 0; i < 3; i++)
		add(&av, 1, 99 + i)->icrc_damage = i == 1 ? 0x400 : 0;
	send_through(only_the_second_is_damaged);
}

static void nothing_is_nothing(const struct roci_frame *sealed, unsigned count)
{
	assert_int_equal(count, 0);
}

static void an_empty_batch_and_receives_pass(void **state)
{
	struct roci_datagram in;
	struct roci_link *link;

	send_through(nothing_is_nothing);
	assert_int_equal(roci_seal_open(&below, &link), 0);
	assert_int_equal(roci_link_recv(link, &in), 1);
	assert_int_equal(in.len, 77);
	roci_link_close(link);
}

static void a_packet_alone_is_whole(void **state)
{
	uint8_t bytes[ROCI_MAX_HEADER_BYTES + 300];
	const struct roci_frame *frame = add(&av, 1, 257);
	struct roci_flow flow;

	roci_seal_packet(frame, bytes);
	roci_av_flow(&av, &flow);
	assert_int_equal(icrc_difference(&flow, 0, bytes, frame->len), 0);
	assert_memory_equal(bytes, headers[0], frame->header_len);
	frame_count = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(payload_is_copied_where_it_is_short_or_must_be),
		cmocka_unit_test(a_batch_of_the_longest_has_room),
		cmocka_unit_test(a_run_is_of_one_length_but_the_last),
		cmocka_unit_test(a_run_goes_one_way),
		cmocka_unit_test(a_run_is_for_one_process),
		cmocka_unit_test(first_packets_of_new_qps_share_a_run),
		cmocka_unit_test(an_acknowledgement_joins_the_packet_behind_it),
		cmocka_unit_test(an_acknowledgement_before_a_stream_stays_first),
		cmocka_unit_test(a_run_fits_in_a_message),
		cmocka_unit_test(a_run_is_no_longer_than_the_link_takes),
		cmocka_unit_test(what_must_not_be_cut_goes_alone),
		cmocka_unit_test(damage_is_of_the_icrc),
		cmocka_unit_test(an_empty_batch_and_receives_pass),
		cmocka_unit_test(a_packet_alone_is_whole),
	};

	av.src_port = ROCI_UDP_PORT;
	gid_of("127.77.0.1", av.sgid);
	gid_of("127.77.0.2", av.dgid);
	elsewhere = av;
	gid_of("127.77.0.3", elsewhere.dgid);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
