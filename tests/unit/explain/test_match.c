/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines as programs log them, and what they are about. */
#include "test.h"

#include <infiniband/verbs.h>
#include <string.h>

#include "explain/explain.h"

/* `expected`: the names of all rows that are found, in order, with ", " between. */
static void check(const char *line, const char *expected)
{
	struct explain_found found;
	char names[1024] = "";

	explain_find(line, &found);
	for (size_t i = 0; i < found.count; i++)
		strcat(strcat(names, i ? ", " : ""), found.rows[i]->name);
	if (strcmp(names, expected))
		fail_msg("%s\n  finds    %s\n  expected %s", line, names, expected);
}

static void completions(void **state)
{
	check("RNR_RETRY_EXC", "IBV_WC_RNR_RETRY_EXC_ERR");
	check("rnr-retry-exc-err", "IBV_WC_RNR_RETRY_EXC_ERR");
	check("status 12 vendor err 129", "IBV_WC_RETRY_EXC_ERR");
	check("vendor err 129", "");
	check("FLUSH_ERR", "IBV_WC_WR_FLUSH_ERR");
	check("flush", "IBV_WC_WR_FLUSH_ERR");
	check("cache flush done", "");
	check("Couldn't connect to 10.0.0.7:18515", "ECONNREFUSED");
	check("Unable to init the socket connection", "ECONNREFUSED");
	check("Couldn't connect to 10.0.0.7:18515: No route to host", "EHOSTUNREACH");
	check("Couldn't connect to 10.0.0.7:18515 (errno 110)", "ETIMEDOUT");
	check("Couldn't connect to 10.0.0.7:18515: Connection refused", "ECONNREFUSED");
	check(" Unable to find GID", "ibv_query_gid: ENODATA");
	check("Failed to modify QP to RTS", "ibv_modify_qp: EINVAL, ibv_modify_qp: EOPNOTSUPP");
	/* perftest */
	check(" Completion with error at client\n Failed status 12: wr_id 0 syndrom 0x81\nscnt=128, ccnt=0",
	      "IBV_WC_RETRY_EXC_ERR");
	check("Failed status 10: wr_id 0 syndrom 0x88", "IBV_WC_REM_ACCESS_ERR");
	/* libibverbs' pingpong programs */
	check("Failed status transport retry counter exceeded (12) for wr_id 2", "IBV_WC_RETRY_EXC_ERR");
	check("Failed status Work Request Flushed Error (5) for wr_id 1", "IBV_WC_WR_FLUSH_ERR");
	/* NCCL */
	check("node-1:984:1357 [4] ib_plugin.c:1615 NCCL WARN NET/IB : Got completion from peer 192.0.2.59<44206> with "
	      "status=12 opcode=129 len=65536 vendor err 129 (Recv) localGid ::ffff:192.0.2.1 "
	      "remoteGids::ffff:192.0.2.2",
	      "IBV_WC_RETRY_EXC_ERR");
	check("NCCL WARN NET/IB : Got completion from peer 192.0.2.59<44206> with status=5 opcode=32656 len=32659 "
	      "vendor "
	      "err 249 (Recv)",
	      "IBV_WC_WR_FLUSH_ERR");
	check("NCCL WARN NET/IB : Got completion with error 12, opcode 0, len 0, vendor err 129",
	      "IBV_WC_RETRY_EXC_ERR");
	check("NCCL WARN NET/IB : Got completion with error 5, opcode 48, len 0, vendor err 244",
	      "IBV_WC_WR_FLUSH_ERR");
	check("Got completion with error 12", "IBV_WC_RETRY_EXC_ERR");
	check("error 12, vendor err 129", "IBV_WC_RETRY_EXC_ERR");
	/* UCX */
	check("[master:19546:0:19546] ib_mlx5_log.c:139  Transport retry count exceeded on mlx5_0:1/IB (synd 0x15 vend "
	      "0x81 hw_synd 0/0)",
	      "IBV_WC_RETRY_EXC_ERR");
	check("ib_mlx5_log.c:177  Receive-no-ready retry count exceeded on mlx5_0:1/RoCE (synd 0x16 vend 0x8b hw_synd "
	      "0/0)",
	      "IBV_WC_RNR_RETRY_EXC_ERR");
	check("ib_mlx5_log.c:162  Remote access on mlx5_0:1/IB (synd 0x13 vend 0x88 hw_synd 0/0)",
	      "IBV_WC_REM_ACCESS_ERR");
	check("ib_mlx5_log.c:162  Local protection on mlx5_0:1/IB (synd 0x4 vend 0x51 hw_synd 0/0)",
	      "IBV_WC_LOC_PROT_ERR");
	/* Open MPI's openib */
	check("error polling LP CQ with status RETRY EXCEEDED ERROR status number 12 for wr_id 1cd8d70 opcode 1 vendor "
	      "error 129 qp_idx 0",
	      "IBV_WC_RETRY_EXC_ERR");
	/* Linux */
	check("infiniband mlx5_0: mlx5_handle_error_cqe:334:(pid 0): WC error: 4, Message: local protection error",
	      "IBV_WC_LOC_PROT_ERR");
	check("cq completion failed with wr_id 0 status 5 opcode 128 vendor_err 0", "IBV_WC_WR_FLUSH_ERR");
	check("nvme nvme0: RECV for CQE 0x00000000 failed with status WR flushed (5)", "IBV_WC_WR_FLUSH_ERR");
	check("isert: isert_print_wc: recv failure: remote invalid request error (9) vend_err 8a",
	      "IBV_WC_REM_INV_REQ_ERR");
	/* libfabric */
	check("libfabric:1234:verbs:ep_data:vrb_poll_cq():  IBV_WC_RNR_RETRY_EXC_ERR (13) vendor 135",
	      "IBV_WC_RNR_RETRY_EXC_ERR");
	/* libmlx5 */
	check("mlx5: node-1: got completion with error:\n00000000 00000000 00000000 00000000\n00000000 00000000 "
	      "00000000 "
	      "00000000\n00000000 00000000 00000000 00000000\n00000000 00008914 10000d0b 000036d2",
	      "IBV_WC_REM_OP_ERR");
	check("mlx5: node-1: got completion with error:\n00000000 00000000 00000000 00000000", "");
	/* tshark */
	check("RC Acknowledge QP=0x2f0b6b [Invalid Request]", "NAK INVALID REQUEST");
	check("RC Acknowledge QP=0x2f0b6b [PSN Sequence Error]", "NAK PSN SEQUENCE ERROR");
	/* a part of another name is not that name */
	check("RNR retry counter exceeded", "IBV_WC_RNR_RETRY_EXC_ERR");
	check("retry counter 7", "");
}

static void connections(void **state)
{
	check("REJ 28", "IB_CM_REJ_CONSUMER_DEFINED");
	check("reject reason 28", "IB_CM_REJ_CONSUMER_DEFINED");
	check("RDMA_CM_EVENT_REJECTED, error 28", "IB_CM_REJ_CONSUMER_DEFINED, RDMA_CM_EVENT_REJECTED");
	/* rping */
	check("cma event RDMA_CM_EVENT_REJECTED, error 8", "IB_CM_REJ_INVALID_SERVICE_ID, RDMA_CM_EVENT_REJECTED");
	check("cma event RDMA_CM_EVENT_ADDR_ERROR, error -19", "ENODEV, RDMA_CM_EVENT_ADDR_ERROR");
	check("udaddy: event: RDMA_CM_EVENT_UNREACHABLE, error: 1", "RDMA_CM_EVENT_UNREACHABLE");
	check("cma event RDMA_CM_EVENT_UNREACHABLE, error -110", "ETIMEDOUT, RDMA_CM_EVENT_UNREACHABLE");
	check("rdma_resolve_addr: No such device", "rdma_resolve_addr: ENODEV");
	/* perftest */
	check("RDMA CM event error:\nEvent: RDMA_CM_EVENT_REJECTED; error: -111.",
	      "ECONNREFUSED, RDMA_CM_EVENT_REJECTED");
	check("Unexpected CM event bl blka 8", "");
	/* Linux */
	check("nvme nvme0: Connect rejected: status 8 (invalid service ID).",
	      "IB_CM_REJ_INVALID_SERVICE_ID, RDMA_CM_EVENT_REJECTED");
	check("nvme nvme0: Connect rejected: status 28 (consumer defined).",
	      "IB_CM_REJ_CONSUMER_DEFINED, RDMA_CM_EVENT_REJECTED");
	check("ib_srp: REJ reason: stale connection", "IB_CM_REJ_STALE_CONN");
	check("RDMA_CM_EVENT_DISCONNECTED", "RDMA_CM_EVENT_DISCONNECTED");
	check("rdma_create_event_channel: No such device", "rdma_create_event_channel: ENODEV");
	check("rdma_bind_addr: Cannot assign requested address", "rdma_bind_addr: EADDRNOTAVAIL");
	check("rdma_listen failed: Address already in use", "rdma_bind_addr: EADDRINUSE");
}

static void calls(void **state)
{
	check("failed to modify QP to RTR: Invalid argument", "ibv_modify_qp to RTR: EINVAL");
	check("Failed to modify QP to RTR",
	      "ibv_modify_qp to RTR: EINVAL, ibv_modify_qp to RTR: ETIMEDOUT, ibv_modify_qp: EOPNOTSUPP");
	check("Failed to modify QP 2120 to RTR: Connection timed out [110]", "ibv_modify_qp to RTR: ETIMEDOUT");
	check("E0331 12:03:04.222625 56060 rdma_endpoint.cpp:385] [Handshake] Failed to modify QP to RTR, check mtu, "
	      "gid, "
	      "peer lid, peer qp num: Invalid argument [22]",
	      "ibv_modify_qp to RTR: EINVAL");
	check("NCCL WARN Call to ibv_modify_qp failed with error Connection timed out errno 110",
	      "ibv_modify_qp to RTR: ETIMEDOUT");
	check("Call to ibv_modify_qp failed with error Connection timed out", "ibv_modify_qp to RTR: ETIMEDOUT");
	check("NCCL WARN Call to ibv_modify_qp failed with error Invalid argument errno 22", "ibv_modify_qp: EINVAL");
	check("NCCL WARN Call to ibv_reg_mr failed",
	      "ibv_reg_mr: ENOMEM, ibv_reg_mr: EFAULT, ibv_reg_mr: EINVAL, ibv_reg_mr: EOPNOTSUPP");
	check("NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory", "ibv_reg_mr: ENOMEM");
	check("ib_md.c:287 UCX ERROR ibv_reg_mr(address=0x7f00, length=65536, access=0xf) failed: Cannot allocate "
	      "memory",
	      "ibv_reg_mr: ENOMEM");
	check("Couldn't allocate MR", "ibv_reg_mr: ENOMEM");
	check(" Unable to init the socket connection", "ECONNREFUSED");
	check("ibv_reg_mr(): Bad address", "ibv_reg_mr: EFAULT");
	check("ibv_post_send error Error 22", "ibv_post_send: EINVAL");
	check("ibv_post_send failed: -12", "ibv_post_send: ENOMEM");
	check("rdma_create_qp: Invalid argument", "rdma_create_qp: EINVAL");
	check("Couldn't create QP: Cannot allocate memory", "ibv_create_qp: ENOMEM");
	check("ibv_create_cq: ret 22", "ibv_create_cq: EINVAL");
	check("ibv_modify_qp EINVAL", "ibv_modify_qp: EINVAL");
	check("No IB devices found", "ibv_open_device: ENODEV");
	check("Unable to find the Infiniband/RoCE device", "");
	check("errno 12", "ENOMEM");
	check("returned -22", "EINVAL");
}

/* An errno that no row has for the call: what is found is general, and says so. */
static void unknown_pairs(void **state)
{
	struct explain_found found;

	explain_find("ibv_reg_mr EACCES", &found);
	assert_string_equal(found.rows[0]->name, "EACCES");
	assert_true(found.general);
	explain_find("ibv_reg_mr ENOMEM", &found);
	assert_false(found.general);
	explain_find("EACCES", &found);
	assert_false(found.general);
}

static void check_unknown(const char *text, enum explain_kind kind, int code, int least, int most)
{
	struct explain_found found;
	int from, to;

	explain_find(text, &found);
	assert_int_equal(found.count, 0);
	assert_true(found.unknown_code);
	assert_int_equal(found.unknown_kind, kind);
	assert_int_equal(found.code, code);
	explain_range(kind, &from, &to);
	assert_int_equal(from, least);
	assert_int_equal(to, most);
}

static void unknown_codes(void **state)
{
	struct explain_found found;

	check_unknown("status 77", EXPLAIN_WC_STATUS, 77, 0, IBV_WC_TM_RNDV_INCOMPLETE);
	check_unknown("wc 77", EXPLAIN_WC_STATUS, 77, 0, IBV_WC_TM_RNDV_INCOMPLETE);
	check_unknown("syndrome 0x88", EXPLAIN_NAK, 0x88, 0, 0x7f);
	check_unknown("reject reason 999", EXPLAIN_CM_REJECT, 999, 1, 35);
	explain_find("what is this", &found);
	assert_false(found.unknown_code);
	explain_find("status 12", &found);
	assert_false(found.unknown_code);
}

static void the_rest(void **state)
{
	check("AETH syndrome 0x62", "NAK REMOTE ACCESS ERROR");
	check("syndrome 98", "NAK REMOTE ACCESS ERROR");
	check("syndrome 0x2c", "RNR NAK");
	check("syndrome 0x1f", "ACK");
	check("NAK", "RNR NAK, NAK PSN SEQUENCE ERROR, NAK INVALID REQUEST, NAK REMOTE ACCESS ERROR, "
		     "NAK REMOTE OPERATIONAL ERROR, NAK INVALID RD REQUEST");
	check("NAK code 1", "NAK INVALID REQUEST");
	check("NAK remote access error", "NAK REMOTE ACCESS ERROR");
	check("vendor syndrome 0x22", "");
	check("async event: port error", "IBV_EVENT_PORT_ERR");
	check("IBV_EVENT_QP_ACCESS_ERR", "IBV_EVENT_QP_ACCESS_ERR");
	check("mlx5_0: got async event 3", "IBV_EVENT_QP_ACCESS_ERR");
	check("local catastrophic error", "IBV_EVENT_DEVICE_FATAL");
	check("RTR", "IBV_QPS_RTR");
	check("qp state 6", "IBV_QPS_ERR");
	check("IBV_QPS_SQE", "IBV_QPS_SQE");
	check("exit status 12", "");
	check("RNR_RETY_EXC_ERR", "");
	check("what is this", "");
	check("", "");
	check("    ", "");
}

static void numbers(void **state)
{
	struct explain_found found;

	explain_find("12", &found);
	assert_int_equal(found.sure, 1);
	assert_true(found.count > 3);
	assert_string_equal(found.rows[0]->name, "IBV_WC_RETRY_EXC_ERR");
	explain_find("0xc", &found);
	assert_string_equal(found.rows[0]->name, "ACK");
	assert_string_equal(found.rows[1]->name, "IBV_WC_RETRY_EXC_ERR");
	explain_find("0x62", &found);
	assert_int_equal(found.sure, 1);
	assert_string_equal(found.rows[0]->name, "NAK REMOTE ACCESS ERROR");
	assert_string_equal(found.rows[1]->name, "EADDRINUSE");
	explain_find("98", &found);
	assert_string_equal(found.rows[0]->name, "EADDRINUSE");
	explain_find("0x1f", &found);
	assert_string_equal(found.rows[0]->name, "ACK");
	check("-22", "EINVAL");
	check("99999999999999999999", "");
	check("4000", "");
}

/* As people type what they have in mind, with no line of a log at hand. */
static void in_short(void **state)
{
	check("NAK 0x62", "NAK REMOTE ACCESS ERROR");
	check("wc 5", "IBV_WC_WR_FLUSH_ERR");
	check("wc 5 of 16 polled", "");
	check("EWOULDBLOCK", "EAGAIN");
	check("ENOTSUP", "EOPNOTSUPP");
	check("nak 98", "NAK REMOTE ACCESS ERROR");
	check("AETH 0x61", "NAK INVALID REQUEST");
	check("AETH 32", "RNR NAK");
	check("reject 28", "IB_CM_REJ_CONSUMER_DEFINED");
	check("rejection 8", "IB_CM_REJ_INVALID_SERVICE_ID");
	check("rejected, code 28", "IB_CM_REJ_CONSUMER_DEFINED");
	check("state ERR", "IBV_QPS_ERR");
	check("QP state: RTS", "IBV_QPS_RTS");
	check("event 8", "RDMA_CM_EVENT_REJECTED, IBV_EVENT_DEVICE_FATAL");
	check("error 12", "ENOMEM, IBV_WC_RETRY_EXC_ERR");
	check("error 110", "ETIMEDOUT");
	check("it says: error 12", "ENOMEM");
}

/* Verbs return the errno itself, so programs print it as a number. */
static void calls_with_a_number(void **state)
{
	check("ibv_post_send: 12", "ibv_post_send: ENOMEM");
	check("ibv_post_send failed 22", "ibv_post_send: EINVAL");
	check("ibv_post_recv() = 12", "ibv_post_recv: ENOMEM");
	check("ibv_modify_qp failed with 22", "ibv_modify_qp: EINVAL");
	check("posting send 7 of QP 9", "ibv_post_send: ENOMEM, ibv_post_send: EINVAL");
}

/* A call without an errno: what is known of the call, to choose from. */
static void calls_alone(void **state)
{
	struct explain_found found;

	check("Unable to create QP.", "ibv_create_qp: EINVAL, ibv_create_qp: ENOMEM, ibv_create_qp: EOPNOTSUPP");
	check("ERROR: Failed to modify QP 1234 to RTS", "ibv_modify_qp: EINVAL, ibv_modify_qp: EOPNOTSUPP");
	explain_find("ibv_create_ah", &found);
	assert_int_equal(found.count, 1);
	assert_int_equal(found.sure, 0);
}

static void any_bytes(void **state)
{
	char line[5000];
	struct explain_found found;
	uint32_t x = 1;

	for (unsigned round = 0; round < 60; round++) {
		for (size_t i = 0; i < sizeof(line) - 1; i++) {
			x = x * 1664525 + 1013904223;
			line[i] = (char)(1 + (x >> 24) % 255);
		}
		line[x % sizeof(line)] = '\0';
		line[sizeof(line) - 1] = '\0';
		explain_find(line, &found);
		assert_true(found.count <= EXPLAIN_FOUND_MAX);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(completions),   cmocka_unit_test(connections),
		cmocka_unit_test(calls),         cmocka_unit_test(the_rest),
		cmocka_unit_test(numbers),       cmocka_unit_test(any_bytes),
		cmocka_unit_test(unknown_pairs), cmocka_unit_test(unknown_codes),
		cmocka_unit_test(in_short),      cmocka_unit_test(calls_with_a_number),
		cmocka_unit_test(calls_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
