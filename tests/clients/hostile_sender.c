/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A sender that lies: connects to a `roci recv --open`, says one wrong thing, and sees whether the receiver answers as
 * it shall. Exit status 0: it did; 1: it did not; 2: the test itself failed.
 *
 *     hostile_sender HOST PORT CASE OUTSIDE       OUTSIDE: a folder that nothing may be written to
 *     hostile_sender --list
 */
#include <stdio.h>
#include <stdlib.h>

#include "hostile.h"
#include "mover/chain.h"

/* What the receiver has to do about it. */
enum reaction {
	ERROR_PROTOCOL = MOVER_PROTOCOL, /* ERROR with that status, and the end */
	ERROR_LOST = MOVER_LOST,
	REJECTED = 100, /* the connection was not accepted */
	CLOSED,         /* the end, without a word: the connection broke by what we did */
	ACCESS_ERROR,   /* our RDMA operation was refused */
	AS_TOLD,        /* the case has looked for itself */
};

static struct hostile hostile, *const h = &hostile;
static const char *host, *outside;
static unsigned port;
static unsigned variant;
static struct proto_grant grants[64];
static unsigned grant_count;

/* As an honest sender does it */

static void enter(void)
{
	MUST(hostile_connect(h, host, port, &(struct proto_request){0}));
	hostile_handshake(h, false);
}

static struct proto_terms honest_terms(enum mover_mode mode)
{
	return (struct proto_terms){.mode = mode,
				    .qps = 1,
				    .windows = 4,
				    .max_entries = 16,
				    .chunk_bytes = PROTO_MIN_CHUNK,
				    .entries = 4,
				    .bytes = 40};
}

static void ask_terms(const struct proto_terms *terms)
{
	proto_put_terms(hostile_begin(h, PROTO_TERMS), terms);
	hostile_send(h);
}

static void agree_on(const struct proto_terms *terms)
{
	struct cursor_in in;

	enter();
	ask_terms(terms);
	MUST(hostile_expect(h, PROTO_TERMS));
	in = cursor_in(h->payload, h->payload_len);
	MUST(proto_get_terms(&in, &h->terms) == 0);
}

static void agree(enum mover_mode mode)
{
	struct proto_terms terms = honest_terms(mode);

	agree_on(&terms);
}

static void lanes_with(const struct proto_terms *terms)
{
	struct proto_request request = {.data = true};

	agree_on(terms);
	request.session = h->terms.session;
	MUST(mover_secure_token(h->control.secure, request.token) == 0);
	MUST(hostile_connect_lane(h, &request));
}

static void lanes(enum mover_mode mode)
{
	struct proto_terms terms = honest_terms(mode);

	lanes_with(&terms);
}

static void take_grants(void)
{
	struct cursor_in in;

	MUST(hostile_expect(h, PROTO_GRANT));
	in = cursor_in(h->payload, h->payload_len);
	grant_count = get_u16(&in);
	MUST(grant_count && grant_count <= 64);
	for (unsigned i = 0; i < grant_count; i++)
		MUST(proto_get_grant(&in, &grants[i]) == 0);
}

static struct mover_entry file(const char *name, uint64_t size)
{
	return (struct mover_entry){.kind = MOVER_FILE,
				    .mode = 0644,
				    .size = size,
				    .name = (const uint8_t *)name,
				    .name_len = (uint16_t)strlen(name)};
}

static struct mover_entry symlink_to(const char *name, const char *target)
{
	struct mover_entry e = file(name, strlen(target));
	e.kind = MOVER_SYMLINK;
	e.target = (const uint8_t *)target;
	e.target_len = (uint16_t)e.size;
	return e;
}

static struct cursor_out *begin_offer(uint32_t first, uint16_t count)
{
	struct cursor_out *out = hostile_begin(h, PROTO_OFFER);
	put_u32(out, first);
	put_u16(out, count);
	return out;
}

static void offer(uint32_t first, const struct mover_entry *entry)
{
	proto_put_entry(begin_offer(first, 1), entry);
	hostile_send(h);
}

/* Offers one entry and returns the verdict on it. */
static enum proto_verdict judged(uint32_t index, const struct mover_entry *entry)
{
	struct proto_result result;
	struct cursor_in in;
	uint32_t first;
	uint16_t count;

	offer(index, entry);
	MUST(hostile_expect(h, PROTO_VERDICT));
	in = cursor_in(h->payload, h->payload_len);
	MUST(proto_get_list(&in, &first, &count, 1) == 0 && first == index);
	MUST(proto_get_result(&in, &result, false) == 0);
	return result.verdict;
}

static struct proto_segment segment_of(uint32_t entry, uint32_t len)
{
	struct proto_segment s = {
		.kind = PROTO_DATA, .last = true, .entry = entry, .count = 1, .len = len, .size = len};

	s.digest = mover_digest_of(h->memory, len);
	chain_chunk(&s.whole, &s.digest);
	return s;
}

static void fin(const struct proto_descriptor *d, const struct proto_segment *segments)
{
	struct cursor_out *out = hostile_begin(h, PROTO_FIN);

	proto_put_descriptor(out, d);
	for (unsigned i = 0; i < d->count; i++)
		proto_put_segment(out, &segments[i]);
	hostile_send(h);
}

/* With an entry "file" of ten bytes wanted, and its content in the first window. */
static struct proto_descriptor content_sent(struct proto_segment *segment)
{
	struct mover_entry e = file("file", 10);

	lanes(MOVER_WRITE);
	take_grants();
	MUST(judged(0, &e) == PROTO_WANT);
	memcpy(h->memory, "0123456789", 10);
	*segment = segment_of(0, 10);
	hostile_post(h, 0, &grants[0], 0, 10);
	hostile_done(h, 0, 0, grants[0].window);
	return (struct proto_descriptor){.window = grants[0].window, .bytes = 10, .count = 1};
}

/* The result of entry 0, from the next ACK that has one. */
static struct proto_result result(void)
{
	struct proto_result r;
	struct cursor_in in;
	uint16_t count;

	do {
		MUST(hostile_expect(h, PROTO_ACK));
		in = cursor_in(h->payload, h->payload_len);
		get_u64(&in);
		get_u64(&in);
		count = get_u16(&in);
	} while (!count);
	MUST(proto_get_result(&in, &r, true) == 0);
	return r;
}

/* A sealed message as raw bytes, to be sent as they are or not; returns its length. */
static size_t sealed(uint8_t *to, enum proto_type outer, enum proto_type inner, uint8_t credits)
{
	uint8_t plain[PROTO_PREFIX_BYTES] = {(uint8_t)inner, credits};
	struct cursor_out head = cursor_out(to, PROTO_HEADER_BYTES);
	size_t len = 4096;

	MUST(mover_secure_seal(h->control.secure, plain, sizeof(plain), to + PROTO_HEADER_BYTES, &len) == 0);
	proto_put_header(&head, outer, true, (uint32_t)len);
	return PROTO_HEADER_BYTES + len;
}

/* Before it is trusted */

static void silent(void)
{
	MUST(hostile_connect(h, host, port, &(struct proto_request){0}));
}

/* More than a receiver holds, of which it closes the oldest: with ERROR, unless it has not seen it connected yet. */
static void crowd(void)
{
	static struct hostile peers[40];
	const size_t count = sizeof(peers) / sizeof(*peers);

	for (size_t i = 0; i < count; i++)
		MUST(hostile_connect(&peers[i], host, port, &(struct proto_request){0}));
	for (size_t i = 0; i < count; i++) {
		MUST(hostile_wait_closed(&peers[i]));
		MUST(!peers[i].error || peers[i].end.status == MOVER_LOST);
	}
}

static void garbage(void)
{
	static const uint8_t bytes[] = "GET / HTTP/1.1\r\n\r\n";
	silent();
	hostile_send_raw(h, bytes, variant ? 3 : sizeof(bytes));
}

static void lying_length(void)
{
	uint8_t bytes[64] = {0};
	struct cursor_out out = cursor_out(bytes, sizeof(bytes));
	silent();
	proto_put_header(&out, PROTO_HELLO, false, variant ? 10 : 60000);
	hostile_send_raw(h, bytes, sizeof(bytes));
}

static void no_handshake(void)
{
	struct proto_terms terms = honest_terms(MOVER_WRITE);
	silent();
	ask_terms(&terms);
}

static void no_tls(void)
{
	silent();
	put_bytes(hostile_begin(h, PROTO_HELLO), "hello, is anybody there?", 24);
	hostile_send(h);
}

static void half_a_handshake(void)
{
	uint8_t out[16384];
	size_t len = sizeof(out);
	struct mover_secure *secure = mover_secure_client(NULL);

	silent();
	MUST(secure && mover_secure_handshake(secure, NULL, 0, out, &len) == 0);
	put_bytes(hostile_begin(h, PROTO_HELLO), out, len / 2);
	hostile_send(h);
	mover_secure_destroy(secure);
}

static void too_long(void)
{
	static const uint8_t bytes[PROTO_MESSAGE_BYTES + 1];
	silent();
	hostile_send_raw(h, bytes, sizeof(bytes));
}

static void lane_of_no_session(void)
{
	hostile_connect(h, host, port,
			&(struct proto_request){.data = true, .session = 5, .index = variant ? 60000 : 0});
}

/* Messages */

static void plain_message(void)
{
	uint8_t bytes[PROTO_HEADER_BYTES + 4] = {0};
	struct cursor_out out = cursor_out(bytes, sizeof(bytes));
	enter();
	proto_put_header(&out, PROTO_TERMS, false, 4);
	hostile_send_raw(h, bytes, sizeof(bytes));
}

static void replayed(void)
{
	uint8_t bytes[8192];
	size_t len;
	enter();
	len = sealed(bytes, PROTO_PING, PROTO_PING, 0);
	hostile_send_raw(h, bytes, len);
	hostile_send_raw(h, bytes, len);
}

static void altered(void)
{
	uint8_t bytes[8192];
	size_t len;
	enter();
	len = sealed(bytes, PROTO_PING, PROTO_PING, 0);
	bytes[len - 1 - variant] ^= 1;
	hostile_send_raw(h, bytes, len);
}

static void truncated(void)
{
	uint8_t bytes[8192];
	struct cursor_out head = cursor_out(bytes, PROTO_HEADER_BYTES);
	size_t len;
	enter();
	len = sealed(bytes, PROTO_PING, PROTO_PING, 0) - 1 - variant;
	proto_put_header(&head, PROTO_PING, true, (uint32_t)(len - PROTO_HEADER_BYTES));
	hostile_send_raw(h, bytes, len);
}

static void two_types(void)
{
	uint8_t bytes[8192];
	enter();
	hostile_send_raw(h, bytes, sealed(bytes, PROTO_PING, PROTO_END, 0));
}

static void lying_credits(void)
{
	uint8_t bytes[8192];
	enter();
	hostile_send_raw(h, bytes, sealed(bytes, PROTO_PING, PROTO_PING, 255));
}

/* What TLS would answer comes to more than a message: nothing of it may be sent. */
static void keys_updated(void)
{
	enter();
	for (unsigned i = 0; i < 3; i++)
		hostile_update_keys(h, variant ? 2400 : 1);
}

static void too_early(void)
{
	struct mover_entry e = file("early", 0);
	enter();
	offer(0, &e);
}

static void lying_terms(void)
{
	struct proto_terms terms = honest_terms(MOVER_WRITE);
	struct cursor_out *out;

	switch (variant) {
	case 0: terms.mode = 3; break;
	case 1: terms.qps = 0; break;
	case 2: terms.qps = MOVER_MAX_QPS + 1; break;
	case 3: terms.windows = 0; break;
	case 4: terms.windows = 65535; break;
	case 5: terms.chunk_bytes = PROTO_MIN_CHUNK + 1; break;
	case 6: terms.chunk_bytes = 1u << 31; break;
	case 7: terms.max_entries = 0; break;
	case 8: terms.max_entries = 65535; break;
	case 9: terms.session = 1; break;
	default: break;
	}
	enter();
	out = hostile_begin(h, PROTO_TERMS);
	proto_put_terms(out, &terms);
	if (variant == 10)
		put_u8(out, 0);
	hostile_send(h);
}

static void terms_twice(void)
{
	agree(MOVER_WRITE);
	ask_terms(&h->terms);
}

static void wrong_token(void)
{
	struct proto_request request = {.data = true};

	agree(MOVER_WRITE);
	request.session = h->terms.session;
	if (variant) {
		MUST(mover_secure_token(h->control.secure, request.token) == 0);
		request.index = 1; /* there is but one */
	}
	hostile_connect_lane(h, &request);
}

static void no_lanes(void)
{
	agree(MOVER_WRITE);
}

static void a_receivers_message(void)
{
	static const enum proto_type types[] = {PROTO_VERDICT, PROTO_ACK, PROTO_HAVE, PROTO_HELLO};
	lanes(MOVER_WRITE);
	put_u64(hostile_begin(h, types[variant]), 0);
	hostile_send(h);
}

/* Offers */

static void bad_name(void)
{
	static const char *const names[] = {"..",   "../evil",     "/etc/evil", "a/../../evil",        ".",
					    "a//b", "a/",          "",          ".roci-01234567.part", "a/./b",
					    "//",   "..//..//evil"};
	struct mover_entry e = file(names[variant], 0);
	lanes(MOVER_WRITE);
	offer(0, &e);
}

static void long_name(void)
{
	static char name[MOVER_PATH_MAX + 2];
	struct mover_entry e;

	memset(name, 'x', variant ? MOVER_PATH_MAX + 1 : MOVER_COMPONENT_MAX + 1);
	for (unsigned i = 100; variant && i < MOVER_PATH_MAX; i += 100)
		name[i] = '/';
	e = file(name, 0);
	lanes(MOVER_WRITE);
	offer(0, &e);
}

static void bad_entry(void)
{
	struct mover_entry e = file("entry", 10), link = symlink_to("link", "target");

	switch (variant) {
	case 0: e.kind = (enum mover_kind)4; break; /* such as a device */
	case 1: e.kind = (enum mover_kind)255; break;
	case 2: e.mode = 0177777; break;
	case 3: e.mtime_ns = 1000000000; break;
	case 4: e.size = UINT64_MAX; break;
	case 5: e.kind = MOVER_FOLDER; break; /* with a size */
	case 6: e.name = (const uint8_t *)"en\0ry"; break;
	case 7: e = link, e.target = (const uint8_t *)"tar\0et"; break;
	case 8: e = link, e.target_len = 0; break;
	case 9: e = link, e.size = 7; break;
	case 10: e.target = (const uint8_t *)"t", e.target_len = 1; break;
	}
	lanes(MOVER_WRITE);
	offer(0, &e);
}

static void lying_offer(void)
{
	static const struct {
		uint32_t first;
		uint16_t says, has, cut;
	} lies[] = {{0, 0, 1, 0}, {0, 2, 1, 0}, {0, 65535, 1, 0}, {1, 1, 1, 0}, {UINT32_MAX, 1, 1, 0},
		    {0, 1, 2, 0}, {0, 1, 1, 1}, {0, 5, 5, 0},     {0, 1, 1, 30}};
	struct mover_entry e = file("entry", 0);
	struct cursor_out *out;

	lanes(MOVER_WRITE);
	out = begin_offer(lies[variant].first, lies[variant].says);
	for (unsigned i = 0; i < lies[variant].has; i++)
		proto_put_entry(out, &e);
	out->at -= lies[variant].cut;
	hostile_send(h);
}

static void through_a_link(void)
{
	struct mover_entry way = symlink_to("way", outside), evil = file("way/evil", 0), over = file("way", 10);
	struct proto_segment segment;

	lanes(MOVER_WRITE);
	take_grants();
	MUST(judged(0, &way) == PROTO_DONE);
	MUST(judged(1, &evil) == PROTO_REFUSED);
	evil.kind = MOVER_FOLDER;
	MUST(judged(2, &evil) == PROTO_REFUSED);
	/* a file of the link's own name takes its place, and not that of what it leads to */
	MUST(judged(3, &over) == PROTO_WANT);
	memcpy(h->memory, "0123456789", 10);
	segment = segment_of(3, 10);
	hostile_post(h, 0, &grants[0], 0, 10);
	hostile_done(h, 0, 0, grants[0].window);
	fin(&(struct proto_descriptor){.window = grants[0].window, .bytes = 10, .count = 1}, &segment);
	MUST(result().verdict == PROTO_DONE);
}

static void lying_size(void)
{
	struct mover_entry e = file("huge", variant ? INT64_MAX : 1ull << 62);
	lanes(MOVER_WRITE);
	MUST(judged(0, &e) == PROTO_REFUSED);
}

/* Content */

static void lying_digest(void)
{
	struct proto_segment segment;
	struct proto_descriptor d = content_sent(&segment);
	struct proto_result r;

	(variant ? &segment.whole : &segment.digest)->bytes[3] ^= 1;
	fin(&d, &segment);
	r = result();
	MUST(r.verdict == PROTO_REFUSED && r.status == MOVER_MISMATCH);
}

static void lying_descriptor(void)
{
	struct proto_segment segment[2];
	struct proto_descriptor d = content_sent(segment);

	switch (variant) {
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
	case 18:
		d.window = grants[1].window;
		break; /* granted, but nothing came there: no answer until it is given up */
	}
	fin(&d, segment);
}

/* Of a window into which nothing has come yet: so that the second finds the first waiting. */
static void fin_twice(void)
{
	struct mover_entry e = file("file", 10);
	struct proto_descriptor d = {.bytes = 10, .count = 1};
	struct proto_segment segment;

	lanes(MOVER_WRITE);
	take_grants();
	MUST(judged(0, &e) == PROTO_WANT);
	segment = segment_of(0, 10);
	d.window = grants[0].window;
	fin(&d, &segment);
	d.seq = 1;
	fin(&d, &segment);
}

static void done_twice(void)
{
	struct proto_segment segment;
	content_sent(&segment);
	hostile_done(h, 0, 0, grants[0].window);
}

static void done_of_no_window(void)
{
	lanes(MOVER_WRITE);
	take_grants();
	hostile_done(h, 0, 0, 200);
}

static void write_beyond(void)
{
	lanes(MOVER_WRITE);
	take_grants();
	hostile_post(h, 0, &grants[0], variant ? UINT64_C(0) - 64 : grants[0].len - 63, 64);
}

static void write_too_late(void)
{
	struct proto_segment segment;
	struct proto_descriptor d = content_sent(&segment);
	fin(&d, &segment);
	MUST(result().verdict == PROTO_DONE);
	hostile_post(h, 0, &grants[0], 0, 10);
}

static void read_of_nothing(void)
{
	struct proto_segment segment;
	struct proto_grant grant = {.len = 10, .addr = (uintptr_t)h->memory, .rkey = 0x12345678};
	struct mover_entry e = file("file", 10);
	struct cursor_out *out;

	lanes(MOVER_READ);
	MUST(judged(0, &e) == PROTO_WANT);
	segment = segment_of(0, 10);
	if (variant)
		grant.rkey = h->mr->rkey, grant.addr = (uintptr_t)h->memory + HOSTILE_BYTES * 2;
	out = hostile_begin(h, PROTO_GRANT);
	put_u16(out, 1);
	proto_put_grant(out, &grant);
	proto_put_descriptor(out, &(struct proto_descriptor){.bytes = 10, .count = 1});
	proto_put_segment(out, &segment);
	hostile_send(h);
}

static void send_other_lengths(void)
{
	struct mover_entry e = file("file", 10);
	struct proto_segment segment;

	lanes(MOVER_SEND);
	take_grants();
	MUST(judged(0, &e) == PROTO_WANT);
	segment = segment_of(0, 10);
	hostile_post(h, 0, NULL, 0, variant ? grants[0].len + 1 : 9);
	fin(&(struct proto_descriptor){.window = grants[0].window, .bytes = 10, .count = 1}, &segment);
}

static void end_too_early(void)
{
	struct mover_entry e = file("file", 10);
	lanes(MOVER_WRITE);
	if (variant)
		MUST(judged(0, &e) == PROTO_WANT);
	proto_put_end(hostile_begin(h, PROTO_END), &(struct proto_end){.status = MOVER_OK});
	hostile_send(h);
}

/* Offers folders in groups of as many as were granted, of which `count` is a multiple. */
static void offer_folders(uint32_t count)
{
	uint16_t group = h->terms.max_entries;
	char name[64];

	for (uint32_t i = 0; i < count; i++) {
		struct mover_entry e;

		snprintf(name, sizeof(name), i ? "way/%u" : "way", i);
		e = file(name, 0);
		e.kind = MOVER_FOLDER;
		e.mode = 0755;
		proto_put_entry(i % group ? &h->control.out : begin_offer(i, group), &e);
		if (i % group != group - 1u)
			continue;
		hostile_send(h);
		MUST(hostile_expect(h, PROTO_VERDICT));
	}
}

/* Leaves while its folders get their modes and times: their names must not go before that is over. */
static void gone_while_sealing(void)
{
	struct proto_terms terms = honest_terms(MOVER_WRITE);

	terms.entries = 4000;
	lanes_with(&terms);
	MUST(h->terms.max_entries == 16); /* however few descriptors the receiver has */
	offer_folders(4000);
	proto_put_end(hostile_begin(h, PROTO_END), &(struct proto_end){.entries = 4000});
	hostile_send(h);
	/* It returns credits at the end of a round, in which it has begun to seal. */
	for (unsigned i = 0; i < PROTO_CREDITS / 2; i++) {
		hostile_begin(h, PROTO_PING);
		hostile_send(h);
	}
	MUST(hostile_expect(h, PROTO_PING));
	connection_disconnect(&h->control.conn);
}

static void stalls(void)
{
	struct proto_segment segment;
	content_sent(&segment);
}

static const struct scenario {
	const char *name;
	void (*run)(void);
	enum reaction reaction;
	unsigned variants;
} scenarios[] = {
	{"silent", silent, ERROR_LOST, 1},
	{"crowd", crowd, AS_TOLD, 1},
	{"garbage", garbage, ERROR_PROTOCOL, 2},
	{"lying-length", lying_length, ERROR_PROTOCOL, 2},
	{"no-handshake", no_handshake, ERROR_PROTOCOL, 1},
	{"no-tls", no_tls, ERROR_PROTOCOL, 1},
	{"half-a-handshake", half_a_handshake, ERROR_LOST, 1},
	{"too-long", too_long, CLOSED, 1},
	{"lane-of-no-session", lane_of_no_session, REJECTED, 2},
	{"plain-message", plain_message, ERROR_PROTOCOL, 1},
	/* a record that is not the peer's ends TLS itself (RFC 8446 s.5.2): there is nothing to say it in */
	{"replayed", replayed, CLOSED, 1},
	{"altered", altered, CLOSED, 20},
	{"keys-updated", keys_updated, CLOSED, 2},
	{"truncated", truncated, ERROR_PROTOCOL, 20},
	{"two-types", two_types, ERROR_PROTOCOL, 1},
	{"lying-credits", lying_credits, ERROR_PROTOCOL, 1},
	{"too-early", too_early, ERROR_PROTOCOL, 1},
	{"lying-terms", lying_terms, ERROR_PROTOCOL, 11},
	{"terms-twice", terms_twice, ERROR_PROTOCOL, 1},
	{"wrong-token", wrong_token, REJECTED, 2},
	{"no-lanes", no_lanes, ERROR_LOST, 1},
	{"a-receivers-message", a_receivers_message, ERROR_PROTOCOL, 4},
	{"bad-name", bad_name, ERROR_PROTOCOL, 12},
	{"long-name", long_name, ERROR_PROTOCOL, 2},
	{"bad-entry", bad_entry, ERROR_PROTOCOL, 11},
	{"lying-offer", lying_offer, ERROR_PROTOCOL, 9},
	{"through-a-link", through_a_link, AS_TOLD, 1},
	{"lying-size", lying_size, AS_TOLD, 2},
	{"lying-digest", lying_digest, AS_TOLD, 2},
	{"lying-descriptor", lying_descriptor, ERROR_PROTOCOL, 18},
	{"fin-twice", fin_twice, ERROR_PROTOCOL, 1},
	{"done-twice", done_twice, ERROR_PROTOCOL, 1},
	{"done-of-no-window", done_of_no_window, ERROR_PROTOCOL, 1},
	{"write-beyond", write_beyond, ACCESS_ERROR, 2},
	{"write-too-late", write_too_late, ACCESS_ERROR, 1},
	{"read-of-nothing", read_of_nothing, ERROR_PROTOCOL, 2},
	{"send-other-lengths", send_other_lengths, ERROR_PROTOCOL, 1},
	{"end-too-early", end_too_early, ERROR_PROTOCOL, 2},
	{"gone-while-sealing", gone_while_sealing, AS_TOLD, 1},
	{"stalls", stalls, ERROR_LOST, 1},
};

static bool reacted(enum reaction reaction)
{
	switch (reaction) {
	case AS_TOLD: return !h->error;
	case REJECTED: return h->refused && h->reject == PROTO_REJECT_UNKNOWN;
	case ACCESS_ERROR: return hostile_wait_closed(h) && h->failed == IBV_WC_REM_ACCESS_ERR;
	case CLOSED: return hostile_wait_closed(h) && !h->error;
	default: return hostile_wait_closed(h) && h->error && h->end.status == (enum mover_status)reaction;
	}
}

static int run(const struct scenario *s)
{
	bool ok;

	if (variant >= s->variants)
		hostile_fail("no such variant");
	s->run();
	ok = reacted(s->reaction);
	printf("%s: %s%s%s%s; our work: %s\n", ok ? "as it shall" : "WRONG", h->closed ? "closed" : "open",
	       h->refused ? ", rejected" : "", h->error ? ", ERROR " : "",
	       h->error ? mover_status_name(h->end.status) : "", ibv_wc_status_str(h->failed));
	if (*h->text)
		printf("%s\n", h->text);
	fflush(stdout);
	_Exit(ok ? 0 : 1); /* as it is: an honest goodbye is not what we are here for */
}

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(*scenarios); i++) {
		const struct scenario *s = &scenarios[i];
		size_t len = strlen(s->name);

		if (argc == 2 && strcmp(argv[1], "--list") == 0)
			printf("%s %u\n", s->name, s->variants);
		if (argc != 5 || strncmp(argv[3], s->name, len) || argv[3][len] != ':')
			continue;
		host = argv[1];
		port = (unsigned)atoi(argv[2]);
		variant = (unsigned)atoi(argv[3] + len + 1);
		outside = argv[4];
		return run(s);
	}
	return argc == 2 ? 0 : 2;
}
