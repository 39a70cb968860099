/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "perf/hdr_text.h"

/* What the reference implementations write (HdrHistogram in Java, and HdrHistogram_c). */
static const struct {
	uint64_t highest, values[4];
	const char *text;
} known[] = {
	{300, {100, 200, 250}, "HISTFAAAACV4nJNpmSzMwMDAwQABzFCaEUrp2H+AsI4zMh1lZEpkAgBdIQSk"},
	{2048, {2048}, "HISTFAAAACB4nJNpmSzMwMDAzAABMJoRQnEw2H+AsP7LMwEARZgDpQ=="},
};

static void writes_what_others_write(void **state)
{
	for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct hdr h;
		char *text;
		assert_int_equal(hdr_init(&h, 1, known[i].highest, 3), 0);
		for (unsigned v = 0; known[i].values[v]; v++)
			hdr_add(&h, known[i].values[v]);
		text = hdr_encode(&h);
		assert_string_equal(text, known[i].text);
		free(text);
		hdr_destroy(&h);
	}
}

static void reads_what_others_write(void **state)
{
	for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct hdr h;
		unsigned v = 0;
		assert_int_equal(hdr_decode(&h, known[i].text), 0);
		assert_int_equal(h.digits, 3);
		assert_int_equal(h.highest, known[i].highest);
		for (; known[i].values[v]; v++)
			assert_int_equal(h.counts[hdr_index(&h, known[i].values[v])], 1);
		assert_int_equal(h.total, v);
		hdr_destroy(&h);
	}
}

/* HdrHistogram_c's own test data: 10000 times 1000, and once 100000000, in an hour of us. */
static void reads_the_standard_histogram(void **state)
{
	struct hdr h;

	assert_int_equal(hdr_decode(&h, "HISTFAAAACl4nJNpmSzMwMBgyAABzFCaEURcm7yEwf4DROA8/4I5jNM7mJgAlWkH9g=="), 0);
	assert_int_equal(h.total, 10001);
	assert_int_equal(h.highest, 3600000000);
	assert_int_equal(h.counts[hdr_index(&h, 1000)], 10000);
	assert_int_equal(h.counts[hdr_index(&h, 100000000)], 1);
	assert_in_range(hdr_percentile(&h, 99.99), 1000, 1001);
	assert_in_range(hdr_percentile(&h, 100), 100000000, 100100000);
	hdr_destroy(&h);
}

/* Counts of every length in LEB128 come back. */
static void round_trip(void **state)
{
	struct hdr h, back;
	char *text;

	assert_int_equal(hdr_init(&h, 1, 60000000000, 3), 0);
	for (unsigned bit = 0; bit < 62; bit++) {
		uint64_t value = 1 + bit * (bit % 3 ? 17 : 100000000);
		h.counts[hdr_index(&h, value)] = (UINT64_C(1) << bit) - (bit % 2 && bit > 1);
		h.total += h.counts[hdr_index(&h, value)];
		h.max = value > h.max ? value : h.max;
	}
	text = hdr_encode(&h);
	assert_non_null(text);
	assert_int_equal(hdr_decode(&back, text), 0);
	assert_int_equal(back.count, h.count);
	assert_memory_equal(back.counts, h.counts, h.count * sizeof(*h.counts));
	assert_int_equal(back.total, h.total);
	free(text);
	hdr_destroy(&back);
	hdr_destroy(&h);
}

/* No text of a stranger does harm: cut short, with any bit turned, or of bytes that are no base64. */
static void hostile_texts(void **state)
{
	struct hdr h;
	char text[128];
	size_t len = strlen(known[0].text);

	assert_int_equal(hdr_decode(&h, ""), -EPROTO);
	assert_int_equal(hdr_decode(&h, "no histogram"), -EPROTO);
	for (size_t end = 0; end < len - 4; end++) {
		memcpy(text, known[0].text, end);
		text[end] = '\0';
		assert_int_equal(hdr_decode(&h, text), -EPROTO);
	}
	for (size_t i = 0; i < len; i++) {
		for (char c = ' '; c < 127; c++) {
			memcpy(text, known[0].text, len + 1);
			text[i] = c;
			if (!hdr_decode(&h, text))
				hdr_destroy(&h);
		}
	}
}

static void log_lines(void **state)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	hdr_log_begin(out, "roci perf", 1441812279474);
	hdr_log_line(out, "write-64", 127, 1007, 2769000, known[0].text);
	fclose(out);
	assert_string_equal(
		text, "#[Logged with roci perf]\n"
		      "#[Histogram log format version 1.3]\n"
		      "#[StartTime: 1441812279.474 (seconds since epoch), Wed Sep 09 15:24:39 UTC 2015]\n"
		      "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n"
		      "Tag=write-64,0.127,1.007,2.769,"
		      "HISTFAAAACV4nJNpmSzMwMDAwQABzFCaEUrp2H+AsI4zMh1lZEpkAgBdIQSk\n");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_what_others_write),
		cmocka_unit_test(reads_what_others_write),
		cmocka_unit_test(reads_the_standard_histogram),
		cmocka_unit_test(round_trip),
		cmocka_unit_test(hostile_texts),
		cmocka_unit_test(log_lines),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
