/* SPDX-License-Identifier: BSD-2-Clause */
/* The state machine against a second table, written from IBTA 11.2.5.2. */
#include "../test.h"

#include <errno.h>

#include "engine/cq.h"
#include "engine/qp.h"

static const struct {
	enum roci_qp_state from, to;
} allowed[] = {
	{ROCI_QPS_RESET, ROCI_QPS_RESET}, {ROCI_QPS_RESET, ROCI_QPS_INIT}, {ROCI_QPS_INIT, ROCI_QPS_INIT},
	{ROCI_QPS_INIT, ROCI_QPS_RTR},    {ROCI_QPS_RTR, ROCI_QPS_RTS},    {ROCI_QPS_RTS, ROCI_QPS_RTS},
	{ROCI_QPS_RTS, ROCI_QPS_SQD},     {ROCI_QPS_SQD, ROCI_QPS_SQD},    {ROCI_QPS_SQD, ROCI_QPS_RTS},
	{ROCI_QPS_SQE, ROCI_QPS_RTS},
};

static bool is_allowed(enum roci_qp_type type, enum roci_qp_state from, enum roci_qp_state to)
{
	if (type == ROCI_QPT_RC && from == ROCI_QPS_SQE)
		return to == ROCI_QPS_RESET || to == ROCI_QPS_ERR; /* RC never has this state */
	if (to == ROCI_QPS_RESET || (to == ROCI_QPS_ERR && from != ROCI_QPS_RESET))
		return true;
	for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++)
		if (allowed[i].from == from && allowed[i].to == to)
			return true;
	return false;
}

static unsigned required(enum roci_qp_type type, enum roci_qp_state from, enum roci_qp_state to)
{
	bool rc = type == ROCI_QPT_RC, ud = type == ROCI_QPT_UD;

	if (from == ROCI_QPS_RESET && to == ROCI_QPS_INIT)
		return ROCI_QP_PKEY_INDEX | ROCI_QP_PORT | (ud ? ROCI_QP_QKEY : ROCI_QP_ACCESS_FLAGS);
	if (to == ROCI_QPS_RTR && !ud)
		return ROCI_QP_AV | ROCI_QP_PATH_MTU | ROCI_QP_DEST_QPN | ROCI_QP_RQ_PSN |
		       (rc ? ROCI_QP_MAX_DEST_RD_ATOMIC | ROCI_QP_MIN_RNR_TIMER : 0);
	if (from == ROCI_QPS_RTR && to == ROCI_QPS_RTS)
		return ROCI_QP_SQ_PSN |
		       (rc ? ROCI_QP_TIMEOUT | ROCI_QP_RETRY_CNT | ROCI_QP_RNR_RETRY | ROCI_QP_MAX_QP_RD_ATOMIC : 0);
	return 0;
}

static struct roci_qp *make(struct roci_engine *e, enum roci_qp_type type, enum roci_qp_state state)
{
	struct roci_qp_init init = {.qpn = 5, .type = type, .pd = 1, .cap = {1, 1, 1, 1, 0}};
	struct roci_qp_attr a = {.port_num = 1, .path_mtu = 3, .av = {.mtu = 1024}};
	static const enum roci_qp_state way[] = {ROCI_QPS_INIT, ROCI_QPS_RTR, ROCI_QPS_RTS};
	struct roci_cq *cq;
	struct roci_qp *qp;

	assert_int_equal(roci_cq_create(e, 4, NULL, &cq), 0);
	init.send_cq = init.recv_cq = cq;
	assert_int_equal(roci_qp_create(e, &init, &qp), 0);
	for (unsigned i = 0; i < 3 && qp->state < state; i++) {
		a.state = way[i];
		assert_int_equal(roci_qp_modify(qp, 1, &a, ROCI_QP_STATE | required(type, qp->state, way[i])), 0);
	}
	if (state == ROCI_QPS_SQE) {
		roci_qp_send_queue_error(qp);
	} else if (qp->state != state) {
		a.state = state;
		assert_int_equal(roci_qp_modify(qp, 1, &a, ROCI_QP_STATE), 0);
	}
	assert_int_equal(qp->state, state);
	return qp;
}

static void try(enum roci_qp_type type, enum roci_qp_state from, enum roci_qp_state to)
{
	unsigned need = required(type, from, to);
	struct roci_qp_attr a = {.state = to, .port_num = 1, .path_mtu = 3, .av = {.mtu = 1024}};
	struct roci_engine *e = roci_engine_create();
	struct roci_qp *qp = make(e, type, from);

	if (!is_allowed(type, from, to)) {
		assert_int_equal(roci_qp_modify(qp, 1, &a, ROCI_QP_STATE | need), -EINVAL);
		assert_int_equal(qp->state, from);
		roci_engine_destroy(e);
		return;
	}
	/* It fails without one of the required attributes, and with one that is not allowed. */
	for (unsigned bit = 1; bit <= ROCI_QP_DEST_QPN; bit <<= 1)
		if (need & bit)
			assert_int_equal(roci_qp_modify(qp, 1, &a, (ROCI_QP_STATE | need) & ~bit), -EINVAL);
	assert_int_equal(roci_qp_modify(qp, 1, &a, ROCI_QP_STATE | need | ROCI_QP_CAP), -EINVAL);
	assert_int_equal(qp->state, from);
	assert_int_equal(roci_qp_modify(qp, 1, &a, ROCI_QP_STATE | need), 0);
	assert_int_equal(qp->state, to);
	roci_engine_destroy(e);
}

static void transitions_are_the_standards(void **state)
{
	for (int type = ROCI_QPT_RC; type <= ROCI_QPT_UD; type++)
		for (int from = ROCI_QPS_RESET; from <= ROCI_QPS_ERR; from++)
			for (int to = ROCI_QPS_RESET; to <= ROCI_QPS_ERR; to++)
				if (type != ROCI_QPT_RC || from != ROCI_QPS_SQE)
					try((enum roci_qp_type)type, (enum roci_qp_state)from, (enum roci_qp_state)to);
}

static void values_are_checked(void **state)
{
	struct roci_engine *e = roci_engine_create();
	struct roci_qp *qp = make(e, ROCI_QPT_RC, ROCI_QPS_INIT);
	unsigned mask = ROCI_QP_STATE | required(ROCI_QPT_RC, ROCI_QPS_INIT, ROCI_QPS_RTR);
	const struct roci_qp_attr good = {.state = ROCI_QPS_RTR, .path_mtu = 3, .av = {.mtu = 1024}};
	struct roci_qp_attr a = good;

	a.path_mtu = 6;
	assert_int_equal(roci_qp_modify(qp, 1, &a, mask), -EINVAL);
	a = good;
	a.path_mtu = 0;
	assert_int_equal(roci_qp_modify(qp, 1, &a, mask), -EINVAL);
	a = good;
	a.max_dest_rd_atomic = ROCI_MAX_RD_ATOMIC + 1;
	assert_int_equal(roci_qp_modify(qp, 1, &a, mask), -EINVAL);
	a = good;
	a.dest_qpn = 1u << 24;
	assert_int_equal(roci_qp_modify(qp, 1, &a, mask), -EINVAL);
	a = good;
	a.cur_state = ROCI_QPS_RTS;
	assert_int_equal(roci_qp_modify(qp, 1, &a, mask | ROCI_QP_CUR_STATE), -EINVAL);
	a = good;
	a.path_mtu = 5; /* more than the interface carries: the kernel sends fragments */
	assert_int_equal(roci_qp_modify(qp, 1, &a, mask), 0);
	roci_engine_destroy(e);
}

static struct roci_qp *on_cqs(struct roci_engine *e, uint32_t qpn, struct roci_cq *send_cq, struct roci_cq *recv_cq)
{
	struct roci_qp_init init = {.qpn = qpn,
				    .type = ROCI_QPT_UC,
				    .pd = 1,
				    .send_cq = send_cq,
				    .recv_cq = recv_cq,
				    .cap = {1, 4, 1, 1, 0}};
	struct roci_qp_attr a = {.state = ROCI_QPS_INIT, .port_num = 1};
	struct roci_qp *qp;

	assert_int_equal(roci_qp_create(e, &init, &qp), 0);
	assert_int_equal(roci_qp_modify(qp, 1, &a, ROCI_QP_STATE | required(init.type, qp->state, a.state)), 0);
	return qp;
}

/* The overrun of one CQ flushes requests, which may overrun another CQ. The QPs of that one fail too. */
static void overruns_reach_every_qp(void **state)
{
	static struct roci_tx_batch batch;
	struct roci_engine *e = roci_engine_create();
	struct roci_cq *first, *then, *other;
	struct roci_qp *behind, *between;

	assert_int_equal(roci_cq_create(e, 1, NULL, &first), 0);
	assert_int_equal(roci_cq_create(e, 1, NULL, &then), 0);
	assert_int_equal(roci_cq_create(e, 1, NULL, &other), 0);
	behind = on_cqs(e, 5, other, then);
	between = on_cqs(e, 6, first, then);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(roci_qp_post_recv(between, &(struct roci_recv_wr){0}), 0);
		roci_cq_push(first, &(struct roci_cqe){0}, false);
	}
	roci_engine_tx(e, 1, &batch);
	assert_int_equal(roci_qp_state(between), ROCI_QPS_ERR);
	assert_true(roci_cq_overrun(then));
	assert_int_equal(roci_qp_state(behind), ROCI_QPS_ERR);
	roci_engine_destroy(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(overruns_reach_every_qp),
		cmocka_unit_test(transitions_are_the_standards),
		cmocka_unit_test(values_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
