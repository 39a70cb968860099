/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses and prints sizes, rates and times for people. */
#ifndef ROCI_UNITS_H
#define ROCI_UNITS_H

#include <stdint.h>

#define UNITS_CHARS 32

/* "65536", "64K", "1.5G", "64KiB" (powers of 1024), "10MB" (of 1000). 0, -EINVAL, or -ERANGE from 2^63 on. */
int units_parse_size(const char *text, uint64_t *bytes);

/* A size per second, with or without "/s"; also bits: "1.5Gbit", "100Mbit/s" (powers of 1000). */
int units_parse_rate(const char *text, uint64_t *bytes_per_s);

/* "30" (seconds), "2.5s", "500ms", "2m", "1h". */
int units_parse_time(const char *text, uint64_t *ms);

const char *units_bytes(char buf[UNITS_CHARS], uint64_t bytes);    /* "1.50 GiB" */
const char *units_rate(char buf[UNITS_CHARS], double bytes_per_s); /* "1.50 GiB/s" */
const char *units_bits(char buf[UNITS_CHARS], double bytes_per_s); /* "12.9 Gbit/s" */
const char *units_clock(char buf[UNITS_CHARS], double seconds);    /* "0:12", "1:02:03" */

#endif
