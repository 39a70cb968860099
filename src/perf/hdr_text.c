/* SPDX-License-Identifier: BSD-2-Clause */
#include "perf/hdr_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zlib.h>

#include "mover/cursor.h"

#define COOKIE            0x1c849313u /* V2, counts of up to 9 bytes */
#define COMPRESSED_COOKIE 0x1c849314u
#define HEADER_BYTES      40u
#define WRAP_BYTES        8u /* in front of what is compressed */
#define NUMBER_BYTES      9u /* of a ZigZag LEB128 number, at most */
#define TEXT_MAX          (16u << 20)

/* ---- ZigZag LEB128, in nine bytes at most: the ninth has eight bits ---- */

static void put_signed(struct cursor_out *out, int64_t value)
{
	uint64_t rest = (uint64_t)value << 1 ^ (uint64_t)(value >> 63);

	for (unsigned i = 0; i < NUMBER_BYTES - 1; i++) {
		if (rest < 0x80) {
			put_u8(out, (uint8_t)rest);
			return;
		}
		put_u8(out, (uint8_t)(rest | 0x80));
		rest >>= 7;
	}
	put_u8(out, (uint8_t)rest);
}

static int64_t get_signed(struct cursor_in *in)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < NUMBER_BYTES; i++) {
		uint64_t byte = get_u8(in);
		bool last = i == NUMBER_BYTES - 1;
		value |= (last ? byte : byte & 0x7f) << (7 * i);
		if (last || !(byte & 0x80))
			break;
	}
	return (int64_t)(value >> 1 ^ -(value & 1));
}

/* ---- base64 ---- */

static const char digits64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static char *to_base64(const uint8_t *bytes, size_t len)
{
	char *text = malloc((len + 2) / 3 * 4 + 1), *at = text;

	if (!text)
		return NULL;
	for (size_t i = 0; i < len; i += 3) {
		uint32_t three = (uint32_t)bytes[i] << 16;
		three |= i + 1 < len ? (uint32_t)bytes[i + 1] << 8 : 0;
		three |= i + 2 < len ? bytes[i + 2] : 0;
		*at++ = digits64[three >> 18];
		*at++ = digits64[three >> 12 & 63];
		*at++ = i + 1 < len ? digits64[three >> 6 & 63] : '=';
		*at++ = i + 2 < len ? digits64[three & 63] : '=';
	}
	*at = '\0';
	return text;
}

/* Returns the number of bytes, or -EPROTO. `bytes` has room for three of four characters. */
static long from_base64(const char *text, size_t len, uint8_t *bytes)
{
	uint32_t bits = 0;
	unsigned have = 0;
	long count = 0;

	while (len && text[len - 1] == '=')
		len--;
	for (size_t i = 0; i < len; i++) {
		const char *digit = text[i] ? strchr(digits64, text[i]) : NULL;
		if (!digit)
			return -EPROTO;
		bits = bits << 6 | (uint32_t)(digit - digits64);
		have += 6;
		if (have >= 8) {
			have -= 8;
			bytes[count++] = (uint8_t)(bits >> have);
		}
	}
	return count;
}

/* ---- encoding ---- */

static void put_counts(struct cursor_out *out, const struct hdr *h)
{
	uint32_t end = hdr_index(h, h->max) + 1;

	for (uint32_t i = 0; i < end;) {
		int64_t zeros = 0;
		for (; i < end && !h->counts[i]; i++)
			zeros++;
		if (zeros)
			put_signed(out, zeros > 1 ? -zeros : 0);
		else
			put_signed(out, (int64_t)h->counts[i++]);
	}
}

static size_t put_histogram(uint8_t *bytes, size_t room, const struct hdr *h)
{
	static const double ratio = 1; /* of whole numbers to those with a fraction, which we have not */
	struct cursor_out out = cursor_out(bytes, room);
	uint8_t *payload_len;
	uint64_t ratio_bits;

	memcpy(&ratio_bits, &ratio, sizeof(ratio_bits));
	put_u32(&out, COOKIE);
	payload_len = cursor_take(&out, 4);
	put_u32(&out, 0); /* by how much the buckets are rotated */
	put_u32(&out, h->digits);
	put_u64(&out, h->lowest);
	put_u64(&out, h->highest);
	put_u64(&out, ratio_bits);
	put_counts(&out, h);
	struct cursor_out patch = cursor_out(payload_len, 4);
	put_u32(&patch, (uint32_t)(cursor_written(&out) - HEADER_BYTES));
	return cursor_written(&out);
}

char *hdr_encode(const struct hdr *h)
{
	size_t room = HEADER_BYTES + (size_t)h->count * NUMBER_BYTES;
	uLongf compressed_len = compressBound((uLong)room);
	uint8_t *plain = malloc(room), *compressed = malloc(WRAP_BYTES + compressed_len);
	char *text = NULL;

	if (plain && compressed &&
	    compress(compressed + WRAP_BYTES, &compressed_len, plain, (uLong)put_histogram(plain, room, h)) == Z_OK) {
		struct cursor_out out = cursor_out(compressed, WRAP_BYTES);
		put_u32(&out, COMPRESSED_COOKIE);
		put_u32(&out, (uint32_t)compressed_len);
		text = to_base64(compressed, WRAP_BYTES + compressed_len);
	}
	free(plain);
	free(compressed);
	return text;
}

/* ---- decoding ---- */

/* Takes the counts. The numbers are a stranger's: none may lead out of the buckets, and their sum fits. */
static int get_counts(struct hdr *h, struct cursor_in *in)
{
	uint64_t at = 0;

	while (in->at < in->end) {
		int64_t count = get_signed(in);
		if (in->bad || count == INT64_MIN)
			return -EPROTO;
		if (count <= 0) {
			at += count ? (uint64_t)-count : 1;
			if (at > h->count)
				return -EPROTO;
			continue;
		}
		if (at >= h->count || (uint64_t)count > INT64_MAX - h->total)
			return -EPROTO;
		h->counts[at] = (uint64_t)count;
		h->total += (uint64_t)count;
		h->min = h->min == UINT64_MAX ? hdr_bucket_low(h, (uint32_t)at) : h->min;
		h->max = hdr_bucket_high(h, (uint32_t)at);
		at++;
	}
	return 0;
}

static int get_histogram(struct hdr *h, const uint8_t *bytes, size_t len)
{
	struct cursor_in in = cursor_in(bytes, len);
	uint32_t cookie = get_u32(&in), payload_len = get_u32(&in), rotated = get_u32(&in), digits = get_u32(&in);
	uint64_t lowest = get_u64(&in), highest = get_u64(&in);
	int err;

	get_u64(&in); /* the ratio */
	if (in.bad || cookie != COOKIE || rotated)
		return -EPROTO;
	if (payload_len < (size_t)(in.end - in.at)) /* HdrHistogram_c used to count the header, too */
		in.end = in.at + payload_len;
	err = hdr_init(h, lowest, highest, digits);
	if (err)
		return err == -ENOMEM ? err : -EPROTO;
	err = get_counts(h, &in);
	if (err)
		hdr_destroy(h);
	return err;
}

static int uncompress_into(struct hdr *h, const uint8_t *bytes, size_t len)
{
	struct cursor_in in = cursor_in(bytes, len);
	uint32_t cookie = get_u32(&in), compressed_len = get_u32(&in);
	uLongf room = HEADER_BYTES + HDR_MAX_BUCKETS * NUMBER_BYTES;
	uint8_t *plain;
	int err = -EPROTO;

	if (in.bad || cookie != COMPRESSED_COOKIE || compressed_len > (size_t)(in.end - in.at))
		return -EPROTO;
	plain = malloc(room);
	if (!plain)
		return -ENOMEM;
	if (uncompress(plain, &room, in.at, compressed_len) == Z_OK)
		err = get_histogram(h, plain, room);
	free(plain);
	return err;
}

int hdr_decode(struct hdr *h, const char *text)
{
	size_t len = strnlen(text, TEXT_MAX);
	uint8_t *bytes = malloc(len + 1);
	long count;
	int err;

	if (!bytes)
		return -ENOMEM;
	count = from_base64(text, len, bytes);
	err = count < 0 ? -EPROTO : uncompress_into(h, bytes, (size_t)count);
	free(bytes);
	return err;
}

/* ---- the log ---- */

void hdr_log_begin(FILE *out, const char *program, uint64_t start_ms)
{
	time_t seconds = (time_t)(start_ms / 1000);
	struct tm tm;
	char text[64];

	gmtime_r(&seconds, &tm);
	strftime(text, sizeof(text), "%a %b %d %H:%M:%S UTC %Y", &tm);
	fprintf(out, "#[Logged with %s]\n#[Histogram log format version 1.3]\n", program);
	fprintf(out, "#[StartTime: %llu.%03llu (seconds since epoch), %s]\n", (unsigned long long)(start_ms / 1000),
		(unsigned long long)(start_ms % 1000), text);
	fputs("\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n", out);
}

void hdr_log_line(FILE *out, const char *tag, uint64_t at_ms, uint64_t length_ms, uint64_t max_ns, const char *text)
{
	fprintf(out, "Tag=%s,%llu.%03llu,%llu.%03llu,%.3f,%s\n", tag, (unsigned long long)(at_ms / 1000),
		(unsigned long long)(at_ms % 1000), (unsigned long long)(length_ms / 1000),
		(unsigned long long)(length_ms % 1000), (double)max_ns / 1e6, text);
}
