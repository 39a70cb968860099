/* SPDX-License-Identifier: BSD-2-Clause */
#include "../test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mover/proto.h"

/* A message or an element: its writer and its reader. */
struct sample {
	const char *name;
	void (*put)(struct cursor_out *out);
	int (*get)(struct cursor_in *in);
};

static void put_a_terms(struct cursor_out *out)
{
	proto_put_terms(out, &(struct proto_terms){.mode = MOVER_READ,
						   .encrypt = true,
						   .qps = 64,
						   .windows = 256,
						   .max_entries = 4096,
						   .chunk_bytes = PROTO_MAX_CHUNK,
						   .session = UINT64_MAX,
						   .entries = 1,
						   .bytes = 2,
						   .transfer = {[0] = 7, [15] = 9}});
}

static int get_a_terms(struct cursor_in *in)
{
	struct proto_terms t;
	int err = proto_get_terms(in, &t);

	if (err)
		return err;
	assert_int_equal(t.mode, MOVER_READ);
	assert_true(t.encrypt && !t.checksum && !t.dry_run);
	assert_int_equal(t.qps, 64);
	assert_int_equal(t.windows, 256);
	assert_int_equal(t.max_entries, 4096);
	assert_int_equal(t.chunk_bytes, PROTO_MAX_CHUNK);
	assert_true(t.session == UINT64_MAX && t.entries == 1 && t.bytes == 2);
	assert_true(t.transfer[0] == 7 && t.transfer[15] == 9 && !t.transfer[1]);
	return 0;
}

static void put_an_entry(struct cursor_out *out)
{
	proto_put_entry(out, &(struct mover_entry){.kind = MOVER_SYMLINK,
						   .mode = 0777,
						   .mtime_s = -5,
						   .mtime_ns = 999999999,
						   .size = 6,
						   .name = (const uint8_t *)"a/\xff",
						   .name_len = 3,
						   .target = (const uint8_t *)"target",
						   .target_len = 6});
}

static int get_an_entry(struct cursor_in *in)
{
	struct mover_entry e;
	int err = proto_get_entry(in, &e);

	if (err)
		return err;
	assert_int_equal(e.kind, MOVER_SYMLINK);
	assert_int_equal(e.mode, 0777);
	assert_true(e.mtime_s == -5 && e.mtime_ns == 999999999 && e.size == 6);
	assert_int_equal(e.name_len, 3);
	assert_memory_equal(e.name, "a/\xff", 3);
	assert_int_equal(e.target_len, 6);
	assert_memory_equal(e.target, "target", 6);
	return 0;
}

static void put_a_result(struct cursor_out *out)
{
	proto_put_result(out,
			 &(struct proto_result){.entry = 0x01020304,
						.verdict = PROTO_REFUSED,
						.status = MOVER_MISMATCH,
						.text = proto_text("why")},
			 true);
}

static int get_a_result(struct cursor_in *in)
{
	struct proto_result r;
	char text[8];
	int err = proto_get_result(in, &r, true);

	if (err)
		return err;
	assert_int_equal(r.entry, 0x01020304);
	assert_int_equal(r.verdict, PROTO_REFUSED);
	assert_int_equal(r.status, MOVER_MISMATCH);
	proto_text_copy(text, sizeof(text), &r.text);
	assert_string_equal(text, "why");
	return 0;
}

static void put_a_grant(struct cursor_out *out)
{
	proto_put_grant(out, &(struct proto_grant){255, 63, PROTO_MAX_CHUNK + 16, UINT64_MAX, UINT32_MAX});
}

static int get_a_grant(struct cursor_in *in)
{
	struct proto_grant g;
	int err = proto_get_grant(in, &g);

	if (!err)
		assert_true(g.window == 255 && g.lane == 63 && g.len == PROTO_MAX_CHUNK + 16 && g.addr == UINT64_MAX &&
			    g.rkey == UINT32_MAX);
	return err;
}

static void put_a_descriptor(struct cursor_out *out)
{
	proto_put_descriptor(out, &(struct proto_descriptor){7, 255, 63, PROTO_MAX_CHUNK, PROTO_MAX_SEGMENTS});
}

static int get_a_descriptor(struct cursor_in *in)
{
	struct proto_descriptor d;
	int err = proto_get_descriptor(in, &d);

	if (!err)
		assert_true(d.seq == 7 && d.window == 255 && d.lane == 63 && d.bytes == PROTO_MAX_CHUNK &&
			    d.count == PROTO_MAX_SEGMENTS);
	return err;
}

static struct proto_segment a_segment(enum proto_segment_kind kind)
{
	struct proto_segment s = {.kind = kind, .last = true, .entry = 9, .chunk = 3, .count = 1};

	memset(&s.whole, 0x77, sizeof(s.whole));
	s.size = 1 << 20;
	if (kind == PROTO_DATA) {
		s.len = 100;
		s.sparse = true;
		memset(&s.digest, 0x66, sizeof(s.digest));
	}
	if (kind == PROTO_KEEP)
		memset(&s.digest, 0x55, sizeof(s.digest));
	if (kind == PROTO_HOLE)
		s.count = 1000;
	if (kind == PROTO_GIVEN_UP) {
		s = (struct proto_segment){.kind = kind, .last = true, .entry = 9, .count = 1};
		s.text = proto_text("gone");
	}
	return s;
}

static void put_segment_of(struct cursor_out *out, enum proto_segment_kind kind)
{
	struct proto_segment s = a_segment(kind);
	proto_put_segment(out, &s);
}

static int get_segment_of(struct cursor_in *in, enum proto_segment_kind kind)
{
	struct proto_segment s, wanted = a_segment(kind);
	int err = proto_get_segment(in, &s);

	if (err)
		return err;
	assert_int_equal(s.kind, kind);
	assert_true(s.last && s.sparse == wanted.sparse && s.entry == 9 && s.chunk == wanted.chunk);
	assert_true(s.count == wanted.count && s.len == wanted.len && s.size == wanted.size);
	assert_memory_equal(&s.digest, &wanted.digest, sizeof(s.digest));
	assert_memory_equal(&s.whole, &wanted.whole, sizeof(s.whole));
	assert_int_equal(s.text.len, wanted.text.len);
	return 0;
}

#define SEGMENT(name, kind)                                                                                            \
	static void put_##name(struct cursor_out *out)                                                                 \
	{                                                                                                              \
		put_segment_of(out, kind);                                                                             \
	}                                                                                                              \
	static int get_##name(struct cursor_in *in)                                                                    \
	{                                                                                                              \
		return get_segment_of(in, kind);                                                                       \
	}
SEGMENT(data, PROTO_DATA)
SEGMENT(keep, PROTO_KEEP)
SEGMENT(hole, PROTO_HOLE)
SEGMENT(given_up, PROTO_GIVEN_UP)

static void put_an_end(struct cursor_out *out)
{
	proto_put_end(out, &(struct proto_end){MOVER_PARTLY, proto_text("text"), 5, UINT64_MAX});
}

static int get_an_end(struct cursor_in *in)
{
	struct proto_end end;
	int err = proto_get_end(in, &end);

	if (!err)
		assert_true(end.status == MOVER_PARTLY && end.text.len == 4 && end.entries == 5 &&
			    end.failed == UINT64_MAX);
	return err;
}

static const struct sample samples[] = {
	{"terms", put_a_terms, get_a_terms},
	{"entry", put_an_entry, get_an_entry},
	{"result", put_a_result, get_a_result},
	{"grant", put_a_grant, get_a_grant},
	{"descriptor", put_a_descriptor, get_a_descriptor},
	{"data", put_data, get_data},
	{"keep", put_keep, get_keep},
	{"hole", put_hole, get_hole},
	{"given up", put_given_up, get_given_up},
	{"end", put_an_end, get_an_end},
};

/* Allocates exactly so many bytes, so that a sanitizer sees a read beyond them. */
static uint8_t *exactly(const uint8_t *bytes, size_t len)
{
	uint8_t *copy = test_malloc(len ? len : 1);

	memcpy(copy, bytes, len);
	return copy;
}

static void all_that_is_written_is_read(void **state)
{
	for (size_t i = 0; i < sizeof(samples) / sizeof(*samples); i++) {
		uint8_t buffer[512];
		struct cursor_out out = cursor_out(buffer, sizeof(buffer));
		struct cursor_in in;

		samples[i].put(&out);
		assert_false(out.full);
		in = cursor_in(buffer, cursor_written(&out));
		assert_int_equal(samples[i].get(&in), 0);
		assert_int_equal(proto_get_nothing(&in), 0);
	}
}

static void nothing_that_is_cut_is_read(void **state)
{
	for (size_t i = 0; i < sizeof(samples) / sizeof(*samples); i++) {
		uint8_t buffer[512];
		struct cursor_out out = cursor_out(buffer, sizeof(buffer));

		samples[i].put(&out);
		for (size_t len = 0; len < cursor_written(&out); len++) {
			uint8_t *bytes = exactly(buffer, len);
			struct cursor_in in = cursor_in(bytes, len);

			assert_int_equal(samples[i].get(&in), -EPROTO);
			test_free(bytes);
		}
	}
}

static void a_writer_without_room_says_so(void **state)
{
	for (size_t i = 0; i < sizeof(samples) / sizeof(*samples); i++) {
		uint8_t buffer[512];
		struct cursor_out out = cursor_out(buffer, sizeof(buffer));
		size_t len;

		samples[i].put(&out);
		len = cursor_written(&out);
		for (size_t room = 0; room < len; room++) {
			uint8_t *bytes = exactly(buffer, room);

			out = cursor_out(bytes, room);
			samples[i].put(&out);
			assert_true(out.full);
			test_free(bytes);
		}
	}
}

static void headers(void **state)
{
	uint8_t bytes[PROTO_HEADER_BYTES + 5] = {0};
	struct cursor_out out = cursor_out(bytes, PROTO_HEADER_BYTES);
	struct proto_header header;

	proto_put_header(&out, PROTO_ACK, true, 5);
	assert_int_equal(proto_get_header(bytes, sizeof(bytes), &header), 0);
	assert_true(header.type == PROTO_ACK && header.sealed && header.body_len == 5);
	for (size_t len = 0; len < sizeof(bytes); len++) {
		uint8_t *cut = exactly(bytes, len);

		assert_int_equal(proto_get_header(cut, len, &header), -EPROTO);
		test_free(cut);
	}
	/* every bit of magic, version, type, flags and length, except those that give another valid header */
	for (size_t bit = 0; bit < 8 * PROTO_HEADER_BYTES; bit++) {
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		if (proto_get_header(bytes, sizeof(bytes), &header) == 0)
			assert_true((header.type != PROTO_ACK && header.type < PROTO_TYPES) || !header.sealed);
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	bytes[5] = 0;
	assert_int_equal(proto_get_header(bytes, sizeof(bytes), &header), -EPROTO);
	bytes[5] = PROTO_TYPES;
	assert_int_equal(proto_get_header(bytes, sizeof(bytes), &header), -EPROTO);
}

static void requests_and_rejections(void **state)
{
	struct proto_request request = {.data = true, .index = 7, .session = 5, .token = "fifteen letters"}, got;
	uint8_t bytes[56] = {0}, reject[PROTO_REJECT_BYTES];

	proto_put_request(bytes, &request);
	assert_int_equal(proto_get_request(bytes, PROTO_PRIVATE_BYTES, &got), 0);
	assert_true(got.data && got.index == 7 && got.session == 5);
	assert_memory_equal(got.token, request.token, SECURE_TOKEN_BYTES);
	assert_int_equal(proto_get_request(bytes, sizeof(bytes), &got), 0); /* rdma_cm's padding */
	assert_int_equal(proto_get_request(NULL, 0, &got), -EPROTO);
	for (size_t len = 0; len < PROTO_PRIVATE_BYTES; len++)
		assert_int_equal(proto_get_request(bytes, len, &got), -EPROTO);
	bytes[4]++; /* version */
	assert_int_equal(proto_get_request(bytes, sizeof(bytes), &got), -EPROTO);
	for (unsigned reason = PROTO_REJECT_BUSY; reason <= PROTO_REJECT_DEVICE; reason++) {
		proto_put_reject(reject, (enum proto_reject)reason);
		assert_int_equal(proto_get_reject(reject, sizeof(reject)), reason);
	}
	/* rejections by other programs are not ours */
	assert_int_equal(proto_get_reject("whatever", 8), 0);
	assert_int_equal(proto_get_reject(NULL, 0), 0);
}

static void answers_tell_their_length(void **state)
{
	uint8_t answer[PROTO_ANSWER_BYTES] = {22, 3, 1, 0, 100};

	assert_int_equal(proto_get_answer(answer, sizeof(answer)), 105); /* rdma_cm's padding */
	assert_int_equal(proto_get_answer(answer, 105), 105);
	for (size_t len = 0; len < 105; len++)
		assert_int_equal(proto_get_answer(answer, len), 0);
	answer[3] = 1;
	assert_int_equal(proto_get_answer(answer, sizeof(answer)), 0);
}

static void done(void **state)
{
	uint8_t bytes[PROTO_DONE_BYTES + 1] = {0};
	uint64_t seq;
	uint16_t window;

	proto_put_done(bytes, UINT64_MAX - 1, 300);
	assert_int_equal(proto_get_done(bytes, PROTO_DONE_BYTES, &seq, &window), 0);
	assert_true(seq == UINT64_MAX - 1 && window == 300);
	for (size_t len = 0; len <= sizeof(bytes); len++)
		if (len != PROTO_DONE_BYTES)
			assert_int_equal(proto_get_done(bytes, len, &seq, &window), -EPROTO);
}

static void lists(void **state)
{
	static const struct {
		uint32_t first;
		uint16_t count, max;
		int result;
	} cases[] = {
		{0, 1, 1, 0},
		{0, 0, 9, -EPROTO},
		{5, 2, 1, -EPROTO},
		{5, 65535, 65535, 0},
		{UINT32_MAX, 1, 9, -EPROTO},
		{UINT32_MAX - 1, 1, 9, 0},
		{1, 65535, 4096, -EPROTO},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint8_t bytes[6];
		struct cursor_out out = cursor_out(bytes, sizeof(bytes));
		struct cursor_in in = cursor_in(bytes, sizeof(bytes));
		uint32_t first;
		uint16_t count;

		put_u32(&out, cases[i].first);
		put_u16(&out, cases[i].count);
		assert_int_equal(proto_get_list(&in, &first, &count, cases[i].max), cases[i].result);
		in = cursor_in(bytes, 5);
		assert_int_equal(proto_get_list(&in, &first, &count, cases[i].max), -EPROTO);
	}
}

static int check_segments(const struct proto_segment *segments, unsigned written, unsigned says, uint32_t bytes)
{
	struct proto_descriptor d = {.bytes = bytes, .count = (uint16_t)says};
	uint8_t buffer[1024];
	struct cursor_out out = cursor_out(buffer, sizeof(buffer));
	struct cursor_in in, list;

	for (unsigned i = 0; i < written; i++)
		proto_put_segment(&out, &segments[i]);
	in = cursor_in(buffer, cursor_written(&out));
	return proto_get_segments(&in, &d, &list) ? -EPROTO : proto_get_nothing(&in);
}

/* Each descriptor's segments end where the next descriptor begins. */
static void descriptors_follow_each_other(void **state)
{
	struct proto_segment s = a_segment(PROTO_DATA);
	struct proto_descriptor d = {.bytes = 2 * s.len, .count = 2}, next;
	uint8_t buffer[1024];
	struct cursor_out out = cursor_out(buffer, sizeof(buffer));
	struct cursor_in in, list;
	size_t len;

	proto_put_segment(&out, &s);
	proto_put_segment(&out, &s);
	len = cursor_written(&out);
	proto_put_descriptor(&out, &(struct proto_descriptor){.seq = 7, .window = PROTO_NO_WINDOW});
	assert_int_equal(cursor_written(&out) - len, PROTO_DESCRIPTOR_BYTES);
	in = cursor_in(buffer, cursor_written(&out));
	assert_int_equal(proto_get_segments(&in, &d, &list), 0);
	assert_true(list.at == buffer && list.end == buffer + len && in.at == list.end);
	assert_int_equal(proto_get_descriptor(&in, &next), 0);
	assert_int_equal(next.seq, 7);
	assert_int_equal(proto_get_nothing(&in), 0);
	out = cursor_out(buffer, sizeof(buffer));
	proto_put_grant(&out, &(struct proto_grant){0});
	assert_int_equal(cursor_written(&out), PROTO_GRANT_BYTES);
}

static void sums_that_lie(void **state)
{
	struct proto_segment s[3] = {a_segment(PROTO_DATA), a_segment(PROTO_HOLE), a_segment(PROTO_DATA)};

	assert_int_equal(check_segments(s, 3, 3, 200), 0);
	assert_int_equal(check_segments(s, 3, 3, 199), -EPROTO);
	assert_int_equal(check_segments(s, 3, 2, 100), -EPROTO); /* more bytes follow */
	assert_int_equal(check_segments(s, 2, 3, 200), -EPROTO);
	assert_int_equal(check_segments(s, 3, 0, 0), -EPROTO);
	s[0].len = PROTO_MAX_CHUNK + 1;
	assert_int_equal(check_segments(s, 1, 1, PROTO_MAX_CHUNK + 1), -EPROTO);
	s[0].len = UINT32_MAX; /* with the other, 32 bits would overflow to 99 */
	assert_int_equal(check_segments(s, 3, 3, 99), -EPROTO);
}

static void products_cannot_overflow(void **state)
{
	struct proto_segment s = a_segment(PROTO_HOLE);

	assert_int_equal(check_segments(&s, 1, 1, 0), 0);
	s.count = 0;
	assert_int_equal(check_segments(&s, 1, 1, 0), -EPROTO);
	s.count = INT64_MAX / PROTO_MIN_CHUNK + 1;
	assert_int_equal(check_segments(&s, 1, 1, 0), -EPROTO);
	s.count = 1;
	s.chunk = UINT64_MAX;
	assert_int_equal(check_segments(&s, 1, 1, 0), -EPROTO);
	s.chunk = 0;
	s.size = UINT64_MAX;
	assert_int_equal(check_segments(&s, 1, 1, 0), -EPROTO);
}

static void words_are_fit_for_a_terminal(void **state)
{
	struct proto_text text = proto_text("a\x1b[31m\n\xc3\xa4z");
	char to[64], small[4];

	proto_text_copy(to, sizeof(to), &text);
	assert_string_equal(to, "a?[31m???z");
	proto_text_copy(small, sizeof(small), &text);
	assert_string_equal(small, "a?[");
	text = (struct proto_text){NULL, 0};
	proto_text_copy(to, sizeof(to), &text);
	assert_string_equal(to, "");
}

/* Reads the terms whose bytes `at`, so many, are `value`. */
static int get_changed_terms(unsigned at, unsigned bytes, uint64_t value, struct proto_terms *t)
{
	uint8_t buffer[512];
	struct cursor_out out = cursor_out(buffer, sizeof(buffer));
	struct cursor_in in;

	put_a_terms(&out);
	while (bytes-- > 0) {
		buffer[at + bytes] = (uint8_t)value;
		value >>= 8;
	}
	in = cursor_in(buffer, cursor_written(&out));
	return proto_get_terms(&in, t);
}

/* Each value is read up to its bounds, and refused beyond. */
static void terms_are_bounded(void **state)
{
	static const struct {
		unsigned at, bytes;
		uint64_t least, most, below, above;
	} fields[] = {
		{0, 1, MOVER_WRITE, MOVER_SEND, MOVER_SEND + 1, MOVER_SEND + 1},
		{1, 1, 0, 7, 8, 8}, /* flags */
		{2, 2, 1, MOVER_MAX_QPS, 0, MOVER_MAX_QPS + 1},
		{4, 2, 1, PROTO_MAX_WINDOWS, 0, PROTO_MAX_WINDOWS + 1},
		{6, 2, 1, PROTO_MAX_ENTRIES, 0, PROTO_MAX_ENTRIES + 1},
		{8, 4, PROTO_MIN_CHUNK, PROTO_MAX_CHUNK, PROTO_MIN_CHUNK / 2, PROTO_MAX_CHUNK * 2},
		{8, 4, PROTO_MIN_CHUNK, PROTO_MAX_CHUNK, PROTO_MIN_CHUNK + 2, PROTO_MAX_CHUNK - 1},
	};
	struct proto_terms t;

	for (unsigned i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		assert_int_equal(get_changed_terms(fields[i].at, fields[i].bytes, fields[i].least, &t), 0);
		assert_int_equal(get_changed_terms(fields[i].at, fields[i].bytes, fields[i].most, &t), 0);
		assert_int_equal(get_changed_terms(fields[i].at, fields[i].bytes, fields[i].below, &t), -EPROTO);
		assert_int_equal(get_changed_terms(fields[i].at, fields[i].bytes, fields[i].above, &t), -EPROTO);
	}
	assert_int_equal(get_changed_terms(1, 1, 0, &t), 0);
	assert_true(!t.encrypt && !t.checksum && !t.dry_run);
	assert_int_equal(get_changed_terms(1, 1, 7, &t), 0);
	assert_true(t.encrypt && t.checksum && t.dry_run);
}

static void every_type_has_a_name(void **state)
{
	for (unsigned type = 1; type < PROTO_TYPES; type++)
		assert_non_null(proto_type_name((enum proto_type)type));
	assert_null(proto_type_name(PROTO_TYPES));
	assert_null(proto_type_name((enum proto_type) - 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_that_is_written_is_read),
		cmocka_unit_test(nothing_that_is_cut_is_read),
		cmocka_unit_test(a_writer_without_room_says_so),
		cmocka_unit_test(headers),
		cmocka_unit_test(requests_and_rejections),
		cmocka_unit_test(answers_tell_their_length),
		cmocka_unit_test(done),
		cmocka_unit_test(lists),
		cmocka_unit_test(descriptors_follow_each_other),
		cmocka_unit_test(sums_that_lie),
		cmocka_unit_test(products_cannot_overflow),
		cmocka_unit_test(words_are_fit_for_a_terminal),
		cmocka_unit_test(terms_are_bounded),
		cmocka_unit_test(every_type_has_a_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
