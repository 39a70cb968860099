/* SPDX-License-Identifier: BSD-2-Clause */
/* A text as words: lower case, one space before and behind each, nothing else. */
#ifndef ROCI_EXPLAIN_WORDS_H
#define ROCI_EXPLAIN_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#define WORDS_CHARS 2048 /* the rest of a longer text is left out */

/* Letters and digits stay; all else divides words. A minus sign before a number that begins there stays, too. */
void words_normalise(const char *text, char words[WORDS_CHARS]);

/* Where the `len` characters of `phrase` stand in `words`, as whole words from `from` on; NULL: nowhere. The phrase is
 * normalised already, but without the outer spaces. The answer points to its first letter. */
const char *words_find(const char *from, const char *phrase, size_t len);

/* Whether `words` contain one of the phrases, which '|' divides. */
bool words_have(const char *words, const char *phrases);

/* The number that is the word at `at`: decimal, or hexadecimal with 0x. False: it is none. */
bool words_number(const char *at, long *number);

#endif
