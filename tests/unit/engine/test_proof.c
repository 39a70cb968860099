/* SPDX-License-Identifier: BSD-2-Clause */
/* Which packets prove that the peer sent them, whatever UDP port they come from: those at the edges of what is
 * expected, exactly; and as long as the peer's port is not known, those that are near. */
#include "pair.h"

#include "engine/completer.h"
#include "engine/far_answer.h"
#include "engine/qp.h"
#include "engine/responder.h"

#define UNA 1000u
#define MAX 2000u /* of the send window: so many are outstanding that the middle is far */

static struct roci_packet packet(uint8_t opcode, uint32_t psn)
{
	return (struct roci_packet){.op = roci_opcode_info(opcode), .opcode = opcode, .psn = psn & ROCI_PSN_MASK};
}

/* ---- answers ---- */

static enum roci_proof answer(const struct roci_qp *qp, uint32_t psn)
{
	struct roci_packet pkt = packet(ROCI_OP_ACKNOWLEDGE, psn);

	return roci_completer_proof(qp, &pkt);
}

static struct pair *sender(bool shown)
{
	struct pair_options o = pair_defaults();
	struct pair *p = pair_create(&o);
	struct roci_qp *qp = p->side[0].qp;

	qp->peer.shown = shown;
	qp->req.window.una = qp->req.window.acked = UNA;
	qp->req.window.next = qp->req.window.max = MAX;
	return p;
}

static void the_edges_of_what_is_outstanding_prove_an_answer(void **state)
{
	static const uint32_t edges[] = {UNA - 1, UNA, MAX - 1}, others[] = {UNA - 2, UNA + 1, MAX - 2, MAX, MAX + 1};
	struct pair *p = sender(true);

	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(answer(p->side[0].qp, edges[i]), ROCI_PROOF_PEER);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(answer(p->side[0].qp, others[i]), ROCI_PROOF_NONE);
	pair_free(p);
}

/* Nothing is outstanding: the newest acknowledgement comes again. */
static void a_repeated_answer_proves_itself(void **state)
{
	struct pair *p = sender(true);
	struct roci_qp *qp = p->side[0].qp;

	qp->req.window.max = qp->req.window.next = UNA;
	assert_int_equal(answer(qp, UNA - 1), ROCI_PROOF_PEER);
	assert_int_equal(answer(qp, UNA), ROCI_PROOF_NONE);
	pair_free(p);
}

static void a_near_answer_counts_where_no_port_is_known(void **state)
{
	struct pair *p = sender(false);
	struct roci_qp *qp = p->side[0].qp;

	for (unsigned silent = 0; silent < 2; silent++) {
		assert_int_equal(answer(qp, UNA + ROCI_ANSWER_OLDEST - 1), ROCI_PROOF_PEER);
		assert_int_equal(answer(qp, UNA + ROCI_ANSWER_OLDEST), ROCI_PROOF_NONE);
		assert_int_equal(answer(qp, MAX - ROCI_ANSWER_NEWEST), ROCI_PROOF_PEER);
		assert_int_equal(answer(qp, MAX - ROCI_ANSWER_NEWEST - 1), ROCI_PROOF_NONE);
		assert_int_equal(answer(qp, UNA - 2), ROCI_PROOF_NONE);
		qp->peer.shown = qp->peer.silent = true; /* known, but it may have changed */
	}
	pair_free(p);
}

/* Before RTS nothing was sent, and after an error nothing is awaited. */
static void no_answer_is_expected_in_other_states(void **state)
{
	static const enum roci_qp_state states[] = {ROCI_QPS_RESET, ROCI_QPS_INIT, ROCI_QPS_RTR, ROCI_QPS_SQE,
						    ROCI_QPS_ERR};
	struct pair *p = sender(true);
	struct roci_qp *qp = p->side[0].qp;

	for (unsigned i = 0; i < 5; i++) {
		qp->state = states[i];
		assert_int_equal(answer(qp, UNA), ROCI_PROOF_NONE);
		assert_int_equal(answer(qp, MAX - 1), ROCI_PROOF_NONE);
	}
	qp->state = ROCI_QPS_SQD;
	assert_int_equal(answer(qp, UNA), ROCI_PROOF_PEER);
	qp->state = ROCI_QPS_RTS;
	pair_free(p);
}

/* ---- requests ---- */

#define EPSN 5000u
#define NEAR ROCI_PEER_PORT_NEAR

static struct pair *receiver(bool shown)
{
	struct pair_options o = pair_defaults();
	struct pair *p = pair_create(&o);

	p->side[1].qp->peer.shown = shown;
	p->side[1].qp->resp.epsn = EPSN;
	return p;
}

static enum roci_proof request(const struct pair *p, uint8_t opcode, uint32_t psn, uint32_t len)
{
	struct roci_packet pkt = packet(opcode, psn);

	pkt.dma_len = len;
	return roci_responder_proof(p->side[1].qp, &pkt);
}

static enum roci_proof send_of(const struct pair *p, uint32_t psn)
{
	return request(p, ROCI_OP_SEND_ONLY, psn, 9 * PAIR_MTU);
}

/* The next one, and the last ones again. An older one changes nothing; one that is to come proves nothing. */
static void the_next_request_and_the_last_ones_prove_themselves(void **state)
{
	struct pair *p = receiver(true);

	assert_int_equal(send_of(p, EPSN), ROCI_PROOF_PEER);
	assert_int_equal(send_of(p, EPSN - 1), ROCI_PROOF_PEER);
	assert_int_equal(send_of(p, EPSN - NEAR), ROCI_PROOF_PEER);
	assert_int_equal(send_of(p, EPSN - NEAR - 1), ROCI_PROOF_NEEDLESS);
	assert_int_equal(send_of(p, EPSN + 1), ROCI_PROOF_NONE);
	pair_free(p);
}

/* A READ has as many PSNs as its answer has packets. */
static void a_read_counts_by_its_last_packet(void **state)
{
	const uint8_t read = ROCI_OP_READ_REQUEST;
	struct pair *p = receiver(true);

	assert_int_equal(request(p, read, EPSN - 3, 3 * PAIR_MTU), ROCI_PROOF_PEER);
	assert_int_equal(request(p, read, EPSN - NEAR - 2, 3 * PAIR_MTU), ROCI_PROOF_PEER);
	assert_int_equal(request(p, read, EPSN - NEAR - 3, 3 * PAIR_MTU), ROCI_PROOF_NEEDLESS);
	assert_int_equal(request(p, read, EPSN - 3, 4 * PAIR_MTU), ROCI_PROOF_NEEDLESS); /* it never was */
	assert_int_equal(request(p, read, EPSN, 4 * PAIR_MTU), ROCI_PROOF_PEER);
	pair_free(p);
}

static void near_requests_count_where_no_port_is_known(void **state)
{
	struct pair *p = receiver(false);

	assert_int_equal(send_of(p, EPSN + NEAR - 1), ROCI_PROOF_PEER);
	assert_int_equal(send_of(p, EPSN + NEAR), ROCI_PROOF_NONE);
	assert_int_equal(request(p, ROCI_OP_READ_REQUEST, EPSN - NEAR, 200 * PAIR_MTU), ROCI_PROOF_PEER);
	assert_int_equal(request(p, ROCI_OP_READ_REQUEST, EPSN - NEAR - 1, 200 * PAIR_MTU), ROCI_PROOF_NEEDLESS);
	pair_free(p);
}

/* UC has nothing but nearness. */
static void unreliable_requests_count_where_they_are_near(void **state)
{
	struct pair *p = receiver(true);

	for (int d = -NEAR - 2; d <= NEAR + 2; d++) {
		struct roci_packet pkt = packet(ROCI_TRANSPORT_UC | ROCI_OP_SEND_ONLY, EPSN + (uint32_t)d);

		assert_int_equal(roci_responder_uc_proof(p->side[1].qp, &pkt),
				 d >= -NEAR && d < NEAR ? ROCI_PROOF_PEER : ROCI_PROOF_NONE);
	}
	pair_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_edges_of_what_is_outstanding_prove_an_answer),
		cmocka_unit_test(a_repeated_answer_proves_itself),
		cmocka_unit_test(a_near_answer_counts_where_no_port_is_known),
		cmocka_unit_test(no_answer_is_expected_in_other_states),
		cmocka_unit_test(the_next_request_and_the_last_ones_prove_themselves),
		cmocka_unit_test(a_read_counts_by_its_last_packet),
		cmocka_unit_test(near_requests_count_where_no_port_is_known),
		cmocka_unit_test(unreliable_requests_count_where_they_are_near),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
