/* SPDX-License-Identifier: BSD-2-Clause */
#include "../test.h"

#include "engine/recovery.h"

static void one_loss_has_one_notice(void **state)
{
	struct roci_recovery r = {0};

	assert_true(roci_recovery_notice(&r));
	assert_false(roci_recovery_notice(&r));
	roci_recovery_begin(&r, 100);
	assert_false(roci_recovery_notice(&r));
	roci_recovery_advance(&r, 5);
	assert_true(roci_recovery_notice(&r));
}

static void without_a_loss_all_may_go(void **state)
{
	struct roci_recovery r = {0};

	assert_true(roci_recovery_allows(&r, 1000000));
	roci_recovery_advance(&r, 5);
	assert_true(roci_recovery_allows(&r, 1000000));
}

static void the_burst_doubles(void **state)
{
	struct roci_recovery r = {0};

	roci_recovery_begin(&r, 0x000010);
	for (uint32_t burst = 4, una = 0xfffff0; burst <= 64; burst *= 2, una++) {
		assert_true(roci_recovery_allows(&r, burst - 1));
		assert_false(roci_recovery_allows(&r, burst));
		roci_recovery_advance(&r, una);
	}
}

/* However many steps it takes, the burst does not overflow. */
static void the_burst_has_a_bound(void **state)
{
	struct roci_recovery r = {0};

	roci_recovery_begin(&r, 1000);
	for (uint32_t una = 1; una < 1000; una++)
		roci_recovery_advance(&r, una);
	assert_true(r.active);
	assert_true(roci_recovery_allows(&r, 1000000));
}

static void it_ends_where_the_loss_was_noticed(void **state)
{
	struct roci_recovery r = {0};

	roci_recovery_begin(&r, 2);
	roci_recovery_advance(&r, 0xffffff);
	assert_true(r.active);
	roci_recovery_advance(&r, 1);
	assert_true(r.active);
	roci_recovery_advance(&r, 2);
	assert_false(r.active);
	assert_true(roci_recovery_allows(&r, 1000000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_loss_has_one_notice),
		cmocka_unit_test(without_a_loss_all_may_go),
		cmocka_unit_test(the_burst_doubles),
		cmocka_unit_test(the_burst_has_a_bound),
		cmocka_unit_test(it_ends_where_the_loss_was_noticed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
