/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include "capture/percentile.h"
#include "capture/psn_set.h"

static struct capture_psn_set set;

static int take(uint32_t psn, uint32_t count, uint32_t missing)
{
	uint32_t found;
	int place = (int)capture_psn_take(&set, psn, count, &found);

	assert_int_equal(found, missing);
	return place;
}

static void begin(uint32_t psn)
{
	set = (struct capture_psn_set){0};
	assert_int_equal(take(psn, 1, 0), CAPTURE_IN_ORDER);
}

/* IBTA 9.7.1: PSNs have 24 bits. */
static void test_wraps(void **state)
{
	begin(0xfffffe);
	assert_int_equal(take(0xffffff, 1, 0), CAPTURE_IN_ORDER);
	assert_int_equal(take(0, 1, 0), CAPTURE_IN_ORDER);
	assert_int_equal(take(3, 1, 2), CAPTURE_AHEAD);
	assert_int_equal(take(0xffffff, 1, 0), CAPTURE_SEEN);
	assert_int_equal(take(2, 1, 0), CAPTURE_BEHIND);
	assert_int_equal(take(2, 1, 0), CAPTURE_SEEN);
	assert_int_equal(take(1, 1, 0), CAPTURE_BEHIND);
	assert_int_equal(take(4, 1, 0), CAPTURE_IN_ORDER);
}

/* A READ takes as many as its response has packets. */
static void test_read(void **state)
{
	begin(10);
	assert_int_equal(take(11, 5, 0), CAPTURE_IN_ORDER);
	assert_int_equal(take(16, 1, 0), CAPTURE_IN_ORDER);
	assert_int_equal(take(13, 1, 0), CAPTURE_SEEN);
	set.slack = 7; /* nobody knows how many */
	assert_int_equal(take(22, 1, 0), CAPTURE_IN_ORDER);
	assert_int_equal(take(25, 1, 2), CAPTURE_AHEAD);
}

static void test_window(void **state)
{
	begin(0);
	for (uint32_t psn = 1; psn < 3 * CAPTURE_PSN_WINDOW; psn++)
		assert_int_equal(take(psn, 1, 0), CAPTURE_IN_ORDER);
	assert_int_equal(take(2 * CAPTURE_PSN_WINDOW, 1, 0), CAPTURE_SEEN);
	assert_int_equal(take(5, 1, 0), CAPTURE_SEEN); /* too old to tell */
	/* A gap that is wider than the window. */
	assert_int_equal(take(5 * CAPTURE_PSN_WINDOW, 1, 2 * CAPTURE_PSN_WINDOW), CAPTURE_AHEAD);
	assert_int_equal(take(5 * CAPTURE_PSN_WINDOW - 1, 1, 0), CAPTURE_BEHIND);
	/* A jump that is no loss. */
	assert_int_equal(take(8000000, 1, 0), CAPTURE_IN_ORDER);
	assert_int_equal(take(0, 1, 0), CAPTURE_IN_ORDER);
}

static void test_percentiles(void **state)
{
	struct capture_percentiles p = {0};

	assert_int_equal(capture_percentile(&p, 50), 0);
	for (uint64_t i = 1; i <= 1000; i++)
		capture_percentiles_add(&p, i * 1000);
	assert_int_equal(p.count, 1000);
	assert_in_range(capture_percentile(&p, 50), 500000, 500000 * 17 / 16);
	assert_in_range(capture_percentile(&p, 99), 990000, 1000000);
	assert_int_equal(capture_percentile(&p, 100), 1000000);
	assert_in_range(capture_percentile(&p, 0), 1000, 1100);
	capture_percentiles_add(&p, UINT64_MAX);
	assert_int_equal(capture_percentile(&p, 100), UINT64_MAX);
	p = (struct capture_percentiles){0};
	capture_percentiles_add(&p, 0);
	assert_int_equal(capture_percentile(&p, 99), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wraps),
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_window),
		cmocka_unit_test(test_percentiles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
