/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include <errno.h>

#include "perf/hdr.h"

/* The buckets of HdrHistogram: 2048 of one unit at three digits, and 1024 more for each doubling. */
static void layout(void **state)
{
	struct hdr h;

	assert_int_equal(hdr_init(&h, 1, 3600000000, 3), 0);
	assert_int_equal(h.count, 23552); /* as its documentation has it for an hour of us */
	assert_int_equal(hdr_index(&h, 0), 0);
	assert_int_equal(hdr_index(&h, 2047), 2047);
	assert_int_equal(hdr_index(&h, 2048), 2048);
	assert_int_equal(hdr_index(&h, 2049), 2048);
	assert_int_equal(hdr_index(&h, 4096), 3072);
	assert_true(hdr_index(&h, 3600000000) < h.count);
	hdr_destroy(&h);
}

/* Each value is in its bucket, and no bucket is wider than a thousandth. */
static void buckets_hold_their_values(void **state)
{
	struct hdr h;

	assert_int_equal(hdr_init(&h, 1, 60000000000, 3), 0);
	for (uint64_t v = 1; v < 60000000000; v += 1 + v / 97) {
		uint32_t i = hdr_index(&h, v);
		assert_true(i < h.count);
		assert_true(hdr_bucket_low(&h, i) <= v && v <= hdr_bucket_high(&h, i));
		assert_true((hdr_bucket_high(&h, i) - hdr_bucket_low(&h, i)) * 1000 <= v);
		assert_true(!i || hdr_bucket_high(&h, i - 1) + 1 == hdr_bucket_low(&h, i));
	}
	hdr_destroy(&h);
}

static void percentiles(void **state)
{
	struct hdr h;

	assert_int_equal(hdr_init(&h, 1, 1000000, 3), 0);
	assert_int_equal(hdr_percentile(&h, 50), 0);
	for (uint64_t v = 1; v <= 10000; v++)
		hdr_add(&h, v);
	assert_int_equal(h.total, 10000);
	assert_int_equal(h.min, 1);
	assert_int_equal(h.max, 10000);
	assert_int_equal(hdr_percentile(&h, 0), 1);
	assert_int_equal(hdr_percentile(&h, 1), 100);
	assert_in_range(hdr_percentile(&h, 50), 5000, 5005);
	assert_in_range(hdr_percentile(&h, 99), 9900, 9910);
	assert_in_range(hdr_percentile(&h, 99.99), 9999, 10000);
	assert_int_equal(hdr_percentile(&h, 100), 10000);
	assert_true(hdr_mean(&h) > 4995 && hdr_mean(&h) < 5005);
	hdr_reset(&h);
	assert_int_equal(h.total, 0);
	assert_int_equal(hdr_percentile(&h, 99), 0);
	hdr_destroy(&h);
}

static void too_large_counts_as_largest(void **state)
{
	struct hdr h;

	assert_int_equal(hdr_init(&h, 1, 1000, 2), 0);
	hdr_add(&h, 5000000);
	assert_int_equal(h.total, 1);
	assert_int_equal(h.max, 1000);
	assert_int_equal(hdr_percentile(&h, 100), 1000);
	hdr_destroy(&h);
}

static void merging(void **state)
{
	struct hdr a, b;

	assert_int_equal(hdr_init(&a, 1, 1000000, 3) | hdr_init(&b, 1, 1000000, 3), 0);
	hdr_add(&a, 10);
	hdr_add(&b, 5);
	hdr_add(&b, 900);
	hdr_merge(&a, &b);
	assert_int_equal(a.total, 3);
	assert_int_equal(a.min, 5);
	assert_int_equal(a.max, 900);
	assert_int_equal(hdr_percentile(&a, 50), 10);
	hdr_destroy(&a);
	hdr_destroy(&b);
}

static void refused(void **state)
{
	struct hdr h;

	assert_int_equal(hdr_init(&h, 0, 1000, 3), -EINVAL);
	assert_int_equal(hdr_init(&h, 1, 1, 3), -EINVAL);
	assert_int_equal(hdr_init(&h, 1, 1000, 0), -EINVAL);
	assert_int_equal(hdr_init(&h, 1, 1000, 6), -EINVAL);
	assert_int_equal(hdr_init(&h, 1, UINT64_MAX, 3), -EINVAL);
	assert_int_equal(hdr_init(&h, 1, INT64_MAX, 5), -EINVAL); /* too many buckets */
	assert_int_equal(hdr_init(&h, UINT64_C(1) << 60, INT64_MAX, 5), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(layout),      cmocka_unit_test(buckets_hold_their_values),
		cmocka_unit_test(percentiles), cmocka_unit_test(too_large_counts_as_largest),
		cmocka_unit_test(merging),     cmocka_unit_test(refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
