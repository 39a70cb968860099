/* SPDX-License-Identifier: BSD-2-Clause */
#include "../test.h"

#include "mover/grants.h"

/* The first GRANT does not wait for 16 registrations. */
static void the_first_names_one_window(void **state)
{
	assert_true(grants_next(0, 32, 0) == 1);
}

static void what_is_registered_goes_at_once(void **state)
{
	assert_true(grants_next(5, 32, 0) == 5);
	assert_true(grants_next(32, 32, 0) == GRANTS_AT_ONCE);
}

/* Each GRANT costs a credit, and these come back after a round trip: 64 windows must not take more than a few. */
static void all_windows_take_few_messages(void **state)
{
	unsigned granted = 0, messages = 0;

	for (; granted < 64; messages++)
		granted += grants_next(0, 64 - granted, granted);
	assert_true(granted == 64);
	assert_true(messages <= 8);
}

/* Later a window is granted when it is free: it waits for no other. */
static void never_more_than_are_free(void **state)
{
	assert_true(grants_next(0, 0, 0) == 0);
	assert_true(grants_next(0, 0, 100) == 0);
	assert_true(grants_next(1, 3, 100) == 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_names_one_window),
		cmocka_unit_test(what_is_registered_goes_at_once),
		cmocka_unit_test(all_windows_take_few_messages),
		cmocka_unit_test(never_more_than_are_free),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
