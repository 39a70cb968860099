/* SPDX-License-Identifier: BSD-2-Clause */
/* The blocks of a pcapng file: draft-ietf-opsawg-pcapng, sections 3 and 4. */
#include <inttypes.h>
#include <string.h>

#include "capture/reader_internal.h"

enum block_type {
	INTERFACE = 1,
	PACKET_OF_OLD = 2, /* obsolete: 4.8 of the draft */
	SIMPLE_PACKET = 3,
	STATISTICS = 5,
	ENHANCED_PACKET = 6,
	CUSTOM = 0x00000bad,
	CUSTOM_NO_COPY = 0x40000bad,
};

#define LOCAL_USE        0x80000000u /* 3.1 of the draft */
#define BYTE_ORDER_MAGIC 0x1a2b3c4du

#define OPTION_END      0
#define OPTION_TSRESOL  9
#define OPTION_TSOFFSET 14
#define OPTION_FLAGS    2
#define OPTION_DROPPED  5 /* isb_ifdrop */
#define FLAGS_DIRECTION 3

struct block {
	uint32_t type, len; /* of the whole block */
	uint32_t body;      /* bytes of it in the reader's buffer: without head and tail */
	bool cut;           /* the body is longer than that */
	uint64_t at;        /* in the file */
};

bool capture_option_next(const struct capture_record *record, uint32_t *at, struct capture_option *option)
{
	uint32_t left = record->options_len - *at, padded;
	const uint8_t *from;
	uint16_t head[2];

	if (*at > record->options_len || left < sizeof(head))
		return false;
	from = record->options + *at;
	memcpy(head, from, sizeof(head));
	option->code = record->swapped ? __builtin_bswap16(head[0]) : head[0];
	option->len = record->swapped ? __builtin_bswap16(head[1]) : head[1];
	option->bytes = from + sizeof(head);
	padded = (option->len + 3u) & ~3u;
	if (option->code == OPTION_END || padded > left - sizeof(head))
		return false;
	*at += (uint32_t)sizeof(head) + padded;
	return true;
}

/* ---- head and tail ---- */

static bool read_type(struct capture_reader *r, uint32_t *type, enum capture_result *result)
{
	uint8_t bytes[4];
	size_t n;

	if (r->head_read) {
		r->head_read = false;
		*type = CAPTURE_SECTION_HEADER;
		return true;
	}
	n = capture_read(r, bytes, sizeof(bytes));
	*type = capture_get32(r, bytes);
	if (n == sizeof(bytes))
		return true;
	*result = n || ferror(r->file) ? capture_cut_off(r) : CAPTURE_END;
	return false;
}

/* The byte order of a section stands behind the length of its header. */
static enum capture_result read_byte_order(struct capture_reader *r, uint8_t len[4])
{
	uint8_t magic[4];

	if (capture_read(r, len, 4) < 4 || capture_read(r, magic, 4) < 4)
		return capture_cut_off(r);
	r->swapped = false;
	if (capture_get32(r, magic) == BYTE_ORDER_MAGIC)
		return CAPTURE_RECORD;
	r->swapped = true;
	if (capture_get32(r, magic) == BYTE_ORDER_MAGIC)
		return CAPTURE_RECORD;
	return capture_fail(r, "the section at byte %" PRIu64 " has no byte order; the file is damaged", r->at - 12);
}

/* Reads a block; its body is in r->body. */
static enum capture_result read_block(struct capture_reader *r, struct block *b)
{
	enum capture_result result = CAPTURE_RECORD;
	uint32_t head = 8, rest;
	uint8_t len[4];

	if (!read_type(r, &b->type, &result))
		return result;
	b->at = r->at - 4;
	if (b->type == CAPTURE_SECTION_HEADER) {
		result = read_byte_order(r, len);
		head = 12;
	} else if (capture_read(r, len, sizeof(len)) < sizeof(len)) {
		result = capture_cut_off(r);
	}
	if (result != CAPTURE_RECORD)
		return result;
	b->len = capture_get32(r, len);
	if (b->len < head + 4 || b->len % 4 || b->len > CAPTURE_MAX_BLOCK)
		return capture_fail(r, "the block at byte %" PRIu64 " claims %" PRIu32 " bytes; the file is damaged",
				    b->at, b->len);
	rest = b->len - head - 4;
	b->cut = rest > sizeof(r->body);
	b->body = b->cut ? (uint32_t)sizeof(r->body) : rest;
	if (capture_read(r, r->body, b->body) < b->body || !capture_skip(r, rest - b->body) ||
	    capture_read(r, len, sizeof(len)) < sizeof(len))
		return capture_cut_off(r);
	if (capture_get32(r, len) != b->len)
		return capture_fail(r,
				    "the block at byte %" PRIu64 " ends with another length than it begins with; the "
				    "file is damaged",
				    b->at);
	return CAPTURE_RECORD;
}

static enum capture_result too_short(struct capture_reader *r, const struct block *b)
{
	return capture_fail(r, "the block at byte %" PRIu64 " is too short for its kind; the file is damaged", b->at);
}

/* ---- interfaces ---- */

static void take_resolution(struct capture_clock *clock, uint8_t value)
{
	clock->shift = 0;
	clock->per_second = 1;
	if (value & 0x80) {
		clock->shift = (uint8_t)((value & 0x7f) + 1);
		if (clock->shift > 64)
			clock->shift = 64;
		return;
	}
	for (unsigned i = 0; i < value && i < 19; i++)
		clock->per_second *= 10;
}

/* Sets the options of the record to the body from `from` on. */
static void take_options(struct capture_reader *r, struct capture_record *record, const struct block *b, uint64_t from)
{
	if (b->cut || from >= b->body)
		return;
	record->options = r->body + from;
	record->options_len = b->body - (uint32_t)from;
	record->swapped = r->swapped;
}

static enum capture_result take_interface(struct capture_reader *r, const struct block *b)
{
	struct capture_record options = {0};
	struct capture_option option;
	struct capture_interface *i;
	uint32_t at = 0;

	if (b->body < 8)
		return too_short(r, b);
	if (r->interface_count == CAPTURE_INTERFACES_MAX)
		return capture_fail(r, "it has more than %u interfaces", CAPTURE_INTERFACES_MAX);
	i = &r->interfaces[r->interface_count++];
	*i = (struct capture_interface){.clock = {.per_second = 1000000},
					.link_type = capture_get16(r, r->body),
					.snap_len = capture_get32(r, r->body + 4)};
	take_options(r, &options, b, 8);
	while (capture_option_next(&options, &at, &option)) {
		if (option.code == OPTION_TSRESOL && option.len >= 1)
			take_resolution(&i->clock, option.bytes[0]);
		if (option.code == OPTION_TSOFFSET && option.len >= 8) {
			uint64_t value;

			memcpy(&value, option.bytes, sizeof(value));
			i->clock.offset_s = (int64_t)(r->swapped ? __builtin_bswap64(value) : value);
		}
	}
	return CAPTURE_RECORD;
}

/* ---- records ---- */

static enum capture_result unknown_interface(struct capture_reader *r, const struct block *b, uint32_t number)
{
	return capture_fail(
		r, "the packet at byte %" PRIu64 " names interface %" PRIu32 ", and there are %u; the file is damaged",
		b->at, number, r->interface_count);
}

static void take_time(struct capture_reader *r, struct capture_record *record, uint32_t interface,
		      const uint8_t *high_low)
{
	record->time_ns = capture_time_ns(&r->interfaces[interface].clock,
					  (uint64_t)capture_get32(r, high_low) << 32 | capture_get32(r, high_low + 4));
}

bool capture_option_is_made_up(const struct capture_option *option)
{
	static const char made_up[] = "made up:";

	return option->code == CAPTURE_OPTION_COMMENT && option->len >= sizeof(made_up) - 1 &&
	       !memcmp(option->bytes, made_up, sizeof(made_up) - 1);
}

/* Which way it went, and whether it went at all. */
static void take_direction(const struct capture_reader *r, struct capture_record *record)
{
	struct capture_option option;
	uint32_t at = 0;

	while (capture_option_next(record, &at, &option))
		if (capture_option_is_made_up(&option))
			record->made_up = true;
		else if (option.code == OPTION_FLAGS && option.len >= 4)
			record->direction = (enum capture_direction)(capture_get32(r, option.bytes) & FLAGS_DIRECTION) %
					    (CAPTURE_OUTBOUND + 1);
}

/* Sets the packet: `captured` bytes of the body from `from` on, and options behind them. */
static enum capture_result take_bytes(struct capture_reader *r, struct capture_record *record, const struct block *b,
				      uint32_t from, uint32_t captured)
{
	uint32_t room = b->body - from;

	if (captured > room && !b->cut)
		return capture_fail(r,
				    "the packet at byte %" PRIu64 " claims %" PRIu32 " bytes of a block of %" PRIu32
				    "; the file is damaged",
				    b->at, captured, b->len);
	record->bytes = r->body + from;
	record->len = captured < room ? captured : room;
	if (record->original_len < captured)
		record->original_len = captured;
	record->number = ++r->packets;
	take_options(r, record, b, from + (((uint64_t)captured + 3) & ~3ull));
	take_direction(r, record);
	return CAPTURE_RECORD;
}

/* Enhanced packet blocks, and the obsolete packet blocks, which differ in the first word. */
static enum capture_result take_packet(struct capture_reader *r, struct capture_record *record, const struct block *b)
{
	uint32_t interface;

	if (b->body < 20)
		return too_short(r, b);
	interface = b->type == ENHANCED_PACKET ? capture_get32(r, r->body) : capture_get16(r, r->body);
	if (interface >= r->interface_count)
		return unknown_interface(r, b, interface);
	take_time(r, record, interface, r->body + 4);
	record->link_type = r->interfaces[interface].link_type;
	record->original_len = capture_get32(r, r->body + 16);
	return take_bytes(r, record, b, 20, capture_get32(r, r->body + 12));
}

/* It has no time and no captured length. */
static enum capture_result take_simple(struct capture_reader *r, struct capture_record *record, const struct block *b)
{
	uint32_t captured;

	if (b->body < 4)
		return too_short(r, b);
	if (!r->interface_count)
		return unknown_interface(r, b, 0);
	record->link_type = r->interfaces[0].link_type;
	record->original_len = captured = capture_get32(r, r->body);
	if (r->interfaces[0].snap_len && captured > r->interfaces[0].snap_len)
		captured = r->interfaces[0].snap_len;
	return take_bytes(r, record, b, 4, captured);
}

static enum capture_result take_custom(struct capture_reader *r, struct capture_record *record, const struct block *b)
{
	if (b->body < 4)
		return too_short(r, b);
	record->kind = CAPTURE_CUSTOM;
	record->pen = capture_get32(r, r->body);
	record->bytes = r->body + 4;
	record->len = b->body - 4;
	record->original_len = b->len - 16;
	return CAPTURE_RECORD;
}

static enum capture_result take_local(struct capture_record *record, struct capture_reader *r, const struct block *b)
{
	record->kind = CAPTURE_LOCAL;
	record->local_type = b->type;
	record->bytes = r->body;
	record->len = b->body;
	record->original_len = b->len - 12;
	return CAPTURE_RECORD;
}

/* Returns whether the block tells of dropped packets. */
static bool take_statistics(struct capture_reader *r, struct capture_record *record, const struct block *b)
{
	struct capture_option option;
	uint32_t at = 0, interface;

	if (b->body < 12)
		return false;
	interface = capture_get32(r, r->body);
	take_options(r, record, b, 12);
	while (capture_option_next(record, &at, &option))
		if (option.code == OPTION_DROPPED && option.len >= 8) {
			memcpy(&record->dropped, option.bytes, sizeof(record->dropped));
			if (r->swapped)
				record->dropped = __builtin_bswap64(record->dropped);
		}
	if (interface < r->interface_count)
		take_time(r, record, interface, r->body + 4);
	record->kind = CAPTURE_DROPPED;
	return record->dropped > 0;
}

enum capture_result capture_next_block(struct capture_reader *r, struct capture_record *record)
{
	for (;;) {
		const struct capture_record fresh = {
			.number = r->packets, .time_ns = r->time_ns, .swapped = r->swapped};
		struct block b;
		enum capture_result result = read_block(r, &b);

		if (result != CAPTURE_RECORD)
			return result;
		*record = fresh;
		record->swapped = r->swapped;
		switch (b.type) {
		case CAPTURE_SECTION_HEADER: r->interface_count = 0; break;
		case INTERFACE: result = take_interface(r, &b); break;
		case PACKET_OF_OLD:
		case ENHANCED_PACKET: return take_packet(r, record, &b);
		case SIMPLE_PACKET: return take_simple(r, record, &b);
		case CUSTOM:
		case CUSTOM_NO_COPY: return take_custom(r, record, &b);
		case STATISTICS:
			if (take_statistics(r, record, &b))
				return CAPTURE_RECORD;
			break;
		default:
			if (b.type & LOCAL_USE)
				return take_local(record, r, &b);
			break; /* names, secrets, and what is not invented yet */
		}
		if (result != CAPTURE_RECORD)
			return result;
	}
}
