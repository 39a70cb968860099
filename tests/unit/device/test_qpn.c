/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench.h"

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

/* The upper bits of a QPN are the same for all of its process. Nothing tells the lower 14. */
static void first_qpns_come_from_the_whole_block(void **state)
{
	enum { BLOCKS = 32, QPNS = 32, PARTS = 16 };
	unsigned in_part[PARTS] = {0};
	uint32_t qpn;

	for (unsigned i = 0; i < BLOCKS; i++) {
		roci_qpn_block_init(&block, 5);
		for (unsigned j = 0; j < QPNS; j++) {
			assert_int_equal(roci_qpn_alloc(&block, &qpn), 0);
			in_part[qpn % ROCI_QPNS_PER_SLOT * PARTS / ROCI_QPNS_PER_SLOT]++;
		}
	}
	for (unsigned i = 0; i < PARTS; i++) /* 64 are expected, with a deviation of 8 */
		assert_in_range(in_part[i], 8, 120);
}

/* Each QPN is freed at once, and not given again before half as many as are free were given. */
static void a_freed_qpn_rests(void **state)
{
	static unsigned freed_at[ROCI_QPNS_PER_SLOT];
	unsigned shortest = UINT32_MAX;
	uint32_t qpn;

	roci_qpn_block_init(&block, 1);
	for (unsigned i = 1; i < 20 * ROCI_QPNS_PER_SLOT; i++) {
		assert_int_equal(roci_qpn_alloc(&block, &qpn), 0);
		if (freed_at[qpn % ROCI_QPNS_PER_SLOT] && i - freed_at[qpn % ROCI_QPNS_PER_SLOT] < shortest)
			shortest = i - freed_at[qpn % ROCI_QPNS_PER_SLOT];
		roci_qpn_free(&block, qpn);
		freed_at[qpn % ROCI_QPNS_PER_SLOT] = i;
	}
	assert_true(shortest >= ROCI_QPNS_PER_SLOT / 2);
}

/* At the device's limit of QPs, too, however they come and go. */
static void the_limit_fits_beside_the_resting_ones(void **state)
{
	enum { RESTING = ROCI_QPNS_PER_SLOT - 1 - ROCI_MAX_QP }; /* the multicast QPN is none */
	static uint32_t qpns[ROCI_MAX_QP];
	static unsigned freed_at[ROCI_QPNS_PER_SLOT];

	roci_qpn_block_init(&block, ROCI_SLOTS - 1);
	for (unsigned i = 0; i < ROCI_MAX_QP; i++)
		assert_int_equal(roci_qpn_alloc(&block, &qpns[i]), 0);
	for (unsigned i = 1; i < ROCI_MAX_QP; i++) {
		roci_qpn_free(&block, qpns[i]);
		freed_at[qpns[i] % ROCI_QPNS_PER_SLOT] = i;
		assert_int_equal(roci_qpn_alloc(&block, &qpns[i]), 0);
		if (freed_at[qpns[i] % ROCI_QPNS_PER_SLOT])
			assert_true(i - freed_at[qpns[i] % ROCI_QPNS_PER_SLOT] >= RESTING / 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_qpn_of_the_block_once),
		cmocka_unit_test(multicast_is_no_qpn),
		cmocka_unit_test(first_qpns_come_from_the_whole_block),
		cmocka_unit_test(a_freed_qpn_rests),
		cmocka_unit_test(the_limit_fits_beside_the_resting_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
