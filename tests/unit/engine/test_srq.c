/* SPDX-License-Identifier: BSD-2-Clause */
/* Receives of a shared receive queue. */
#include "pair.h"

#include <string.h>

static const enum roci_qp_type types[] = {ROCI_QPT_RC, ROCI_QPT_UC, ROCI_QPT_UD};

static struct pair *make(enum roci_qp_type type)
{
	struct pair_options o = pair_defaults();

	o.type = type;
	o.srq_pd = 2; /* the QPs' is 1 */
	return pair_create(&o);
}

/* IBTA 10.2.9: a receive is checked against the protection domain of its SRQ, which need not be the QP's. */
static void receives_are_of_its_domain(void **state)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct pair *p = make(types[i]);
		uint32_t before = types[i] == ROCI_QPT_UD ? ROCI_GRH_BYTES : 0;

		memset(p->side[0].memory, 0x5a, 200);
		pair_recv(p, 1, 7, 1000, 300);
		pair_send(p, 0, ROCI_WR_SEND, 1, 0, 200, 0);
		pair_run(p);
		pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
		pair_expect(p, 1, 7, ROCI_WC_SUCCESS);
		assert_memory_equal(p->side[1].memory + 1000 + before, p->side[0].memory, 200);
		pair_free(p);
	}
}

static void memory_of_the_qp_is_not(void **state)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct pair *p = make(types[i]);

		p->side[1].recv_key = p->side[1].key;
		pair_recv(p, 1, 7, 1000, 300);
		pair_send(p, 0, ROCI_WR_SEND, 1, 0, 200, 0);
		pair_run(p);
		pair_expect(p, 1, 7, ROCI_WC_LOC_PROT_ERR);
		assert_int_equal(roci_qp_state(p->side[1].qp), ROCI_QPS_ERR);
		pair_free(p);
	}
}

/* The memory of a READ and of a SEND is checked against the PD of the QP. */
static void requests_are_of_the_qps(void **state)
{
	struct pair *p = make(ROCI_QPT_RC);

	memset(p->side[0].memory, 0x5a, 1000);
	pair_recv(p, 0, 7, 4000, 1000);
	pair_send(p, 1, ROCI_WR_RDMA_READ, 1, 2000, 1000, 0);
	pair_send(p, 1, ROCI_WR_SEND, 2, 2000, 1000, 0);
	pair_run(p);
	pair_expect(p, 1, 1, ROCI_WC_SUCCESS);
	pair_expect(p, 1, 2, ROCI_WC_SUCCESS);
	pair_expect(p, 0, 7, ROCI_WC_SUCCESS);
	pair_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(receives_are_of_its_domain),
		cmocka_unit_test(memory_of_the_qp_is_not),
		cmocka_unit_test(requests_are_of_the_qps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
