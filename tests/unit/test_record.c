/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include <string.h>

#include "wire/record.h"

static const struct roci_record sample = {
	.time_ns = 0x0102030405060708,
	.pid = 4242,
	.kind = ROCI_RECORD_COMPLETION,
	.qp_type = 2,
	.opcode = 128,
	.status = 10,
	.flags = 3,
	.qpn = 0x123456,
	.peer = 0x654321,
	.queue = 7,
	.imm = 0xaabbccdd,
	.rkey = 0x11223344,
	.wr_id = 0x8877665544332211,
	.length = 1ull << 31,
	.remote_addr = 0x7fff00001000,
	.local_gid = {[10] = 0xff, 0xff, 127, 0, 0, 1},
	.remote_gid = {0xfe, 0x80, [15] = 9},
	.text = "rping",
};

static void what_is_built_is_parsed(void **state)
{
	uint8_t body[ROCI_RECORD_BYTES];
	struct roci_record back = {0};

	roci_record_build(&sample, body);
	assert_true(roci_record_parse(body, sizeof(body), false, &back));
	assert_memory_equal(&back, &sample, sizeof(back));
}

/* The layout that docs/WIRE.md promises, on this byte order. */
static void the_layout_is_fixed(void **state)
{
	uint8_t body[ROCI_RECORD_BYTES];
	uint16_t version;
	uint32_t qpn, status;
	uint64_t wr_id;

	roci_record_build(&sample, body);
	memcpy(&version, body + 4, sizeof(version));
	memcpy(&status, body + 24, sizeof(status));
	memcpy(&qpn, body + 32, sizeof(qpn));
	memcpy(&wr_id, body + 56, sizeof(wr_id));
	assert_memory_equal(body, "roci", 4);
	assert_int_equal(version, 1);
	assert_int_equal(status, 10);
	assert_int_equal(qpn, 0x123456);
	assert_int_equal(wr_id, 0x8877665544332211);
	assert_memory_equal(body + 80, sample.local_gid, 16);
	assert_string_equal((char *)body + 112, "rping");
}

static void swap(uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < len / 2; i++) {
		uint8_t byte = bytes[i];

		bytes[i] = bytes[len - 1 - i];
		bytes[len - 1 - i] = byte;
	}
}

static void the_other_byte_order(void **state)
{
	uint8_t body[ROCI_RECORD_BYTES];
	struct roci_record back = {0};

	roci_record_build(&sample, body);
	swap(body + 4, 2);
	swap(body + 6, 2);
	for (unsigned at = 8; at < 56; at += at == 16 ? 8 : 4) /* 20 to 23 are bytes */
		swap(body + at, 4);
	for (unsigned at = 56; at < 80; at += 8)
		swap(body + at, 8);
	assert_true(roci_record_parse(body, sizeof(body), true, &back));
	assert_memory_equal(&back, &sample, sizeof(back));
}

static void what_is_no_record_is_refused(void **state)
{
	uint8_t body[ROCI_RECORD_BYTES];
	struct roci_record r = sample;

	roci_record_build(&r, body);
	assert_false(roci_record_parse(body, sizeof(body) - 1, false, &r));
	assert_false(roci_record_parse(body, sizeof(body), true, &r)); /* version 256 */
	body[0] ^= 1;
	assert_false(roci_record_parse(body, sizeof(body), false, &r));
	r = sample;
	r.kind = ROCI_RECORD_KINDS;
	roci_record_build(&r, body);
	assert_false(roci_record_parse(body, sizeof(body), false, &r));
}

static void the_text_ends(void **state)
{
	uint8_t body[ROCI_RECORD_BYTES];
	struct roci_record back;

	roci_record_build(&sample, body);
	memset(body + 112, 'x', ROCI_RECORD_TEXT);
	assert_true(roci_record_parse(body, sizeof(body), false, &back));
	assert_int_equal(strlen(back.text), ROCI_RECORD_TEXT - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_built_is_parsed), cmocka_unit_test(the_layout_is_fixed),
		cmocka_unit_test(the_other_byte_order),    cmocka_unit_test(what_is_no_record_is_refused),
		cmocka_unit_test(the_text_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
