/* SPDX-License-Identifier: BSD-2-Clause */
#include "../test.h"

#include "engine/outstanding.h"
#include "engine/psn.h"

static void answers_make_room_in_order(void **state)
{
	struct roci_outstanding o = {0};

	roci_outstanding_add(&o, 0xffffff);
	roci_outstanding_add(&o, 4);
	roci_outstanding_add(&o, 9);
	roci_outstanding_answered(&o, 0xfffffe);
	assert_int_equal(o.count, 3);
	roci_outstanding_answered(&o, 0xffffff);
	assert_int_equal(o.count, 2);
	roci_outstanding_answered(&o, 8); /* in the middle of the last one */
	assert_int_equal(o.count, 1);
	roci_outstanding_answered(&o, 20);
	assert_int_equal(o.count, 0);
}

static void the_ring_goes_round(void **state)
{
	struct roci_outstanding o = {0};

	for (uint32_t psn = 1; psn < 100; psn++) {
		roci_outstanding_add(&o, psn);
		if (o.count == ROCI_MAX_RD_ATOMIC)
			roci_outstanding_answered(&o, roci_psn_add(psn, (uint32_t)-5 & 0xffffff));
		assert_true(o.count < ROCI_MAX_RD_ATOMIC);
	}
}

static void what_is_sent_again_is_counted_again(void **state)
{
	struct roci_outstanding o = {0};

	roci_outstanding_add(&o, 1);
	roci_outstanding_add(&o, 2);
	roci_outstanding_clear(&o);
	assert_int_equal(o.count, 0);
	roci_outstanding_add(&o, 1);
	roci_outstanding_answered(&o, 1);
	assert_int_equal(o.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_make_room_in_order),
		cmocka_unit_test(the_ring_goes_round),
		cmocka_unit_test(what_is_sent_again_is_counted_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
