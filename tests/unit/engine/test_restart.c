/* SPDX-License-Identifier: BSD-2-Clause */
/* A peer that was started again has the QPN of its earlier life and other PSNs, and this side does not know yet
 * (IBTA 12.10.8.2). What this side still asks for must neither be done nor seem to be. tests/sim does it at random. */
#include "pair.h"

#include <string.h>

#include "engine/qp.h"

#define SECOND UINT64_C(1000000000)

/* Distances from the PSNs that this side uses to those of the peer's new life: what comes is old, or far ahead. */
static const uint32_t distances[] = {1u << 12,
				     1u << 20,
				     (1u << 23) - 1000,
				     (1u << 23) + 1000,
				     ROCI_PSN_MASK - (1u << 20),
				     ROCI_PSN_MASK - (1u << 13)};

static void start_again(struct pair *p, int side, uint32_t distance)
{
	struct roci_qp *qp = p->side[side].qp;
	struct roci_qp_attr a = qp->attr, reset = {.state = ROCI_QPS_RESET};

	assert_int_equal(roci_qp_modify(qp, p->now, &reset, ROCI_QP_STATE), 0);
	a.rq_psn = roci_psn_add(a.rq_psn, distance);
	a.sq_psn = roci_psn_add(a.sq_psn, distance);
	a.state = ROCI_QPS_INIT;
	assert_int_equal(roci_qp_modify(qp, p->now, &a,
					ROCI_QP_STATE | ROCI_QP_PKEY_INDEX | ROCI_QP_PORT | ROCI_QP_ACCESS_FLAGS),
			 0);
	a.state = ROCI_QPS_RTR;
	assert_int_equal(roci_qp_modify(qp, p->now, &a,
					ROCI_QP_STATE | ROCI_QP_AV | ROCI_QP_PATH_MTU | ROCI_QP_DEST_QPN |
						ROCI_QP_RQ_PSN | ROCI_QP_MAX_DEST_RD_ATOMIC | ROCI_QP_MIN_RNR_TIMER),
			 0);
	a.state = ROCI_QPS_RTS;
	assert_int_equal(roci_qp_modify(qp, p->now, &a,
					ROCI_QP_STATE | ROCI_QP_SQ_PSN | ROCI_QP_TIMEOUT | ROCI_QP_RETRY_CNT |
						ROCI_QP_RNR_RETRY | ROCI_QP_MAX_QP_RD_ATOMIC),
			 0);
}

static struct pair *make(void)
{
	struct pair_options o = pair_defaults();
	struct pair *p;

	o.retry_cnt = 2;
	o.timeout = 10;
	p = pair_create(&o);
	pair_send(p, 0, ROCI_WR_RDMA_WRITE, 1, 0, 100, 0);
	pair_send(p, 1, ROCI_WR_RDMA_WRITE, 1, 0, 100, 0);
	pair_run(p);
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	pair_expect(p, 1, 1, ROCI_WC_SUCCESS);
	return p;
}

/* Requests of every kind end with an error, and nothing of them is done. */
static void a_request_to_an_earlier_life_fails(void **state)
{
	static const enum roci_wr_opcode ops[] = {ROCI_WR_RDMA_WRITE, ROCI_WR_SEND, ROCI_WR_RDMA_WRITE_WITH_IMM,
						  ROCI_WR_RDMA_READ, ROCI_WR_ATOMIC_FETCH_AND_ADD};
	static uint8_t before[PAIR_MEMORY];

	for (unsigned d = 0; d < sizeof(distances) / sizeof(distances[0]); d++)
		for (unsigned i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
			struct pair *p = make();
			uint32_t len = ops[i] == ROCI_WR_ATOMIC_FETCH_AND_ADD ? 8 : 3 * PAIR_MTU;

			start_again(p, 1, distances[d]);
			pair_recv(p, 1, 7, 30000, 4096);
			memcpy(before, p->side[1].memory, PAIR_MEMORY);
			memset(p->side[0].memory, 0x5a, 4096);
			pair_send(p, 0, ops[i], 2, 0, len, 8192);
			pair_run_until(p, p->now + 10 * SECOND);
			pair_expect(p, 0, 2, ROCI_WC_RETRY_EXC_ERR);
			pair_expect_nothing(p, 1);
			assert_memory_equal(p->side[1].memory, before, PAIR_MEMORY);
			pair_free(p);
		}
}

/* The new life is not disturbed: when the other side has connected anew, too, all goes as at first. */
static void the_new_connection_works(void **state)
{
	for (unsigned d = 0; d < sizeof(distances) / sizeof(distances[0]); d++) {
		struct pair *p = make();

		start_again(p, 1, distances[d]);
		pair_send(p, 0, ROCI_WR_RDMA_WRITE, 2, 0, 3 * PAIR_MTU, 8192); /* in the earlier life */
		pair_send(p, 0, ROCI_WR_RDMA_READ, 3, 0, 3 * PAIR_MTU, 8192);
		pair_run(p);
		roci_cq_purge(p->side[0].cq, p->side[0].qp->qpn);
		start_again(p, 0, distances[d]);
		for (int s = 0; s < 2; s++) {
			memset(p->side[s].memory, 0x30 + s, 4096);
			pair_send(p, s, ROCI_WR_RDMA_WRITE, 4, 0, 3 * PAIR_MTU, 16384);
			pair_run_until(p, p->now + 10 * SECOND);
			pair_expect(p, s, 4, ROCI_WC_SUCCESS);
			assert_memory_equal(p->side[1 - s].memory + 16384, p->side[s].memory, 3 * PAIR_MTU);
		}
		pair_free(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_to_an_earlier_life_fails),
		cmocka_unit_test(the_new_connection_works),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
