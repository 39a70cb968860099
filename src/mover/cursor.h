/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes and reads big-endian fields. A writer that has run out of room and a reader that has run out of bytes remember
 * it, so one check at the end is enough. Such a reader returns zeros. */
#ifndef ROCI_MOVER_CURSOR_H
#define ROCI_MOVER_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct cursor_out {
	uint8_t *start, *at, *end;
	bool full;
};

struct cursor_in {
	const uint8_t *at, *end;
	bool bad;
};

static inline struct cursor_out cursor_out(void *buffer, size_t room)
{
	return (struct cursor_out){.start = buffer, .at = buffer, .end = (uint8_t *)buffer + room};
}

static inline struct cursor_in cursor_in(const void *bytes, size_t len)
{
	/* C11 6.5.6: nothing may be added to NULL, which stands for no bytes. */
	return (struct cursor_in){.at = bytes, .end = len ? (const uint8_t *)bytes + len : bytes};
}

static inline size_t cursor_written(const struct cursor_out *out)
{
	return (size_t)(out->at - out->start);
}

/* The next `len` bytes to fill, or NULL. */
static inline uint8_t *cursor_take(struct cursor_out *out, size_t len)
{
	uint8_t *at = out->at;
	if (out->full || (size_t)(out->end - out->at) < len) {
		out->full = true;
		return NULL;
	}
	out->at += len;
	return at;
}

static inline void put_bytes(struct cursor_out *out, const void *bytes, size_t len)
{
	uint8_t *at = cursor_take(out, len);
	if (at && len)
		memcpy(at, bytes, len);
}

/* Not inlined: GCC 12 does not understand the check of the room, and would warn of an overflow. */
__attribute__((noinline, unused)) static void put_number(struct cursor_out *out, uint64_t value, size_t bytes)
{
	uint8_t field[8];
	for (size_t i = 0; i < bytes; i++)
		field[i] = (uint8_t)(value >> (8 * (bytes - 1 - i)));
	put_bytes(out, field, bytes);
}

/* Sets a count that is known only after its list was written. cursor_take() its two bytes before the list. */
static inline void cursor_patch_u16(uint8_t *at, uint16_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static inline void put_u8(struct cursor_out *out, uint8_t value)
{
	put_number(out, value, 1);
}

static inline void put_u16(struct cursor_out *out, uint16_t value)
{
	put_number(out, value, 2);
}

static inline void put_u32(struct cursor_out *out, uint32_t value)
{
	put_number(out, value, 4);
}

static inline void put_u64(struct cursor_out *out, uint64_t value)
{
	put_number(out, value, 8);
}

/* The next `len` bytes, or NULL. */
static inline const uint8_t *get_bytes(struct cursor_in *in, size_t len)
{
	const uint8_t *at = in->at;
	if (in->bad || (size_t)(in->end - in->at) < len) {
		in->bad = true;
		return NULL;
	}
	in->at += len;
	return at;
}

static inline uint64_t get_number(struct cursor_in *in, size_t bytes)
{
	const uint8_t *at = get_bytes(in, bytes);
	uint64_t value = 0;
	for (size_t i = 0; at && i < bytes; i++)
		value = value << 8 | at[i];
	return value;
}

static inline uint8_t get_u8(struct cursor_in *in)
{
	return (uint8_t)get_number(in, 1);
}

static inline uint16_t get_u16(struct cursor_in *in)
{
	return (uint16_t)get_number(in, 2);
}

static inline uint32_t get_u32(struct cursor_in *in)
{
	return (uint32_t)get_number(in, 4);
}

static inline uint64_t get_u64(struct cursor_in *in)
{
	return get_number(in, 8);
}

#endif
