/* SPDX-License-Identifier: BSD-2-Clause */
#include "honest_sender.h"

#include "mover/chain.h"
#include "mover/chunk_cipher.h"

struct hostile hostile;
struct proto_grant honest_grants[64];
const char *honest_host;
unsigned honest_port;

static struct hostile *const h = &hostile;

void honest_connect(void)
{
	MUST(hostile_connect(h, honest_host, honest_port, &(struct proto_request){0}));
}

void honest_enter(void)
{
	honest_connect();
	hostile_enter(h);
}

struct proto_terms honest_terms(enum mover_mode mode)
{
	return (struct proto_terms){.mode = mode,
				    .qps = 1,
				    .windows = 4,
				    .max_entries = 16,
				    .chunk_bytes = PROTO_MIN_CHUNK,
				    .entries = 4,
				    .bytes = 40};
}

void honest_propose(const struct proto_terms *terms)
{
	proto_put_terms(hostile_begin(h, PROTO_TERMS), terms);
	hostile_send(h);
}

static void honest_agree_on(const struct proto_terms *terms)
{
	struct cursor_in in;

	honest_enter();
	honest_propose(terms);
	MUST(hostile_expect(h, PROTO_TERMS));
	in = cursor_in(h->payload, h->payload_len);
	MUST(proto_get_terms(&in, &h->terms) == 0);
}

void honest_agree(enum mover_mode mode)
{
	struct proto_terms terms = honest_terms(mode);

	honest_agree_on(&terms);
}

void honest_connect_lane(void)
{
	struct proto_request request = {.data = true, .session = h->terms.session};

	MUST(mover_secure_token(h->control.secure, request.token) == 0);
	MUST(hostile_connect_lane(h, &request));
}

void honest_lanes_with(const struct proto_terms *terms)
{
	honest_agree_on(terms);
	honest_connect_lane();
}

void honest_lanes(enum mover_mode mode)
{
	struct proto_terms terms = honest_terms(mode);

	honest_lanes_with(&terms);
}

static unsigned read_grants(void)
{
	struct cursor_in in = cursor_in(h->payload, h->payload_len);
	unsigned count = get_u16(&in);

	MUST(count && count <= 64);
	for (unsigned i = 0; i < count; i++)
		MUST(proto_get_grant(&in, &honest_grants[i]) == 0);
	return count;
}

unsigned honest_take_grants(void)
{
	MUST(hostile_expect(h, PROTO_GRANT));
	return read_grants();
}

struct mover_entry honest_file(const char *name, uint64_t size)
{
	return (struct mover_entry){.kind = MOVER_FILE,
				    .mode = 0644,
				    .size = size,
				    .name = (const uint8_t *)name,
				    .name_len = (uint16_t)strlen(name)};
}

struct mover_entry honest_symlink(const char *name, const char *target)
{
	struct mover_entry e = honest_file(name, strlen(target));
	e.kind = MOVER_SYMLINK;
	e.target = (const uint8_t *)target;
	e.target_len = (uint16_t)e.size;
	return e;
}

struct cursor_out *honest_begin_offer(uint32_t first, uint16_t count)
{
	struct cursor_out *out = hostile_begin(h, PROTO_OFFER);
	put_u32(out, first);
	put_u16(out, count);
	return out;
}

void honest_offer(uint32_t first, const struct mover_entry *entry)
{
	proto_put_entry(honest_begin_offer(first, 1), entry);
	hostile_send(h);
}

static enum proto_verdict read_verdict(uint32_t index)
{
	struct proto_result result;
	struct cursor_in in = cursor_in(h->payload, h->payload_len);
	uint32_t first;
	uint16_t count;

	MUST(proto_get_list(&in, &first, &count, 1) == 0 && first == index);
	MUST(proto_get_result(&in, &result, false) == 0);
	return result.verdict;
}

enum proto_verdict honest_verdict(uint32_t index, const struct mover_entry *entry)
{
	honest_offer(index, entry);
	MUST(hostile_expect(h, PROTO_VERDICT));
	return read_verdict(index);
}

enum proto_verdict honest_verdict_and_grants(uint32_t index, const struct mover_entry *entry)
{
	enum proto_verdict verdict = 0;

	honest_offer(index, entry);
	while (!verdict || !h->granted) {
		MUST(hostile_next(h));
		if (h->type == PROTO_GRANT)
			read_grants();
		if (h->type == PROTO_VERDICT)
			verdict = read_verdict(index);
	}
	return verdict;
}

struct proto_segment honest_segment(uint32_t entry, uint32_t len)
{
	struct proto_segment s = {
		.kind = PROTO_DATA, .last = true, .entry = entry, .count = 1, .len = len, .size = len};

	s.digest = mover_digest_of(h->memory, len);
	chain_chunk(&s.whole, &s.digest);
	return s;
}

void honest_write(uint32_t len)
{
	MUST(mover_secure_seal_chunk(h->control.secure, false, 0, h->memory, len) == 0);
	hostile_post(h, 0, &honest_grants[0], 0, len + CHUNK_CIPHER_TAG_BYTES);
}

void honest_fin(const struct proto_descriptor *d, const struct proto_segment *segments)
{
	struct cursor_out *out = hostile_begin(h, PROTO_FIN);

	proto_put_descriptor(out, d);
	for (unsigned i = 0; i < d->count; i++)
		proto_put_segment(out, &segments[i]);
	hostile_send(h);
}

struct proto_descriptor honest_content(struct proto_segment *segment)
{
	struct mover_entry e = honest_file("file", 10);

	honest_lanes(MOVER_WRITE);
	honest_take_grants();
	MUST(honest_verdict(0, &e) == PROTO_WANT);
	return honest_write_file(segment);
}

struct proto_descriptor honest_write_file(struct proto_segment *segment)
{
	memcpy(h->memory, "0123456789", 10);
	*segment = honest_segment(0, 10);
	honest_write(10);
	hostile_done(h, 0, 0, honest_grants[0].window);
	return (struct proto_descriptor){.window = honest_grants[0].window, .bytes = 10, .count = 1};
}

struct proto_result honest_result(void)
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

size_t honest_sealed(uint8_t *to, enum proto_type outer, enum proto_type inner, uint8_t credits)
{
	uint8_t plain[PROTO_PREFIX_BYTES] = {(uint8_t)inner, credits};
	struct cursor_out head = cursor_out(to, PROTO_HEADER_BYTES);
	size_t len = 4096;

	MUST(mover_secure_seal(h->control.secure, plain, sizeof(plain), to + PROTO_HEADER_BYTES, &len) == 0);
	proto_put_header(&head, outer, true, (uint32_t)len);
	return PROTO_HEADER_BYTES + len;
}
