/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes bytes from others (names, messages of the peer) safe for a terminal and for JSON. */
#ifndef ROCI_TEXT_H
#define ROCI_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Whether all bytes are UTF-8 (RFC 3629: shortest forms only, no surrogates). */
bool text_is_utf8(const void *bytes, size_t len);

/* Prints the text on one line. Control characters, characters without a width or that change the direction of writing,
 * and bytes that are not UTF-8 appear as \n, \t, \xHH or \u{H}. A backslash is doubled. */
void text_print(FILE *out, const void *bytes, size_t len);

/* A copy of the text with U+FFFD in place of each byte that is not UTF-8, and with a NUL at its end that *out_len does
 * not count. The caller frees it. NULL: no memory. */
char *text_repair(const void *bytes, size_t len, size_t *out_len);

/* Whether the user's locale has UTF-8. */
bool text_has_utf8(void);

/* Whether `out` is a terminal that can move its cursor and has colours. */
bool text_is_terminal(FILE *out);

/* Whether colours and bold text may be printed: `out` is a terminal that has them, and NO_COLOR is not set, or empty
 * (https://no-color.org). */
bool text_has_colors(FILE *out);

#endif
