/* SPDX-License-Identifier: BSD-2-Clause */
#include "../test.h"

#include "mover/fd_limit.h"

#define SESSIONS 16 /* that a receiver has at a time by default */

/* What is promised to all of them has to be there: otherwise files of one are refused because of another's. */
static void no_more_is_promised_than_there_is(void **state)
{
	for (unsigned limit = 0; limit < 4000; limit++) {
		unsigned available = limit, promised = 0;

		for (unsigned i = 0; i < SESSIONS; i++) {
			unsigned before = available, entries = fd_limit_share(&available, 4096);

			assert_true(entries >= 1 && available <= before);
			if (before >= FD_LIMIT_ENTRY)
				promised += entries * FD_LIMIT_ENTRY;
			else
				assert_int_equal(entries, 1);
		}
		assert_true(promised <= limit);
		assert_int_equal(promised, limit - available);
	}
}

static void a_session_gets_half_but_sixteen_while_there_are_as_many(void **state)
{
	unsigned available = 768; /* what a limit of 1024 leaves */

	assert_int_equal(fd_limit_share(&available, 4096), 128);
	assert_int_equal(fd_limit_share(&available, 4096), 64);
	assert_int_equal(fd_limit_share(&available, 4096), 32);
	assert_int_equal(fd_limit_share(&available, 4096), 16);
	assert_int_equal(fd_limit_share(&available, 4096), 16);
	assert_int_equal(available, 0);
	assert_int_equal(fd_limit_share(&available, 4096), 1);
	assert_int_equal(available, 0);
}

static void a_session_takes_no_more_than_it_asks_for(void **state)
{
	unsigned available = 768;

	assert_int_equal(fd_limit_share(&available, 5), 5);
	assert_int_equal(available, 768 - 15);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_more_is_promised_than_there_is),
		cmocka_unit_test(a_session_gets_half_but_sixteen_while_there_are_as_many),
		cmocka_unit_test(a_session_takes_no_more_than_it_asks_for),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
