/* SPDX-License-Identifier: BSD-2-Clause */
#include "../test.h"

#include <stdint.h>

#include "mover/retry.h"

#define SECOND 1000000000ull

/* Attempts that all end like this and take so long. Returns how many there are before it gives up; *now_ns is then. */
static unsigned attempts(struct retry *r, enum retry_end end, uint64_t each_ns, uint64_t *now_ns)
{
	unsigned count = 0;
	uint64_t pause;

	while (retry_again(r, end, *now_ns, &pause) && count < 10000) {
		count++;
		*now_ns += pause + each_ns;
	}
	return count;
}

static void zero_means_never(void **state)
{
	struct retry r;
	uint64_t pause;

	retry_init(&r, 0, false);
	assert_false(retry_again(&r, RETRY_BROKEN, SECOND, &pause));
	assert_true(retry_left_ns(&r, SECOND) == 0);
}

static void the_first_attempt_comes_at_once_and_pauses_grow_to_a_bound(void **state)
{
	static const uint64_t pauses[] = {0, SECOND / 2, SECOND, 2 * SECOND, 4 * SECOND, 4 * SECOND, 4 * SECOND};
	struct retry r;
	uint64_t pause;

	retry_init(&r, 300 * SECOND, false);
	for (unsigned i = 0; i < sizeof(pauses) / sizeof(*pauses); i++) {
		assert_true(retry_again(&r, i ? RETRY_NO_WAY : RETRY_BROKEN, (1 + i) * SECOND, &pause));
		assert_true(pause == pauses[i]);
	}
}

/* No attempt begins after the time, and one begins at its end: the network may be back in the last second. */
static void attempts_go_on_for_that_time(void **state)
{
	for (uint64_t each = 0; each <= 8 * SECOND; each += SECOND / 4) {
		uint64_t now = 7 * SECOND, pause;
		struct retry r;

		retry_init(&r, 60 * SECOND, false);
		assert_true(retry_again(&r, RETRY_BROKEN, now, &pause));
		assert_true(attempts(&r, RETRY_NO_WAY, each, &now) >= 4);
		assert_in_range(now, 67 * SECOND, 67 * SECOND + each);
		assert_false(retry_again(&r, RETRY_NO_WAY, now, &pause));
	}
}

static void progress_begins_the_time_anew_and_a_connection_alone_does_not(void **state)
{
	uint64_t now = SECOND, pause;
	struct retry r;

	retry_init(&r, 60 * SECOND, false);
	for (unsigned i = 0; i < 100; i++) {
		assert_true(retry_again(&r, RETRY_BROKEN, now, &pause));
		assert_true(pause == 0);
		retry_progress(&r);
		now += 50 * SECOND;
	}
	assert_true(attempts(&r, RETRY_BROKEN, SECOND, &now) < 61);
}

static void what_will_not_change_ends_it(void **state)
{
	uint64_t pause;
	struct retry r;

	retry_init(&r, 60 * SECOND, false);
	assert_false(retry_again(&r, RETRY_FINAL, SECOND, &pause));
	assert_true(retry_again(&r, RETRY_BROKEN, SECOND, &pause));
	assert_false(retry_again(&r, RETRY_REFUSED, 2 * SECOND, &pause)); /* the receiver has ended */
	assert_false(retry_again(&r, RETRY_FINAL, 2 * SECOND, &pause));
}

static void the_first_connection_is_tried_once_unless_asked(void **state)
{
	uint64_t now = SECOND, pause;
	struct retry r;

	retry_init(&r, 60 * SECOND, false);
	assert_false(retry_again(&r, RETRY_NO_WAY, now, &pause));
	assert_false(retry_again(&r, RETRY_REFUSED, now, &pause));
	retry_init(&r, 60 * SECOND, true);
	assert_true(attempts(&r, RETRY_REFUSED, SECOND, &now) > 10);
	retry_init(&r, 60 * SECOND, true);
	assert_true(attempts(&r, RETRY_NO_WAY, SECOND, &now) > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(zero_means_never),
		cmocka_unit_test(the_first_attempt_comes_at_once_and_pauses_grow_to_a_bound),
		cmocka_unit_test(attempts_go_on_for_that_time),
		cmocka_unit_test(progress_begins_the_time_anew_and_a_connection_alone_does_not),
		cmocka_unit_test(what_will_not_change_ends_it),
		cmocka_unit_test(the_first_connection_is_tried_once_unless_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
