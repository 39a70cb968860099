/* SPDX-License-Identifier: BSD-2-Clause */
/* A check that fails says which field it was, its value, and what is allowed. */
#include "../test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "engine/cq.h"
#include "engine/mr.h"
#include "engine/qp.h"
#include "engine/why.h"

static char memory[4096], told[1000];

static void sink(const char *line)
{
	snprintf(told, sizeof(told), "%s", line);
}

static int setup(void **state)
{
	roci_why_on = true;
	roci_why_sink = sink;
	return 0;
}

static void says(const char *text)
{
	const char *note = roci_why_take();

	assert_non_null(note);
	if (!strstr(note, text))
		fail_msg("'%s' is not in '%s'", text, note);
}

static void notes(void **state)
{
	assert_string_equal(roci_why_take(), "");
	ROCI_WHY("timeout %d", 32);
	assert_string_equal(roci_why_take(), "timeout 32");
	assert_string_equal(roci_why_take(), ""); /* it is told once */
	assert_int_equal(ROCI_REFUSE(-EINVAL, "x"), -EINVAL);
	ROCI_WHY_TELL("QP %d", 5);
	assert_string_equal(told, "QP 5: x");
	ROCI_WHY_TELL("QP %d", 6);
	assert_string_equal(told, "QP 6");
	roci_why_on = false;
	ROCI_WHY("y");
	ROCI_WHY_TELL("z");
	roci_why_on = true;
	assert_string_equal(roci_why_take(), "");
	assert_string_equal(told, "QP 6");
}

/* What a peer can cause: one line a second, which says how many there were besides. */
static void paced(void **state)
{
	struct roci_why_pace pace = {0};
	uint64_t second = UINT64_C(1000000000);

	ROCI_WHY("a");
	ROCI_WHY_TELL_PACED(&pace, 5, "dropped %d", 1);
	assert_string_equal(told, "dropped 1: a");
	for (unsigned i = 0; i < 100; i++) {
		ROCI_WHY("b");
		ROCI_WHY_TELL_PACED(&pace, 5 + second - 1, "dropped %d", 2);
	}
	assert_string_equal(told, "dropped 1: a");
	assert_string_equal(roci_why_take(), ""); /* no other line gets the note */
	ROCI_WHY("c");
	ROCI_WHY_TELL_PACED(&pace, 5 + second, "dropped %d", 3);
	assert_string_equal(told, "dropped 3: c (and 100 more since the last such line)");
	ROCI_WHY_TELL_PACED(&pace, 5 + 2 * second, "dropped %d", 4);
	assert_string_equal(told, "dropped 4");
}

static void long_texts(void **state)
{
	char text[2000], names[ROCI_WHY_NAMES];

	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	ROCI_WHY("%s", text);
	ROCI_WHY_TELL("%s", text);
	assert_true(strlen(told) > 500 && strlen(told) < 900);
	assert_true(strlen(roci_qp_mask_names(~0u, names)) < sizeof(names));
	assert_true(strlen(roci_access_names(~0u, names)) < sizeof(names));
	assert_string_equal(roci_access_names(0, names), "none");
	assert_string_equal(roci_access_names(ROCI_ACCESS_FLUSH_GLOBAL | 1, names),
			    "IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_FLUSH_GLOBAL");
	assert_string_equal(roci_qp_mask_names(ROCI_QP_DEST_QPN, names), "IBV_QP_DEST_QPN");
	assert_string_equal(roci_qp_state_name((enum roci_qp_state)7), "?");
}

static struct roci_mr *region(struct roci_engine *e, uint32_t access)
{
	struct roci_mr_attr a = {
		.pd = 1, .key = 0x55501, .base = memory, .iova = 0x10000, .len = 4096, .access = access};
	struct roci_mr *mr;

	assert_int_equal(roci_mr_create(e, &a, &mr), 0);
	return mr;
}

/* Key, protection domain, right, range: the requester sees one status for all of them. */
static void memory_of_a_peer(void **state)
{
	struct roci_engine *e = roci_engine_create();

	region(e, ROCI_ACCESS_REMOTE_READ);
	assert_null(roci_mr_remote(e, 1, 9, 0x55502, 0x10000, 1, ROCI_ACCESS_REMOTE_READ));
	says("rkey 0x55502 is of no region");
	assert_null(roci_mr_remote(e, 2, 9, 0x55501, 0x10000, 1, ROCI_ACCESS_REMOTE_READ));
	says("rkey 0x55501 belongs to PD 1, and the QP to PD 2");
	assert_null(roci_mr_remote(e, 1, 9, 0x55501, 0x10000, 1, ROCI_ACCESS_REMOTE_WRITE));
	says("rkey 0x55501 lacks IBV_ACCESS_REMOTE_WRITE (it has: IBV_ACCESS_REMOTE_READ)");
	assert_null(roci_mr_remote(e, 1, 9, 0x55501, 0x10ff0, 17, ROCI_ACCESS_REMOTE_READ));
	says("17 bytes at 0x10ff0 leave the region, which has 4096 bytes at 0x10000");
	assert_non_null(roci_mr_remote(e, 1, 9, 0x55501, 0x10ff0, 16, ROCI_ACCESS_REMOTE_READ));
	assert_string_equal(roci_why_take(), "");
	roci_engine_destroy(e);
}

static void memory_of_this_side(void **state)
{
	struct roci_engine *e = roci_engine_create();

	region(e, 0);
	assert_null(roci_mr_local(e, 1, 7, 0x10000, 1, 0));
	says("lkey 0x7 is of no region");
	assert_null(roci_mr_local(e, 2, 0x55501, 0x10000, 1, 0));
	says("belongs to PD 1");
	assert_null(roci_mr_local(e, 1, 0x55501, 0x10000, 1, ROCI_ACCESS_LOCAL_WRITE));
	says("lacks IBV_ACCESS_LOCAL_WRITE (it has: none)");
	assert_null(roci_mr_local(e, 1, 0x55501, 0xffff, 2, 0));
	says("2 bytes at 0xffff leave the region");
	roci_engine_destroy(e);
}

static void windows(void **state)
{
	struct roci_engine *e = roci_engine_create();
	struct roci_bind b = {.addr = 0x10010, .len = 16, .mw_key = 0x66600, .mr_key = 0x55501, .rkey = 0x66601};
	struct roci_mr *mr = region(e, ROCI_ACCESS_MW_BIND | ROCI_ACCESS_LOCAL_WRITE);
	struct roci_mw *mw;

	assert_int_equal(roci_mw_create(e, 1, 2, 0x66600, &mw), 0);
	assert_null(roci_mr_remote(e, 1, 9, 0x66600, 0x10010, 1, ROCI_ACCESS_REMOTE_READ));
	says("window that is not bound");
	assert_int_equal(roci_mw_bind(e, 1, 9, &b), 0);
	assert_int_equal(roci_mw_bind(e, 1, 9, &b), -EINVAL);
	says("bound already");
	assert_int_equal(roci_mr_destroy(mr), -EBUSY);
	says("1 memory windows are bound");
	assert_null(roci_mr_remote(e, 1, 8, 0x66601, 0x10010, 1, ROCI_ACCESS_REMOTE_READ));
	says("window of QP 0x9");
	assert_int_equal(roci_mw_invalidate(e, 1, 8, 0x66601), -EINVAL);
	says("no window of type 2 that is bound on QP 0x8");
	roci_engine_destroy(e);
}

static void queue_pairs(void **state)
{
	struct roci_engine *e = roci_engine_create();
	struct roci_qp_init init = {.qpn = 5, .type = ROCI_QPT_RC, .pd = 1, .cap = {1, 1, 1, 1, 0}};
	struct roci_qp_attr a = {.state = ROCI_QPS_RTS, .port_num = 1, .timeout = 32};
	struct roci_cq *cq;
	struct roci_qp *qp;

	assert_int_equal(roci_cq_create(e, 4, NULL, &cq), 0);
	init.send_cq = init.recv_cq = cq;
	assert_int_equal(roci_qp_create(e, &init, &qp), 0);
	assert_int_equal(roci_qp_modify(qp, 1, &a, ROCI_QP_STATE), -EINVAL);
	says("qp_state RTS: this RC QP is in RESET, and from there it goes to INIT");
	a.state = ROCI_QPS_INIT;
	assert_int_equal(roci_qp_modify(qp, 1, &a, ROCI_QP_STATE | ROCI_QP_PORT), -EINVAL);
	says("attr_mask lacks IBV_QP_ACCESS_FLAGS, IBV_QP_PKEY_INDEX, from RESET to INIT");
	assert_int_equal(roci_qp_modify(qp, 1, &a, ROCI_QP_STATE | ROCI_QP_TIMEOUT), -EINVAL);
	says("timeout 32: 0 to 31 are allowed");
	a.timeout = 14;
	assert_int_equal(roci_qp_modify(qp, 1, &a,
					ROCI_QP_STATE | ROCI_QP_PORT | ROCI_QP_PKEY_INDEX | ROCI_QP_ACCESS_FLAGS |
						ROCI_QP_TIMEOUT),
			 -EINVAL);
	says("attr_mask has IBV_QP_TIMEOUT");
	assert_int_equal(roci_qp_post_recv(qp, &(struct roci_recv_wr){0}), -EINVAL);
	says("the QP is in RESET");
	assert_int_equal(roci_qp_post_send(qp, &(struct roci_send_wr){.opcode = ROCI_WR_SEND}), -EINVAL);
	says("the QP is in RESET: sends can be posted from RTS on");
	assert_int_equal(roci_cq_destroy(cq), -EBUSY);
	says("use the CQ");
	roci_engine_destroy(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(notes),
		cmocka_unit_test(paced),
		cmocka_unit_test(long_texts),
		cmocka_unit_test(memory_of_a_peer),
		cmocka_unit_test(memory_of_this_side),
		cmocka_unit_test(windows),
		cmocka_unit_test(queue_pairs),
	};
	return cmocka_run_group_tests(tests, setup, NULL);
}
