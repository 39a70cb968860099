/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Gives any bytes to the mover's readers: messages, requests, tickets and journals. Nothing may be read out of bounds,
 * and what is accepted has to be the same when it is written again.
 *
 * The first byte chooses the reader. With -DROCI_LIBFUZZER and -fsanitize=fuzzer this is a libFuzzer target; without
 * them, a program that mutates good input: fuzz_mover [iterations [seed]].
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mover/journal.h"
#include "mover/proto.h"
#include "seeded.h"

#define MAX_INPUT   4096
#define CHUNK_BYTES 65536

/* Reads one element and writes it again. Returns whether it was accepted. */
typedef bool reader(struct cursor_in *in, struct cursor_out *out);

static bool terms(struct cursor_in *in, struct cursor_out *out)
{
	struct proto_terms t;
	if (proto_get_terms(in, &t))
		return false;
	CHECK(t.qps <= MOVER_MAX_QPS && t.windows <= PROTO_MAX_WINDOWS && t.max_entries <= PROTO_MAX_ENTRIES);
	proto_put_terms(out, &t);
	return true;
}

static bool entry(struct cursor_in *in, struct cursor_out *out)
{
	struct mover_entry e;
	if (proto_get_entry(in, &e))
		return false;
	CHECK(!mover_name_wrong(e.name, e.name_len));
	proto_put_entry(out, &e);
	return true;
}

static bool result(struct cursor_in *in, struct cursor_out *out)
{
	struct proto_result r;
	char text[PROTO_MAX_TEXT + 1];
	if (proto_get_result(in, &r, true))
		return false;
	proto_text_copy(text, sizeof(text), &r.text);
	CHECK(strlen(text) == r.text.len);
	proto_put_result(out, &r, true);
	return true;
}

static bool grant(struct cursor_in *in, struct cursor_out *out)
{
	struct proto_grant g;
	if (proto_get_grant(in, &g))
		return false;
	proto_put_grant(out, &g);
	return true;
}

/* A descriptor and its segments, as the receiver reads them: first checked, then used. */
static bool descriptor(struct cursor_in *in, struct cursor_out *out)
{
	struct proto_descriptor d;
	struct cursor_in segments;
	uint64_t sum = 0;

	if (proto_get_descriptor(in, &d) || proto_get_segments(in, &d, &segments) || proto_get_nothing(in))
		return false;
	proto_put_descriptor(out, &d);
	for (unsigned i = 0; i < d.count; i++) {
		struct proto_segment s;
		CHECK(proto_get_segment(&segments, &s) == 0);
		CHECK(s.chunk <= INT64_MAX / PROTO_MIN_CHUNK && s.count <= INT64_MAX / PROTO_MIN_CHUNK);
		proto_put_segment(out, &s);
		sum += s.len;
	}
	CHECK(sum == d.bytes && segments.at == segments.end && segments.at == in->at);
	return true;
}

static bool end(struct cursor_in *in, struct cursor_out *out)
{
	struct proto_end e;
	if (proto_get_end(in, &e))
		return false;
	proto_put_end(out, &e);
	return true;
}

static bool header(struct cursor_in *in, struct cursor_out *out)
{
	size_t len = (size_t)(in->end - in->at);
	struct proto_header h;
	if (proto_get_header(in->at, len, &h))
		return false;
	CHECK(h.type > 0 && h.type < PROTO_TYPES && h.body_len + PROTO_HEADER_BYTES == len);
	proto_put_header(out, h.type, h.sealed, h.body_len);
	in->at += PROTO_HEADER_BYTES;
	return true;
}

static bool request(struct cursor_in *in, struct cursor_out *out)
{
	struct proto_request r;
	uint8_t *to;
	CHECK(proto_get_answer(in->at, (size_t)(in->end - in->at)) <= (size_t)(in->end - in->at));
	if (proto_get_request(in->at, (size_t)(in->end - in->at), &r))
		return false;
	to = cursor_take(out, PROTO_PRIVATE_BYTES);
	CHECK(to);
	proto_put_request(to, &r);
	in->at += PROTO_PRIVATE_BYTES;
	return true;
}

/* Without a time it has no bytes. */
static bool ping(struct cursor_in *in, struct cursor_out *out)
{
	bool empty = in->at == in->end;
	uint32_t timeout_ms;
	if (proto_get_ping(in, &timeout_ms))
		return false;
	CHECK(!empty || !timeout_ms);
	if (!empty)
		proto_put_ping(out, timeout_ms);
	return true;
}

static reader *const readers[] = {terms, entry, result, grant, descriptor, end, header, request, ping};

#define READERS (sizeof(readers) / sizeof(*readers))

static void ticket(const uint8_t *bytes, size_t len)
{
	struct mover_ticket t, again;
	char line[MOVER_TICKET_CHARS];
	const char *why = NULL;

	if (mover_ticket_parse((const char *)bytes, len, &t, &why)) {
		CHECK(why && *why);
		return;
	}
	mover_ticket_print(&t, line);
	CHECK(mover_ticket_parse(line, strlen(line), &again, &why) == 0);
	CHECK(strcmp(t.host, again.host) == 0 && t.port == again.port);
	CHECK(memcmp(t.secret, again.secret, sizeof(t.secret)) == 0);
}

static int count_record(void *context, uint64_t index, const struct mover_digest *digest)
{
	(void)index, (void)digest;
	++*(unsigned *)context;
	return 0;
}

/* Whatever a journal holds: a record that is added after it is read back. */
static void journal(const uint8_t *bytes, size_t len)
{
	static const struct mover_digest name = {"a name"};
	struct journal j, again;
	unsigned before = 0, after = 0;
	int fd = memfd_create("journal", MFD_CLOEXEC);

	CHECK(fd >= 0 && write(fd, bytes, len) == (ssize_t)len);
	CHECK(mover_journal_open(&j, fd, CHUNK_BYTES, &name, &(struct journal_owner){0}, count_record, &before) == 0);
	CHECK(before <= len / JOURNAL_RECORD_BYTES);
	CHECK(mover_journal_add(&j, 7, &name) == 0 && mover_journal_flush(&j) == 0);
	CHECK(mover_journal_open(&again, fd, CHUNK_BYTES, &name, &(struct journal_owner){0}, count_record, &after) ==
	      0);
	CHECK(after == before + 1);
	close(fd);
}

static bool taken; /* the last input */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	uint8_t written[2 * MAX_INPUT];
	struct cursor_out out = cursor_out(written, sizeof(written));
	struct cursor_in in;
	unsigned which;

	taken = false;
	if (len < 1 || len > MAX_INPUT)
		return 0;
	which = bytes[0] % (READERS + 2);
	if (which == READERS) {
		ticket(bytes + 1, len - 1);
	} else if (which == READERS + 1) {
		journal(bytes + 1, len - 1);
	} else {
		in = cursor_in(bytes + 1, len - 1);
		taken = readers[which](&in, &out);
		if (taken) {
			CHECK(!out.full && cursor_written(&out) == (size_t)(in.at - bytes - 1));
			CHECK(memcmp(written, bytes + 1, cursor_written(&out)) == 0);
		}
	}
	return 0;
}

#ifndef ROCI_LIBFUZZER

/* Good input of each kind, to begin with. */

static void put_good_segments(struct cursor_out *out, uint64_t *seed)
{
	struct proto_segment s[4] = {
		{.kind = PROTO_DATA, .len = 10}, {.kind = PROTO_KEEP}, {.kind = PROTO_HOLE}, {.kind = PROTO_GIVEN_UP}};
	unsigned count = 1 + (unsigned)random_below(seed, 4);

	proto_put_descriptor(out, &(struct proto_descriptor){.bytes = 10, .count = (uint16_t)count});
	for (unsigned i = 0; i < count; i++) {
		s[i].count = 1;
		s[i].last = i == 3 || random_below(seed, 2);
		s[i].entry = i;
		s[i].text = proto_text("why");
		proto_put_segment(out, &s[i]);
	}
}

static size_t put_good_journal(uint8_t *to, uint64_t *seed)
{
	static const struct mover_digest name = {"a name"};
	struct journal j;
	unsigned none = 0;
	int fd = memfd_create("good", MFD_CLOEXEC);
	ssize_t len;

	CHECK(fd >= 0 &&
	      mover_journal_open(&j, fd, CHUNK_BYTES, &name, &(struct journal_owner){0}, count_record, &none) == 0);
	for (size_t i = random_below(seed, 5); i > 0; i--)
		CHECK(mover_journal_add(&j, i, &name) == 0);
	CHECK(mover_journal_flush(&j) == 0);
	len = pread(fd, to, MAX_INPUT - 1, 0);
	CHECK(len >= 0);
	close(fd);
	return (size_t)len;
}

static size_t good(uint8_t *to, unsigned which, uint64_t *seed)
{
	struct cursor_out out = cursor_out(to, MAX_INPUT - 1);
	struct mover_ticket t = {.host = "fe80::1%eth0", .port = 22222};

	switch (which) {
	case 0:
		proto_put_terms(
			&out, &(struct proto_terms){.qps = 1, .windows = 8, .max_entries = 9, .chunk_bytes = 1 << 20});
		break;
	case 1:
		proto_put_entry(&out, &(struct mover_entry){.kind = MOVER_SYMLINK,
							    .size = 4,
							    .name = (const uint8_t *)"a/b/c",
							    .name_len = 5,
							    .target = (const uint8_t *)"../x",
							    .target_len = 4});
		break;
	case 2:
		proto_put_result(&out,
				 &(struct proto_result){
					 .verdict = PROTO_REFUSED, .status = MOVER_LOCAL_IO, .text = proto_text("why")},
				 true);
		break;
	case 3: proto_put_grant(&out, &(struct proto_grant){.len = 1 << 20}); break;
	case 4: put_good_segments(&out, seed); break;
	case 5: proto_put_end(&out, &(struct proto_end){.text = proto_text("the end")}); break;
	case 6: proto_put_header(&out, PROTO_HELLO, false, 0); break;
	case 7: proto_put_request(cursor_take(&out, PROTO_PRIVATE_BYTES), &(struct proto_request){.data = true}); break;
	case 8: proto_put_ping(&out, 5000); break;
	case READERS:
		random_fill(seed, t.secret, sizeof(t.secret));
		mover_ticket_print(&t, (char *)to);
		return strlen((char *)to);
	default: return put_good_journal(to, seed);
	}
	return cursor_written(&out);
}

int main(int argc, char **argv)
{
	struct seeded run = seeded_begin(argc, argv, 200000);
	uint64_t *seed = &run.seed;

	while (seeded_next(&run)) {
		static uint8_t input[MAX_INPUT];
		unsigned which = (unsigned)random_below(seed, READERS + 2);
		size_t len = 1 + good(input + 1, which, seed);
		bool changed = false;
		uint8_t *exact;

		input[0] = (uint8_t)which;
		for (size_t n = random_below(seed, 6); len > 1 && n > 0; n--) {
			size_t at = 1 + random_below(seed, len - 1);
			if (random_below(seed, 2))
				input[at] ^= (uint8_t)(1u << random_below(seed, 8));
			else
				input[at] = (uint8_t)random_next(seed);
			changed = true;
		}
		if (random_below(seed, 4) == 0) {
			len = 1 + random_below(seed, len);
			changed = true;
		}
		exact = malloc(len); /* so that a sanitizer sees any overrun */
		CHECK(exact);
		memcpy(exact, input, len);
		LLVMFuzzerTestOneInput(exact, len);
		CHECK(taken || changed || which >= READERS);
		free(exact);
	}
	return 0;
}

#endif
