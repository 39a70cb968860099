/* SPDX-License-Identifier: BSD-2-Clause */
#include "../test.h"

#include <stdint.h>

#include "mover/rate_limit.h"

#define SECOND 1000000000ull
#define MS     1000000ull

static void no_limit_always_allows(void **state)
{
	struct rate_limit l;

	rate_limit_init(&l, 0, 5);
	for (int i = 0; i < 10; i++) {
		assert_true(rate_limit_allows(&l, 5));
		rate_limit_spend(&l, 1u << 30);
	}
}

static void a_window_may_overdraw_and_the_next_waits(void **state)
{
	struct rate_limit l;

	rate_limit_init(&l, 1000, SECOND);
	assert_true(rate_limit_allows(&l, SECOND));
	rate_limit_spend(&l, 500);
	assert_false(rate_limit_allows(&l, SECOND));
	assert_false(rate_limit_allows(&l, SECOND + 499 * MS));
	assert_true(rate_limit_allows(&l, SECOND + 501 * MS));
}

/* Windows of a tenth of a second each, asked for every millisecond: the rate over ten seconds is the limit. */
static void the_rate_holds_over_time(void **state)
{
	struct rate_limit l;
	uint64_t sent = 0;

	rate_limit_init(&l, 1000000, 0);
	for (uint64_t now = 0; now < 10 * SECOND; now += MS)
		if (rate_limit_allows(&l, now)) {
			rate_limit_spend(&l, 100000);
			sent += 100000;
		}
	assert_in_range(sent, 9900000, 10300000);
}

static void a_pause_is_not_made_up_for(void **state)
{
	struct rate_limit l;
	unsigned count = 0;

	rate_limit_init(&l, 1000000, 0);
	while (rate_limit_allows(&l, 3600 * SECOND)) {
		rate_limit_spend(&l, 10000);
		count++;
	}
	assert_in_range(count, 10, 11);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_limit_always_allows),
		cmocka_unit_test(a_window_may_overdraw_and_the_next_waits),
		cmocka_unit_test(the_rate_holds_over_time),
		cmocka_unit_test(a_pause_is_not_made_up_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
