/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture/reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "capture/reader_internal.h"

struct capture_reader *capture_reader_create(FILE *file)
{
	struct capture_reader *r = calloc(1, sizeof(*r));

	if (r)
		r->file = file;
	return r;
}

void capture_reader_destroy(struct capture_reader *r)
{
	free(r);
}

const char *capture_reader_why(const struct capture_reader *r)
{
	return r->why;
}

enum capture_result capture_fail(struct capture_reader *r, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(r->why, sizeof(r->why), format, args);
	va_end(args);
	r->format = CAPTURE_FORMAT_OVER;
	return CAPTURE_BROKEN;
}

enum capture_result capture_cut_off(struct capture_reader *r)
{
	if (ferror(r->file) && r->read_errno == EISDIR)
		return capture_fail(r, "it is a directory; name a capture in it");
	if (ferror(r->file))
		return capture_fail(r, "it cannot be read at byte %" PRIu64 ": %s", r->at, strerror(r->read_errno));
	return capture_fail(r,
			    "the file is cut off at byte %" PRIu64 ", behind packet %" PRIu64
			    ": whoever wrote it was stopped, or the disk was full",
			    r->at, r->packets);
}

size_t capture_read(struct capture_reader *r, void *to, size_t len)
{
	size_t n = fread(to, 1, len, r->file);

	if (n < len && ferror(r->file))
		r->read_errno = errno;
	r->at += n;
	return n;
}

bool capture_skip(struct capture_reader *r, uint64_t len)
{
	uint8_t scratch[4096];

	while (len) {
		size_t part = len < sizeof(scratch) ? (size_t)len : sizeof(scratch);

		if (capture_read(r, scratch, part) < part)
			return false;
		len -= part;
	}
	return true;
}

uint64_t capture_time_ns(const struct capture_clock *clock, uint64_t units)
{
	uint64_t seconds, rest;

	if (clock->shift) {
		unsigned shift = clock->shift - 1u;

		seconds = units >> shift;
		rest = units & ((1ull << shift) - 1);
		if (shift > 32) {
			rest >>= shift - 32;
			shift = 32;
		}
		rest = rest * CAPTURE_NS >> shift;
	} else {
		seconds = units / clock->per_second;
		rest = units % clock->per_second;
		if (clock->per_second > CAPTURE_NS)
			rest /= clock->per_second / CAPTURE_NS;
		else
			rest *= CAPTURE_NS / clock->per_second;
	}
	return (seconds + (uint64_t)clock->offset_s) * CAPTURE_NS + rest;
}

/* ---- pcap ---- */

#define PCAP_MICROSECONDS 0xa1b2c3d4u
#define PCAP_NANOSECONDS  0xa1b23c4du
#define PCAP_MODIFIED     0xa1b2cd34u /* Kuznetzov's, with longer packet headers */
#define PCAP_LINK_MASK    0x03ffffffu /* above: the length of a frame check sequence */

static enum capture_result begin_pcap(struct capture_reader *r, uint32_t magic)
{
	uint8_t rest[20];

	if (capture_read(r, rest, sizeof(rest)) < sizeof(rest))
		return capture_cut_off(r);
	r->format = CAPTURE_FORMAT_PCAP;
	r->interfaces[0].clock.per_second = magic == PCAP_NANOSECONDS ? CAPTURE_NS : 1000000;
	r->interfaces[0].link_type = capture_get32(r, rest + 16) & PCAP_LINK_MASK;
	r->interface_count = 1;
	return CAPTURE_RECORD;
}

static enum capture_result next_pcap(struct capture_reader *r, struct capture_record *record)
{
	uint64_t begin = r->at;
	uint8_t head[16];
	uint32_t captured, kept;
	size_t n = capture_read(r, head, sizeof(head));

	if (!n && !ferror(r->file))
		return CAPTURE_END;
	if (n < sizeof(head))
		return capture_cut_off(r);
	captured = capture_get32(r, head + 8);
	if (captured > CAPTURE_MAX_BLOCK)
		return capture_fail(r, "the packet at byte %" PRIu64 " claims %" PRIu32 " bytes; the file is damaged",
				    begin, captured);
	kept = captured < sizeof(r->body) ? captured : sizeof(r->body);
	if (capture_read(r, r->body, kept) < kept || !capture_skip(r, captured - kept))
		return capture_cut_off(r);
	record->bytes = r->body;
	record->len = kept;
	record->original_len = capture_get32(r, head + 12);
	if (record->original_len < captured)
		record->original_len = captured;
	record->link_type = r->interfaces[0].link_type;
	record->time_ns = capture_get32(r, head) * CAPTURE_NS +
			  capture_get32(r, head + 4) * (CAPTURE_NS / r->interfaces[0].clock.per_second);
	record->number = ++r->packets;
	return CAPTURE_RECORD;
}

/* ---- which format ---- */

static enum capture_result unknown(struct capture_reader *r, const uint8_t magic[4])
{
	if (magic[0] == 0x1f && magic[1] == 0x8b)
		return capture_fail(r, "it is compressed; try `zcat FILE | roci dump -`");
	if (!memcmp(magic, "\x28\xb5\x2f\xfd", 4))
		return capture_fail(r, "it is compressed; try `zstdcat FILE | roci dump -`");
	return capture_fail(r, "it is neither a pcap nor a pcapng file: it begins with %02x %02x %02x %02x", magic[0],
			    magic[1], magic[2], magic[3]);
}

static enum capture_result begin(struct capture_reader *r)
{
	uint8_t magic[4];
	uint32_t value;
	size_t n = capture_read(r, magic, sizeof(magic));

	if (!n && !ferror(r->file))
		return capture_fail(r, "it is empty");
	if (n < sizeof(magic))
		return capture_cut_off(r);
	memcpy(&value, magic, sizeof(value));
	if (value == CAPTURE_SECTION_HEADER) {
		r->format = CAPTURE_FORMAT_PCAPNG;
		r->head_read = true;
		return CAPTURE_RECORD;
	}
	for (r->swapped = false;; r->swapped = true) {
		uint32_t read = capture_get32(r, magic);

		if (read == PCAP_MICROSECONDS || read == PCAP_NANOSECONDS)
			return begin_pcap(r, read);
		if (read == PCAP_MODIFIED)
			return capture_fail(r, "it is of a pcap variant of the last century; convert it: `editcap FILE "
					       "NEW.pcapng`");
		if (r->swapped)
			return unknown(r, magic);
	}
}

enum capture_result capture_reader_next(struct capture_reader *r, struct capture_record *record)
{
	enum capture_result result = CAPTURE_RECORD;

	memset(record, 0, sizeof(*record));
	if (r->format == CAPTURE_FORMAT_UNKNOWN)
		result = begin(r);
	record->number = r->packets;
	record->time_ns = r->time_ns;
	record->swapped = r->swapped;
	if (result == CAPTURE_RECORD && r->format == CAPTURE_FORMAT_PCAP)
		result = next_pcap(r, record);
	else if (result == CAPTURE_RECORD && r->format == CAPTURE_FORMAT_PCAPNG)
		result = capture_next_block(r, record);
	else if (result == CAPTURE_RECORD)
		result = r->why[0] ? CAPTURE_BROKEN : CAPTURE_END;
	if (result == CAPTURE_END)
		r->format = CAPTURE_FORMAT_OVER;
	r->time_ns = record->time_ns;
	return result;
}
