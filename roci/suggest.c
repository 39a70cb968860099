/* SPDX-License-Identifier: BSD-2-Clause */
#include <ctype.h>
#include <string.h>

#include "suggest.h"

#define LONGEST 32

static unsigned least(unsigned a, unsigned b, unsigned c)
{
	unsigned ab = a < b ? a : b;
	return ab < c ? ab : c;
}

/* The number of letters to insert, remove, replace or swap with a neighbour (optimal string alignment). */
static unsigned distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
	unsigned rows[3][LONGEST + 1], *above2 = rows[0], *above = rows[1], *row = rows[2];
	for (size_t j = 0; j <= b_len; j++)
		above[j] = (unsigned)j;
	for (size_t i = 1; i <= a_len; i++) {
		row[0] = (unsigned)i;
		for (size_t j = 1; j <= b_len; j++) {
			int x = tolower((unsigned char)a[i - 1]), y = tolower((unsigned char)b[j - 1]);
			row[j] = least(above[j] + 1, row[j - 1] + 1, above[j - 1] + (x != y));
			if (i > 1 && j > 1 && x == tolower((unsigned char)b[j - 2]) &&
			    y == tolower((unsigned char)a[i - 2]) && above2[j - 2] + 1 < row[j])
				row[j] = above2[j - 2] + 1;
		}
		unsigned *oldest = above2;
		above2 = above;
		above = row;
		row = oldest;
	}
	return above[b_len];
}

const char *suggest(const char *typed, const char *const *words)
{
	size_t len = strlen(typed);
	if (len < 2 || len > LONGEST)
		return NULL;
	unsigned best = len < 5 ? 2 : 3; /* a suggestion must be nearer */
	const char *found = NULL;
	for (; *words; words++) {
		size_t word_len = strlen(*words);
		if (word_len > LONGEST)
			continue;
		/* The beginning of a word counts as one mistake. */
		unsigned d =
			len < word_len && !strncasecmp(typed, *words, len) ? 1 : distance(typed, len, *words, word_len);
		if (d < best && d < word_len) {
			best = d;
			found = *words;
		}
	}
	return found;
}
