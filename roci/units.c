/* SPDX-License-Identifier: BSD-2-Clause */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "units.h"

static const char prefixes[] = "KMGTPE";

/* Parses a decimal number that is not negative. */
static int parse_number(const char *text, long double *number, const char **rest)
{
	char *end;
	if (!isdigit((unsigned char)*text) && !(*text == '.' && isdigit((unsigned char)text[1])))
		return -EINVAL;
	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
		return -EINVAL;
	*number = strtold(text, &end);
	*rest = end;
	return 0;
}

static int to_integer(long double number, uint64_t *out)
{
	if (!(number < 0x1p63L))
		return -ERANGE;
	*out = (uint64_t)number;
	return 0;
}

static long double power(int base, int exponent)
{
	long double result = 1;
	while (exponent-- > 0)
		result *= base;
	return result;
}

/* Skips a prefix letter, and returns its exponent; 0 if there is none. */
static int take_prefix(const char **text)
{
	const char *at = **text ? strchr(prefixes, toupper((unsigned char)**text)) : NULL;
	if (!at)
		return 0;
	(*text)++;
	return (int)(at - prefixes) + 1;
}

static int scale_of(const char *rest, long double *scale, int bits)
{
	int exponent = take_prefix(&rest);
	if (!*rest || !strcasecmp(rest, "iB") || !strcasecmp(rest, "i"))
		*scale = power(1024, exponent);
	else if (!strcasecmp(rest, "B"))
		*scale = power(exponent ? 1000 : 1, exponent);
	else if (bits && (!strcasecmp(rest, "bit") || !strcasecmp(rest, "bps")))
		*scale = power(1000, exponent) / 8;
	else
		return -EINVAL;
	return 0;
}

int units_parse_size(const char *text, uint64_t *bytes)
{
	long double number, scale;
	const char *rest;
	if (parse_number(text, &number, &rest) || scale_of(rest, &scale, 0))
		return -EINVAL;
	return to_integer(number * scale, bytes);
}

int units_parse_rate(const char *text, uint64_t *bytes_per_s)
{
	char unit[8];
	long double number, scale;
	const char *rest;
	if (parse_number(text, &number, &rest))
		return -EINVAL;
	size_t len = strlen(rest);
	if (len >= 2 && !strcmp(rest + len - 2, "/s"))
		len -= 2;
	if (len >= sizeof(unit))
		return -EINVAL;
	memcpy(unit, rest, len);
	unit[len] = '\0';
	return scale_of(unit, &scale, 1) ? -EINVAL : to_integer(number * scale, bytes_per_s);
}

int units_parse_time(const char *text, uint64_t *ms)
{
	static const struct {
		const char *unit;
		long double ms;
	} units[] = {{"", 1000}, {"s", 1000}, {"ms", 1}, {"m", 60000}, {"min", 60000}, {"h", 3600000}};
	long double number;
	const char *rest;
	if (parse_number(text, &number, &rest))
		return -EINVAL;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (!strcmp(rest, units[i].unit))
			return to_integer(number * units[i].ms, ms);
	}
	return -EINVAL;
}

/* Prints three digits with the prefix that fits; prefixes are powers of `base`. */
static const char *scaled(char buf[UNITS_CHARS], double value, double base, const char *infix, const char *unit)
{
	int exponent = 0;
	while (value >= (exponent ? base * 0.9995 : base) && exponent < 6) {
		value /= base;
		exponent++;
	}
	if (!exponent)
		snprintf(buf, UNITS_CHARS, "%.0f %s", value, unit);
	else
		snprintf(buf, UNITS_CHARS, "%.*f %c%s%s",
			 value < 9.995   ? 2
			 : value < 99.95 ? 1
					 : 0,
			 value, prefixes[exponent - 1], infix, unit);
	return buf;
}

const char *units_bytes(char buf[UNITS_CHARS], uint64_t bytes)
{
	return scaled(buf, (double)bytes, 1024, "i", "B");
}

const char *units_rate(char buf[UNITS_CHARS], double bytes_per_s)
{
	return scaled(buf, bytes_per_s, 1024, "i", "B/s");
}

const char *units_bits(char buf[UNITS_CHARS], double bytes_per_s)
{
	return scaled(buf, bytes_per_s * 8, 1000, "", "bit/s");
}

const char *units_clock(char buf[UNITS_CHARS], double seconds)
{
	if (!(seconds < 359999))
		return strcpy(buf, "-:--");
	unsigned s = (unsigned)(seconds + 0.5);
	if (s >= 3600)
		snprintf(buf, UNITS_CHARS, "%u:%02u:%02u", s / 3600, s / 60 % 60, s % 60);
	else
		snprintf(buf, UNITS_CHARS, "%u:%02u", s / 60, s % 60);
	return buf;
}
