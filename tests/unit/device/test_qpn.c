/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench.h"

#include "device/qpn.h"

static struct roci_qpn_block block;
static const struct roci_slot_key key = {{0x12345678, 0x9abcdef0, 0x0fedcba9, 0x87654321}};

static void every_qpn_of_the_block_once(void **state)
{
	static bool seen[ROCI_QPNS_PER_SLOT];
	uint32_t qpn;

	roci_qpn_block_init(&block, &key, 5);
	for (unsigned i = 0; i < ROCI_QPNS_PER_SLOT; i++) {
		assert_int_equal(roci_qpn_alloc(&block, &qpn), 0);
		assert_int_equal(roci_slot_of(&key, qpn), 5);
		assert_false(seen[qpn % ROCI_QPNS_PER_SLOT]);
		seen[qpn % ROCI_QPNS_PER_SLOT] = true;
	}
	assert_int_equal(roci_qpn_alloc(&block, &qpn), -ENOMEM);
}

static void multicast_is_no_qpn(void **state)
{
	uint32_t qpn;

	roci_qpn_block_init(&block, &key, roci_slot_of(&key, ROCI_QPN_MULTICAST));
	for (unsigned i = 0; i < ROCI_QPNS_PER_SLOT - 1; i++) {
		assert_int_equal(roci_qpn_alloc(&block, &qpn), 0);
		assert_int_not_equal(qpn, ROCI_QPN_MULTICAST);
	}
	assert_int_equal(roci_qpn_alloc(&block, &qpn), -ENOMEM);
}

/* QPN 1 is the general service interface; 0 is reserved. */
static void the_first_two_are_no_qpns(void **state)
{
	uint32_t qpn;

	for (uint32_t reserved = 0; reserved < 2; reserved++) {
		roci_qpn_block_init(&block, &key, roci_slot_of(&key, reserved));
		while (!roci_qpn_alloc(&block, &qpn))
			assert_true(qpn > 1);
	}
}

static void a_qpn_tells_its_slot_and_place(void **state)
{
	for (unsigned slot = 0; slot < ROCI_SLOTS; slot += 33) {
		for (uint32_t offset = 0; offset < ROCI_QPNS_PER_SLOT; offset++) {
			uint32_t qpn = roci_slot_qpn(&key, slot, offset);

			assert_int_equal(roci_slot_of(&key, qpn), slot);
			assert_int_equal(qpn % ROCI_QPNS_PER_SLOT, offset);
		}
	}
}

/* Who knows a QPN of a process does not know the upper ten bits of another: each value is as likely, for neighbours,
 * too. */
static void a_qpn_does_not_tell_the_upper_bits_of_others(void **state)
{
	static unsigned differences[ROCI_SLOTS];

	for (uint32_t offset = 1; offset < ROCI_QPNS_PER_SLOT; offset++) {
		uint32_t a = roci_slot_qpn(&key, 5, offset - 1), b = roci_slot_qpn(&key, 5, offset);

		differences[(a ^ b) >> ROCI_SLOT_SHIFT]++;
	}
	for (unsigned i = 0; i < ROCI_SLOTS; i++) /* 16 are expected, with a deviation of 4 */
		assert_true(differences[i] < 48);
}

/* Processes of any user must agree; a key of another namespace is another one. */
static void the_key_is_that_of_the_network_namespace(void **state)
{
	struct roci_slot_key a, b, other;

	roci_slot_key_read(&a, 77);
	roci_slot_key_read(&b, 77);
	roci_slot_key_read(&other, 78);
	assert_memory_equal(&a, &b, sizeof(a));
	assert_memory_not_equal(&a, &other, sizeof(a));
	for (unsigned i = 0; i < ROCI_SLOT_ROUNDS; i++)
		assert_int_not_equal(a.words[i], 0);
}

/* Nothing tells the lower 14 bits. */
static void first_qpns_come_from_the_whole_block(void **state)
{
	enum { BLOCKS = 32, QPNS = 32, PARTS = 16 };
	unsigned in_part[PARTS] = {0};
	uint32_t qpn;

	for (unsigned i = 0; i < BLOCKS; i++) {
		roci_qpn_block_init(&block, &key, 5);
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

	roci_qpn_block_init(&block, &key, 1);
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

	roci_qpn_block_init(&block, &key, roci_slot_of(&key, ROCI_QPN_MULTICAST));
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
		cmocka_unit_test(the_first_two_are_no_qpns),
		cmocka_unit_test(a_qpn_tells_its_slot_and_place),
		cmocka_unit_test(a_qpn_does_not_tell_the_upper_bits_of_others),
		cmocka_unit_test(the_key_is_that_of_the_network_namespace),
		cmocka_unit_test(first_qpns_come_from_the_whole_block),
		cmocka_unit_test(a_freed_qpn_rests),
		cmocka_unit_test(the_limit_fits_beside_the_resting_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
