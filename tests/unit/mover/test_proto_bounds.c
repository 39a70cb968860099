/* SPDX-License-Identifier: BSD-2-Clause */
/* Each value of a message is read up to its bounds, and refused beyond, where nothing else is wrong with the message.
 */
#include "../test.h"

#include <stdlib.h>
#include <string.h>

#include "mover/chunk_cipher.h"
#include "mover/proto.h"

static uint8_t buffer[2 * MOVER_PATH_MAX];

static struct cursor_in reread(const struct cursor_out *out)
{
	assert_false(out->full);
	return cursor_in(buffer, cursor_written(out));
}

#define READ_AGAIN(put, get)                                                                                           \
	do {                                                                                                           \
		struct cursor_out out = cursor_out(buffer, sizeof(buffer));                                            \
		struct cursor_in in;                                                                                   \
		put;                                                                                                   \
		in = reread(&out);                                                                                     \
		return get;                                                                                            \
	} while (0)

/* ---- what stands outside of messages ---- */

static void a_header_has_one_flag(void **state)
{
	uint8_t bytes[PROTO_HEADER_BYTES];
	struct cursor_out out = cursor_out(bytes, sizeof(bytes));
	struct proto_header header;

	proto_put_header(&out, PROTO_PING, false, 0);
	assert_int_equal(proto_get_header(bytes, sizeof(bytes), &header), 0);
	bytes[7] = 2;
	assert_int_equal(proto_get_header(bytes, sizeof(bytes), &header), -EPROTO);
}

static void a_request_is_of_one_of_two_kinds(void **state)
{
	struct proto_request request = {.data = true}, got;
	uint8_t bytes[PROTO_PRIVATE_BYTES];

	proto_put_request(bytes, &request);
	for (unsigned kind = 0; kind <= 3; kind++) {
		bytes[5] = (uint8_t)kind;
		assert_int_equal(proto_get_request(bytes, sizeof(bytes), &got), kind > 1 ? -EPROTO : 0);
		assert_int_equal(got.data, kind == 1);
	}
}

static void a_rejection_is_ours_and_known(void **state)
{
	uint8_t bytes[PROTO_REJECT_BYTES];

	proto_put_reject(bytes, PROTO_REJECT_TICKET);
	assert_int_equal(proto_get_reject(bytes, sizeof(bytes)), PROTO_REJECT_TICKET);
	proto_put_reject(bytes, PROTO_REJECT_TICKET + 1);
	assert_int_equal(proto_get_reject(bytes, sizeof(bytes)), 0);
	proto_put_reject(bytes, PROTO_REJECT_TICKET);
	bytes[0] ^= 1; /* magic */
	assert_int_equal(proto_get_reject(bytes, sizeof(bytes)), 0);
}

static void what_is_done_is_ours_and_of_our_version(void **state)
{
	static const unsigned places[] = {3 /* magic */, 5 /* version */};
	uint8_t bytes[PROTO_DONE_BYTES];
	uint64_t seq;
	uint16_t window;

	for (unsigned i = 0; i < 2; i++) {
		proto_put_done(bytes, 1, 2);
		assert_int_equal(proto_get_done(bytes, sizeof(bytes), &seq, &window), 0);
		bytes[places[i]] ^= 1;
		assert_int_equal(proto_get_done(bytes, sizeof(bytes), &seq, &window), -EPROTO);
	}
}

/* ---- words ---- */

static void words_have_a_longest_length(void **state)
{
	char words[PROTO_MAX_TEXT + 2];

	memset(words, 'a', sizeof(words));
	words[PROTO_MAX_TEXT + 1] = 0;
	assert_int_equal(proto_text(words).len, PROTO_MAX_TEXT);
	words[PROTO_MAX_TEXT - 1] = 0;
	assert_int_equal(proto_text(words).len, PROTO_MAX_TEXT - 1);
	assert_int_equal(proto_text(NULL).len, 0);
}

static void words_that_fill_their_place_are_cut(void **state)
{
	struct proto_text text = proto_text("abcd");
	char to[6] = "zzzzz";

	proto_text_copy(to, 4, &text);
	assert_string_equal(to, "abc");
	assert_int_equal(to[4], 'z');
	proto_text_copy(to, 5, &text);
	assert_string_equal(to, "abcd");
}

static void printable_is_from_blank_to_tilde(void **state)
{
	struct proto_text text = proto_text("\x1f ~\x7f");
	char to[8];

	proto_text_copy(to, sizeof(to), &text);
	assert_string_equal(to, "? ~?");
}

static void words_that_are_cut_off_are_none(void **state)
{
	static const uint8_t bytes[] = {PROTO_REFUSED, MOVER_MISMATCH, 5, 'a', 'b'};
	struct cursor_in in = cursor_in(bytes, sizeof(bytes));
	struct proto_result result;

	assert_int_equal(proto_get_result(&in, &result, false), -EPROTO);
	assert_int_equal(result.text.len, 0);
}

/* ---- terms ---- */

static void each_flag_of_terms_is_its_own(void **state)
{
	for (unsigned flags = 0; flags < 8; flags++) {
		struct proto_terms t = {.encrypt = flags & 1,
					.checksum = flags & 2,
					.dry_run = flags & 4,
					.qps = 1,
					.windows = 1,
					.max_entries = 1,
					.chunk_bytes = PROTO_MIN_CHUNK},
				   got;
		struct cursor_out out = cursor_out(buffer, sizeof(buffer));
		struct cursor_in in;

		proto_put_terms(&out, &t);
		in = reread(&out);
		assert_int_equal(proto_get_terms(&in, &got), 0);
		assert_true(got.encrypt == t.encrypt && got.checksum == t.checksum && got.dry_run == t.dry_run);
	}
}

/* ---- entries ---- */

static struct mover_entry a_file(void)
{
	return (struct mover_entry){.kind = MOVER_FILE, .size = 5, .name = (const uint8_t *)"a", .name_len = 1};
}

static struct mover_entry a_link(const char *target, size_t len)
{
	return (struct mover_entry){.kind = MOVER_SYMLINK,
				    .size = len,
				    .name = (const uint8_t *)"a",
				    .name_len = 1,
				    .target = (const uint8_t *)target,
				    .target_len = (uint16_t)len};
}

static int entry(const struct mover_entry *e)
{
	struct mover_entry got;

	READ_AGAIN(proto_put_entry(&out, e), proto_get_entry(&in, &got));
}

static void entries_are_bounded(void **state)
{
	struct mover_entry e = a_file();

	assert_int_equal(entry(&e), 0);
	e.size = INT64_MAX;
	assert_int_equal(entry(&e), 0);
	e.size++;
	assert_int_equal(entry(&e), -EPROTO);
	e = a_file(), e.mode = 07777;
	assert_int_equal(entry(&e), 0);
	e.mode++;
	assert_int_equal(entry(&e), -EPROTO);
	e = a_file(), e.mtime_ns = 999999999;
	assert_int_equal(entry(&e), 0);
	e.mtime_ns++;
	assert_int_equal(entry(&e), -EPROTO);
	e = a_file(), e.size = 0, e.kind = MOVER_STREAM;
	assert_int_equal(entry(&e), 0);
	e.kind++;
	assert_int_equal(entry(&e), -EPROTO);
	e = a_file(), e.name = (const uint8_t *)"..", e.name_len = 2;
	assert_int_equal(entry(&e), -EPROTO);
}

static void only_links_have_targets_and_only_files_sizes(void **state)
{
	struct mover_entry e = a_file();

	e.target = (const uint8_t *)"t", e.target_len = 1;
	assert_int_equal(entry(&e), -EPROTO);
	e = a_file(), e.kind = MOVER_FOLDER;
	assert_int_equal(entry(&e), -EPROTO);
	e.size = 0;
	assert_int_equal(entry(&e), 0);
}

static void targets_are_bounded(void **state)
{
	static char longest[MOVER_PATH_MAX + 1];
	struct mover_entry e = a_link("t\x01t", 3);

	memset(longest, 't', sizeof(longest));
	assert_int_equal(entry(&e), 0);
	e.size = 2;
	assert_int_equal(entry(&e), -EPROTO);
	e = a_link("", 0);
	assert_int_equal(entry(&e), -EPROTO);
	e = a_link("t\0t", 3);
	assert_int_equal(entry(&e), -EPROTO);
	e = a_link(longest, MOVER_PATH_MAX);
	assert_int_equal(entry(&e), 0);
	e = a_link(longest, MOVER_PATH_MAX + 1);
	assert_int_equal(entry(&e), -EPROTO);
}

/* ---- results ---- */

static int result(enum proto_verdict verdict, enum mover_status status, bool with_entry)
{
	struct proto_result r = {.entry = 9, .verdict = verdict, .status = status, .text = proto_text("why")}, got;

	READ_AGAIN(proto_put_result(&out, &r, with_entry), proto_get_result(&in, &got, with_entry));
}

static void verdicts_are_bounded(void **state)
{
	assert_int_equal(result((enum proto_verdict)0, MOVER_OK, false), -EPROTO);
	for (unsigned v = PROTO_WANT; v < PROTO_REFUSED; v++)
		assert_int_equal(result((enum proto_verdict)v, MOVER_OK, false), 0);
	assert_int_equal(result(PROTO_VERDICTS, MOVER_OK, false), -EPROTO);
}

static void a_refusal_says_why(void **state)
{
	assert_int_equal(result(PROTO_REFUSED, MOVER_OK, false), -EPROTO);
	assert_int_equal(result(PROTO_REFUSED, MOVER_OK + 1, false), 0);
	assert_int_equal(result(PROTO_REFUSED, MOVER_INTERRUPTED, false), 0);
	assert_int_equal(result(PROTO_REFUSED, MOVER_INTERRUPTED + 1, false), -EPROTO);
}

static void only_a_refusal_says_why(void **state)
{
	struct cursor_out out = cursor_out(buffer, sizeof(buffer));

	proto_put_result(&out, &(struct proto_result){.verdict = PROTO_DONE, .text = proto_text("why")}, true);
	assert_int_equal(cursor_written(&out), 5);
}

static void an_entry_ends_done_or_refused(void **state)
{
	for (unsigned v = PROTO_WANT; v < PROTO_VERDICTS; v++)
		assert_int_equal(result((enum proto_verdict)v, MOVER_MISMATCH, true),
				 v == PROTO_DONE || v == PROTO_REFUSED ? 0 : -EPROTO);
}

/* ---- windows ---- */

static int grant(unsigned window, unsigned lane, uint32_t len)
{
	struct proto_grant g = {.window = (uint16_t)window, .lane = (uint16_t)lane, .len = len}, got;

	READ_AGAIN(proto_put_grant(&out, &g), proto_get_grant(&in, &got));
}

static void grants_are_bounded(void **state)
{
	const uint32_t most = PROTO_MAX_CHUNK + CHUNK_CIPHER_TAG_BYTES;

	assert_int_equal(grant(PROTO_MAX_WINDOWS - 1, MOVER_MAX_QPS - 1, most), 0);
	assert_int_equal(grant(PROTO_MAX_WINDOWS, 0, 0), -EPROTO);
	assert_int_equal(grant(0, MOVER_MAX_QPS, 0), -EPROTO);
	assert_int_equal(grant(0, 0, most + 1), -EPROTO);
}

static int descriptor(unsigned window, unsigned lane, uint32_t bytes, unsigned count)
{
	struct proto_descriptor d = {.window = (uint16_t)window,
				     .lane = (uint16_t)lane,
				     .bytes = bytes,
				     .count = (uint16_t)count},
				got;

	READ_AGAIN(proto_put_descriptor(&out, &d), proto_get_descriptor(&in, &got));
}

static void descriptors_are_bounded(void **state)
{
	assert_int_equal(descriptor(PROTO_MAX_WINDOWS - 1, MOVER_MAX_QPS - 1, PROTO_MAX_CHUNK, PROTO_MAX_SEGMENTS), 0);
	assert_int_equal(descriptor(PROTO_MAX_WINDOWS, 0, 0, 0), -EPROTO);
	assert_int_equal(descriptor(0, MOVER_MAX_QPS, 0, 0), -EPROTO);
	assert_int_equal(descriptor(0, 0, PROTO_MAX_CHUNK + 1, 0), -EPROTO);
	assert_int_equal(descriptor(0, 0, 0, PROTO_MAX_SEGMENTS + 1), -EPROTO);
	assert_int_equal(descriptor(PROTO_NO_WINDOW, 0, 0, 1), 0);
	assert_int_equal(descriptor(PROTO_NO_WINDOW, 0, 1, 1), -EPROTO);
}

/* ---- segments ---- */

static int segment(const struct proto_segment *s)
{
	struct proto_segment got;

	READ_AGAIN(proto_put_segment(&out, s), proto_get_segment(&in, &got));
}

static void each_flag_of_a_segment_is_its_own(void **state)
{
	for (unsigned flags = 0; flags < 4; flags++) {
		struct proto_segment s = {.kind = PROTO_DATA, .last = flags & 1, .sparse = flags & 2}, got;
		struct cursor_out out = cursor_out(buffer, sizeof(buffer));
		struct cursor_in in;

		proto_put_segment(&out, &s);
		in = reread(&out);
		assert_int_equal(proto_get_segment(&in, &got), 0);
		assert_true(got.last == s.last && got.sparse == s.sparse);
		buffer[1] |= 4;
		in = reread(&out);
		assert_int_equal(proto_get_segment(&in, &got), -EPROTO);
	}
}

static void segments_are_of_a_known_kind(void **state)
{
	struct proto_segment s = {.kind = (enum proto_segment_kind)0, .last = true};

	assert_int_equal(segment(&s), -EPROTO);
	s.kind = PROTO_SEGMENT_KINDS;
	assert_int_equal(segment(&s), -EPROTO);
	s.kind = PROTO_KEEP;
	assert_int_equal(segment(&s), 0);
	s.sparse = true; /* only DATA may be */
	assert_int_equal(segment(&s), -EPROTO);
}

static void segments_are_bounded(void **state)
{
	const uint64_t most = INT64_MAX / PROTO_MIN_CHUNK;
	struct proto_segment s = {.kind = PROTO_DATA, .last = true, .len = PROTO_MAX_CHUNK};

	assert_int_equal(segment(&s), 0);
	s.len++;
	assert_int_equal(segment(&s), -EPROTO);
	s.len = 0, s.size = INT64_MAX;
	assert_int_equal(segment(&s), 0);
	s.size++;
	assert_int_equal(segment(&s), -EPROTO);
	s = (struct proto_segment){.kind = PROTO_HOLE, .chunk = most, .count = most};
	assert_int_equal(segment(&s), 0);
	s.chunk++;
	assert_int_equal(segment(&s), -EPROTO);
	s.chunk--, s.count++;
	assert_int_equal(segment(&s), -EPROTO);
	s.count = 0;
	assert_int_equal(segment(&s), -EPROTO);
}

/* ---- the end ---- */

static int end(enum mover_status status)
{
	struct proto_end e = {.status = status, .text = proto_text("an end")}, got;

	READ_AGAIN(proto_put_end(&out, &e), proto_get_end(&in, &got));
}

static void an_end_has_a_known_status(void **state)
{
	assert_int_equal(end(MOVER_OK), 0);
	assert_int_equal(end(MOVER_INTERRUPTED), 0);
	assert_int_equal(end(MOVER_INTERRUPTED + 1), -EPROTO);
}

static void a_ping_says_when_its_sender_gives_up(void **state)
{
	uint8_t bytes[5] = {0};
	struct cursor_out out = cursor_out(bytes, 4);
	uint32_t timeout_ms = 7;

	proto_put_ping(&out, 0x01020304);
	for (size_t len = 0; len <= sizeof(bytes); len++) {
		struct cursor_in in = cursor_in(bytes, len);

		assert_int_equal(proto_get_ping(&in, &timeout_ms), len == 0 || len == 4 ? 0 : -EPROTO);
		if (len == 0 || len == 4)
			assert_int_equal(timeout_ms, len ? 0x01020304 : 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_header_has_one_flag),
		cmocka_unit_test(a_request_is_of_one_of_two_kinds),
		cmocka_unit_test(a_rejection_is_ours_and_known),
		cmocka_unit_test(what_is_done_is_ours_and_of_our_version),
		cmocka_unit_test(words_have_a_longest_length),
		cmocka_unit_test(words_that_fill_their_place_are_cut),
		cmocka_unit_test(printable_is_from_blank_to_tilde),
		cmocka_unit_test(words_that_are_cut_off_are_none),
		cmocka_unit_test(each_flag_of_terms_is_its_own),
		cmocka_unit_test(entries_are_bounded),
		cmocka_unit_test(only_links_have_targets_and_only_files_sizes),
		cmocka_unit_test(targets_are_bounded),
		cmocka_unit_test(verdicts_are_bounded),
		cmocka_unit_test(a_refusal_says_why),
		cmocka_unit_test(only_a_refusal_says_why),
		cmocka_unit_test(an_entry_ends_done_or_refused),
		cmocka_unit_test(grants_are_bounded),
		cmocka_unit_test(descriptors_are_bounded),
		cmocka_unit_test(each_flag_of_a_segment_is_its_own),
		cmocka_unit_test(segments_are_of_a_known_kind),
		cmocka_unit_test(segments_are_bounded),
		cmocka_unit_test(an_end_has_a_known_status),
		cmocka_unit_test(a_ping_says_when_its_sender_gives_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
