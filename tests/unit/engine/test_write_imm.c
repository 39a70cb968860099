/* SPDX-License-Identifier: BSD-2-Clause */
/* The receive that a WRITE with immediate data takes. */
#include "pair.h"

static void wrong_rkey(struct pair *p)
{
	p->side[1].key ^= 0x5a00;
}

/* IBTA 11.6.2, Local Access Error: the receive says that the peer's request met a protection error. */
static void receive_of_a_wrong_rkey_says_so(void **state)
{
	struct pair_options o = pair_defaults();
	struct pair *p = pair_create(&o);

	pair_recv(p, 1, 7, 0, 100);
	pair_recv(p, 1, 8, 0, 100);
	wrong_rkey(p);
	pair_send(p, 0, ROCI_WR_RDMA_WRITE_WITH_IMM, 1, 0, 100, 0);
	pair_run(p);
	pair_expect(p, 0, 1, ROCI_WC_REM_ACCESS_ERR);
	pair_expect(p, 1, 7, ROCI_WC_LOC_ACCESS_ERR);
	pair_expect(p, 1, 8, ROCI_WC_WR_FLUSH_ERR);
	assert_int_equal(roci_qp_state(p->side[1].qp), ROCI_QPS_ERR);
	pair_free(p);
}

/* The receives of an SRQ are not flushed: without its completion the program would not see the error. */
static void receive_of_an_srq_says_so(void **state)
{
	struct pair_options o = pair_defaults();
	struct pair *p;

	o.srq_pd = 1;
	p = pair_create(&o);
	pair_recv(p, 1, 7, 0, 100);
	pair_recv(p, 1, 8, 0, 100);
	wrong_rkey(p);
	pair_send(p, 0, ROCI_WR_RDMA_WRITE_WITH_IMM, 1, 0, 100, 0);
	pair_run(p);
	pair_expect(p, 0, 1, ROCI_WC_REM_ACCESS_ERR);
	pair_expect(p, 1, 7, ROCI_WC_LOC_ACCESS_ERR);
	pair_expect_nothing(p, 1);
	pair_free(p);
}

/* The first packet of a longer WRITE is refused, and only the last would have taken a receive. */
static void receive_is_flushed_where_the_first_packet_fails(void **state)
{
	struct pair_options o = pair_defaults();
	struct pair *p = pair_create(&o);

	pair_recv(p, 1, 7, 0, 100);
	wrong_rkey(p);
	pair_send(p, 0, ROCI_WR_RDMA_WRITE_WITH_IMM, 1, 0, 2 * PAIR_MTU, 0);
	pair_run(p);
	pair_expect(p, 0, 1, ROCI_WC_REM_ACCESS_ERR);
	pair_expect(p, 1, 7, ROCI_WC_WR_FLUSH_ERR);
	pair_free(p);
}

static bool deregister_before_the_last(struct pair *p, int from, const struct roci_packet *pkt)
{
	if (from == 0 && pkt->op->last)
		assert_int_equal(roci_mr_destroy(p->side[1].mr), 0);
	return true;
}

static void receive_says_so_where_the_last_packet_fails(void **state)
{
	struct pair_options o = pair_defaults();
	struct pair *p = pair_create(&o);

	pair_recv(p, 1, 7, 0, 100);
	p->filter = deregister_before_the_last;
	pair_send(p, 0, ROCI_WR_RDMA_WRITE_WITH_IMM, 1, 0, 2 * PAIR_MTU, 0);
	pair_run(p);
	pair_expect(p, 0, 1, ROCI_WC_REM_ACCESS_ERR);
	pair_expect(p, 1, 7, ROCI_WC_LOC_ACCESS_ERR);
	pair_free(p);
}

static void wrong_rkey_without_a_receive_is_refused(void **state)
{
	struct pair_options o = pair_defaults();
	struct pair *p = pair_create(&o);

	wrong_rkey(p);
	pair_send(p, 0, ROCI_WR_RDMA_WRITE_WITH_IMM, 1, 0, 100, 0);
	pair_run(p);
	pair_expect(p, 0, 1, ROCI_WC_REM_ACCESS_ERR);
	pair_expect_nothing(p, 1);
	pair_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(receive_of_a_wrong_rkey_says_so),
		cmocka_unit_test(receive_of_an_srq_says_so),
		cmocka_unit_test(receive_is_flushed_where_the_first_packet_fails),
		cmocka_unit_test(receive_says_so_where_the_last_packet_fails),
		cmocka_unit_test(wrong_rkey_without_a_receive_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
