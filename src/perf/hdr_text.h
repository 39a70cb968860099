/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A histogram as the text that HdrHistogram's viewers read (http://hdrhistogram.org, "V2" encoding), and its log format
 * (version 1.3). V2: a header of 40 bytes; the counts up to that of the largest value, as ZigZag LEB128 numbers, where
 * -N stands for N zeros; that compressed by zlib behind a header of 8 bytes; and all in base64 (RFC 4648).
 */
#ifndef ROCI_PERF_HDR_TEXT_H
#define ROCI_PERF_HDR_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "perf/hdr.h"

/* The text, which the caller frees. NULL: no memory. */
char *hdr_encode(const struct hdr *h);

/* Makes *h of a text, which may be a stranger's. Its min and max are as exact as the buckets. 0; -EPROTO: it is no
 * histogram, or one that hdr_init() would refuse; -ENOMEM. Call hdr_destroy() after success only. */
int hdr_decode(struct hdr *h, const char *text);

/* The lines in front of a log; `start_ms` is since 1970. `program` is who wrote it. */
void hdr_log_begin(FILE *out, const char *program, uint64_t start_ms);
/* A histogram of `length_ms`, from `at_ms` after the log's start. Values are written in ms, as viewers expect values of
 * ns. A tag has no comma, blank or line break. `text` is hdr_encode()'s. */
void hdr_log_line(FILE *out, const char *tag, uint64_t at_ms, uint64_t length_ms, uint64_t max_ns, const char *text);

#endif
