/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes that somebody else chose (names, what the peer says), made fit for a terminal and for JSON. */
#ifndef ROCI_TEXT_H
#define ROCI_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Whether all of it is UTF-8 (RFC 3629: shortest forms only, no surrogates). */
bool text_is_utf8(const void *bytes, size_t len);

/* Prints it on one line: control characters, those that change the direction of writing or take no room, and what is
 * not UTF-8 come as \n, \t, \xHH or \u{H}, a backslash doubled. */
void text_print(FILE *out, const void *bytes, size_t len);

/* The same text with U+FFFD in place of each byte that is not UTF-8, ended by NUL; *out_len without it. The caller's to
 * free(); NULL: no memory. */
char *text_repair(const void *bytes, size_t len, size_t *out_len);

#endif
