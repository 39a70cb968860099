/* SPDX-License-Identifier: BSD-2-Clause */
/* Every field of a packet, one after the other: for `roci dump -v`, for JSON, and for pictures. */
#ifndef CAPTURE_FIELDS_H
#define CAPTURE_FIELDS_H

#include "capture/event.h"

enum capture_field_kind {
	CAPTURE_FIELD_NUMBER,
	CAPTURE_FIELD_HEX, /* a number that people write in hexadecimal, of `digits` digits */
	CAPTURE_FIELD_BOOL,
	CAPTURE_FIELD_ADDRESS, /* bytes: 16, in GID form */
	CAPTURE_FIELD_MAC,     /* bytes: 6 */
	CAPTURE_FIELD_BYTES,
};

/* Group and name are stable: roci-dump(1) lists them. */
struct capture_field {
	const char *group; /* "bth" */
	const char *name;  /* "dest_qpn" */
	enum capture_field_kind kind;
	unsigned digits;
	uint64_t number;
	const uint8_t *bytes;
	uint32_t len;     /* of `bytes` */
	const char *text; /* what the value means; NULL: nothing more */
};

typedef void capture_field_fn(void *context, const struct capture_field *field);

/* Calls fn with each field, in the order of the packet; those of one group follow each other. */
void capture_fields(const struct capture_event *e, capture_field_fn *fn, void *context);

/* Prints a value: "0x00ffff", "10.0.0.1", "4 (RC SEND Only)". Bytes are cut after `size`. */
const char *capture_field_print(const struct capture_field *field, char *text, size_t size);

#endif
