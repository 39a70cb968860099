/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the reader share. */
#ifndef CAPTURE_READER_INTERNAL_H
#define CAPTURE_READER_INTERNAL_H

#include <string.h>

#include "capture/reader.h"

#define CAPTURE_NS             1000000000ull
#define CAPTURE_SECTION_HEADER 0x0a0d0d0au /* the same in both byte orders */
#define CAPTURE_INTERFACES_MAX 1024        /* of a section */
#define CAPTURE_MAX_BLOCK      (1u << 28)  /* what claims more is damaged */
#define CAPTURE_BODY_BYTES     (1u << 19)  /* what is longer is cut */

enum capture_format {
	CAPTURE_FORMAT_UNKNOWN, /* nothing is read yet */
	CAPTURE_FORMAT_PCAP,
	CAPTURE_FORMAT_PCAPNG,
	CAPTURE_FORMAT_OVER,
};

/* What the units of an interface's times are. */
struct capture_clock {
	uint64_t per_second; /* a power of ten; or */
	uint8_t shift;       /* not 0: 2^(shift-1) per second */
	int64_t offset_s;
};

struct capture_interface {
	struct capture_clock clock;
	uint32_t snap_len; /* bytes; 0: no limit */
	uint16_t link_type;
};

struct capture_reader {
	FILE *file;
	uint64_t at;      /* bytes read */
	int read_errno;   /* why no more can be read */
	uint64_t packets; /* so far */
	uint64_t time_ns; /* of the last record */
	enum capture_format format;
	bool swapped;   /* against this machine's byte order */
	bool head_read; /* the type of the first block is read */
	unsigned interface_count;
	char why[256];
	struct capture_interface interfaces[CAPTURE_INTERFACES_MAX];
	uint8_t body[CAPTURE_BODY_BYTES];
};

static inline uint32_t capture_get32(const struct capture_reader *r, const uint8_t *from)
{
	uint32_t value;

	memcpy(&value, from, sizeof(value));
	return r->swapped ? __builtin_bswap32(value) : value;
}

static inline uint16_t capture_get16(const struct capture_reader *r, const uint8_t *from)
{
	uint16_t value;

	memcpy(&value, from, sizeof(value));
	return r->swapped ? __builtin_bswap16(value) : value;
}

/* Returns less than `len` where the file ends. */
size_t capture_read(struct capture_reader *r, void *to, size_t len);
/* False: the file ends. */
bool capture_skip(struct capture_reader *r, uint64_t len);

/* Both end the reader, and return CAPTURE_BROKEN. */
__attribute__((format(printf, 2, 3))) enum capture_result capture_fail(struct capture_reader *r, const char *format,
								       ...);
enum capture_result capture_cut_off(struct capture_reader *r);

/* Nanoseconds since 1970. */
uint64_t capture_time_ns(const struct capture_clock *clock, uint64_t units);

/* The next record of a pcapng file. */
enum capture_result capture_next_block(struct capture_reader *r, struct capture_record *record);

#endif
