/* SPDX-License-Identifier: BSD-2-Clause */
/* Which operation is possible where. IBTA vol. 1, table 37; RFC 5040 and RFC 7306 for iWARP. */
#include "test.h"

#include <string.h>

#include "tour/tour.h"

#define IWARP (TOUR_CAP_RC)

static bool possible(enum tour_op op, enum tour_qp qp, enum tour_way way, uint32_t near, uint32_t far)
{
	struct tour_refusal r = tour_refuse(op, qp, way, near, far);

	assert_true((r.whose == TOUR_POSSIBLE) == !r.reason);
	assert_true(!r.reason || strlen(r.reason) > 8);
	return !r.reason;
}

/* One letter per operation in the order of the enum: y or n. */
static void transports(void **state)
{
	static const char *const expected[TOUR_QPS] = {"yyyyyyyyyy", "yynyynnnnn", "yynnnnnnnn"};

	for (unsigned qp = 0; qp < TOUR_QPS; qp++) {
		for (unsigned op = 0; op < TOUR_OPS; op++) {
			for (unsigned way = 0; way < TOUR_WAYS; way++)
				assert_int_equal(possible((enum tour_op)op, (enum tour_qp)qp, (enum tour_way)way,
							  TOUR_CAPS_ALL, TOUR_CAPS_ALL),
						 expected[qp][op] == 'y');
		}
	}
}

static void iwarp_has_rc_and_rdma_cm_only(void **state)
{
	assert_true(possible(TOUR_SEND, TOUR_RC, TOUR_CM, IWARP, IWARP));
	assert_true(possible(TOUR_WRITE, TOUR_RC, TOUR_CM, IWARP, IWARP));
	assert_true(possible(TOUR_READ, TOUR_RC, TOUR_CM, IWARP, IWARP));
	assert_false(possible(TOUR_SEND_IMM, TOUR_RC, TOUR_CM, IWARP, IWARP));
	assert_false(possible(TOUR_WRITE_IMM, TOUR_RC, TOUR_CM, IWARP, IWARP));
	assert_false(possible(TOUR_CAS, TOUR_RC, TOUR_CM, IWARP, IWARP));
	assert_false(possible(TOUR_SEND, TOUR_RC, TOUR_SOCKET, IWARP, IWARP));
	assert_false(possible(TOUR_SEND, TOUR_UD, TOUR_CM, IWARP, IWARP));
}

/* The standard comes before the devices, and the near device before the far one. */
static void the_refusal_says_whose(void **state)
{
	uint32_t no_atomics = TOUR_CAPS_ALL & ~(uint32_t)TOUR_CAP_ATOMIC;

	assert_int_equal(tour_refuse(TOUR_CAS, TOUR_RC, TOUR_CM, no_atomics, TOUR_CAPS_ALL).whose, TOUR_NEAR_DEVICE);
	assert_int_equal(tour_refuse(TOUR_CAS, TOUR_RC, TOUR_CM, TOUR_CAPS_ALL, no_atomics).whose, TOUR_FAR_DEVICE);
	assert_int_equal(tour_refuse(TOUR_CAS, TOUR_RC, TOUR_CM, no_atomics, no_atomics).whose, TOUR_NEAR_DEVICE);
	assert_int_equal(tour_refuse(TOUR_CAS, TOUR_UD, TOUR_CM, no_atomics, no_atomics).whose, TOUR_BY_STANDARD);
	assert_int_equal(tour_refuse(TOUR_FAA, TOUR_RC, TOUR_CM, TOUR_CAPS_ALL, TOUR_CAPS_ALL).whose, TOUR_POSSIBLE);
}

/* Each ability is asked for by something, and refusing it names it. */
static void each_ability_counts(void **state)
{
	for (uint32_t cap = 1; cap < TOUR_CAPS_ALL; cap <<= 1) {
		bool counted = false;
		for (unsigned i = 0; i < TOUR_OPS * TOUR_QPS * TOUR_WAYS; i++) {
			enum tour_op op = (enum tour_op)(i % TOUR_OPS);
			enum tour_qp qp = (enum tour_qp)(i / TOUR_OPS % TOUR_QPS);
			enum tour_way way = (enum tour_way)(i / TOUR_OPS / TOUR_QPS);
			counted |= possible(op, qp, way, TOUR_CAPS_ALL, TOUR_CAPS_ALL) &&
				   !possible(op, qp, way, TOUR_CAPS_ALL, TOUR_CAPS_ALL & ~cap);
		}
		assert_true(counted);
	}
}

static void who_answers(void **state)
{
	assert_true(tour_op_answered(TOUR_SEND, TOUR_RC));
	assert_true(tour_op_answered(TOUR_WRITE_IMM, TOUR_RC));
	assert_false(tour_op_answered(TOUR_WRITE, TOUR_RC));
	assert_true(tour_op_answered(TOUR_WRITE, TOUR_UC)); /* nothing acknowledges it */
	assert_false(tour_op_answered(TOUR_READ, TOUR_RC));
	assert_false(tour_op_answered(TOUR_CAS, TOUR_RC));
}

static void names(void **state)
{
	assert_string_equal(tour_op_names[TOUR_ATOMIC_WRITE], "atomic-write");
	assert_string_equal(tour_op_names[TOUR_FLUSH], "flush");
	assert_string_equal(tour_op_names[TOUR_OPS], "all");
	assert_null(tour_op_names[TOUR_OPS + 1]);
	for (unsigned op = 0; op < TOUR_OPS; op++)
		assert_true(strlen(tour_op_title((enum tour_op)op)) > 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(transports),
		cmocka_unit_test(iwarp_has_rc_and_rdma_cm_only),
		cmocka_unit_test(the_refusal_says_whose),
		cmocka_unit_test(each_ability_counts),
		cmocka_unit_test(who_answers),
		cmocka_unit_test(names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
