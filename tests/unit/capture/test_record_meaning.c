/* SPDX-License-Identifier: BSD-2-Clause */
/* What is said of posts, completions, states and events. */
#include "test.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <string.h>

#include "capture/record_meaning.h"

static char text[CAPTURE_RECORD_CHARS];

static const char *meaning(const struct roci_record *r)
{
	struct capture_run run = {.count = 0};

	assert_true(capture_run_add(&run, r));
	return capture_run_meaning(&run, text);
}

static void test_posts(void **state)
{
	struct roci_record r = {.kind = ROCI_RECORD_POST_SEND,
				.opcode = IBV_WR_RDMA_WRITE,
				.flags = IBV_SEND_FENCE | IBV_SEND_INLINE,
				.wr_id = 1ull << 40,
				.length = 64,
				.rkey = 0x77,
				.remote_addr = 0x1000};

	assert_string_equal(meaning(&r), "WRITE 64 bytes, remote address 0x1000, rkey 0x00000077, wr_id 0x10000000000, "
					 "not signaled, fence, inline");
	r = (struct roci_record){.kind = ROCI_RECORD_POST_SEND, .opcode = IBV_WR_SEND_WITH_INV, .imm = 5};
	r.flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED;
	assert_string_equal(meaning(&r), "SEND with invalidate, invalidates 0x00000005, wr_id 0, solicited");
	assert_string_equal(capture_record_name(&r), "post send");
	assert_false(capture_record_is_error(&r));
}

static void test_completions(void **state)
{
	struct roci_record r = {.kind = ROCI_RECORD_COMPLETION, .opcode = IBV_WC_RECV, .wr_id = 3, .length = 1 << 20};

	r.flags = IBV_WC_WITH_IMM;
	r.imm = htobe32(0x1234);
	assert_string_equal(meaning(&r), "receive is done, 1 MiB, immediate 0x00001234, wr_id 3");
	assert_false(capture_record_is_error(&r));
	r.status = 250;
	assert_string_equal(meaning(&r), "receive failed, wr_id 3: status 250");
	assert_true(capture_record_is_error(&r));
}

static void test_connections(void **state)
{
	struct roci_record r = {.kind = ROCI_RECORD_CM_EVENT, .opcode = 3, .status = 28};

	assert_string_equal(meaning(&r),
			    "connection rejected, reason 28: the far end's program rejected the connection");
	assert_true(capture_record_is_error(&r));
	r = (struct roci_record){.kind = ROCI_RECORD_CM_EVENT, .opcode = 4, .status = (uint32_t)-ETIMEDOUT};
	assert_non_null(strstr(meaning(&r), "no answer to the connection request, status -110: "));
	r = (struct roci_record){.kind = ROCI_RECORD_CM_EVENT, .opcode = 200, .peer = 7};
	assert_string_equal(meaning(&r), "connection event, QP 0x000007 there");
	assert_false(capture_record_is_error(&r));
}

static void test_states_and_faults(void **state)
{
	struct roci_record r = {.kind = ROCI_RECORD_QP_STATE, .status = IBV_QPS_ERR};

	assert_string_equal(meaning(&r), "ERR");
	assert_true(capture_record_is_error(&r));
	r = (struct roci_record){
		.kind = ROCI_RECORD_FAULT, .status = ROCI_RECORD_LOST, .flags = 1, .opcode = 4, .imm = 9};
	assert_string_equal(meaning(&r), "lost before it was sent: RC SEND Only, PSN 9");
	r.status = 77;
	assert_string_equal(meaning(&r), "changed before it was sent: RC SEND Only, PSN 9");
}

static void test_steps(void **state)
{
	struct roci_record r = {.kind = ROCI_RECORD_SEND_TAKEN, .opcode = IBV_WR_RDMA_WRITE, .wr_id = 4, .length = 64};

	assert_string_equal(meaning(&r), "the device begins with WRITE 64 bytes, wr_id 4");
	assert_true(capture_record_is_step(&r));
	r = (struct roci_record){.kind = ROCI_RECORD_RECV_TAKEN, .wr_id = 9};
	assert_string_equal(meaning(&r), "a message takes the receive, wr_id 9");
	r = (struct roci_record){.kind = ROCI_RECORD_EXECUTED, .opcode = 12};
	assert_string_equal(meaning(&r), "the device has executed the peer's RC RDMA READ Request");
	r.kind = ROCI_RECORD_COMPLETION;
	assert_false(capture_record_is_step(&r));
}

/* Whatever kind there is, it has a name. */
static void test_every_kind_has_a_name(void **state)
{
	for (unsigned kind = 1; kind < ROCI_RECORD_KINDS; kind++) {
		const struct roci_record r = {.kind = (uint16_t)kind, .text = "x"};

		assert_non_null(capture_record_name(&r));
		assert_non_null(capture_record_word(&r));
		assert_true(*meaning(&r));
	}
}

/* Receives join where they are alike; sends never do. */
static void test_runs(void **state)
{
	struct roci_record r = {.kind = ROCI_RECORD_POST_RECV, .qpn = 5, .wr_id = 1, .length = 4096};
	struct capture_run run = {.count = 0};

	assert_true(capture_run_add(&run, &r));
	r.wr_id = 2;
	assert_true(capture_run_add(&run, &r));
	r.qpn = 6;
	assert_false(capture_run_add(&run, &r));
	assert_string_equal(capture_run_meaning(&run, text), "2 receives of 4 KiB, wr_id 1 to 2");
	run.count = 0;
	r.kind = ROCI_RECORD_POST_SEND;
	assert_true(capture_run_add(&run, &r));
	assert_false(capture_run_add(&run, &r));
	run.count = 0;
	r = (struct roci_record){.kind = ROCI_RECORD_COMPLETION, .opcode = IBV_WC_RECV, .status = IBV_WC_WR_FLUSH_ERR};
	assert_true(capture_run_add(&run, &r));
	assert_true(capture_run_add(&run, &r));
	assert_non_null(
		strstr(capture_run_meaning(&run, text), "2 of receive failed, wr_id 0: IBV_WC_WR_FLUSH_ERR (5)"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_posts),
		cmocka_unit_test(test_completions),
		cmocka_unit_test(test_connections),
		cmocka_unit_test(test_states_and_faults),
		cmocka_unit_test(test_runs),
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_every_kind_has_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
