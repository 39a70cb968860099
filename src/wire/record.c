/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/record.h"

#include <string.h>

#define VERSION 1

static const uint8_t magic[4] = "roci";

/* A place in a body, and whether its numbers have the other byte order. */
struct place {
	uint8_t *at;
	bool swapped;
};

static void put16(struct place *p, uint16_t value)
{
	memcpy(p->at, &value, sizeof(value));
	p->at += sizeof(value);
}

static void put32(struct place *p, uint32_t value)
{
	memcpy(p->at, &value, sizeof(value));
	p->at += sizeof(value);
}

static void put64(struct place *p, uint64_t value)
{
	memcpy(p->at, &value, sizeof(value));
	p->at += sizeof(value);
}

static void put_bytes(struct place *p, const void *bytes, size_t len)
{
	memcpy(p->at, bytes, len);
	p->at += len;
}

void roci_record_build(const struct roci_record *r, uint8_t *out)
{
	struct place p = {.at = out};

	put_bytes(&p, magic, sizeof(magic));
	put16(&p, VERSION);
	put16(&p, r->kind);
	put32(&p, (uint32_t)(r->time_ns >> 32)); /* as in an enhanced packet block */
	put32(&p, (uint32_t)r->time_ns);
	put32(&p, r->pid);
	*p.at++ = r->qp_type;
	*p.at++ = r->opcode;
	put16(&p, 0);
	put32(&p, r->status);
	put32(&p, r->flags);
	put32(&p, r->qpn);
	put32(&p, r->peer);
	put32(&p, r->queue);
	put32(&p, r->imm);
	put32(&p, r->rkey);
	put32(&p, 0);
	put64(&p, r->wr_id);
	put64(&p, r->length);
	put64(&p, r->remote_addr);
	put_bytes(&p, r->local_gid, sizeof(r->local_gid));
	put_bytes(&p, r->remote_gid, sizeof(r->remote_gid));
	put_bytes(&p, r->text, sizeof(r->text));
}

static uint16_t get16(struct place *p)
{
	uint16_t value;

	memcpy(&value, p->at, sizeof(value));
	p->at += sizeof(value);
	return p->swapped ? __builtin_bswap16(value) : value;
}

static uint32_t get32(struct place *p)
{
	uint32_t value;

	memcpy(&value, p->at, sizeof(value));
	p->at += sizeof(value);
	return p->swapped ? __builtin_bswap32(value) : value;
}

static uint64_t get64(struct place *p)
{
	uint64_t value;

	memcpy(&value, p->at, sizeof(value));
	p->at += sizeof(value);
	return p->swapped ? __builtin_bswap64(value) : value;
}

static void get_bytes(struct place *p, void *bytes, size_t len)
{
	memcpy(bytes, p->at, len);
	p->at += len;
}

bool roci_record_parse(const uint8_t *body, size_t len, bool swapped, struct roci_record *r)
{
	struct place p = {.at = (uint8_t *)body + sizeof(magic), .swapped = swapped};

	if (len < ROCI_RECORD_BYTES || memcmp(body, magic, sizeof(magic)) || get16(&p) != VERSION)
		return false;
	r->kind = get16(&p);
	r->time_ns = (uint64_t)get32(&p) << 32;
	r->time_ns |= get32(&p);
	r->pid = get32(&p);
	r->qp_type = *p.at++;
	r->opcode = *p.at++;
	p.at += 2;
	r->status = get32(&p);
	r->flags = get32(&p);
	r->qpn = get32(&p);
	r->peer = get32(&p);
	r->queue = get32(&p);
	r->imm = get32(&p);
	r->rkey = get32(&p);
	p.at += 4;
	r->wr_id = get64(&p);
	r->length = get64(&p);
	r->remote_addr = get64(&p);
	get_bytes(&p, r->local_gid, sizeof(r->local_gid));
	get_bytes(&p, r->remote_gid, sizeof(r->remote_gid));
	get_bytes(&p, r->text, sizeof(r->text));
	r->text[sizeof(r->text) - 1] = 0;
	return r->kind > 0 && r->kind < ROCI_RECORD_KINDS;
}
