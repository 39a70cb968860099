/* SPDX-License-Identifier: BSD-2-Clause */
/* Wrong content: descriptors, windows, and the end. */
#include <stdio.h>

#include "hostile_sender.h"
#include "honest_sender.h"
#include "mover/chain.h"
#include "mover/chunk_cipher.h"

static struct hostile *const h = &hostile;

static void lying_digest(void)
{
	struct proto_segment segment;
	struct proto_descriptor d = honest_content(&segment);
	struct proto_result r;

	(hostile_variant ? &segment.whole : &segment.digest)->bytes[3] ^= 1;
	honest_fin(&d, &segment);
	r = honest_result();
	MUST(r.verdict == PROTO_REFUSED && r.status == MOVER_MISMATCH);
}

/* Offers the file again, as its own first bytes: their digest would tell the content byte by byte. The receiver has no
 * --compare, so it sends no digest at all. */
static void reading_by_digests(void)
{
	static const uint64_t prefixes[] = {1, 9, 10};
	struct proto_terms terms = honest_terms(MOVER_WRITE);
	struct mover_entry e = honest_file("file", 10);
	struct proto_segment segment;
	struct proto_descriptor d = {.bytes = 10, .count = 1};

	terms.checksum = true;
	honest_lanes_with(&terms);
	honest_take_grants();
	if (honest_verdict(0, &e) == PROTO_WANT) { /* a variant before this one has not stored it */
		memcpy(h->memory, "0123456789", 10);
		segment = honest_segment(0, 10);
		honest_write(10);
		hostile_done(h, 0, 0, honest_grants[0].window);
		d.window = honest_grants[0].window;
		honest_fin(&d, &segment);
		MUST(honest_result().verdict == PROTO_DONE);
	}
	e.size = prefixes[hostile_variant];
	e.mtime_ns = 1;
	MUST(honest_verdict(1, &e) == PROTO_WANT);
	MUST(!h->digests && !h->terms.checksum);
}

static void lying_descriptor(void)
{
	struct proto_segment segment[2];
	struct proto_descriptor d = honest_content(segment);

	switch (hostile_variant) {
	case 0: d.seq = 1; break;
	case 1: d.window = 255; break;
	case 2: d.window = PROTO_NO_WINDOW; break;
	case 3: d.bytes = 11; break;
	case 4: d.bytes = d.bytes - 1; break;
	case 5: d.lane = 1; break;
	case 6: d.count = 0; break;
	case 7: segment[1] = segment[0], d.count = 2; break;
	case 8: segment->entry = 1; break;
	case 9: segment->entry = UINT32_MAX; break;
	case 10: segment->chunk = 1; break;
	case 11: segment->size = 11; break;
	case 12: segment->last = false; break;
	case 13: segment->kind = PROTO_KEEP; break;
	case 14:
		segment->kind = PROTO_HOLE, segment->count = INT64_MAX / PROTO_MIN_CHUNK, d.bytes = 0,
		d.window = PROTO_NO_WINDOW;
		break;
	case 15: segment->kind = PROTO_KEEP, d.bytes = 0, d.window = PROTO_NO_WINDOW; break;
	case 16: segment->kind = (enum proto_segment_kind)9; break;
	case 17: segment->len = 0x80000000u, d.bytes = 0x80000000u; break;
	}
	honest_fin(&d, segment);
}

/* Not hostile: says in one message what is in several windows, and in none. As many may wait as the receiver takes: the
 * first waits for its content. The second file is a hole. Or there is one too many. */
static void waiting_together(bool too_many)
{
	struct mover_entry file = honest_file("file", 10), hole;
	unsigned chunks;
	struct proto_descriptor d = {.bytes = 10, .count = 1};
	struct proto_segment s;
	struct cursor_out *out;

	honest_lanes(MOVER_WRITE);
	honest_take_grants();
	chunks = h->control.peer_takes - 1u + too_many;
	MUST(h->control.peer_takes >= PROTO_DESCRIPTORS);
	hole = honest_file("way", chunks * (uint64_t)PROTO_MIN_CHUNK);
	MUST(honest_verdict(0, &file) == PROTO_WANT && honest_verdict(1, &hole) == PROTO_WANT);
	memcpy(h->memory, "0123456789", 10);
	s = honest_segment(0, 10);
	d.window = honest_grants[0].window;
	out = hostile_begin(h, PROTO_FIN);
	proto_put_descriptor(out, &d);
	proto_put_segment(out, &s);
	s = (struct proto_segment){.kind = PROTO_HOLE, .entry = 1, .count = 1, .size = hole.size};
	for (unsigned i = 0; i < chunks; i++) {
		s.chunk = i;
		s.last = i == chunks - 1;
		chain_hole(&s.whole, 1);
		proto_put_descriptor(out,
				     &(struct proto_descriptor){.seq = 1 + i, .window = PROTO_NO_WINDOW, .count = 1});
		proto_put_segment(out, &s);
	}
	hostile_send(h);
}

static void several_in_a_fin(void)
{
	struct proto_result r;

	waiting_together(false);
	honest_write(10);
	hostile_done(h, 0, 0, honest_grants[0].window);
	r = honest_result();
	MUST(r.verdict == PROTO_DONE);
}

static void too_many_in_a_fin(void)
{
	waiting_together(true);
}

/* The second in a message is wrong. */
static void lying_second(void)
{
	struct proto_segment segment;
	struct proto_descriptor d = honest_content(&segment);
	struct cursor_out *out = hostile_begin(h, PROTO_FIN);

	proto_put_descriptor(out, &d);
	proto_put_segment(out, &segment);
	switch (hostile_variant) {
	case 0: d.seq = 2; break; /* the next is 1 */
	case 1: d.seq = 0; break;
	case 2: d.seq = 1; break; /* of the same window */
	case 3: put_u64(out, 1); break;
	}
	if (hostile_variant < 3) {
		proto_put_descriptor(out, &d);
		proto_put_segment(out, &segment);
	}
	hostile_send(h);
}

/* For a window into which nothing has come yet, so that the first still waits when the second comes. */
static void fin_twice(void)
{
	struct mover_entry e = honest_file("file", 10);
	struct proto_descriptor d = {.bytes = 10, .count = 1};
	struct proto_segment segment;

	honest_lanes(MOVER_WRITE);
	honest_take_grants();
	MUST(honest_verdict(0, &e) == PROTO_WANT);
	segment = honest_segment(0, 10);
	d.window = honest_grants[0].window;
	honest_fin(&d, &segment);
	d.seq = 1;
	honest_fin(&d, &segment);
}

static void done_twice(void)
{
	struct proto_segment segment;
	honest_content(&segment);
	hostile_done(h, 0, 0, honest_grants[0].window);
}

static void done_of_no_window(void)
{
	honest_lanes(MOVER_WRITE);
	honest_take_grants();
	hostile_done(h, 0, 0, 200);
}

static void write_beyond(void)
{
	honest_lanes(MOVER_WRITE);
	honest_take_grants();
	hostile_post(h, 0, &honest_grants[0], hostile_variant ? UINT64_C(0) - 64 : honest_grants[0].len - 63, 64);
}

static void write_too_late(void)
{
	struct proto_segment segment;
	struct proto_descriptor d = honest_content(&segment);
	honest_fin(&d, &segment);
	MUST(honest_result().verdict == PROTO_DONE);
	hostile_post(h, 0, &honest_grants[0], 0, 10);
}

static void read_of_nothing(void)
{
	struct proto_segment segment;
	struct proto_grant grant = {
		.len = 10 + CHUNK_CIPHER_TAG_BYTES, .addr = (uintptr_t)h->memory, .rkey = 0x12345678};
	struct mover_entry e = honest_file("file", 10);
	struct cursor_out *out;

	honest_lanes(MOVER_READ);
	MUST(honest_verdict(0, &e) == PROTO_WANT);
	segment = honest_segment(0, 10);
	if (hostile_variant)
		grant.rkey = h->mr->rkey, grant.addr = (uintptr_t)h->memory + HOSTILE_BYTES * 2;
	out = hostile_begin(h, PROTO_GRANT);
	put_u16(out, 1);
	proto_put_grant(out, &grant);
	proto_put_descriptor(out, &(struct proto_descriptor){.bytes = 10, .count = 1});
	proto_put_segment(out, &segment);
	hostile_send(h);
}

/* In mode READ: says a wrong number of windows. */
static void lying_read_grant(void)
{
	struct proto_grant grant = {.len = 10 + CHUNK_CIPHER_TAG_BYTES};
	static const uint16_t counts[] = {0, 2, 0xffff, 1};
	struct mover_entry e = honest_file("file", 10);
	struct proto_segment segment;
	struct cursor_out *out;

	honest_lanes(MOVER_READ);
	MUST(honest_verdict(0, &e) == PROTO_WANT);
	segment = honest_segment(0, 10);
	grant.addr = (uintptr_t)h->memory;
	grant.rkey = h->mr->rkey;
	out = hostile_begin(h, PROTO_GRANT);
	put_u16(out, counts[hostile_variant]);
	for (unsigned i = 0; i < 1 + (hostile_variant == 3); i++) {
		proto_put_grant(out, &grant);
		proto_put_descriptor(out, &(struct proto_descriptor){.seq = i, .bytes = 10, .count = 1});
		proto_put_segment(out, &segment);
	}
	hostile_send(h);
}

static void send_other_lengths(void)
{
	struct mover_entry e = honest_file("file", 10);
	struct proto_segment segment;

	honest_lanes(MOVER_SEND);
	honest_take_grants();
	MUST(honest_verdict(0, &e) == PROTO_WANT);
	segment = honest_segment(0, 10);
	hostile_post(h, 0, NULL, 0, hostile_variant ? honest_grants[0].len + 1 : 9);
	honest_fin(&(struct proto_descriptor){.window = honest_grants[0].window, .bytes = 10, .count = 1}, &segment);
}

/* Says END, which only a receiver says; with a file under way, and without. */
static void senders_end(void)
{
	struct mover_entry e = honest_file("file", 10);
	honest_lanes(MOVER_WRITE);
	if (hostile_variant)
		MUST(honest_verdict(0, &e) == PROTO_WANT);
	proto_put_end(hostile_begin(h, PROTO_END), &(struct proto_end){.status = MOVER_OK});
	hostile_send(h);
}

/* Not hostile: does not ask for END, and gets it; with a file, and without. */
static void end_unasked(void)
{
	struct proto_terms terms = honest_terms(MOVER_WRITE);
	struct mover_entry e = honest_file("file", 10);
	struct proto_segment segment;
	struct proto_descriptor d;

	terms.entries = hostile_variant;
	honest_lanes_with(&terms);
	if (hostile_variant) {
		MUST(honest_verdict_and_grants(0, &e) == PROTO_WANT);
		d = honest_write_file(&segment);
		honest_fin(&d, &segment);
	}
	MUST(hostile_expect(h, PROTO_END));
	hostile_begin(h, PROTO_BYE);
	hostile_send(h);
}

/* Says that it has an END that nobody has sent; with a file under way, and without. */
static void bye_too_early(void)
{
	struct mover_entry e = honest_file("file", 10);

	honest_lanes(MOVER_WRITE);
	if (hostile_variant)
		MUST(honest_verdict(0, &e) == PROTO_WANT);
	hostile_begin(h, PROTO_BYE);
	hostile_send(h);
}

/* Offers folders, as many at a time as the terms allow; `count` is a multiple of that. */
static void offer_folders(uint32_t count)
{
	uint16_t group = h->terms.max_entries;
	char name[64];

	for (uint32_t i = 0; i < count; i++) {
		struct mover_entry e;

		snprintf(name, sizeof(name), i ? "way/%u" : "way", i);
		e = honest_file(name, 0);
		e.kind = MOVER_FOLDER;
		e.mode = 0755;
		proto_put_entry(i % group ? &h->control.out : honest_begin_offer(i, group), &e);
		if (i % group != group - 1u)
			continue;
		hostile_send(h);
		MUST(hostile_expect(h, PROTO_VERDICT));
	}
}

/* Disconnects while its folders get their modes and times. The receiver may free their names only after that. */
static void gone_while_finishing(void)
{
	struct proto_terms terms = honest_terms(MOVER_WRITE);

	terms.entries = 4000;
	honest_lanes_with(&terms);
	MUST(h->terms.max_entries == 16); /* even if the receiver has few file descriptors */
	offer_folders(4000);
	/* It returns credits at the end of a round, and in this round it has begun to finish folders. */
	for (unsigned i = 0; i < PROTO_CREDITS / 2; i++) {
		hostile_begin(h, PROTO_PING);
		hostile_send(h);
	}
	MUST(hostile_expect(h, PROTO_PING));
	connection_disconnect(&h->control.conn);
}

#define HUGE_BYTES  ((UINT64_C(16) << 40) - (1 << 20))
#define HUGE_CHUNKS ((HUGE_BYTES - 1) / PROTO_MIN_CHUNK + 1)

static struct mover_entry huge_file(char name[32], uint32_t number)
{
	snprintf(name, 32, "huge %u", number);
	return honest_file(name, HUGE_BYTES);
}

/* Waits for the answer to an offer, and returns the credits of the messages before it. */
static void huge_answer(void)
{
	do {
		hostile_begin(h, PROTO_PING);
		hostile_send(h);
		MUST(hostile_next(h) && !h->error);
	} while (h->type != PROTO_VERDICT);
}

/* The whole file is a hole. */
static void huge_hole(uint32_t entry)
{
	struct proto_descriptor d = {.seq = entry, .window = PROTO_NO_WINDOW, .count = 1};
	struct proto_segment segment = {
		.kind = PROTO_HOLE, .last = true, .entry = entry, .count = HUGE_CHUNKS, .size = HUGE_BYTES};

	chain_hole(&segment.whole, HUGE_CHUNKS);
	honest_fin(&d, &segment);
	MUST(honest_result().verdict == PROTO_DONE);
}

/* Announces up to a thousand files of 16 TiB, makes some of them from one hole, and offers these again, so that the
 * receiver compares. What it remembers must not depend on such sizes; the caller looks at its memory. */
static void huge_files(void)
{
	enum { FILES = 1000, HOLES = 4 };
	struct proto_terms terms = honest_terms(MOVER_WRITE);
	struct mover_entry e;
	uint32_t files;
	char name[32];

	terms.entries = FILES + HOLES;
	terms.max_entries = FILES;
	terms.checksum = true;
	honest_lanes_with(&terms);
	files = h->terms.max_entries; /* fewer, if the receiver has few file descriptors */
	MUST(h->terms.checksum && files > HOLES && files <= FILES);
	for (uint32_t i = 0; i < files; i++) {
		e = huge_file(name, i);
		honest_offer(i, &e);
		huge_answer();
	}
	for (uint32_t i = 0; i < HOLES; i++)
		huge_hole(i);
	for (uint32_t i = 0; i < HOLES; i++) {
		e = huge_file(name, i);
		e.mtime_ns = 1;
		honest_offer(files + i, &e);
		huge_answer();
	}
	MUST(h->digests);
}

/* Not hostile: gives up a file while what it has sent of it is still being written, and offers another one for its
 * place as soon as that may be free. */
static void given_up_unwritten(void)
{
	enum { CHUNK = 2 * PROTO_MIN_CHUNK }; /* more than a pipe takes */
	struct proto_terms terms = honest_terms(MOVER_WRITE);
	struct mover_entry e = honest_file("file", 2 * CHUNK);
	struct proto_descriptor d = {.bytes = CHUNK, .count = 1};
	struct proto_segment s;
	struct cursor_in in;

	terms.max_entries = 1;
	terms.chunk_bytes = CHUNK;
	honest_lanes_with(&terms);
	MUST(honest_verdict_and_grants(0, &e) == PROTO_WANT);
	s = honest_segment(0, CHUNK);
	s.last = false;
	honest_write(CHUNK);
	hostile_done(h, 0, 0, honest_grants[0].window);
	d.window = honest_grants[0].window;
	honest_fin(&d, &s);
	d = (struct proto_descriptor){.seq = 1, .window = PROTO_NO_WINDOW, .count = 1};
	s = (struct proto_segment){.kind = PROTO_GIVEN_UP, .last = true};
	honest_fin(&d, &s);
	do {
		MUST(hostile_expect(h, PROTO_ACK));
		in = cursor_in(h->payload, h->payload_len);
	} while (get_u64(&in) < 2);
	MUST(honest_verdict(1, &e) == PROTO_REFUSED); /* only one file goes to standard output */
}

/* Not hostile: as many entries are refused at once as have no room in one ACK. The window counts as done with the last
 * of them: a sender that gives up an entry has forgotten it then. */
static void many_refused(void)
{
	enum { MANY = 250 };
	static struct proto_segment segments[MANY];
	struct proto_terms terms = honest_terms(MOVER_WRITE);
	char name[16];
	struct cursor_out *out;
	struct cursor_in in;
	uint64_t done;
	unsigned results = 0;

	terms.max_entries = terms.entries = MANY;
	honest_lanes_with(&terms);
	MUST(h->terms.max_entries == MANY);
	out = honest_begin_offer(0, MANY);
	for (uint32_t i = 0; i < MANY; i++) {
		struct mover_entry e;

		snprintf(name, sizeof(name), "file %u", i);
		e = honest_file(name, 1);
		proto_put_entry(out, &e);
		segments[i] = (struct proto_segment){
			.kind = PROTO_HOLE, .last = true, .entry = i, .count = 1, .size = 1}; /* no digest */
	}
	hostile_send(h);
	MUST(hostile_expect(h, PROTO_VERDICT));
	honest_fin(&(struct proto_descriptor){.window = PROTO_NO_WINDOW, .count = MANY}, segments);
	do {
		MUST(hostile_expect(h, PROTO_ACK));
		in = cursor_in(h->payload, h->payload_len);
		done = get_u64(&in);
		get_u64(&in);
		results += get_u16(&in);
		MUST(done == (results == MANY));
	} while (!done);
}

static void stalls(void)
{
	struct proto_segment segment;
	honest_content(&segment);
}

const struct scenario hostile_content[] = {
	{"reading-by-digests", reading_by_digests, CHECKED, 3},
	{"lying-digest", lying_digest, CHECKED, 2},
	{"lying-descriptor", lying_descriptor, ERROR_PROTOCOL, 18},
	{"several-in-a-fin", several_in_a_fin, CHECKED, 1},
	{"too-many-in-a-fin", too_many_in_a_fin, ERROR_PROTOCOL, 1},
	{"lying-second", lying_second, ERROR_PROTOCOL, 4},
	{"lying-read-grant", lying_read_grant, ERROR_PROTOCOL, 4},
	{"fin-twice", fin_twice, ERROR_PROTOCOL, 1},
	{"done-twice", done_twice, ERROR_PROTOCOL, 1},
	{"done-of-no-window", done_of_no_window, ERROR_PROTOCOL, 1},
	{"write-beyond", write_beyond, ACCESS_ERROR, 2},
	{"write-too-late", write_too_late, ACCESS_ERROR, 1},
	{"read-of-nothing", read_of_nothing, ERROR_PROTOCOL, 2},
	{"send-other-lengths", send_other_lengths, ERROR_PROTOCOL, 1},
	{"end-unasked", end_unasked, CLOSED, 2},
	{"senders-end", senders_end, ERROR_PROTOCOL, 2},
	{"bye-too-early", bye_too_early, ERROR_PROTOCOL, 2},
	{"gone-while-finishing", gone_while_finishing, CHECKED, 1},
	{"huge-files", huge_files, CHECKED, 1},
	{"given-up-unwritten", given_up_unwritten, CHECKED, 1},
	{"many-refused", many_refused, CHECKED, 1},
	{"stalls", stalls, ERROR_LOST, 1},
	{0},
};
