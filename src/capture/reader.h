/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads captures as a stream: pcap (pcap-savefile(5)) and pcapng (draft-ietf-opsawg-pcapng), of either byte order and
 * any resolution of time. A pipe will do, and memory is the same for a file of any size.
 *
 * Blocks that are no packets are records too: comments and custom blocks carry what programs say about the packets.
 * libpcap would skip them; so this is not libpcap.
 */
#ifndef CAPTURE_READER_H
#define CAPTURE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum capture_kind {
	CAPTURE_PACKET,
	CAPTURE_CUSTOM,  /* custom block: `pen`, and its bytes behind that number */
	CAPTURE_LOCAL,   /* block of a type for local use: `local_type`, and its body (wire/record.h has ours) */
	CAPTURE_DROPPED, /* interface statistics: `dropped` packets are not in the capture */
};

/* Which way a packet passed the place where it was captured (epb_flags). */
enum capture_direction {
	CAPTURE_PASSING, /* the capture does not say: a wire, or a mirror port */
	CAPTURE_INBOUND, /* it arrived at this host */
	CAPTURE_OUTBOUND,
};

struct capture_record {
	enum capture_kind kind;
	enum capture_direction direction;
	uint64_t number;        /* of a packet: 1, 2, ... as Wireshark counts. Of other records: of the last packet */
	uint64_t time_ns;       /* since 1970; of a record without a time: that of the last packet */
	uint64_t dropped;       /* CAPTURE_DROPPED */
	uint32_t link_type;     /* LINKTYPE_*: https://www.tcpdump.org/linktypes.html */
	uint32_t local_type;    /* CAPTURE_LOCAL: bit 31 is set */
	uint32_t pen;           /* CAPTURE_CUSTOM: private enterprise number */
	bool made_up;           /* a comment of it begins with "made up:", as where roci0 needs no packet */
	bool swapped;           /* the options are in the other byte order than this machine's */
	const uint8_t *bytes;   /* valid until the next call */
	uint32_t len;           /* bytes that are in the file */
	uint32_t original_len;  /* bytes that the packet had */
	const uint8_t *options; /* of the block, as they are in the file; see capture_option_next() */
	uint32_t options_len;
};

#define CAPTURE_OPTION_COMMENT      1
#define CAPTURE_OPTION_CUSTOM_TEXT  2988 /* PEN and UTF-8; 19372: not to be copied */
#define CAPTURE_OPTION_CUSTOM_BYTES 2989 /* PEN and bytes; 19373: not to be copied */

struct capture_option {
	uint16_t code;
	uint16_t len;
	const uint8_t *bytes;
};

/* Fills *option with the next option of a record. *at is 0 at first. Returns false at the end. */
bool capture_option_next(const struct capture_record *record, uint32_t *at, struct capture_option *option);
/* Whether it is the comment that says of a packet that it was made up. */
bool capture_option_is_made_up(const struct capture_option *option);

enum capture_result {
	CAPTURE_RECORD,
	CAPTURE_END,    /* the file ends where a block ends */
	CAPTURE_BROKEN, /* capture_reader_why() says what is wrong. Nothing follows */
};

struct capture_reader;

/* Reads from `file`, which stays the caller's. NULL: no memory. */
struct capture_reader *capture_reader_create(FILE *file);
void capture_reader_destroy(struct capture_reader *r);

/* Waits for the next record where `file` is a pipe. */
enum capture_result capture_reader_next(struct capture_reader *r, struct capture_record *record);

/* Why the reader stopped, without a full stop: "the file is cut off in packet 7, at byte 4711". */
const char *capture_reader_why(const struct capture_reader *r);

#endif
