/* SPDX-License-Identifier: BSD-2-Clause */
#include "mover/ticket.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include <openssl/crypto.h>

#define SECRET_CHARS 26 /* of 5 bits each; the last two bits are zero */
#define CHECK_CHARS  2

static const char alphabet[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + 'a' - 'A') : c;
}

/* The value of a character of Crockford's base32, in either case; O counts as 0, I and L as 1. -1: none. */
static int digit_value(char c)
{
	const char *at;

	c = lower(c);
	if (c == 'o')
		return 0;
	if (c == 'i' || c == 'l')
		return 1;
	if (c >= 'a')
		c = (char)(c - 'a' + 'A');
	at = c ? strchr(alphabet, c) : NULL;
	return at ? (int)(at - alphabet) : -1;
}

static void print_digits(const uint8_t *bytes, size_t len, char *to, size_t digits)
{
	for (size_t i = 0; i < digits; i++) {
		unsigned value = 0;

		for (size_t bit = i * 5; bit < i * 5 + 5; bit++)
			value = value << 1 | (bit / 8 < len ? bytes[bit / 8] >> (7 - bit % 8) & 1 : 0);
		to[i] = alphabet[value];
	}
	to[digits] = 0;
}

/* Ten bits over host, port and secret. The modulus is prime and 34 is a primitive root of it, so one wrong character,
 * or two that changed places, always give another value. This includes the two characters of the check itself: the
 * secret's characters count by their values, as these do, and no power of 34 up to the 25th is -32 or -1. */
static unsigned check_value(const char *host, unsigned port, const char *secret_digits)
{
	char text[MOVER_TICKET_CHARS];
	unsigned sum = 0;
	int len = snprintf(text, sizeof(text), "%s:%u:", host, port);

	assert(len > 0 && (size_t)len < sizeof(text));
	for (int i = 0; i < len; i++)
		sum = (sum * 34 + (uint8_t)lower(text[i])) % 1021;
	for (; *secret_digits; secret_digits++)
		sum = (sum * 34 + (unsigned)digit_value(*secret_digits)) % 1021;
	return sum;
}

int mover_ticket_create(struct mover_ticket *ticket, const char *host, uint16_t port)
{
	size_t len = strlen(host);

	memset(ticket, 0, sizeof(*ticket));
	if (len >= sizeof(ticket->host) || !port)
		return -EINVAL;
	memcpy(ticket->host, host, len);
	ticket->port = port;
	/* so few bytes come in one piece; getrandom(2) waits until the kernel has entropy */
	while (getrandom(ticket->secret, sizeof(ticket->secret), 0) != sizeof(ticket->secret))
		if (errno != EINTR)
			return -errno;
	return 0;
}

void mover_ticket_print(const struct mover_ticket *ticket, char line[MOVER_TICKET_CHARS])
{
	bool ipv6 = strchr(ticket->host, ':');
	char digits[SECRET_CHARS + 1];
	unsigned check;

	print_digits(ticket->secret, sizeof(ticket->secret), digits, SECRET_CHARS);
	check = check_value(ticket->host, ticket->port, digits);
	snprintf(line, MOVER_TICKET_CHARS, MOVER_TICKET_PREFIX "%s%s%s:%u:%s%c%c", ipv6 ? "[" : "", ticket->host,
		 ipv6 ? "]" : "", ticket->port, digits, alphabet[check / 32], alphabet[check % 32]);
	OPENSSL_cleanse(digits, sizeof(digits));
}

/* What is left to read. */
struct text {
	const char *at, *end;
};

static void trim(struct text *text)
{
	while (text->at < text->end && isspace((unsigned char)*text->at))
		text->at++;
	while (text->end > text->at && isspace((unsigned char)text->end[-1]))
		text->end--;
}

static bool take_prefix(struct text *text)
{
	size_t len = strlen(MOVER_TICKET_PREFIX);

	if ((size_t)(text->end - text->at) < len)
		return false;
	for (size_t i = 0; i < len; i++)
		if (lower(text->at[i]) != MOVER_TICKET_PREFIX[i])
			return false;
	text->at += len;
	return true;
}

/* A host and the ':' after it. */
static bool take_host(struct text *text, char *host, size_t room)
{
	size_t left = (size_t)(text->end - text->at);
	bool bracket = left && text->at[0] == '[';
	const char *begin = text->at + bracket;
	const char *end = memchr(text->at, bracket ? ']' : ':', left);
	size_t len;

	if (!end || end + bracket >= text->end || end[bracket] != ':')
		return false;
	len = (size_t)(end - begin);
	if (len >= room || (bracket && !memchr(begin, ':', len)))
		return false;
	for (size_t i = 0; i < len; i++)
		if (begin[i] <= ' ' || begin[i] > '~' || strchr("[]", begin[i]))
			return false;
	memcpy(host, begin, len);
	host[len] = 0;
	text->at = end + bracket + 1;
	return true;
}

static bool take_port(struct text *text, uint16_t *port)
{
	unsigned value = 0;
	const char *at = text->at;

	while (at < text->end && *at >= '0' && *at <= '9' && value <= UINT16_MAX)
		value = value * 10 + (unsigned)(*at++ - '0');
	if (at == text->end || *at != ':' || value == 0 || value > UINT16_MAX)
		return false;
	*port = (uint16_t)value;
	text->at = at + 1;
	return true;
}

/* The secret's characters and the check's, hyphens between them left out, in the form they are printed in. */
static bool take_digits(struct text *text, char digits[SECRET_CHARS + CHECK_CHARS + 1])
{
	size_t n = 0;

	for (; text->at < text->end; text->at++) {
		int value = digit_value(*text->at);

		if (*text->at == '-')
			continue;
		if (value < 0 || n == SECRET_CHARS + CHECK_CHARS)
			return false;
		digits[n++] = alphabet[value];
	}
	digits[n] = 0;
	return n == SECRET_CHARS + CHECK_CHARS;
}

static bool secret_of_digits(const char *digits, uint8_t secret[MOVER_SECRET_BYTES])
{
	memset(secret, 0, MOVER_SECRET_BYTES);
	for (size_t bit = 0; bit < SECRET_CHARS * 5; bit++) {
		unsigned value = (unsigned)digit_value(digits[bit / 5]) >> (4 - bit % 5) & 1;

		if (bit < MOVER_SECRET_BYTES * 8)
			secret[bit / 8] |= (uint8_t)(value << (7 - bit % 8));
		else if (value)
			return false;
	}
	return true;
}

int mover_ticket_parse(const char *text, size_t len, struct mover_ticket *ticket, const char **why)
{
	struct text rest = {text, text + len};
	char digits[SECRET_CHARS + CHECK_CHARS + 1];
	unsigned check;
	int err = -EINVAL;

	memset(ticket, 0, sizeof(*ticket));
	trim(&rest);
	if (!take_prefix(&rest) || !take_host(&rest, ticket->host, sizeof(ticket->host)) ||
	    !take_port(&rest, &ticket->port)) {
		*why = "not a ticket: one looks like roci1:HOST:PORT:SECRET";
		OPENSSL_cleanse(ticket, sizeof(*ticket));
		return err;
	}
	*why = "a character of the ticket is missing or wrong";
	if (!take_digits(&rest, digits))
		goto out;
	check = (unsigned)(digit_value(digits[SECRET_CHARS]) * 32 + digit_value(digits[SECRET_CHARS + 1]));
	digits[SECRET_CHARS] = 0;
	if (check_value(ticket->host, ticket->port, digits) == check && secret_of_digits(digits, ticket->secret))
		err = 0;
out:
	OPENSSL_cleanse(digits, sizeof(digits));
	if (err)
		OPENSSL_cleanse(ticket, sizeof(*ticket));
	else
		*why = NULL;
	return err;
}

void mover_ticket_forget(struct mover_ticket *ticket)
{
	OPENSSL_cleanse(ticket->secret, sizeof(ticket->secret));
}
