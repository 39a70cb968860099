/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of every format, whole and damaged. */
#include "test.h"

#include <stdlib.h>

#include "capture/reader.h"
#include "capture_file.h"

static const uint8_t packet[] = {1, 2, 3, 4, 5};

static struct capture_reader *open_file(const struct capture_file *f, FILE **file)
{
	*file = fmemopen((void *)(uintptr_t)f->bytes, f->len, "r");
	assert_non_null(*file);
	return capture_reader_create(*file);
}

static void close_file(struct capture_reader *r, FILE *file)
{
	capture_reader_destroy(r);
	fclose(file);
}

static void read_one(const struct capture_file *f, uint64_t time_ns, uint32_t link_type)
{
	struct capture_record record;
	FILE *file;
	struct capture_reader *r = open_file(f, &file);

	assert_int_equal(capture_reader_next(r, &record), CAPTURE_RECORD);
	assert_int_equal(record.kind, CAPTURE_PACKET);
	assert_int_equal(record.number, 1);
	assert_int_equal(record.time_ns, time_ns);
	assert_int_equal(record.link_type, link_type);
	assert_int_equal(record.len, sizeof(packet));
	assert_memory_equal(record.bytes, packet, sizeof(packet));
	assert_int_equal(capture_reader_next(r, &record), CAPTURE_END);
	assert_int_equal(capture_reader_next(r, &record), CAPTURE_END);
	close_file(r, file);
}

static struct capture_file f;

static void start(bool swapped)
{
	f.len = 0;
	f.swapped = swapped;
}

static void test_pcap(void **state)
{
	for (unsigned swapped = 0; swapped < 2; swapped++) {
		start(swapped);
		file_pcap(&f, 0xa1b2c3d4, FILE_ETHERNET);
		file_pcap_packet(&f, 1700000000, 123456, packet, sizeof(packet), 60);
		read_one(&f, 1700000000123456000, FILE_ETHERNET);

		start(swapped);
		file_pcap(&f, 0xa1b23c4d, FILE_RAW | 0x14000000); /* with a frame check sequence */
		file_pcap_packet(&f, 1700000000, 123456789, packet, sizeof(packet), 60);
		read_one(&f, 1700000000123456789, FILE_RAW);
	}
}

static void test_pcapng_times(void **state)
{
	static const struct {
		uint8_t resolution;
		uint64_t units, ns;
	} rows[] = {
		{9, 1700000000123456789, 1700000000123456789},
		{6, 1700000000123456, 1700000000123456000},
		{0, 1700000000, 1700000000000000000},
		{12, 1700000000123456, 1700000000123},
		{0x80 | 1, 3, 1500000000},
		{0x80 | 32, 5ull << 31, 2500000000},
		{0x80 | 40, 5ull << 39, 2500000000},
	};

	for (unsigned swapped = 0; swapped < 2; swapped++) {
		for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			start(swapped);
			file_section(&f);
			file_interface(&f, FILE_RAW, rows[i].resolution);
			file_packet(&f, rows[i].units, 0, packet, sizeof(packet));
			read_one(&f, rows[i].ns, FILE_RAW);
		}
	}
}

/* A section of the other byte order may follow, and its interfaces begin anew. */
static void test_sections(void **state)
{
	struct capture_record record;
	struct capture_reader *r;
	FILE *file;

	start(false);
	file_section(&f);
	file_interface(&f, FILE_RAW, 9);
	file_packet(&f, 5, 2, packet, sizeof(packet));
	f.swapped = true;
	file_section(&f);
	file_interface(&f, FILE_ETHERNET, 9);
	file_packet(&f, 6, 1, packet, sizeof(packet));
	r = open_file(&f, &file);
	assert_int_equal(capture_reader_next(r, &record), CAPTURE_RECORD);
	assert_int_equal(record.direction, CAPTURE_OUTBOUND);
	assert_int_equal(capture_reader_next(r, &record), CAPTURE_RECORD);
	assert_int_equal(record.direction, CAPTURE_INBOUND);
	assert_int_equal(record.link_type, FILE_ETHERNET);
	assert_int_equal(record.number, 2);
	assert_int_equal(record.time_ns, 6);
	assert_int_equal(capture_reader_next(r, &record), CAPTURE_END);
	close_file(r, file);
}

/* Comments and custom blocks are there; blocks that nobody knows are not. */
static void test_other_blocks(void **state)
{
	struct capture_record record;
	struct capture_option option;
	struct capture_reader *r;
	uint32_t at = 0;
	FILE *file;
	size_t block;

	start(false);
	file_section(&f);
	file_interface(&f, FILE_RAW, 9);
	block = file_begin(&f, 0x7777);
	file_32(&f, 1);
	file_end(&f, block);
	block = file_begin(&f, FILE_CUSTOM);
	file_32(&f, 4711);
	file_bytes(&f, "hello!!!", 8);
	file_end(&f, block);
	block = file_begin(&f, FILE_SIMPLE);
	file_32(&f, sizeof(packet));
	file_bytes(&f, packet, sizeof(packet));
	file_end(&f, block);
	block = file_begin(&f, FILE_OLD);
	file_16(&f, 0);
	file_16(&f, 0);
	file_32(&f, 0);
	file_32(&f, 9);
	file_32(&f, sizeof(packet));
	file_32(&f, sizeof(packet));
	file_bytes(&f, packet, sizeof(packet));
	file_pad(&f);
	file_option(&f, CAPTURE_OPTION_COMMENT, "a word", 6);
	file_option(&f, 0, NULL, 0);
	file_option(&f, CAPTURE_OPTION_COMMENT, "behind the end", 14);
	file_end(&f, block);
	block = file_begin(&f, FILE_STATS);
	file_32(&f, 0);
	file_32(&f, 0);
	file_32(&f, 10);
	file_option(&f, 5, (uint64_t[]){3}, 8);
	file_end(&f, block);

	r = open_file(&f, &file);
	assert_int_equal(capture_reader_next(r, &record), CAPTURE_RECORD);
	assert_int_equal(record.kind, CAPTURE_CUSTOM);
	assert_int_equal(record.pen, 4711);
	assert_int_equal(record.len, 8);
	assert_memory_equal(record.bytes, "hello!!!", 8);
	assert_int_equal(capture_reader_next(r, &record), CAPTURE_RECORD);
	assert_int_equal(record.number, 1);
	assert_int_equal(capture_reader_next(r, &record), CAPTURE_RECORD);
	assert_int_equal(record.number, 2);
	assert_int_equal(record.time_ns, 9);
	assert_true(capture_option_next(&record, &at, &option));
	assert_int_equal(option.code, CAPTURE_OPTION_COMMENT);
	assert_int_equal(option.len, 6);
	assert_memory_equal(option.bytes, "a word", 6);
	assert_false(capture_option_next(&record, &at, &option));
	assert_int_equal(capture_reader_next(r, &record), CAPTURE_RECORD);
	assert_int_equal(record.kind, CAPTURE_DROPPED);
	assert_int_equal(record.dropped, 3);
	assert_int_equal(capture_reader_next(r, &record), CAPTURE_END);
	close_file(r, file);
}

/* A packet of any length, even one that no frame can have, takes no more memory; what follows is read. */
static void test_long_packet(void **state)
{
	static uint8_t zeros[900000];
	struct capture_record record;
	struct capture_reader *r;
	FILE *file;

	start(false);
	file_pcap(&f, 0xa1b2c3d4, FILE_RAW);
	file_pcap_packet(&f, 1, 0, zeros, sizeof(zeros), sizeof(zeros));
	file_pcap_packet(&f, 2, 0, packet, sizeof(packet), sizeof(packet));
	r = open_file(&f, &file);
	assert_int_equal(capture_reader_next(r, &record), CAPTURE_RECORD);
	assert_int_equal(record.original_len, sizeof(zeros));
	assert_true(record.len < sizeof(zeros));
	assert_int_equal(capture_reader_next(r, &record), CAPTURE_RECORD);
	assert_int_equal(record.len, sizeof(packet));
	close_file(r, file);
}

/* Reads to the end, and returns how that is. */
static enum capture_result read_all(const uint8_t *bytes, size_t len, char why[256])
{
	struct capture_file *copy = malloc(sizeof(*copy));
	struct capture_record record;
	enum capture_result result;
	struct capture_reader *r;
	FILE *file;

	assert_non_null(copy);
	memcpy(copy->bytes, bytes, len);
	copy->len = len;
	r = open_file(copy, &file);
	do
		result = capture_reader_next(r, &record);
	while (result == CAPTURE_RECORD);
	snprintf(why, 256, "%s", capture_reader_why(r));
	assert_int_equal(capture_reader_next(r, &record), result);
	close_file(r, file);
	free(copy);
	return result;
}

/* A file that is cut anywhere says so, but where a block ends. */
static void test_truncated(void **state)
{
	char why[256];
	size_t ends[3], count = 0;

	start(false);
	file_section(&f);
	ends[0] = f.len;
	file_interface(&f, FILE_RAW, 9);
	ends[1] = f.len;
	file_packet(&f, 5, 2, packet, sizeof(packet));
	ends[2] = f.len;
	for (size_t len = 1; len <= f.len; len++) {
		bool whole = len == ends[0] || len == ends[1] || len == ends[2];

		assert_int_equal(read_all(f.bytes, len, why), whole ? CAPTURE_END : CAPTURE_BROKEN);
		assert_true(whole ? !*why : strstr(why, "cut off") != NULL);
		count += whole;
	}
	assert_int_equal(count, 3);

	start(true);
	file_pcap(&f, 0xa1b2c3d4, FILE_RAW);
	file_pcap_packet(&f, 1, 0, packet, sizeof(packet), 60);
	for (size_t len = 1; len <= f.len; len++)
		assert_int_equal(read_all(f.bytes, len, why), len == 24 || len == f.len ? CAPTURE_END : CAPTURE_BROKEN);
}

static void expect_broken(const char *part)
{
	char why[256];

	assert_int_equal(read_all(f.bytes, f.len, why), CAPTURE_BROKEN);
	assert_non_null(strstr(why, part));
}

static void test_damaged(void **state)
{
	start(false);
	file_bytes(&f, "\x1f\x8b\x08\x00....", 8);
	expect_broken("zcat");
	start(false);
	file_bytes(&f, "GIF89a", 6);
	expect_broken("neither a pcap nor a pcapng");

	start(false);
	file_section(&f);
	file_packet(&f, 5, 0, packet, sizeof(packet));
	expect_broken("names interface 0, and there are 0");

	start(false);
	file_section(&f);
	file_interface(&f, FILE_RAW, 9);
	file_packet(&f, 5, 0, packet, sizeof(packet));
	f.bytes[f.len - 1] ^= 1;
	expect_broken("another length");

	start(false);
	file_section(&f);
	file_32(&f, FILE_ENHANCED);
	file_32(&f, 0xfffffff0);
	expect_broken("claims 4294967280 bytes");

	start(false);
	file_section(&f);
	file_interface(&f, FILE_RAW, 9);
	file_packet(&f, 5, 0, packet, sizeof(packet));
	f.bytes[f.len - 4 - 8 - 8] = 0xff; /* the captured length */
	expect_broken("claims");

	start(false);
	file_pcap(&f, 0xa1b2c3d4, FILE_RAW);
	file_32(&f, 0);
	file_32(&f, 0);
	file_32(&f, 0xffffffff);
	file_32(&f, 0);
	expect_broken("claims 4294967295 bytes");

	start(false);
	file_section(&f);
	for (unsigned i = 0; i < 1025; i++)
		file_interface(&f, FILE_RAW, 9);
	expect_broken("more than 1024 interfaces");
}

static void test_empty(void **state)
{
	struct capture_record record;
	FILE *file = fopen("/dev/null", "r");
	struct capture_reader *r = capture_reader_create(file);

	assert_int_equal(capture_reader_next(r, &record), CAPTURE_BROKEN);
	assert_string_equal(capture_reader_why(r), "it is empty");
	close_file(r, file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pcap),        cmocka_unit_test(test_pcapng_times),
		cmocka_unit_test(test_sections),    cmocka_unit_test(test_other_blocks),
		cmocka_unit_test(test_long_packet), cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_damaged),     cmocka_unit_test(test_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
