/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queue, receive queue, shared receive queue. */
#include "../test.h"

#include <errno.h>
#include <stdlib.h>

#include "engine/cq.h"
#include "engine/rq.h"
#include "engine/qp.h"
#include "engine/sq.h"

static void cq_keeps_order_through_resize(void **state)
{
	struct roci_engine *e = roci_engine_create();
	struct roci_cqe out[8];
	struct roci_cq *cq;

	assert_int_equal(roci_cq_create(e, 0, NULL, &cq), -EINVAL);
	assert_int_equal(roci_cq_create(e, ROCI_MAX_CQE + 1, NULL, &cq), -EINVAL);
	assert_int_equal(roci_cq_create(e, 5, NULL, &cq), 0);
	for (uint64_t i = 0; i < 5; i++)
		roci_cq_push(cq, &(struct roci_cqe){.wr_id = i}, false);
	assert_int_equal(roci_cq_poll(cq, out, 2), 2);
	assert_int_equal(roci_cq_resize(cq, 2), -EINVAL);
	assert_int_equal(roci_cq_resize(cq, 100), 0);
	roci_cq_push(cq, &(struct roci_cqe){.wr_id = 5}, false);
	assert_int_equal(roci_cq_poll(cq, out, 8), 4);
	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(out[i].wr_id, i + 2);
	assert_int_equal(roci_cq_poll(cq, out, 8), 0);
	roci_engine_destroy(e);
}

static void purge_takes_one_qp_only(void **state)
{
	struct roci_engine *e = roci_engine_create();
	struct roci_cqe out[8];
	struct roci_cq *cq;

	assert_int_equal(roci_cq_create(e, 8, NULL, &cq), 0);
	for (uint32_t i = 0; i < 6; i++)
		roci_cq_push(cq, &(struct roci_cqe){.wr_id = i, .qpn = i % 2}, false);
	roci_cq_purge(cq, 1);
	assert_int_equal(roci_cq_poll(cq, out, 8), 3);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(out[i].wr_id, 2 * i);
	roci_engine_destroy(e);
}

/* At least what was asked for, and no more than fits into a request. */
static void inline_data_has_the_room_of_sges(void **state)
{
	static const struct {
		uint32_t sge, asked, granted;
	} cases[] = {{1, 0, 16},
		     {4, 0, 64},
		     {4, 17, 64},
		     {1, 20, 24},
		     {0, 0, 8},
		     {ROCI_MAX_SGE, 1, 16 * ROCI_MAX_SGE},
		     {1, ROCI_MAX_INLINE, ROCI_MAX_INLINE}};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char bytes[ROCI_MAX_INLINE] = "inline";
		struct roci_sge sge = {.addr = (uintptr_t)bytes, .len = cases[i].granted};
		struct roci_send_wr wr = {
			.opcode = ROCI_WR_SEND, .flags = ROCI_SEND_INLINE, .sges = &sge, .num_sge = 1};
		struct roci_sq sq;

		assert_int_equal(roci_sq_init(&sq, i % 2, 2, cases[i].sge, cases[i].asked), 0);
		assert_int_equal(sq.max_inline, cases[i].granted);
		assert_int_equal(roci_sq_check(&sq, &wr), 0);
		assert_int_equal(roci_sq_post(&sq, &wr, false), 0);
		sge.len++;
		assert_int_equal(roci_sq_check(&sq, &wr), -EINVAL);
		assert_memory_equal(roci_sq_at(&sq, 0)->sges, bytes, cases[i].granted);
		roci_sq_fini(&sq);
	}
}

/* 16,000 QPs: what only datagrams need takes no memory of the others. */
static void only_datagrams_have_a_destination(void **state)
{
	struct roci_av av = {.sgid_index = 3};
	struct roci_send_wr wr = {.opcode = ROCI_WR_SEND, .av = &av, .remote_qpn = 7, .remote_qkey = 9};
	struct roci_sq sq;

	assert_int_equal(roci_sq_init(&sq, false, 16, 1, 0), 0);
	assert_true(sq.stride <= 104);
	roci_sq_fini(&sq);
	assert_true(sizeof(struct roci_qp) <= 1280); /* what few QPs need is allocated when they do */
	assert_int_equal(roci_sq_init(&sq, true, 2, 1, 0), 0);
	for (uint32_t i = 0; i < 2; i++) {
		wr.remote_qpn = 7 + i;
		assert_int_equal(roci_sq_post(&sq, &wr, false), 0);
	}
	for (uint32_t i = 0; i < 2; i++) {
		const struct roci_swqe_dest *dest = roci_swqe_dest(roci_sq_at(&sq, i));

		assert_int_equal(dest->qpn, 7 + i);
		assert_int_equal(dest->qkey, 9);
		assert_int_equal(dest->av.sgid_index, 3);
	}
	roci_sq_fini(&sq);
}

/* No SGE is read beyond the number that a request may have. */
static void claimed_sges_are_not_believed(void **state)
{
	static const enum roci_send_flags flags[] = {0, ROCI_SEND_INLINE};

	for (unsigned i = 0; i < 2; i++) {
		struct roci_sge *sges =
			calloc(ROCI_MAX_SGE,
			       sizeof(*sges)); /* an allocation of its own, so that a sanitizer sees an overrun */
		struct roci_send_wr wr = {.opcode = ROCI_WR_SEND, .flags = flags[i], .sges = sges};
		struct roci_sq sq;

		assert_int_equal(roci_sq_init(&sq, i % 2, 2, ROCI_MAX_SGE, 0), 0);
		wr.num_sge = ROCI_MAX_SGE;
		assert_int_equal(roci_sq_check(&sq, &wr), 0);
		wr.num_sge = ROCI_MAX_SGE + 1;
		assert_int_equal(roci_sq_check(&sq, &wr), -EINVAL);
		wr.num_sge = INT32_MAX;
		assert_int_equal(roci_sq_check(&sq, &wr), -EINVAL);
		roci_sq_fini(&sq);
		free(sges);
	}
}

static unsigned completions(struct roci_engine *e)
{
	struct roci_event ev;
	unsigned n = 0;

	while (roci_engine_next_event(e, &ev))
		n += ev.kind == ROCI_EV_COMPLETION;
	return n;
}

/* IBTA 11.4.2.2: one request, one event. A solicited request waits for a solicited or failed entry; a request for any
 * entry replaces it. */
static void arming_gives_one_event(void **state)
{
	struct roci_engine *e = roci_engine_create();
	struct roci_cq *cq;

	assert_int_equal(roci_cq_create(e, 16, NULL, &cq), 0);
	roci_cq_push(cq, &(struct roci_cqe){0}, true);
	assert_int_equal(completions(e), 0);
	roci_cq_arm(cq, false);
	roci_cq_push(cq, &(struct roci_cqe){0}, false);
	roci_cq_push(cq, &(struct roci_cqe){0}, false);
	assert_int_equal(completions(e), 1);
	roci_cq_arm(cq, true);
	roci_cq_push(cq, &(struct roci_cqe){0}, false);
	assert_int_equal(completions(e), 0);
	roci_cq_push(cq, &(struct roci_cqe){.status = ROCI_WC_WR_FLUSH_ERR}, false);
	assert_int_equal(completions(e), 1);
	roci_cq_arm(cq, false);
	roci_cq_arm(cq, true);
	roci_cq_push(cq, &(struct roci_cqe){0}, false);
	assert_int_equal(completions(e), 1);
	roci_engine_destroy(e);
}

static void receive_queue_is_exactly_as_deep_as_asked(void **state)
{
	struct roci_sge sge = {1, 2, 3};
	struct roci_recv_wr wr = {7, &sge, 1}, many = {7, &sge, 2};
	union {
		struct roci_rwqe w;
		char room[64];
	} out;
	struct roci_rq rq;

	assert_int_equal(roci_rq_init(&rq, 3, 1), 0);
	assert_int_equal(roci_rq_post(&rq, &many), -EINVAL);
	for (int i = 0; i < 3; i++, wr.wr_id++)
		assert_int_equal(roci_rq_post(&rq, &wr), 0);
	assert_int_equal(roci_rq_post(&rq, &wr), -ENOMEM);
	for (uint64_t i = 7; i < 10; i++) {
		assert_true(roci_rq_take(&rq, &out.w));
		assert_int_equal(out.w.wr_id, i);
		assert_int_equal(out.w.sges[0].lkey, 3);
	}
	assert_false(roci_rq_take(&rq, &out.w));
	roci_rq_fini(&rq);
}

/* IBTA 10.2.9.1 */
static void srq_limit_fires_once(void **state)
{
	struct roci_engine *e = roci_engine_create();
	struct roci_recv_wr wr = {0};
	struct roci_rwqe out;
	struct roci_srq *srq;
	struct roci_event ev;

	assert_int_equal(roci_srq_create(e, 1, 8, 1, NULL, &srq), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(roci_srq_post(srq, &wr), 0);
	assert_int_equal(roci_srq_modify(srq, 0, 9), -EINVAL);
	assert_int_equal(roci_srq_modify(srq, 3, -1), -EINVAL);
	assert_int_equal(roci_srq_modify(srq, 0, 3), 0);
	assert_true(roci_srq_take(srq, &out));
	assert_false(roci_engine_next_event(e, &ev));
	assert_true(roci_srq_take(srq, &out));
	assert_true(roci_engine_next_event(e, &ev));
	assert_int_equal(ev.type, ROCI_EVENT_SRQ_LIMIT_REACHED);
	assert_true(roci_srq_take(srq, &out));
	assert_false(roci_engine_next_event(e, &ev));
	roci_engine_destroy(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cq_keeps_order_through_resize),
		cmocka_unit_test(purge_takes_one_qp_only),
		cmocka_unit_test(inline_data_has_the_room_of_sges),
		cmocka_unit_test(only_datagrams_have_a_destination),
		cmocka_unit_test(claimed_sges_are_not_believed),
		cmocka_unit_test(arming_gives_one_event),
		cmocka_unit_test(receive_queue_is_exactly_as_deep_as_asked),
		cmocka_unit_test(srq_limit_fires_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
