/* SPDX-License-Identifier: BSD-2-Clause */
/* Gives fields to a callback. */
#ifndef CAPTURE_FIELD_OUT_H
#define CAPTURE_FIELD_OUT_H

#include "capture/fields.h"

struct capture_field_out {
	capture_field_fn *fn;
	void *context;
};

static inline void capture_out_number(struct capture_field_out *out, const char *group, const char *name,
				      uint64_t value, const char *text)
{
	out->fn(out->context,
		&(struct capture_field){
			.group = group, .name = name, .kind = CAPTURE_FIELD_NUMBER, .number = value, .text = text});
}

static inline void capture_out_hex(struct capture_field_out *out, const char *group, const char *name, uint64_t value,
				   unsigned digits, const char *text)
{
	out->fn(out->context, &(struct capture_field){.group = group,
						      .name = name,
						      .kind = CAPTURE_FIELD_HEX,
						      .digits = digits,
						      .number = value,
						      .text = text});
}

static inline void capture_out_bool(struct capture_field_out *out, const char *group, const char *name, bool value)
{
	out->fn(out->context,
		&(struct capture_field){.group = group, .name = name, .kind = CAPTURE_FIELD_BOOL, .number = value});
}

static inline void capture_out_bytes(struct capture_field_out *out, const char *group, const char *name,
				     enum capture_field_kind kind, const uint8_t *bytes, uint32_t len)
{
	out->fn(out->context,
		&(struct capture_field){.group = group, .name = name, .kind = kind, .bytes = bytes, .len = len});
}

#endif
