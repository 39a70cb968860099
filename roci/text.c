/* SPDX-License-Identifier: BSD-2-Clause */
#include <langinfo.h>
#include <locale.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "text.h"

/* Decodes the character at `at`. Returns its length in bytes, or 0 if it is not valid. RFC 3629 s.4 */
static size_t take_character(const uint8_t *at, const uint8_t *end, uint32_t *character)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t len = *at < 0x80 ? 1 : *at < 0xc0 ? 0 : *at < 0xe0 ? 2 : *at < 0xf0 ? 3 : *at < 0xf8 ? 4 : 0;

	if (!len || len > (size_t)(end - at))
		return 0;
	*character = len == 1 ? *at : *at & (0x7fu >> len);
	for (size_t i = 1; i < len; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 0;
		*character = *character << 6 | (at[i] & 0x3f);
	}
	if (*character < least[len] || *character > 0x10ffff || (*character >= 0xd800 && *character < 0xe000))
		return 0;
	return len;
}

/* Control characters (C0, DEL, C1), and format characters that move, hide or reverse their neighbours. */
static bool deceives(uint32_t c)
{
	static const uint32_t ranges[][2] = {
		{0x00, 0x1f},     {0x7f, 0x9f},     {0xad, 0xad},       {0x61c, 0x61c},
		{0x180e, 0x180e}, {0x200b, 0x200f}, {0x2028, 0x202e},   {0x2060, 0x206f},
		{0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe0fff},
	};
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		if (c >= ranges[i][0] && c <= ranges[i][1])
			return true;
	}
	return false;
}

bool text_is_utf8(const void *bytes, size_t len)
{
	const uint8_t *at = bytes, *end = at + len;
	uint32_t character;
	while (at < end) {
		size_t n = take_character(at, end, &character);
		if (!n)
			return false;
		at += n;
	}
	return true;
}

static void print_escape(FILE *out, uint32_t c)
{
	switch (c) {
	case '\n': fputs("\\n", out); break;
	case '\r': fputs("\\r", out); break;
	case '\t': fputs("\\t", out); break;
	default: fprintf(out, c < 0x80 ? "\\x%02x" : "\\u{%x}", c);
	}
}

void text_print(FILE *out, const void *bytes, size_t len)
{
	const uint8_t *at = bytes, *end = at + len;
	uint32_t character;
	while (at < end) {
		size_t n = take_character(at, end, &character);
		if (!n)
			fprintf(out, "\\x%02x", *at++);
		else if (deceives(character))
			print_escape(out, character);
		else
			fprintf(out, "%s%.*s", character == '\\' ? "\\" : "", (int)n, (const char *)at);
		at += n;
	}
}

char *text_repair(const void *bytes, size_t len, size_t *out_len)
{
	static const char replacement[] = "\xef\xbf\xbd";
	const uint8_t *at = bytes, *end = at + len;
	char *text = malloc(len * 3 + 1), *to = text;
	uint32_t character;

	while (text && at < end) {
		size_t n = take_character(at, end, &character);
		memcpy(to, n ? (const char *)at : replacement, n ? n : 3);
		to += n ? n : 3;
		at += n ? n : 1;
	}
	if (text) {
		*to = '\0';
		*out_len = (size_t)(to - text);
	}
	return text;
}

bool text_has_utf8(void)
{
	setlocale(LC_CTYPE, "");
	return !strcmp(nl_langinfo(CODESET), "UTF-8");
}

bool text_is_terminal(FILE *out)
{
	const char *term = getenv("TERM");

	return isatty(fileno(out)) && term && strcmp(term, "dumb");
}

bool text_has_colors(FILE *out)
{
	const char *no_color = getenv("NO_COLOR");

	return text_is_terminal(out) && (!no_color || !*no_color);
}
