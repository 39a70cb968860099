/* SPDX-License-Identifier: BSD-2-Clause */
/* The payload of a PIECE. */
#include "test.h"

#include <string.h>

#include "wire/piece.h"

static uint8_t payload[ROCI_PIECE_HEAD + ROCI_PIECE_BYTES + 1];

static bool is_read(uint32_t total, unsigned index, uint32_t len)
{
	struct roci_piece made = {.number = 7, .total = (uint16_t)total, .index = (uint8_t)index}, got;

	roci_piece_build(&made, payload);
	if (!roci_piece_parse(&got, payload, ROCI_PIECE_HEAD + len))
		return false;
	assert_int_equal(got.number, 7);
	assert_int_equal(got.total, total);
	assert_int_equal(got.index, index);
	assert_ptr_equal(got.bytes, payload + ROCI_PIECE_HEAD);
	assert_int_equal(got.at, index * ROCI_PIECE_BYTES);
	assert_int_equal(got.len, len);
	return true;
}

/* In an IPv6 packet of 1280 bytes. */
static void a_piece_fits_every_ipv6_path(void **state)
{
	assert_int_equal(40 + 8 + ROCI_BTH_BYTES + ROCI_PIECE_HEAD + ROCI_PIECE_BYTES + ROCI_ICRC_BYTES, 1280);
	assert_int_equal(ROCI_PIECE_BYTES % 4, 0);
}

static void the_pieces_are_the_packet(void **state)
{
	for (uint32_t total = ROCI_PIECE_BYTES + 1; total <= ROCI_PIECES_MOST * ROCI_PIECE_BYTES; total++) {
		uint32_t sum = 0;

		for (unsigned i = 0; i < roci_piece_count(total); i++) {
			assert_true(is_read(total, i, roci_piece_len(total, i)));
			sum += roci_piece_len(total, i);
		}
		assert_int_equal(sum, total);
	}
}

static void others_are_malformed(void **state)
{
	const uint32_t total = 2 * ROCI_PIECE_BYTES + 4;

	assert_false(is_read(total, 0, ROCI_PIECE_BYTES - 1));
	assert_false(is_read(total, 0, ROCI_PIECE_BYTES + 1));
	assert_false(is_read(total, 0, 0));
	assert_false(is_read(total, 2, 5));
	assert_false(is_read(total, 3, 4));
	assert_false(is_read(total, 255, 4));
	assert_false(is_read(ROCI_PIECE_BYTES, 0, ROCI_PIECE_BYTES)); /* it needs no cut */
	assert_false(is_read(0, 0, 0));
	assert_false(is_read(ROCI_PIECES_MOST * ROCI_PIECE_BYTES + 1, 0, ROCI_PIECE_BYTES));
	for (uint32_t len = 0; len < ROCI_PIECE_HEAD; len++)
		assert_false(roci_piece_parse(&(struct roci_piece){0}, payload, len));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_piece_fits_every_ipv6_path),
		cmocka_unit_test(the_pieces_are_the_packet),
		cmocka_unit_test(others_are_malformed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
