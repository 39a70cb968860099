/* SPDX-License-Identifier: BSD-2-Clause */
/* Acknowledgements that overtake the response they belong behind. */
#include "pair.h"

#include <string.h>

#define MS UINT64_C(1000000)

/* The first response with data is held back, to be delivered by release(). */
static struct {
	bool full;
	struct roci_rx rx;
	uint8_t payload[PAIR_MTU];
} held;

static bool hold_response(struct pair *p, int from, const struct roci_packet *pkt)
{
	if (from == 0 || held.full || pkt->op->kind == ROCI_KIND_ACK || !pkt->op->response)
		return true;
	held.full = true;
	held.rx = (struct roci_rx){.pkt = *pkt, .hop_limit = 64};
	memcpy(held.payload, pkt->payload, pkt->payload_len);
	held.rx.pkt.payload = held.payload;
	return false;
}

static void release(struct pair *p)
{
	struct roci_qp_attr a;
	struct roci_qp_cap cap;

	assert_true(held.full);
	roci_qp_query(p->side[0].qp, &a, &cap);
	held.rx.src_port = a.av.peer_port;
	memcpy(held.rx.sgid, a.av.dgid, 16);
	memcpy(held.rx.dgid, a.av.sgid, 16);
	roci_engine_rx(p->side[0].e, p->now, &held.rx);
}

/* Nothing that the requester sends from now on arrives: what it has received must be enough. */
static bool drop_requests(struct pair *p, int from, const struct roci_packet *pkt)
{
	return from != 0;
}

static struct pair *make(void)
{
	struct pair_options o = pair_defaults();
	struct pair *p;

	o.timeout = 20;
	p = pair_create(&o);
	held.full = false;
	p->filter = hold_response;
	return p;
}

/* Each side sends once, so the requester receives everything but the held response. */
static void run_once(struct pair *p)
{
	static struct roci_tx_batch batch;

	pair_turn(p, 0);
	pair_turn(p, 1);
	p->filter = drop_requests;
	while (roci_engine_tx(p->side[0].e, p->now, &batch))
		roci_engine_tx_done(p->side[0].e, p->now);
}

/* IBTA 9.7.5.1.2: an acknowledgement is about everything before it, even if the response comes later. */
static void ack_before_a_read_response_is_remembered(void **state)
{
	struct pair *p = make();

	memset(p->side[1].memory, 0x5a, 100);
	pair_send(p, 0, ROCI_WR_RDMA_READ, 1, 1000, 100, 0);
	pair_send(p, 0, ROCI_WR_RDMA_WRITE, 2, 2000, 3 * PAIR_MTU, 2000);
	run_once(p);
	pair_expect_nothing(p, 0);
	release(p);
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	pair_expect(p, 0, 2, ROCI_WC_SUCCESS);
	assert_memory_equal(p->side[0].memory + 1000, p->side[1].memory, 100);
	assert_int_equal(roci_engine_deadline(p->side[0].e), ROCI_NEVER);
	pair_free(p);
}

/* The acknowledgement is between two responses, the later of which came first. */
static void responses_and_acks_fall_into_place(void **state)
{
	struct pair *p = make();
	uint64_t value = 7;

	memcpy(p->side[1].memory, &value, 8);
	pair_send(p, 0, ROCI_WR_ATOMIC_FETCH_AND_ADD, 1, 1000, 8, 0);
	pair_send(p, 0, ROCI_WR_RDMA_WRITE, 2, 2000, 100, 2000);
	pair_send(p, 0, ROCI_WR_RDMA_READ, 3, 1008, 8, 0);
	pair_send(p, 0, ROCI_WR_RDMA_WRITE, 4, 2000, 100, 3000);
	run_once(p);
	pair_expect_nothing(p, 0);
	release(p);
	for (uint64_t i = 1; i <= 4; i++)
		pair_expect(p, 0, i, ROCI_WC_SUCCESS);
	memcpy(&value, p->side[0].memory + 1000, 8);
	assert_int_equal(value, 7);
	memcpy(&value, p->side[0].memory + 1008, 8);
	assert_int_equal(value, 12);
	pair_free(p);
}

/* IBTA 9.9.2.1.1: the request that was refused fails, with the status that it was refused with. */
static void fatal_nak_before_a_read_response_is_remembered(void **state)
{
	struct pair *p = make();

	pair_send(p, 0, ROCI_WR_RDMA_READ, 1, 1000, 100, 0);
	pair_send(p, 0, ROCI_WR_RDMA_WRITE, 2, 2000, 100, 2000);
	pair_send(p, 0, ROCI_WR_RDMA_WRITE, 3, 2000, 100, PAIR_MEMORY - 50);
	pair_send(p, 0, ROCI_WR_RDMA_WRITE, 4, 2000, 100, 2000);
	run_once(p);
	assert_int_equal(roci_qp_state(p->side[1].qp), ROCI_QPS_ERR);
	pair_expect_nothing(p, 0);
	release(p);
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	pair_expect(p, 0, 2, ROCI_WC_SUCCESS);
	pair_expect(p, 0, 3, ROCI_WC_REM_ACCESS_ERR);
	pair_expect(p, 0, 4, ROCI_WC_WR_FLUSH_ERR);
	pair_free(p);
}

/* A QP in error does not send the lost response again, so the READ fails. */
static void read_that_is_lost_before_a_fatal_nak_times_out(void **state)
{
	struct pair *p = make();

	pair_send(p, 0, ROCI_WR_RDMA_READ, 1, 1000, 100, 0);
	pair_send(p, 0, ROCI_WR_RDMA_WRITE, 2, 2000, 100, PAIR_MEMORY - 50);
	run_once(p);
	p->filter = NULL;
	pair_run_until(p, p->now + 60000 * MS);
	pair_expect(p, 0, 1, ROCI_WC_RETRY_EXC_ERR);
	pair_expect(p, 0, 2, ROCI_WC_WR_FLUSH_ERR);
	pair_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ack_before_a_read_response_is_remembered),
		cmocka_unit_test(responses_and_acks_fall_into_place),
		cmocka_unit_test(fatal_nak_before_a_read_response_is_remembered),
		cmocka_unit_test(read_that_is_lost_before_a_fatal_nak_times_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
