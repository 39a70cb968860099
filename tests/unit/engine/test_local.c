/* SPDX-License-Identifier: BSD-2-Clause */
/* QPs whose peers are processes of the same host (engine.h). */
#include <string.h>

#include "engine/mr.h"
#include "pair.h"

#define LONG 40000 /* bytes: many packets on the wire */

static struct pair_options local(void)
{
	struct pair_options o = pair_defaults();

	o.local = true;
	return o;
}

static void fill(struct pair *p)
{
	for (unsigned i = 0; i < PAIR_MEMORY; i++) {
		p->side[0].memory[i] = (uint8_t)(i * 7 + 1);
		p->side[1].memory[i] = 0xee;
	}
}

static void a_message_is_one_packet(void **state)
{
	struct pair_options o = local();
	struct pair *p = pair_create(&o);

	fill(p);
	pair_recv(p, 1, 7, 100, LONG);
	pair_send(p, 0, ROCI_WR_SEND, 1, 0, LONG, 0);
	pair_run(p);
	assert_int_equal(p->sent[0], 1);
	assert_memory_equal(p->side[1].memory + 100, p->side[0].memory, LONG);
	assert_int_equal(p->side[1].memory[100 + LONG], 0xee);
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	pair_expect(p, 1, 7, ROCI_WC_SUCCESS);
	pair_send(p, 0, ROCI_WR_RDMA_WRITE, 2, 1, LONG, 0);
	pair_run(p);
	assert_memory_equal(p->side[1].memory, p->side[0].memory + 1, LONG);
	pair_expect(p, 0, 2, ROCI_WC_SUCCESS);
	memset(p->side[0].memory, 0, PAIR_MEMORY);
	pair_send(p, 0, ROCI_WR_RDMA_READ, 3, 0, LONG, 0);
	pair_run(p);
	assert_int_equal(p->sent[0], 3);
	assert_memory_equal(p->side[1].memory, p->side[0].memory, LONG);
	pair_expect(p, 0, 3, ROCI_WC_SUCCESS);
	pair_free(p);
}

/* Memory that its owner took back: the packet counts as lost, and a receive is neither completed nor used up. */
static void payload_that_is_gone_is_a_lost_packet(void **state)
{
	struct pair_options o = local();
	struct pair *p = pair_create(&o);

	fill(p);
	p->gone = true;
	pair_recv(p, 1, 7, 0, LONG);
	pair_send(p, 0, ROCI_WR_SEND, 1, 0, LONG, 0);
	pair_run(p);
	pair_expect_nothing(p, 1);
	pair_expect_nothing(p, 0);
	p->gone = false;
	pair_run_until(p, p->now + 1000000000);
	pair_expect(p, 1, 7, ROCI_WC_SUCCESS);
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	p->gone = true;
	pair_send(p, 0, ROCI_WR_RDMA_WRITE, 2, 0, LONG, 0);
	pair_run_until(p, p->now + UINT64_C(10000000000));
	pair_expect(p, 0, 2, ROCI_WC_RETRY_EXC_ERR);
	pair_free(p);
}

/* The program has unmapped the memory that it registered: its QP has an error of its own (IBTA 9.9.2.4, 9.9.3.1), and
 * both ends hear of it at once. */
static void memory_that_is_not_mapped_is_an_error(void **state)
{
	struct pair_options o = local();
	struct pair *p = pair_create(&o);

	p->unmapped = true;
	pair_send(p, 0, ROCI_WR_RDMA_WRITE, 1, 0, LONG, 0);
	pair_run(p);
	pair_expect(p, 0, 1, ROCI_WC_REM_OP_ERR);
	pair_free(p);
	p = pair_create(&o);
	p->unmapped = true;
	pair_recv(p, 1, 7, 0, LONG);
	pair_send(p, 0, ROCI_WR_SEND, 1, 0, LONG, 0);
	pair_run(p);
	pair_expect(p, 1, 7, ROCI_WC_LOC_PROT_ERR);
	pair_expect(p, 0, 1, ROCI_WC_REM_OP_ERR);
	pair_free(p);
	p = pair_create(&o);
	p->unmapped = true;
	pair_send(p, 0, ROCI_WR_RDMA_READ, 1, 0, LONG, 0);
	pair_run(p);
	pair_expect(p, 0, 1, ROCI_WC_LOC_PROT_ERR);
	pair_free(p);
}

/* The same of the memory that is sent: the peer cannot have it. What is repeated is looked at first. */
static void payload_that_is_not_mapped_is_an_error(void **state)
{
	struct pair_options o = local();
	struct pair *p = pair_create(&o);

	p->gone = p->unreadable = true;
	pair_send(p, 0, ROCI_WR_RDMA_WRITE, 1, 0, LONG, 0);
	pair_run_until(p, p->now + UINT64_C(10000000000));
	assert_int_equal(p->sent[0], 1);
	pair_expect(p, 0, 1, ROCI_WC_LOC_PROT_ERR);
	pair_free(p);
}

static void errors_are_those_of_the_wire(void **state)
{
	struct pair_options o = local();
	struct pair *p = pair_create(&o);

	pair_recv(p, 1, 7, 0, 100);
	pair_send(p, 0, ROCI_WR_SEND, 1, 0, LONG, 0);
	pair_run(p);
	pair_expect(p, 1, 7, ROCI_WC_LOC_LEN_ERR);
	pair_expect(p, 0, 1, ROCI_WC_REM_INV_REQ_ERR);
	pair_free(p);
	p = pair_create(&o);
	p->side[1].key ^= 0x5a00;
	pair_send(p, 0, ROCI_WR_RDMA_WRITE, 1, 0, LONG, 0);
	pair_run(p);
	pair_expect(p, 0, 1, ROCI_WC_REM_ACCESS_ERR);
	assert_int_equal(roci_qp_state(p->side[1].qp), ROCI_QPS_ERR);
	pair_free(p);
}

/* From the first completion on that says so, the program may use its memory for something else. */
static void payload_is_taken_back_before_a_request_fails(void **state)
{
	struct pair_options o = local();
	struct pair *p = pair_create(&o);
	struct roci_qp_attr a = {.state = ROCI_QPS_RESET};

	p->gone = true;
	pair_recv(p, 1, 7, 0, LONG);
	pair_send(p, 0, ROCI_WR_SEND, 1, 0, LONG, 0);
	assert_int_equal(p->side[0].taken_back, 0);
	p->side[0].watched = true;
	pair_run_until(p, p->now + UINT64_C(10000000000));
	assert_true(p->side[0].taken_back > 0);
	assert_int_equal(p->side[0].completed_before, 0);
	pair_expect(p, 0, 1, ROCI_WC_RETRY_EXC_ERR);
	assert_int_equal(p->side[1].taken_back, 0);
	assert_int_equal(roci_qp_modify(p->side[1].qp, p->now, &a, ROCI_QP_STATE), 0);
	assert_int_equal(p->side[1].taken_back, 1);
	pair_free(p);
}

static void bind_window(struct pair_side *side, uint32_t mw_key, uint64_t len)
{
	struct roci_bind bind = {.addr = 0x1000 + 64,
				 .len = len,
				 .mw_key = mw_key,
				 .mr_key = 0x99900,
				 .rkey = mw_key,
				 .access = ROCI_ACCESS_REMOTE_READ};

	assert_int_equal(roci_mw_bind(side->e, 1, 9, &bind), 0);
}

/* However a window ends, nobody reads by it after that. */
static void who_fetches_by_a_window_is_stopped(void **state)
{
	struct pair_options o = local();
	struct pair *p = pair_create(&o);
	struct pair_side *side = &p->side[1];
	struct roci_mr_attr attr = {.pd = 1,
				    .key = 0x99900,
				    .base = side->memory,
				    .len = 4096,
				    .iova = 0x1000,
				    .access = ROCI_ACCESS_MW_BIND};
	struct roci_mr *mr;
	struct roci_mw *first, *second;

	assert_int_equal(roci_mr_create(side->e, &attr, &mr), 0);
	assert_int_equal(roci_mw_create(side->e, 1, 2, 0x66600, &second), 0);
	assert_int_equal(roci_mw_create(side->e, 1, 1, 0x77700, &first), 0);
	bind_window(side, 0x66600, 100);
	bind_window(side, 0x77700, 200);
	assert_int_equal(side->windows_closed, 0);
	assert_int_equal(roci_mw_invalidate(side->e, 1, 9, 0x66600), 0);
	assert_int_equal(side->windows_closed, 1);
	assert_ptr_equal(side->closed.base, side->memory + 64);
	assert_int_equal(side->closed.len, 100);
	bind_window(side, 0x77700, 300); /* one of type 1 may move */
	assert_int_equal(side->windows_closed, 2);
	assert_int_equal(side->closed.len, 200);
	roci_mw_destroy(first);
	roci_mw_destroy(second);
	assert_int_equal(side->windows_closed, 3);
	assert_int_equal(side->closed.len, 300);
	assert_int_equal(roci_mr_destroy(mr), 0);
	pair_free(p);
}

/* Whoever forges packets cannot reach a QP whose peer sends none, nor can a process of the host reach another's. */
static void packets_of_another_path_are_refused(void **state)
{
	struct pair_options o = local();
	struct pair *p = pair_create(&o);

	p->local = false;
	pair_recv(p, 1, 7, 0, 100);
	pair_send(p, 0, ROCI_WR_SEND, 1, 0, 100, 0);
	pair_run(p);
	pair_expect_nothing(p, 1);
	assert_int_equal(roci_engine_stats(p->side[1].e)->rx_wrong_source, 1);
	pair_free(p);
	o.local = false;
	p = pair_create(&o);
	p->local = true;
	pair_recv(p, 1, 7, 0, 100);
	pair_send(p, 0, ROCI_WR_SEND, 1, 0, 100, 0);
	pair_run(p);
	pair_expect_nothing(p, 1);
	assert_int_equal(roci_engine_stats(p->side[1].e)->rx_wrong_source, 1);
	pair_free(p);
}

/* ---- requests that the driver executes ---- */

static struct roci_send_wr write_of(struct pair *p, struct roci_sge *sge)
{
	*sge = (struct roci_sge){(uintptr_t)p->side[0].memory, 100, p->side[0].key};
	return (struct roci_send_wr){.wr_id = 9,
				     .opcode = ROCI_WR_RDMA_WRITE,
				     .sges = sge,
				     .num_sge = 1,
				     .remote_addr = 0x1000,
				     .rkey = 0x77700};
}

static void nothing_may_be_outstanding(void **state)
{
	struct pair_options o = local();
	struct pair *p = pair_create(&o);
	struct roci_direct d;
	struct roci_sge sge;
	struct roci_send_wr wr = write_of(p, &sge);

	assert_true(roci_qp_direct_begin(p->side[0].qp, &wr, &d));
	assert_int_equal(d.len, 100);
	assert_int_equal(d.rkey, 0x77700);
	assert_ptr_equal(d.spans[0].base, p->side[0].memory);
	roci_qp_direct_done(p->side[0].qp, &wr, false);
	pair_expect(p, 0, 9, ROCI_WC_SUCCESS);
	pair_run(p);
	assert_int_equal(p->sent[0], 0);

	/* A SEND that waits for its acknowledgement: what is written now must not be seen before it is received. */
	pair_recv(p, 1, 7, 0, 100);
	pair_send(p, 0, ROCI_WR_SEND, 1, 0, 100, 0);
	assert_false(roci_qp_direct_begin(p->side[0].qp, &wr, &d));
	pair_turn(p, 0);
	assert_false(roci_qp_direct_begin(p->side[0].qp, &wr, &d));
	pair_run(p);
	assert_true(roci_qp_direct_begin(p->side[0].qp, &wr, &d));
	pair_free(p);
}

static void only_what_is_right_on_this_side(void **state)
{
	struct pair_options o = local();
	struct pair *p = pair_create(&o);
	struct roci_direct d;
	struct roci_sge sge;
	struct roci_send_wr wr = write_of(p, &sge);

	wr.opcode = ROCI_WR_RDMA_WRITE_WITH_IMM;
	assert_false(roci_qp_direct_begin(p->side[0].qp, &wr, &d));
	wr.opcode = ROCI_WR_ATOMIC_FETCH_AND_ADD;
	assert_false(roci_qp_direct_begin(p->side[0].qp, &wr, &d));
	wr.opcode = ROCI_WR_RDMA_WRITE;
	sge.lkey ^= 0x100;
	assert_false(roci_qp_direct_begin(p->side[0].qp, &wr, &d));
	sge.lkey ^= 0x100;
	sge.len = 0;
	assert_false(roci_qp_direct_begin(p->side[0].qp, &wr, &d));
	sge.len = PAIR_MEMORY + 1;
	assert_false(roci_qp_direct_begin(p->side[0].qp, &wr, &d));
	pair_free(p);
	o.local = false;
	p = pair_create(&o);
	wr = write_of(p, &sge);
	assert_false(roci_qp_direct_begin(p->side[0].qp, &wr, &d));
	pair_free(p);
}

/* A completion that was not polled keeps its place in the send queue: the CQ must not overrun. */
static void the_queue_is_full_of_completions(void **state)
{
	struct pair_options o = local();
	struct pair *p = pair_create(&o);
	struct roci_direct d;
	struct roci_sge sge;
	struct roci_send_wr wr = write_of(p, &sge);
	unsigned n = 0;

	while (n < 1000 && roci_qp_direct_begin(p->side[0].qp, &wr, &d)) {
		roci_qp_direct_done(p->side[0].qp, &wr, false);
		n++;
	}
	assert_int_equal(n, 64);
	pair_expect(p, 0, 9, ROCI_WC_SUCCESS);
	assert_true(roci_qp_direct_begin(p->side[0].qp, &wr, &d));
	pair_free(p);
}

static void what_is_published_follows_the_state(void **state)
{
	struct pair_options o = local();
	struct pair *p = pair_create(&o);
	struct roci_qp_attr a = {.state = ROCI_QPS_ERR};
	_Atomic uint32_t word = 1;

	roci_qp_publish(p->side[1].qp, &word);
	assert_int_equal(word, ROCI_PUBLISHED | o.access);
	assert_int_equal(roci_qp_modify(p->side[1].qp, p->now, &a, ROCI_QP_STATE), 0);
	assert_int_equal(word, 0);
	pair_free(p);
	p = pair_create(&o);
	roci_qp_publish(p->side[1].qp, &word);
	p->side[1].key ^= 0x5a00; /* the peer makes it fail */
	pair_send(p, 0, ROCI_WR_RDMA_WRITE, 1, 0, 10, 0);
	pair_run(p);
	assert_int_equal(word, 0);
	pair_free(p);
}

/* Over the ring the READ is refused, as on the wire; so nobody must execute it by a short cut. */
static void who_takes_no_reads_publishes_no_right_to_them(void **state)
{
	struct pair_options o = local();
	struct pair *p = pair_create(&o);
	struct roci_qp_attr a = {.state = ROCI_QPS_SQD};
	_Atomic uint32_t word = 0;

	roci_qp_publish(p->side[1].qp, &word);
	assert_true(word & ROCI_ACCESS_REMOTE_READ);
	assert_int_equal(roci_qp_modify(p->side[1].qp, p->now, &a, ROCI_QP_STATE), 0);
	assert_int_equal(roci_qp_modify(p->side[1].qp, p->now, &a, ROCI_QP_STATE | ROCI_QP_MAX_DEST_RD_ATOMIC), 0);
	assert_int_equal(word, ROCI_PUBLISHED | (o.access & ~(uint32_t)ROCI_ACCESS_REMOTE_READ));
	pair_send(p, 0, ROCI_WR_RDMA_READ, 1, 0, 10, 0);
	pair_run(p);
	pair_expect(p, 0, 1, ROCI_WC_REM_INV_REQ_ERR);
	pair_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_is_one_packet),
		cmocka_unit_test(payload_that_is_gone_is_a_lost_packet),
		cmocka_unit_test(memory_that_is_not_mapped_is_an_error),
		cmocka_unit_test(payload_that_is_not_mapped_is_an_error),
		cmocka_unit_test(errors_are_those_of_the_wire),
		cmocka_unit_test(payload_is_taken_back_before_a_request_fails),
		cmocka_unit_test(who_fetches_by_a_window_is_stopped),
		cmocka_unit_test(packets_of_another_path_are_refused),
		cmocka_unit_test(nothing_may_be_outstanding),
		cmocka_unit_test(only_what_is_right_on_this_side),
		cmocka_unit_test(the_queue_is_full_of_completions),
		cmocka_unit_test(what_is_published_follows_the_state),
		cmocka_unit_test(who_takes_no_reads_publishes_no_right_to_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
