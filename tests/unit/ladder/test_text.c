/* SPDX-License-Identifier: BSD-2-Clause */
/* Life lines, what is said of packets and events, and the drawing in characters. */
#include "drawn.h"

#include <errno.h>
#include <string.h>

static char text[20000];

static void test_ends(void **state)
{
	begin();
	see(CAPTURE_OUTBOUND, ask(ROCI_OP_SEND_ONLY, 5), 1);
	see(CAPTURE_INBOUND, ask(ROCI_OP_SEND_ONLY, 5), 2);
	finish();
	assert_int_equal(d.l->line_count, 2);
	assert_string_equal(ladder_text(d.l, d.l->lines[d.l->packets[0].from].name), "program 1");
	assert_string_equal(ladder_text(d.l, d.l->lines[d.l->packets[0].to].name), "program 2");
	assert_string_equal(ladder_text(d.l, d.l->lines[d.l->packets[0].to].about), "pid 2, 10.0.0.2");
	assert_int_equal(d.l->packet_count, 1); /* one arrow: it left, and it arrived */
	assert_int_equal(d.l->packets[0].arrived_ns - d.l->packets[0].sent_ns, US);
}

/* Without records the addresses are the ends. */
static void test_addresses(void **state)
{
	see(CAPTURE_PASSING, ask(ROCI_OP_SEND_ONLY, 5), 0);
	see(CAPTURE_PASSING, answer(5, 0x1f), 0);
	finish();
	assert_int_equal(d.l->line_count, 2);
	assert_string_equal(ladder_text(d.l, d.l->lines[0].name), "10.0.0.1");
	assert_int_equal(d.l->packets[1].from, d.l->packets[0].to);
}

/* A text that is too long ends with an ellipsis: a number is whole, or seen to be cut. */
static void test_cut(void **state)
{
	begin();
	see(CAPTURE_OUTBOUND, ask(ROCI_OP_SEND_ONLY, 12345678), 1);
	finish();
	draw_text(text, sizeof(text), 100);
	assert_non_null(strstr(text, " SEND Only 64 B, PSN 12345678 "));
	draw_text(text, sizeof(text), 76);
	assert_non_null(strstr(text, "SEND Only 64 B, PSN…"));
}

/* Where there is little room, neither of two heads is pushed aside by the other. */
static void test_narrow_heads(void **state)
{
	begin();
	for (uint32_t pid = 1; pid <= 2; pid++) {
		struct roci_record r = record_of(ROCI_RECORD_PROCESS, pid);

		snprintf(r.text, sizeof(r.text), "a longer program %u", pid);
		tell(&r);
	}
	see(CAPTURE_OUTBOUND, ask(ROCI_OP_SEND_ONLY, 5), 1);
	see(CAPTURE_INBOUND, ask(ROCI_OP_SEND_ONLY, 5), 2);
	finish();
	draw_text(text, sizeof(text), 60);
	assert_non_null(strstr(text, "\n                 a longer program 1  a longer program 2\n"));
}

static void test_refusal(void **state)
{
	begin();
	see(CAPTURE_OUTBOUND, ask(ROCI_OP_SEND_ONLY, 5), 1);
	see(CAPTURE_OUTBOUND, answer(5, 0x62), 2);
	finish();
	draw_text(text, sizeof(text), 200);
	assert_non_null(strstr(text, "NAK: remote access error"));
	assert_non_null(strstr(text, "Likely causes:"));
}

/* More than there is room for is said, in text that any reader may have. */
static void test_notes(void **state)
{
	char note[LADDER_NOTE_CHARS];

	for (uint32_t i = 0; i < 103; i++)
		see(CAPTURE_OUTBOUND, ask(ROCI_OP_SEND_ONLY, i), 0);
	finish();
	assert_true(ladder_note(d.l, 0, note));
	assert_string_equal(note, "Left out: 3 packets after the first 100 (--max-packets).");
	assert_false(ladder_note(d.l, 1, note));
}

static void test_many_ends(void **state)
{
	FILE *out = fmemopen(text, sizeof(text), "w");

	for (unsigned i = 0; i < LADDER_TEXT_LINES; i++) {
		const struct roci_packet pkt = {.opcode = 4, .pkey = 0xffff, .dest_qpn = 0x22, .payload_len = 4};

		see(CAPTURE_PASSING, make_roce(d.packet, 10 + i, 9, &pkt), 0);
	}
	finish();
	assert_int_equal(d.l->line_count, LADDER_TEXT_LINES + 1);
	assert_int_equal(ladder_write_text(d.l, &(const struct ladder_text_options){.columns = 80}, out), -E2BIG);
	assert_int_equal(ftell(out), 0);
	fclose(out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_ends),         TEST(test_addresses), TEST(test_cut),
					   TEST(test_narrow_heads), TEST(test_refusal),   TEST(test_notes),
					   TEST(test_many_ends)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
