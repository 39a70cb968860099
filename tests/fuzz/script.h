/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A script of bytes that leads a fuzz target: libFuzzer's input, or random bytes. Each decision takes as many bytes as
 * it needs, so that a small change of the script is a small change of the story. After the end all decisions are 0.
 */
#ifndef ROCI_TESTS_SCRIPT_H
#define ROCI_TESTS_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct script {
	const uint8_t *at, *end;
};

static inline struct script script_of(const uint8_t *bytes, size_t len)
{
	return (struct script){bytes, bytes + len};
}

static inline bool script_ended(const struct script *s)
{
	return s->at == s->end;
}

static inline unsigned script_byte(struct script *s)
{
	return script_ended(s) ? 0 : *s->at++;
}

/* 0 to limit - 1; limit > 0 */
static inline size_t script_below(struct script *s, size_t limit)
{
	uint64_t value = 0;

	for (size_t more = limit - 1; more; more >>= 8)
		value = value << 8 | script_byte(s);
	return (size_t)(value % limit);
}

static inline void script_fill(struct script *s, void *to, size_t len)
{
	for (size_t i = 0; i < len; i++)
		((uint8_t *)to)[i] = (uint8_t)script_byte(s);
}

#endif
