/* SPDX-License-Identifier: BSD-2-Clause */
/* Events as JSON, one object per line. */
#ifndef ROCI_JSON_LINE_H
#define ROCI_JSON_LINE_H

#include <jansson.h>
#include <stdio.h>

/* A new object with the members "time" (RFC 3339 in UTC with microseconds; these strings sort by time) and "event". */
json_t *json_line(const char *event);

/* A string of bytes that may not be UTF-8: each byte that is not becomes U+FFFD. NULL: no memory. */
json_t *json_line_text(const void *bytes, size_t len);

/* Prints the object on a line of its own, at once, and frees it. */
void json_line_print(json_t *object, FILE *out);

#endif
