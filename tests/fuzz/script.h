/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The script of bytes that leads a fuzz target: libFuzzer's input, or random bytes. Each decision takes as many bytes
 * as it needs, so that a small change of the script is a small change of the story. After the end all decisions are 0.
 * A target runs one script at a time.
 */
#ifndef ROCI_TESTS_SCRIPT_H
#define ROCI_TESTS_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include "check.h"

static struct {
	const uint8_t *at, *end;
} script;

static inline void script_begin(const uint8_t *bytes, size_t len)
{
	script.at = bytes;
	script.end = bytes + len;
}

static inline bool script_ended(void)
{
	return script.at == script.end;
}

static inline unsigned script_byte(void)
{
	return script_ended() ? 0 : *script.at++;
}

static inline void script_fill(void *to, size_t len)
{
	for (size_t i = 0; i < len; i++)
		((uint8_t *)to)[i] = (uint8_t)script_byte();
}

/* 0 to limit - 1; limit > 0 */
static inline size_t below(size_t limit)
{
	uint64_t value = 0;

	for (size_t more = limit - 1; more; more >>= 8)
		value = value << 8 | script_byte();
	return (size_t)(value % limit);
}

static inline bool one_in(size_t n)
{
	return below(n) == 0;
}

#define ONE_OF(...)                                                                                                    \
	(((const uint64_t[]){__VA_ARGS__})[below(sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))])

/* The lowest descriptor that is free: the same before and after a story that leaves none open. */
static inline int free_descriptor(void)
{
	int fd = dup(STDIN_FILENO);

	CHECK(fd >= 0);
	close(fd);
	return fd;
}

#endif
