/* SPDX-License-Identifier: BSD-2-Clause */
/* Big-endian numbers at any alignment: the wire's byte order. */
#ifndef ROCI_WIRE_BYTES_H
#define ROCI_WIRE_BYTES_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline uint16_t roci_get_be16(const uint8_t *from)
{
	uint16_t value;

	memcpy(&value, from, sizeof(value));
	return be16toh(value);
}

static inline uint32_t roci_get_be24(const uint8_t *from)
{
	return (uint32_t)from[0] << 16 | (uint32_t)from[1] << 8 | from[2];
}

static inline uint32_t roci_get_be32(const uint8_t *from)
{
	uint32_t value;

	memcpy(&value, from, sizeof(value));
	return be32toh(value);
}

static inline uint64_t roci_get_be64(const uint8_t *from)
{
	uint64_t value;

	memcpy(&value, from, sizeof(value));
	return be64toh(value);
}

static inline void roci_put_be16(uint8_t *to, uint16_t value)
{
	value = htobe16(value);
	memcpy(to, &value, sizeof(value));
}

/* Writes the low 24 bits. */
static inline void roci_put_be24(uint8_t *to, uint32_t value)
{
	to[0] = (uint8_t)(value >> 16);
	to[1] = (uint8_t)(value >> 8);
	to[2] = (uint8_t)value;
}

static inline void roci_put_be32(uint8_t *to, uint32_t value)
{
	value = htobe32(value);
	memcpy(to, &value, sizeof(value));
}

static inline void roci_put_be64(uint8_t *to, uint64_t value)
{
	value = htobe64(value);
	memcpy(to, &value, sizeof(value));
}

#endif
