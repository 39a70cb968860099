/* SPDX-License-Identifier: BSD-2-Clause */
/* Who records a capture is told of posts, completions and states, once each, in order. */
#include "pair.h"

#include <string.h>

#include "engine/qp.h"

#define RECORDS 64

static struct recorder {
	struct roci_trace trace;
	unsigned count;
	struct roci_record records[RECORDS];
} recorder;

static void record(struct roci_trace *trace, struct roci_record *r)
{
	struct recorder *to = (struct recorder *)trace;

	assert_true(to->count < RECORDS);
	to->records[to->count++] = *r;
}

static const struct roci_record *next(unsigned *at, enum roci_record_kind kind, const struct roci_qp *qp,
				      uint64_t wr_id, uint64_t length)
{
	const struct roci_record *r = &recorder.records[(*at)++];

	assert_true(*at <= recorder.count);
	assert_int_equal(r->kind, kind);
	assert_int_equal(r->qpn, qp->qpn);
	assert_int_equal(r->wr_id, wr_id);
	assert_int_equal(r->length, length);
	return r;
}

static struct pair *start(void)
{
	struct pair_options o = pair_defaults();
	struct pair *p = pair_create(&o);

	memset(&recorder, 0, sizeof(recorder));
	recorder.trace.record = record;
	for (unsigned i = 0; i < 2; i++)
		roci_engine_trace(p->side[i].e, &recorder.trace);
	return p;
}

static void a_message_is_recorded_at_both_ends(void **state)
{
	struct pair *p = start();
	const struct roci_qp *near = p->side[0].qp, *far = p->side[1].qp;
	const struct roci_record *r;
	unsigned at = 0;

	assert_int_equal(pair_recv(p, 1, 7, 0, 1000), 0);
	assert_int_equal(pair_send(p, 0, ROCI_WR_SEND, 8, 0, 700, 0), 0);
	pair_run(p);
	next(&at, ROCI_RECORD_POST_RECV, far, 7, 1000);
	r = next(&at, ROCI_RECORD_POST_SEND, near, 8, 700);
	assert_int_equal(r->opcode, ROCI_WR_SEND);
	assert_int_equal(r->peer, far->qpn);
	assert_int_equal(r->qp_type, ROCI_QPT_RC);
	assert_memory_equal(r->local_gid, near->attr.av.sgid, 16);
	r = next(&at, ROCI_RECORD_SEND_TAKEN, near, 8, 700);
	assert_int_equal(r->opcode, ROCI_WR_SEND);
	next(&at, ROCI_RECORD_RECV_TAKEN, far, 7, 0);
	r = next(&at, ROCI_RECORD_COMPLETION, far, 7, 700);
	assert_int_equal(r->opcode, ROCI_WC_RECV);
	assert_int_equal(r->status, ROCI_WC_SUCCESS);
	r = next(&at, ROCI_RECORD_COMPLETION, near, 8, 700);
	assert_int_equal(r->opcode, ROCI_WC_SEND);
	assert_int_equal(at, recorder.count);
	pair_free(p);
}

/* Of several packets: once, however many they are, when the last byte is in its place. */
static void a_one_sided_request_is_recorded_where_it_is_executed(void **state)
{
	struct pair *p = start();
	const struct roci_qp *near = p->side[0].qp, *far = p->side[1].qp;
	const struct roci_record *r;
	unsigned at = 0;

	assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_WRITE, 3, 0, 3 * PAIR_MTU, 0), 0);
	pair_run(p);
	next(&at, ROCI_RECORD_POST_SEND, near, 3, 3 * PAIR_MTU);
	next(&at, ROCI_RECORD_SEND_TAKEN, near, 3, 3 * PAIR_MTU);
	r = next(&at, ROCI_RECORD_EXECUTED, far, 0, 0);
	assert_int_equal(r->opcode, ROCI_OP_WRITE_LAST);
	assert_int_equal(r->peer, near->qpn);
	next(&at, ROCI_RECORD_COMPLETION, near, 3, 3 * PAIR_MTU);
	assert_int_equal(at, recorder.count);
	pair_free(p);
}

static void a_refused_post_is_not_recorded(void **state)
{
	struct pair *p = start();

	while (!pair_recv(p, 1, 1, 0, 10))
		recorder.count = 0;
	assert_int_equal(recorder.count, 0);
	pair_free(p);
}

/* A receive that comes back unused was never taken. */
static void an_error_is_recorded_with_what_it_flushes(void **state)
{
	struct pair *p = start();
	const struct roci_qp *near = p->side[0].qp;
	struct roci_qp_attr to_err = {.state = ROCI_QPS_ERR};
	const struct roci_record *r;
	unsigned at = 0;

	assert_int_equal(pair_recv(p, 0, 5, 0, 10), 0);
	assert_int_equal(roci_qp_modify(p->side[0].qp, p->now, &to_err, ROCI_QP_STATE), 0);
	next(&at, ROCI_RECORD_POST_RECV, near, 5, 10);
	r = next(&at, ROCI_RECORD_QP_STATE, near, 0, PAIR_MTU);
	assert_int_equal(r->status, ROCI_QPS_ERR);
	r = next(&at, ROCI_RECORD_COMPLETION, near, 5, 0);
	assert_int_equal(r->status, ROCI_WC_WR_FLUSH_ERR);
	assert_int_equal(at, recorder.count);
	pair_free(p);
}

static void nobody_is_told_where_nobody_records(void **state)
{
	struct pair *p = start();

	for (unsigned i = 0; i < 2; i++)
		roci_engine_trace(p->side[i].e, NULL);
	assert_int_equal(pair_recv(p, 1, 7, 0, 1000), 0);
	assert_int_equal(pair_send(p, 0, ROCI_WR_SEND, 8, 0, 700, 0), 0);
	pair_run(p);
	assert_int_equal(recorder.count, 0);
	pair_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_is_recorded_at_both_ends),
		cmocka_unit_test(a_one_sided_request_is_recorded_where_it_is_executed),
		cmocka_unit_test(a_refused_post_is_not_recorded),
		cmocka_unit_test(an_error_is_recorded_with_what_it_flushes),
		cmocka_unit_test(nobody_is_told_where_nobody_records),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
