/* SPDX-License-Identifier: BSD-2-Clause */
#include "../test.h"

#include "mover/terms.h"

#include "mover/control.h"

#define BYTES (1ull << 30)

static struct proto_terms propose(struct mover_send_options options)
{
	return terms_propose(&options, 100, 7, BYTES, 0, false);
}

static void defaults_are_a_mebibyte_and_eight_windows(void **state)
{
	struct proto_terms t = propose((struct mover_send_options){.mode = MOVER_READ, .encrypt = true});

	assert_int_equal(t.mode, MOVER_READ);
	assert_true(t.encrypt && !t.checksum && !t.dry_run);
	assert_int_equal(t.qps, MOVER_DEFAULT_QPS);
	assert_int_equal(t.windows, 8);
	assert_int_equal(t.chunk_bytes, 1u << 20);
	assert_int_equal(t.max_entries, 100);
	assert_int_equal(t.entries, 7);
	assert_int_equal(t.bytes, BYTES);
	assert_int_equal(t.session, 0);
}

/* A small file needs one connection and two windows. What the user asks for, he gets; and nobody knows how long
 * standard input is. */
static void little_content_gets_few_qps(void **state)
{
	const char *stdin_path = "-";
	const struct {
		uint64_t bytes;
		unsigned qps, windows;
	} cases[] = {{0, 1, 2}, {1, 1, 2}, {1 << 20, 2, 3}, {3 << 20, 4, 5}, {6 << 20, 4, 8}, {1 << 30, 4, 8}};
	struct mover_send_options o = {0};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct proto_terms t = terms_propose(&o, 100, 7, cases[i].bytes, 0, false);

		assert_int_equal(t.qps, cases[i].qps);
		assert_int_equal(t.windows, cases[i].windows);
	}
	o.common.qps = 4;
	assert_int_equal(terms_propose(&o, 100, 1, 1, 0, false).qps, 4);
	assert_int_equal(terms_propose(&o, 100, 1, 1, 0, false).windows, 8);
	o = (struct mover_send_options){.paths = &stdin_path, .path_count = 1};
	assert_int_equal(terms_propose(&o, 100, 1, 0, 0, false).qps, MOVER_DEFAULT_QPS);
	assert_int_equal(terms_propose(&o, 100, 1, 0, 0, false).windows, 8);
}

/* QPs of roci0 share a path's window, and their windows would arrive out of order. Who asks for QPs gets them. */
static void rocinante_gets_one_qp(void **state)
{
	struct mover_send_options o = {0};
	struct proto_terms t = terms_propose(&o, 100, 7, BYTES, 0, true);

	assert_int_equal(t.qps, 1);
	assert_int_equal(t.windows, 8);
	o.common.cqs = 3;
	assert_int_equal(terms_propose(&o, 100, 7, BYTES, 0, true).qps, 3);
	o.common.qps = 6;
	assert_int_equal(terms_propose(&o, 100, 7, BYTES, 0, true).qps, 6);
}

static void more_qps_get_more_windows(void **state)
{
	struct mover_send_options o = {.common.qps = 10, .common.memory_bytes = 1u << 30};

	assert_int_equal(propose(o).windows, 20);
}

/* A window is filled once in a round trip: what is on the way must fit into all of them. */
static void a_far_receiver_gets_as_many_windows_as_the_path_holds(void **state)
{
	struct mover_send_options o = {0};

	assert_int_equal(terms_propose(&o, 100, 1, BYTES, 200000, false).windows, 8);
	assert_in_range(terms_propose(&o, 100, 1, BYTES, 20000000, false).windows, 24, 40);
	assert_in_range(terms_propose(&o, 100, 1, BYTES, 300000000, false).windows, 48, 63); /* --memory, by default */
	assert_int_equal(terms_propose(&o, 100, 1, 3 << 20, 300000000, false).windows, 5);
	o.common.memory_bytes = UINT64_C(1) << 32;
	assert_int_equal(terms_propose(&o, 100, 1, BYTES, 300000000, false).windows, PROTO_MAX_WINDOWS);
	o.common.qps = 8;
	assert_int_equal(terms_propose(&o, 100, 1, BYTES, 0, false).windows, 16);
}

/* 1 Gbit/s with 300 ms by default, and 10 Gbit/s with 100 ms with the memory that the manual names. */
static void what_far_lines_hold_fits_into_windows(void **state)
{
	struct mover_send_options o = {0};
	struct proto_terms t = terms_propose(&o, 100, 1, BYTES, 300000000, true);

	assert_true((uint64_t)t.windows * t.chunk_bytes > 37500000);
	o.common.memory_bytes = 160u << 20;
	t = terms_propose(&o, 100, 1, BYTES, 100000000, true);
	assert_true((uint64_t)t.windows * t.chunk_bytes > 125000000);
	assert_int_equal(t.windows, 127);
}

/* Whatever the sizes, the windows fit into the memory that was allowed; at least two of the smallest are there, so that
 * one is filled while the other is on its way. */
static void memory_bounds_windows(void **state)
{
	for (uint64_t memory = 1; memory <= 1u << 30; memory = memory * 3 + 1)
		for (uint32_t chunk = PROTO_MIN_CHUNK; chunk <= PROTO_MAX_CHUNK; chunk *= 2) {
			struct mover_common common = {.memory_bytes = memory, .chunk_bytes = chunk, .qps = 64};
			struct proto_terms t = propose((struct mover_send_options){.common = common});
			uint64_t used = (uint64_t)t.windows * t.chunk_bytes;

			assert_true(t.windows >= 2 && t.chunk_bytes >= PROTO_MIN_CHUNK && t.chunk_bytes <= chunk);
			if (memory > control_bytes() + 2 * (PROTO_MIN_CHUNK + 4096)) /* and their tags, in pages */
				assert_true(used + 4096u * t.windows + control_bytes() <= memory);
			else
				assert_true(used <= 2 * PROTO_MIN_CHUNK);
			terms_limit(&t, &common, 16, 5);
			assert_true((uint64_t)t.windows * t.chunk_bytes <= used && t.windows >= 2);
		}
}

static void a_receiver_limits_what_is_proposed(void **state)
{
	struct proto_terms proposed =
		propose((struct mover_send_options){.common.qps = 32, .common.memory_bytes = 1u << 30});
	struct mover_common own = {.qps = 8, .memory_bytes = 8u << 20};
	struct proto_terms t = proposed;

	terms_limit(&t, &own, 16, 77);
	assert_int_equal(t.qps, 8);
	assert_int_equal(t.max_entries, 16);
	assert_int_equal(t.session, 77);
	assert_true(t.windows < proposed.windows);
	assert_true(terms_acceptable(&proposed, &t));
}

/* In mode SEND each data connection needs a window that is posted on it. */
static void send_has_no_more_qps_than_windows(void **state)
{
	struct proto_terms t = propose((struct mover_send_options){.mode = MOVER_SEND, .common.qps = 32});
	struct mover_common own = {.memory_bytes = 6u << 20};

	terms_limit(&t, &own, 16, 1);
	assert_true(t.qps <= t.windows);
}

static void an_answer_may_only_reduce(void **state)
{
	struct proto_terms proposed = propose((struct mover_send_options){.mode = MOVER_WRITE}), good = proposed, t;

	good.session = 1;
	assert_true(terms_acceptable(&proposed, &good));
	t = good, t.session = 0;
	assert_false(terms_acceptable(&proposed, &t));
	t = good, t.mode = MOVER_READ;
	assert_false(terms_acceptable(&proposed, &t));
	t = good, t.encrypt = true;
	assert_false(terms_acceptable(&proposed, &t));
	t = good, t.dry_run = true;
	assert_false(terms_acceptable(&proposed, &t));
	t = good, t.qps++;
	assert_false(terms_acceptable(&proposed, &t));
	t = good, t.windows++;
	assert_false(terms_acceptable(&proposed, &t));
	t = good, t.chunk_bytes *= 2;
	assert_false(terms_acceptable(&proposed, &t));
	t = good, t.max_entries++;
	assert_false(terms_acceptable(&proposed, &t));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_are_a_mebibyte_and_eight_windows),
		cmocka_unit_test(little_content_gets_few_qps),
		cmocka_unit_test(rocinante_gets_one_qp),
		cmocka_unit_test(more_qps_get_more_windows),
		cmocka_unit_test(a_far_receiver_gets_as_many_windows_as_the_path_holds),
		cmocka_unit_test(what_far_lines_hold_fits_into_windows),
		cmocka_unit_test(memory_bounds_windows),
		cmocka_unit_test(a_receiver_limits_what_is_proposed),
		cmocka_unit_test(send_has_no_more_qps_than_windows),
		cmocka_unit_test(an_answer_may_only_reduce),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
