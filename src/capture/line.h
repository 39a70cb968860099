/* SPDX-License-Identifier: BSD-2-Clause */
/* A line of text that grows in a buffer, and is cut where that is full. */
#ifndef CAPTURE_LINE_H
#define CAPTURE_LINE_H

#include <stddef.h>
#include <stdint.h>

struct capture_line {
	char *text;
	size_t size, len;
};

__attribute__((format(printf, 2, 3))) void capture_put(struct capture_line *line, const char *format, ...);

/* " 64 bytes", " 1 MiB": exact where that is short. */
void capture_put_bytes(struct capture_line *line, uint64_t bytes);

/* "870 ns", "12.4 us", "0.64 ms", "2.1 s" */
void capture_put_time(struct capture_line *line, uint64_t ns);

#endif
