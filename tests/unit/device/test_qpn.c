#include "bench.h"

#include "device/device.h"
#include "device/qpn.h"

static struct roci_qpn_block block;

static void every_qpn_of_the_block_once(void **state)
{
	static bool seen[ROCI_QPNS_PER_SLOT];
	uint32_t qpn;

	roci_qpn_block_init(&block, 5);
	for (unsigned i = 0; i < ROCI_QPNS_PER_SLOT; i++) {
		assert_int_equal(roci_qpn_alloc(&block, &qpn), 0);
		assert_int_equal(roci_slot_of(qpn), 5);
		assert_false(seen[qpn % ROCI_QPNS_PER_SLOT]);
		seen[qpn % ROCI_QPNS_PER_SLOT] = true;
	}
	assert_int_equal(roci_qpn_alloc(&block, &qpn), -ENOMEM);
}

static void multicast_is_no_qpn(void **state)
{
	uint32_t qpn;

	roci_qpn_block_init(&block, ROCI_SLOTS - 1);
	for (unsigned i = 0; i < ROCI_QPNS_PER_SLOT - 1; i++) {
		assert_int_equal(roci_qpn_alloc(&block, &qpn), 0);
		assert_int_not_equal(qpn, ROCI_QPN_MULTICAST);
	}
	assert_int_equal(roci_qpn_alloc(&block, &qpn), -ENOMEM);
}

static void a_freed_qpn_rests(void **state)
{
	static uint32_t qpns[ROCI_QPNS_PER_SLOT];
	uint32_t qpn;

	roci_qpn_block_init(&block, 1);
	for (unsigned i = 0; i < ROCI_QPNS_PER_SLOT; i++)
		assert_int_equal(roci_qpn_alloc(&block, &qpns[i]), 0);
	for (unsigned i = 0; i < ROCI_QPN_QUARANTINE; i++)
		roci_qpn_free(&block, qpns[i]);
	assert_int_equal(roci_qpn_alloc(&block, &qpn), -ENOMEM);
	roci_qpn_free(&block, qpns[ROCI_QPN_QUARANTINE]);
	assert_int_equal(roci_qpn_alloc(&block, &qpn), 0);
	assert_int_equal(qpn, qpns[0]);
}

/* The device's limit of QPs holds however they come and go. */
static void the_limit_fits_beside_the_resting_ones(void **state)
{
	static uint32_t qpns[ROCI_MAX_QP];

	roci_qpn_block_init(&block, ROCI_SLOTS - 1);
	for (unsigned i = 0; i < ROCI_MAX_QP; i++)
		assert_int_equal(roci_qpn_alloc(&block, &qpns[i]), 0);
	for (unsigned i = 0; i < 3 * ROCI_QPN_QUARANTINE; i++) {
		roci_qpn_free(&block, qpns[i]);
		assert_int_equal(roci_qpn_alloc(&block, &qpns[i]), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_qpn_of_the_block_once),
		cmocka_unit_test(multicast_is_no_qpn),
		cmocka_unit_test(a_freed_qpn_rests),
		cmocka_unit_test(the_limit_fits_beside_the_resting_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
