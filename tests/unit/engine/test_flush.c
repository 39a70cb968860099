/* SPDX-License-Identifier: BSD-2-Clause */
/* FLUSH, IBTA A19. */
#include "pair.h"

#include <errno.h>

#include "engine/limits.h"
#include "engine/psn.h"
#include "engine/qp.h"
#include "wire/packet.h"

static struct pair *make(uint32_t access, uint32_t mr_access)
{
	struct pair_options o = pair_defaults();

	o.access |= access;
	o.mr_access |= mr_access;
	return pair_create(&o);
}

static int flush(struct pair *p, uint64_t wr_id, uint32_t remote, uint64_t len, uint32_t feth)
{
	const struct pair_side *to = &p->side[1];
	struct roci_send_wr wr = {.wr_id = wr_id,
				  .opcode = ROCI_WR_FLUSH,
				  .flags = ROCI_SEND_SIGNALED,
				  .remote_addr = (uintptr_t)to->memory + remote,
				  .rkey = to->key,
				  .flush = {.len = len, .feth = feth}};

	return roci_qp_post_send(p->side[0].qp, &wr);
}

static bool count_answers(struct pair *p, int from, const struct roci_packet *pkt)
{
	if (from == 1) {
		assert_int_equal(pkt->opcode, ROCI_OP_READ_RESPONSE_ONLY);
		assert_int_equal(pkt->payload_len, 0);
		p->count++;
	}
	return true;
}

static void an_empty_read_response_answers_it(void **state)
{
	struct pair *p = make(ROCI_ACCESS_FLUSH_GLOBAL, ROCI_ACCESS_FLUSH_GLOBAL);

	p->filter = count_answers;
	assert_int_equal(flush(p, 1, 100, 500, ROCI_FETH_GLOBAL | ROCI_FETH_RANGE), 0);
	assert_int_equal(flush(p, 2, 0, 0, ROCI_FETH_GLOBAL | ROCI_FETH_MR), 0);
	pair_run(p);
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	pair_expect(p, 0, 2, ROCI_WC_SUCCESS);
	assert_int_equal(p->count, 2);
	pair_free(p);
}

static bool drop_first_answers(struct pair *p, int from, const struct roci_packet *pkt)
{
	return from == 0 || ++p->count > 3;
}

static void it_is_answered_again(void **state)
{
	struct pair *p = make(ROCI_ACCESS_FLUSH_GLOBAL, ROCI_ACCESS_FLUSH_GLOBAL);

	p->filter = drop_first_answers;
	assert_int_equal(flush(p, 1, 0, 1, ROCI_FETH_GLOBAL), 0);
	pair_run_until(p, p->now + UINT64_C(10000000000));
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	assert_true(p->count > 3);
	pair_free(p);
}

/* A later acknowledgement does not answer the FLUSH: at other responders, requests behind it may overtake it. */
static bool drop_first_response(struct pair *p, int from, const struct roci_packet *pkt)
{
	return from == 0 || pkt->opcode != ROCI_OP_READ_RESPONSE_ONLY || p->count++;
}

static void an_acknowledgement_behind_it_does_not_complete_it(void **state)
{
	struct pair *p = make(ROCI_ACCESS_FLUSH_GLOBAL, ROCI_ACCESS_FLUSH_GLOBAL);

	p->filter = drop_first_response;
	assert_int_equal(flush(p, 1, 0, 1, ROCI_FETH_GLOBAL), 0);
	assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_WRITE, 2, 0, 10, 0), 0);
	pair_run_until(p, p->now + UINT64_C(10000000000));
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	pair_expect(p, 0, 2, ROCI_WC_SUCCESS);
	assert_int_equal(p->count, 2);
	pair_free(p);
}

static void expect_refusal(uint32_t access, uint32_t mr_access, uint64_t len, uint32_t feth, enum roci_wc_status status)
{
	struct pair *p = make(access, mr_access);

	assert_int_equal(flush(p, 1, 0, len, feth), 0);
	pair_run(p);
	pair_expect(p, 0, 1, status);
	assert_int_equal(roci_qp_state(p->side[1].qp), ROCI_QPS_ERR);
	pair_free(p);
}

static void it_needs_rights_and_a_range(void **state)
{
	const uint32_t global = ROCI_ACCESS_FLUSH_GLOBAL;

	expect_refusal(0, global, 1, ROCI_FETH_GLOBAL, ROCI_WC_REM_INV_REQ_ERR);
	expect_refusal(global, 0, 1, ROCI_FETH_GLOBAL, ROCI_WC_REM_ACCESS_ERR);
	expect_refusal(global, global, PAIR_MEMORY + 1, ROCI_FETH_GLOBAL, ROCI_WC_REM_ACCESS_ERR);
	/* No region has this right. */
	expect_refusal(global | ROCI_ACCESS_FLUSH_PERSISTENT, global, 1, ROCI_FETH_PERSISTENT, ROCI_WC_REM_ACCESS_ERR);
}

static void an_unknown_kind_is_an_invalid_request(void **state)
{
	const uint32_t global = ROCI_ACCESS_FLUSH_GLOBAL, kinds[] = {
								  0,
								  ROCI_FETH_PERSISTENT,
								  ROCI_FETH_GLOBAL | ROCI_FETH_PERSISTENT,
								  ROCI_FETH_GLOBAL | 0x4,
								  ROCI_FETH_GLOBAL | 0x20,
							  };

	for (unsigned i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		expect_refusal(global, global, 1, kinds[i], ROCI_WC_REM_INV_REQ_ERR);
}

/* Soft-RoCE does not keep max_rd_atomic for FLUSH, and a FLUSH that it sends again names another address. So no FLUSH
 * may be lost here, or take the slot of a response that is kept. */
static void it_takes_no_slot_of_an_atomic(void **state)
{
	struct pair_options o = pair_defaults();
	struct pair *p;

	o.access |= ROCI_ACCESS_FLUSH_GLOBAL;
	o.mr_access |= ROCI_ACCESS_FLUSH_GLOBAL;
	o.max_rd_atomic = ROCI_MAX_RD_ATOMIC;
	p = pair_create(&o);
	assert_int_equal(roci_response_ring_resize(&p->side[1].qp->resp.responses, 1), 0);
	p->filter = drop_first_answers;
	assert_int_equal(pair_send(p, 0, ROCI_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 8, 64), 0);
	for (uint64_t i = 2; i <= 16; i++)
		assert_int_equal(flush(p, i, 0, 1, ROCI_FETH_GLOBAL), 0);
	pair_run_until(p, p->now + UINT64_C(10000000000));
	for (uint64_t i = 1; i <= 16; i++)
		pair_expect(p, 0, i, ROCI_WC_SUCCESS);
	assert_int_equal(p->side[1].memory[64], 5); /* added once */
	pair_free(p);
}

static uint32_t last_answer;

static bool in_order(struct pair *p, int from, const struct roci_packet *pkt)
{
	if (from == 1) {
		assert_true(roci_psn_diff(pkt->psn, last_answer) > 0);
		last_answer = pkt->psn;
	}
	return true;
}

static void answers_keep_the_order_of_requests(void **state)
{
	struct pair *p = make(ROCI_ACCESS_FLUSH_GLOBAL, ROCI_ACCESS_FLUSH_GLOBAL);

	p->filter = in_order;
	last_answer = pair_defaults().psn - 1;
	for (uint64_t i = 1; i <= 8; i += 2) {
		assert_int_equal(flush(p, i, 0, 1, ROCI_FETH_GLOBAL), 0);
		assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_READ, i + 1, 0, 700, 0), 0);
	}
	pair_run(p);
	for (uint64_t i = 1; i <= 8; i++)
		pair_expect(p, 0, i, ROCI_WC_SUCCESS);
	pair_free(p);
}

static bool soft_roce(struct pair *p, int from, const struct roci_packet *pkt)
{
	return pkt->opcode != ROCI_OP_FLUSH || p->tx->soft_roce;
}

/* The QP finds out once which ICRC the peer accepts. */
static void the_icrc_of_the_peers_kind_is_found(void **state)
{
	struct pair *p = make(ROCI_ACCESS_FLUSH_GLOBAL, ROCI_ACCESS_FLUSH_GLOBAL);

	p->filter = soft_roce;
	for (uint64_t i = 1; i <= 20; i++) {
		assert_int_equal(flush(p, i, 0, 1, ROCI_FETH_GLOBAL), 0);
		assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_WRITE, 100 + i, 0, 10, 0), 0);
		pair_run_until(p, p->now + UINT64_C(10000000000));
		pair_expect(p, 0, i, ROCI_WC_SUCCESS);
		pair_expect(p, 0, 100 + i, ROCI_WC_SUCCESS);
	}
	assert_int_equal(p->dropped, 1);
	pair_free(p);
}

static bool is_not_marked(struct pair *p, int from, const struct roci_packet *pkt)
{
	assert_false(p->tx->soft_roce);
	return true;
}

/* A request of *other arrives, a FLUSH with Soft-RoCE's ICRC leaves in the batch, then the same batch is filled with
 * what answers the request. */
static void serve_after_flush(struct pair *flusher, struct pair *other, enum roci_wr_opcode op, uint64_t wr_id)
{
	assert_int_equal(pair_send(other, 0, op, wr_id, 0, op == ROCI_WR_ATOMIC_FETCH_AND_ADD ? 8 : 1000, 0), 0);
	assert_true(pair_turn(other, 0));
	assert_int_equal(flush(flusher, wr_id, 0, 1, ROCI_FETH_GLOBAL), 0);
	assert_true(pair_turn(flusher, 0));
	assert_true(flusher->tx->soft_roce);
	pair_run(other);
	pair_expect(other, 0, wr_id, ROCI_WC_SUCCESS);
	pair_run(flusher);
}

/* A link hands the same batch to the engine again and again: a FLUSH leaves no mark in the place that it had. */
static void soft_roces_icrc_is_for_flushes_only(void **state)
{
	struct pair *p = make(ROCI_ACCESS_FLUSH_GLOBAL, ROCI_ACCESS_FLUSH_GLOBAL), *other = make(0, 0);

	p->filter = soft_roce;
	assert_int_equal(flush(p, 0, 0, 1, ROCI_FETH_GLOBAL), 0);
	pair_run_until(p, p->now + UINT64_C(10000000000));
	other->filter = is_not_marked;
	serve_after_flush(p, other, ROCI_WR_RDMA_WRITE, 1);
	serve_after_flush(p, other, ROCI_WR_RDMA_READ, 2);
	serve_after_flush(p, other, ROCI_WR_ATOMIC_FETCH_AND_ADD, 3);
	pair_free(other);
	pair_free(p);
}

static bool with_payload(struct pair *p, int from, const struct roci_packet *pkt)
{
	static const uint8_t bytes[4];
	struct roci_packet *changed = (struct roci_packet *)(uintptr_t)pkt;

	if (pkt->opcode == ROCI_OP_READ_RESPONSE_ONLY) {
		changed->payload = bytes;
		changed->payload_len = sizeof(bytes);
	}
	return true;
}

static void an_answer_with_data_is_a_bad_response(void **state)
{
	struct pair *p = make(ROCI_ACCESS_FLUSH_GLOBAL, ROCI_ACCESS_FLUSH_GLOBAL);

	p->filter = with_payload;
	assert_int_equal(flush(p, 1, 0, 100, ROCI_FETH_GLOBAL), 0);
	pair_run(p);
	pair_expect(p, 0, 1, ROCI_WC_BAD_RESP_ERR);
	pair_free(p);
}

static void it_needs_rc_and_a_right_to_be_outstanding(void **state)
{
	struct pair_options o = pair_defaults();
	struct pair *p;

	o.max_rd_atomic = 0;
	p = pair_create(&o);
	assert_int_equal(flush(p, 1, 0, 1, ROCI_FETH_GLOBAL), 0);
	pair_run(p);
	pair_expect(p, 0, 1, ROCI_WC_LOC_QP_OP_ERR);
	pair_free(p);

	o.type = ROCI_QPT_UC;
	p = pair_create(&o);
	assert_int_equal(flush(p, 1, 0, 1, ROCI_FETH_GLOBAL), -EINVAL);
	pair_free(p);
}

static void lengths_and_data_that_it_cannot_have(void **state)
{
	struct pair *p = make(ROCI_ACCESS_FLUSH_GLOBAL, ROCI_ACCESS_FLUSH_GLOBAL);
	struct roci_sge sge = {(uintptr_t)p->side[0].memory, 8, p->side[0].key};
	struct roci_send_wr wr = {.opcode = ROCI_WR_FLUSH, .sges = &sge, .num_sge = 1, .flush.feth = ROCI_FETH_GLOBAL};

	assert_int_equal(roci_qp_post_send(p->side[0].qp, &wr), -EINVAL);
	assert_int_equal(flush(p, 1, 0, UINT64_C(1) << 32, ROCI_FETH_GLOBAL), -EINVAL);
	pair_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_read_response_answers_it),
		cmocka_unit_test(it_is_answered_again),
		cmocka_unit_test(an_acknowledgement_behind_it_does_not_complete_it),
		cmocka_unit_test(it_needs_rights_and_a_range),
		cmocka_unit_test(an_unknown_kind_is_an_invalid_request),
		cmocka_unit_test(it_takes_no_slot_of_an_atomic),
		cmocka_unit_test(answers_keep_the_order_of_requests),
		cmocka_unit_test(the_icrc_of_the_peers_kind_is_found),
		cmocka_unit_test(soft_roces_icrc_is_for_flushes_only),
		cmocka_unit_test(an_answer_with_data_is_a_bad_response),
		cmocka_unit_test(it_needs_rc_and_a_right_to_be_outstanding),
		cmocka_unit_test(lengths_and_data_that_it_cannot_have),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
