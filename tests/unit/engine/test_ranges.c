/* SPDX-License-Identifier: BSD-2-Clause */
#include "../test.h"

#include <string.h>

#include "engine/limits.h"
#include "engine/plpmtu.h"
#include "engine/ranges.h"

static struct roci_ranges example(void)
{
	struct roci_ranges r = {.flags = ROCI_RANGES_ANSWERS,
				.duplicates = 0x1234,
				.secret = 0x0123456789abcdef,
				.room = 131072,
				.reads = 1024,
				.longest = 1408,
				.segments = {{.begin = 0xffffe0, .count = 3, .words = {1, 0x80000000, 0xdeadbeef}},
					     {.begin = 0x40, .count = ROCI_RANGES_WORDS}}};

	return r;
}

static void survives_the_round_trip(void **state)
{
	uint8_t bytes[ROCI_RANGES_MAX_BYTES];
	struct roci_ranges r = example(), got;
	uint32_t len = roci_ranges_build(&r, bytes);
	struct roci_offer offer = {0x123456, ROCI_OFFER_READS, r.secret, 0}, heard;

	assert_int_equal(len, ROCI_RANGES_HEAD + 2 * 4 + 4 * (3 + ROCI_RANGES_WORDS));
	assert_true(roci_ranges_parse(bytes, len, &got));
	assert_int_equal(got.flags, r.flags);
	assert_int_equal(got.duplicates, r.duplicates);
	assert_int_equal(got.secret, r.secret);
	assert_int_equal(roci_ranges_secret(bytes), r.secret);
	assert_int_equal(got.room, r.room);
	assert_int_equal(got.reads, r.reads);
	assert_int_equal(got.longest, r.longest);
	assert_int_equal(got.segments[0].begin, 0xffffe0);
	assert_memory_equal(got.segments[0].words, r.segments[0].words, 12);
	assert_int_equal(got.segments[1].count, ROCI_RANGES_WORDS);
	roci_offer_build(&offer, bytes);
	assert_true(roci_offer_parse(bytes, ROCI_OFFER_BYTES, &heard));
	assert_int_equal(heard.secret, r.secret);
	assert_int_equal(heard.first_psn, 0x123456);
	assert_int_equal(heard.flags, ROCI_OFFER_READS);
	assert_int_equal(heard.probes_for, 0);
}

/* Its length says for which packets it is. */
static void an_offer_may_have_zeros_behind_it(void **state)
{
	uint8_t bytes[ROCI_PLPMTU_PROBE_BYTES(ROCI_MAX_PAYLOAD) + 1] = {0};
	struct roci_offer offer;

	roci_offer_build(&(struct roci_offer){1, ROCI_OFFER_ASKS, 2, 0}, bytes);
	assert_true(roci_offer_parse(bytes, ROCI_PLPMTU_PROBE_BYTES(1408), &offer));
	assert_int_equal(offer.probes_for, 1408);
	assert_int_equal(offer.secret, 2);
	assert_true(roci_offer_parse(bytes, sizeof(bytes) - 1, &offer));
	assert_int_equal(offer.probes_for, ROCI_MAX_PAYLOAD);
	assert_false(roci_offer_parse(bytes, sizeof(bytes), &offer));
	assert_false(roci_offer_parse(bytes, ROCI_OFFER_BYTES - 1, &offer));
}

/* Every length but the right one, too many words, a version of tomorrow. */
static void refuses_what_is_malformed(void **state)
{
	uint8_t bytes[ROCI_RANGES_MAX_BYTES + 64] = {0};
	struct roci_ranges r = example(), got;
	uint32_t len = roci_ranges_build(&r, bytes), one = ROCI_RANGES_HEAD + 4 + 12;
	struct roci_offer offer;

	for (uint32_t n = 0; n < len + 60; n++)
		assert_int_equal(roci_ranges_parse(bytes, n, &got), n == len || n == ROCI_RANGES_HEAD || n == one);
	bytes[ROCI_RANGES_HEAD + 3] = ROCI_RANGES_WORDS + 1;
	assert_false(roci_ranges_parse(bytes, sizeof(bytes), &got));
	bytes[ROCI_RANGES_HEAD + 3] = 3;
	bytes[ROCI_RANGES_HEAD + 2] ^= 1; /* does not begin at a word */
	assert_false(roci_ranges_parse(bytes, len, &got));
	bytes[0] = 2;
	assert_false(roci_ranges_parse(bytes, ROCI_RANGES_HEAD, &got));
	assert_false(roci_offer_parse(bytes, ROCI_OFFER_BYTES, &offer));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(survives_the_round_trip),
		cmocka_unit_test(an_offer_may_have_zeros_behind_it),
		cmocka_unit_test(refuses_what_is_malformed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
