/* SPDX-License-Identifier: BSD-2-Clause */
#include "mover/chunk_cipher.h"
#include "mover/proto.h"

#include <errno.h>

enum { TERMS_ENCRYPT = 1, TERMS_CHECKSUM = 2, TERMS_DRY_RUN = 4 };
enum { SEGMENT_LAST = 1, SEGMENT_SPARSE = 2 };

const char *proto_type_name(enum proto_type type)
{
	static const char *const names[PROTO_TYPES] = {
		[PROTO_HELLO] = "HELLO", [PROTO_TERMS] = "TERMS",     [PROTO_OFFER] = "OFFER", [PROTO_HAVE] = "HAVE",
		[PROTO_FIN] = "FIN",     [PROTO_VERDICT] = "VERDICT", [PROTO_GRANT] = "GRANT", [PROTO_ACK] = "ACK",
		[PROTO_END] = "END",     [PROTO_ERROR] = "ERROR",     [PROTO_PING] = "PING",   [PROTO_BYE] = "BYE",
	};
	return (unsigned)type < PROTO_TYPES ? names[type] : NULL;
}

/* Headers, and what stands outside messages */

void proto_put_header(struct cursor_out *out, enum proto_type type, bool sealed, uint32_t body_len)
{
	put_u32(out, PROTO_MAGIC);
	put_u8(out, PROTO_VERSION);
	put_u8(out, (uint8_t)type);
	put_u16(out, sealed);
	put_u32(out, body_len);
}

int proto_get_header(const uint8_t *bytes, size_t len, struct proto_header *header)
{
	struct cursor_in in = cursor_in(bytes, len);
	uint32_t magic = get_u32(&in);
	uint8_t version = get_u8(&in), type = get_u8(&in);
	uint16_t flags = get_u16(&in);

	*header = (struct proto_header){.type = type, .sealed = flags & 1, .body_len = get_u32(&in)};
	if (in.bad || magic != PROTO_MAGIC || version != PROTO_VERSION || flags > 1)
		return -EPROTO;
	if (type == 0 || type >= PROTO_TYPES || header->body_len != len - PROTO_HEADER_BYTES)
		return -EPROTO;
	return 0;
}

void proto_put_request(uint8_t bytes[PROTO_PRIVATE_BYTES], const struct proto_request *request)
{
	struct cursor_out out = cursor_out(bytes, PROTO_PRIVATE_BYTES);
	put_u32(&out, PROTO_MAGIC);
	put_u8(&out, PROTO_VERSION);
	put_u8(&out, request->data);
	put_u16(&out, request->index);
	put_u64(&out, request->session);
	put_bytes(&out, request->token, SECURE_TOKEN_BYTES);
}

int proto_get_request(const void *bytes, size_t len, struct proto_request *request)
{
	struct cursor_in in = cursor_in(bytes, bytes ? len : 0); /* rdma_cm pads private data with zeros */
	uint32_t magic = get_u32(&in);
	uint8_t version = get_u8(&in), data = get_u8(&in);
	const uint8_t *token;

	*request = (struct proto_request){.data = data == 1, .index = get_u16(&in), .session = get_u64(&in)};
	token = get_bytes(&in, SECURE_TOKEN_BYTES);
	if (!token || magic != PROTO_MAGIC || version != PROTO_VERSION || data > 1)
		return -EPROTO;
	memcpy(request->token, token, SECURE_TOKEN_BYTES);
	return 0;
}

size_t proto_get_answer(const uint8_t *bytes, size_t len)
{
	struct cursor_in in = cursor_in(bytes, len); /* rdma_cm pads private data with zeros */
	size_t record;

	get_u8(&in);
	get_u16(&in);
	record = get_u16(&in);
	return get_bytes(&in, record) ? len - (size_t)(in.end - in.at) : 0;
}

void proto_put_reject(uint8_t bytes[PROTO_REJECT_BYTES], enum proto_reject reason)
{
	struct cursor_out out = cursor_out(bytes, PROTO_REJECT_BYTES);
	put_u32(&out, PROTO_MAGIC);
	put_u32(&out, reason);
}

enum proto_reject proto_get_reject(const void *bytes, size_t len)
{
	struct cursor_in in = cursor_in(bytes, bytes ? len : 0);
	uint32_t magic = get_u32(&in), reason = get_u32(&in);
	return magic == PROTO_MAGIC && reason <= PROTO_REJECT_TICKET ? (enum proto_reject)reason : 0;
}

void proto_put_done(uint8_t bytes[PROTO_DONE_BYTES], uint64_t seq, uint16_t window)
{
	struct cursor_out out = cursor_out(bytes, PROTO_DONE_BYTES);
	put_u32(&out, PROTO_MAGIC);
	put_u16(&out, PROTO_VERSION);
	put_u16(&out, window);
	put_u64(&out, seq);
}

int proto_get_done(const uint8_t *bytes, size_t len, uint64_t *seq, uint16_t *window)
{
	struct cursor_in in = cursor_in(bytes, len);
	uint32_t magic = get_u32(&in);
	uint16_t version = get_u16(&in);
	*window = get_u16(&in);
	*seq = get_u64(&in);
	return magic != PROTO_MAGIC || version != PROTO_VERSION ? -EPROTO : proto_get_nothing(&in);
}

/* Text */

struct proto_text proto_text(const char *text)
{
	size_t len = text ? strlen(text) : 0;
	return (struct proto_text){(const uint8_t *)text, (uint8_t)(len > PROTO_MAX_TEXT ? PROTO_MAX_TEXT : len)};
}

void proto_text_copy(char *to, size_t room, const struct proto_text *text)
{
	size_t len = text->len < room ? text->len : room - 1;
	for (size_t i = 0; i < len; i++)
		to[i] = (char)(text->bytes[i] >= 0x20 && text->bytes[i] < 0x7f ? text->bytes[i] : '?');
	to[len] = 0;
}

static void put_text(struct cursor_out *out, const struct proto_text *text)
{
	put_u8(out, text->len);
	put_bytes(out, text->bytes, text->len);
}

static void get_text(struct cursor_in *in, struct proto_text *text)
{
	text->len = get_u8(in);
	text->bytes = get_bytes(in, text->len);
	if (in->bad)
		text->len = 0;
}

static void put_digest(struct cursor_out *out, const struct mover_digest *digest)
{
	put_bytes(out, digest->bytes, sizeof(digest->bytes));
}

static void get_digest(struct cursor_in *in, struct mover_digest *digest)
{
	const uint8_t *bytes = get_bytes(in, sizeof(digest->bytes));
	if (bytes)
		memcpy(digest->bytes, bytes, sizeof(digest->bytes));
}

/* TERMS */

void proto_put_terms(struct cursor_out *out, const struct proto_terms *t)
{
	put_u8(out, (uint8_t)t->mode);
	put_u8(out, (uint8_t)((t->encrypt ? TERMS_ENCRYPT : 0) | (t->checksum ? TERMS_CHECKSUM : 0) |
			      (t->dry_run ? TERMS_DRY_RUN : 0)));
	put_u16(out, t->qps);
	put_u16(out, t->windows);
	put_u16(out, t->max_entries);
	put_u32(out, t->chunk_bytes);
	put_u64(out, t->session);
	put_u64(out, t->entries);
	put_u64(out, t->bytes);
	put_bytes(out, t->transfer, sizeof(t->transfer));
}

int proto_get_terms(struct cursor_in *in, struct proto_terms *t)
{
	uint8_t mode = get_u8(in), flags = get_u8(in);
	const uint8_t *transfer;

	*t = (struct proto_terms){
		.mode = mode,
		.encrypt = flags & TERMS_ENCRYPT,
		.checksum = flags & TERMS_CHECKSUM,
		.dry_run = flags & TERMS_DRY_RUN,
	};
	t->qps = get_u16(in);
	t->windows = get_u16(in);
	t->max_entries = get_u16(in);
	t->chunk_bytes = get_u32(in);
	t->session = get_u64(in);
	t->entries = get_u64(in);
	t->bytes = get_u64(in);
	transfer = get_bytes(in, sizeof(t->transfer));
	if (!transfer)
		return -EPROTO;
	memcpy(t->transfer, transfer, sizeof(t->transfer));
	if (mode > MOVER_SEND || flags > 7 || t->qps < 1 || t->qps > MOVER_MAX_QPS)
		return -EPROTO;
	if (t->windows < 1 || t->windows > PROTO_MAX_WINDOWS || t->max_entries < 1 ||
	    t->max_entries > PROTO_MAX_ENTRIES)
		return -EPROTO;
	if (t->chunk_bytes < PROTO_MIN_CHUNK || t->chunk_bytes > PROTO_MAX_CHUNK ||
	    (t->chunk_bytes & (t->chunk_bytes - 1)))
		return -EPROTO;
	return proto_get_nothing(in);
}

/* OFFER */

void proto_put_entry(struct cursor_out *out, const struct mover_entry *e)
{
	put_u8(out, (uint8_t)e->kind);
	put_u16(out, (uint16_t)e->mode);
	put_u64(out, (uint64_t)e->mtime_s);
	put_u32(out, e->mtime_ns);
	put_u64(out, e->size);
	put_u16(out, e->name_len);
	put_u16(out, e->target_len);
	put_bytes(out, e->name, e->name_len);
	put_bytes(out, e->target, e->target_len);
}

int proto_get_entry(struct cursor_in *in, struct mover_entry *e)
{
	uint8_t kind = get_u8(in);

	*e = (struct mover_entry){.kind = kind};
	e->mode = get_u16(in);
	e->mtime_s = (int64_t)get_u64(in);
	e->mtime_ns = get_u32(in);
	e->size = get_u64(in);
	e->name_len = get_u16(in);
	e->target_len = get_u16(in);
	e->name = get_bytes(in, e->name_len);
	e->target = get_bytes(in, e->target_len);
	if (in->bad || kind > MOVER_STREAM || e->mode > 07777 || e->mtime_ns > 999999999 || e->size > INT64_MAX)
		return -EPROTO;
	if (mover_name_wrong(e->name, e->name_len))
		return -EPROTO;
	if (e->kind != MOVER_SYMLINK)
		return e->target_len || ((e->kind != MOVER_FILE) && e->size) ? -EPROTO : 0;
	if (!e->target_len || e->target_len > MOVER_PATH_MAX || e->size != e->target_len ||
	    memchr(e->target, 0, e->target_len))
		return -EPROTO;
	return 0;
}

/* VERDICT, ACK */

void proto_put_result(struct cursor_out *out, const struct proto_result *result, bool with_entry)
{
	if (with_entry)
		put_u32(out, result->entry);
	put_u8(out, (uint8_t)result->verdict);
	if (result->verdict != PROTO_REFUSED)
		return;
	put_u8(out, (uint8_t)result->status);
	put_text(out, &result->text);
}

int proto_get_result(struct cursor_in *in, struct proto_result *result, bool with_entry)
{
	*result = (struct proto_result){0};
	if (with_entry)
		result->entry = get_u32(in);
	result->verdict = get_u8(in);
	if (result->verdict == PROTO_REFUSED) {
		uint8_t status = get_u8(in);
		get_text(in, &result->text);
		if (status == MOVER_OK || status > MOVER_INTERRUPTED)
			return -EPROTO;
		result->status = status;
	}
	if (in->bad || result->verdict < PROTO_WANT || result->verdict >= PROTO_VERDICTS)
		return -EPROTO;
	if (with_entry && result->verdict != PROTO_DONE && result->verdict != PROTO_REFUSED)
		return -EPROTO;
	return 0;
}

/* GRANT, FIN */

void proto_put_grant(struct cursor_out *out, const struct proto_grant *grant)
{
	put_u16(out, grant->window);
	put_u16(out, grant->lane);
	put_u32(out, grant->len);
	put_u64(out, grant->addr);
	put_u32(out, grant->rkey);
}

int proto_get_grant(struct cursor_in *in, struct proto_grant *grant)
{
	grant->window = get_u16(in);
	grant->lane = get_u16(in);
	grant->len = get_u32(in);
	grant->addr = get_u64(in);
	grant->rkey = get_u32(in);
	if (in->bad || grant->window >= PROTO_MAX_WINDOWS || grant->lane >= MOVER_MAX_QPS ||
	    grant->len > PROTO_MAX_CHUNK + CHUNK_CIPHER_TAG_BYTES)
		return -EPROTO;
	return 0;
}

void proto_put_descriptor(struct cursor_out *out, const struct proto_descriptor *d)
{
	put_u64(out, d->seq);
	put_u16(out, d->window);
	put_u16(out, d->lane);
	put_u32(out, d->bytes);
	put_u16(out, d->count);
}

int proto_get_descriptor(struct cursor_in *in, struct proto_descriptor *d)
{
	d->seq = get_u64(in);
	d->window = get_u16(in);
	d->lane = get_u16(in);
	d->bytes = get_u32(in);
	d->count = get_u16(in);
	if (in->bad || d->count > PROTO_MAX_SEGMENTS || d->bytes > PROTO_MAX_CHUNK || d->lane >= MOVER_MAX_QPS)
		return -EPROTO;
	if (d->window == PROTO_NO_WINDOW)
		return d->bytes ? -EPROTO : 0;
	return d->window >= PROTO_MAX_WINDOWS ? -EPROTO : 0;
}

void proto_put_segment(struct cursor_out *out, const struct proto_segment *s)
{
	put_u8(out, (uint8_t)s->kind);
	put_u8(out, (uint8_t)((s->last ? SEGMENT_LAST : 0) | (s->sparse ? SEGMENT_SPARSE : 0)));
	put_u32(out, s->entry);
	if (s->kind == PROTO_GIVEN_UP) {
		put_text(out, &s->text);
		return;
	}
	put_u64(out, s->chunk);
	if (s->kind == PROTO_DATA) {
		put_u32(out, s->len);
		put_digest(out, &s->digest);
	} else if (s->kind == PROTO_KEEP) {
		put_digest(out, &s->digest);
	} else if (s->kind == PROTO_HOLE) {
		put_u64(out, s->count);
	}
	if (s->last) {
		put_u64(out, s->size);
		put_digest(out, &s->whole);
	}
}

int proto_get_segment(struct cursor_in *in, struct proto_segment *s)
{
	uint8_t kind = get_u8(in), flags = get_u8(in);

	*s = (struct proto_segment){
		.kind = kind, .last = flags & SEGMENT_LAST, .sparse = flags & SEGMENT_SPARSE, .count = 1};
	s->entry = get_u32(in);
	if (kind == 0 || kind >= PROTO_SEGMENT_KINDS || flags > 3 || (s->sparse && kind != PROTO_DATA))
		return -EPROTO;
	if (s->kind == PROTO_GIVEN_UP) {
		get_text(in, &s->text);
		return in->bad || !s->last ? -EPROTO : 0;
	}
	s->chunk = get_u64(in);
	if (s->kind == PROTO_DATA) {
		s->len = get_u32(in);
		get_digest(in, &s->digest);
	} else if (s->kind == PROTO_KEEP) {
		get_digest(in, &s->digest);
	} else if (s->kind == PROTO_HOLE) {
		s->count = get_u64(in);
	}
	if (s->last) {
		s->size = get_u64(in);
		get_digest(in, &s->whole);
	}
	if (in->bad || s->len > PROTO_MAX_CHUNK || s->size > INT64_MAX || s->count == 0)
		return -EPROTO;
	/* sums of chunks, and products with a chunk's size, must not overflow */
	return s->chunk > INT64_MAX / PROTO_MIN_CHUNK || s->count > INT64_MAX / PROTO_MIN_CHUNK ? -EPROTO : 0;
}

int proto_get_segments(struct cursor_in *in, const struct proto_descriptor *descriptor, struct cursor_in *segments)
{
	uint64_t bytes = 0;

	*segments = *in;
	for (unsigned i = 0; i < descriptor->count; i++) {
		struct proto_segment segment;
		if (proto_get_segment(in, &segment))
			return -EPROTO;
		bytes += segment.len;
	}
	segments->end = in->at;
	return bytes != descriptor->bytes ? -EPROTO : 0;
}

int proto_get_list(struct cursor_in *in, uint32_t *first, uint16_t *count, uint16_t max)
{
	*first = get_u32(in);
	*count = get_u16(in);
	return in->bad || *count == 0 || *count > max || *first > UINT32_MAX - *count ? -EPROTO : 0;
}

/* END, ERROR, PING */

void proto_put_end(struct cursor_out *out, const struct proto_end *end)
{
	put_u8(out, (uint8_t)end->status);
	put_text(out, &end->text);
	put_u64(out, end->entries);
	put_u64(out, end->failed);
}

int proto_get_end(struct cursor_in *in, struct proto_end *end)
{
	uint8_t status = get_u8(in);
	end->status = status;
	get_text(in, &end->text);
	end->entries = get_u64(in);
	end->failed = get_u64(in);
	return status > MOVER_INTERRUPTED ? -EPROTO : proto_get_nothing(in);
}

void proto_put_ping(struct cursor_out *out, uint32_t timeout_ms)
{
	put_u32(out, timeout_ms);
}

int proto_get_ping(struct cursor_in *in, uint32_t *timeout_ms)
{
	*timeout_ms = in->at == in->end ? 0 : get_u32(in);
	return proto_get_nothing(in);
}
