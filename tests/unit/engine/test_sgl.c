/* SPDX-License-Identifier: BSD-2-Clause */
/* Of the memory that a work request names, only what is used is checked and written. */
#include "pair.h"

#include <errno.h>
#include <string.h>

#define NEAR_END (PAIR_MEMORY - 1000)

static const enum roci_qp_type types[] = {ROCI_QPT_RC, ROCI_QPT_UC, ROCI_QPT_UD};

static struct pair *make(enum roci_qp_type type)
{
	struct pair_options o = pair_defaults();
	struct pair *p;

	o.type = type;
	p = pair_create(&o);
	memset(p->side[0].memory, 0x5a, 2000);
	return p;
}

/* The receive is 5,000 bytes long, and its region ends after 1,000. */
static void receive_may_be_longer_than_its_region(void **state)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct pair *p = make(types[i]);
		uint32_t before = types[i] == ROCI_QPT_UD ? ROCI_GRH_BYTES : 0;
		uint32_t len = 1000 - before;

		pair_recv(p, 1, 7, NEAR_END, 5000);
		pair_send(p, 0, ROCI_WR_SEND, 1, 0, len, 0);
		pair_run(p);
		pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
		pair_expect(p, 1, 7, ROCI_WC_SUCCESS);
		assert_memory_equal(p->side[1].memory + NEAR_END + before, p->side[0].memory, len);
		pair_free(p);
	}
}

/* IBTA 9.9.3 table 61: local protection error, NAK remote operational error. */
static void message_may_not_be_longer_than_the_region(void **state)
{
	struct pair *p = make(ROCI_QPT_RC);

	pair_recv(p, 1, 7, NEAR_END, 5000);
	pair_send(p, 0, ROCI_WR_SEND, 1, 0, 1001, 0);
	pair_run(p);
	pair_expect(p, 1, 7, ROCI_WC_LOC_PROT_ERR);
	pair_expect(p, 0, 1, ROCI_WC_REM_OP_ERR);
	pair_free(p);
}

static void element_that_is_not_reached_is_not_checked(void **state)
{
	struct pair *p = make(ROCI_QPT_RC);
	struct pair_side *x = &p->side[1];
	struct roci_sge sges[] = {{(uintptr_t)x->memory, 300, x->key}, {(uintptr_t)x->memory, 300, ~x->key}};
	struct roci_recv_wr wr = {7, sges, 2};

	assert_int_equal(roci_qp_post_recv(x->qp, &wr), 0);
	pair_send(p, 0, ROCI_WR_SEND, 1, 0, 300, 0);
	pair_run(p);
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	pair_expect(p, 1, 7, ROCI_WC_SUCCESS);
	assert_int_equal(roci_qp_post_recv(x->qp, &wr), 0);
	pair_send(p, 0, ROCI_WR_SEND, 2, 0, 301, 0);
	pair_run(p);
	pair_expect(p, 1, 7, ROCI_WC_LOC_PROT_ERR);
	pair_expect(p, 0, 2, ROCI_WC_REM_OP_ERR);
	pair_free(p);
}

/* The original value is 8 bytes, whatever the length of its memory. */
static void atomic_takes_the_first_8_bytes(void **state)
{
	static const enum roci_wr_opcode ops[] = {ROCI_WR_ATOMIC_CMP_AND_SWP, ROCI_WR_ATOMIC_FETCH_AND_ADD};
	static const uint32_t lengths[] = {8, 12, 16, 4096};

	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		for (size_t j = 0; j < sizeof(lengths) / sizeof(lengths[0]); j++) {
			struct pair *p = make(ROCI_QPT_RC);
			const uint64_t value = 0x1122334455667788;
			struct roci_cqe cqe;

			memcpy(p->side[1].memory + 64, &value, 8);
			assert_int_equal(pair_send(p, 0, ops[i], 1, 0, lengths[j], 64), 0);
			pair_run(p);
			assert_int_equal(roci_cq_poll(p->side[0].cq, &cqe, 1), 1);
			assert_int_equal(cqe.status, ROCI_WC_SUCCESS);
			assert_int_equal(cqe.byte_len, 8);
			assert_memory_equal(p->side[0].memory, &value, 8);
			assert_int_equal(p->side[0].memory[8], 0x5a);
			pair_free(p);
		}
	}
}

static void atomic_needs_8_bytes_of_its_region(void **state)
{
	struct pair *p = make(ROCI_QPT_RC);

	assert_int_equal(pair_send(p, 0, ROCI_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 7, 64), -EINVAL);
	assert_int_equal(pair_send(p, 0, ROCI_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 0, 64), -EINVAL);
	assert_int_equal(pair_send(p, 0, ROCI_WR_ATOMIC_FETCH_AND_ADD, 2, PAIR_MEMORY - 8, 64, 64), 0);
	pair_run(p);
	pair_expect(p, 0, 2, ROCI_WC_SUCCESS);
	assert_int_equal(pair_send(p, 0, ROCI_WR_ATOMIC_FETCH_AND_ADD, 3, PAIR_MEMORY - 7, 64, 64), 0);
	pair_run(p);
	pair_expect(p, 0, 3, ROCI_WC_LOC_PROT_ERR);
	pair_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(receive_may_be_longer_than_its_region),
		cmocka_unit_test(message_may_not_be_longer_than_the_region),
		cmocka_unit_test(element_that_is_not_reached_is_not_checked),
		cmocka_unit_test(atomic_takes_the_first_8_bytes),
		cmocka_unit_test(atomic_needs_8_bytes_of_its_region),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
