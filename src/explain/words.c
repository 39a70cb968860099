/* SPDX-License-Identifier: BSD-2-Clause */
#include "explain/words.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

void words_normalise(const char *text, char words[WORDS_CHARS])
{
	size_t len = 0;

	words[len++] = ' ';
	for (const char *t = text; *t && len < WORDS_CHARS - 3; t++) {
		bool minus = *t == '-' && isdigit((unsigned char)t[1]) && words[len - 1] == ' ' &&
			     (t == text || !isalnum((unsigned char)t[-1]));

		if (isalnum((unsigned char)*t) || minus)
			words[len++] = (char)tolower((unsigned char)*t);
		else if (words[len - 1] != ' ')
			words[len++] = ' ';
	}
	if (words[len - 1] != ' ')
		words[len++] = ' ';
	words[len] = '\0';
}

const char *words_find(const char *from, const char *phrase, size_t len)
{
	for (const char *w = from; len && (w = strchr(w, ' ')) && w[1]; w++) {
		if (!strncmp(w + 1, phrase, len) && w[1 + len] == ' ')
			return w + 1;
	}
	return NULL;
}

bool words_have(const char *words, const char *phrases)
{
	while (phrases && *phrases) {
		size_t len = strcspn(phrases, "|");

		if (words_find(words, phrases, len))
			return true;
		phrases += len + (phrases[len] == '|');
	}
	return false;
}

bool words_number(const char *at, long *number)
{
	char *end;

	if (!isdigit((unsigned char)*at) && *at != '-')
		return false;
	*number = strtol(at, &end, at[0] == '0' && at[1] == 'x' ? 16 : 10);
	return *end == ' ' && end != at;
}
