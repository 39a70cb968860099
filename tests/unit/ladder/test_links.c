/* SPDX-License-Identifier: BSD-2-Clause */
/* Which post and completion belong to which message. */
#include "drawn.h"

static void post(uint8_t opcode, uint64_t wr_id, bool signaled)
{
	struct roci_record r = record_of(ROCI_RECORD_POST_SEND, 1);

	r.opcode = opcode;
	r.wr_id = wr_id;
	r.flags = signaled ? IBV_SEND_SIGNALED : 0;
	tell(&r);
}

static void post_read(uint64_t wr_id, uint64_t length)
{
	struct roci_record r = record_of(ROCI_RECORD_POST_SEND, 1);

	r.opcode = IBV_WR_RDMA_READ;
	r.wr_id = wr_id;
	r.length = length;
	tell(&r);
}

static void ask_read(uint32_t psn, uint32_t length)
{
	const struct roci_packet pkt = {.opcode = ROCI_TRANSPORT_RC | ROCI_OP_READ_REQUEST,
					.pkey = 0xffff,
					.dest_qpn = 0x22,
					.psn = psn,
					.dma_len = length};

	see(CAPTURE_OUTBOUND, make_roce(d.packet, 1, 2, &pkt), 1);
}

static void complete(uint32_t pid, uint8_t opcode, uint64_t wr_id, uint32_t status)
{
	struct roci_record r = record_of(ROCI_RECORD_COMPLETION, pid);

	r.opcode = opcode;
	r.wr_id = wr_id;
	r.status = status;
	tell(&r);
}

static const struct roci_record *event(int index)
{
	assert_in_range(index, 0, d.l->event_count - 1);
	return &d.l->events[index].record;
}

/* The same wr_id again and again, as ping-pong programs have it. */
static void test_same_wr_id(void **state)
{
	begin();
	for (uint32_t i = 0; i < 3; i++) {
		post(IBV_WR_SEND, 2, true);
		see(CAPTURE_OUTBOUND, ask(ROCI_OP_SEND_ONLY, i), 1);
		complete(2, IBV_WC_RECV, 1, 0);
		complete(1, IBV_WC_SEND, 2, 0);
	}
	finish();
	assert_int_equal(d.l->message_count, 3);
	for (unsigned i = 0; i < 3; i++) {
		const struct ladder_message *m = &d.l->messages[i];

		assert_int_equal(event(m->post)->kind, ROCI_RECORD_POST_SEND);
		assert_int_equal(event(m->completion)->time_ns - event(m->post)->time_ns, 3 * US);
		assert_int_equal(event(m->receive)->time_ns - event(m->post)->time_ns, 2 * US);
		assert_int_equal(event(m->receive)->pid, 2);
	}
}

static void test_not_signaled(void **state)
{
	begin();
	post(IBV_WR_RDMA_WRITE, 1, false);
	post(IBV_WR_RDMA_WRITE, 2, true);
	see(CAPTURE_OUTBOUND, ask(ROCI_OP_WRITE_ONLY, 5), 1);
	see(CAPTURE_OUTBOUND, ask(ROCI_OP_WRITE_ONLY, 6), 1);
	complete(1, IBV_WC_RDMA_WRITE, 2, 0);
	finish();
	assert_int_equal(event(d.l->messages[0].post)->wr_id, 1);
	assert_int_equal(d.l->messages[0].completion, -1);
	assert_int_equal(event(d.l->messages[1].post)->wr_id, 2);
	assert_int_equal(event(d.l->messages[1].completion)->wr_id, 2);
	assert_int_equal(d.l->messages[1].receive, -1); /* a WRITE takes none */
}

/* What completed before its post was captured is of another request. */
static void test_begins_late(void **state)
{
	begin();
	complete(1, IBV_WC_SEND, 2, 0);
	post(IBV_WR_SEND, 2, true);
	see(CAPTURE_OUTBOUND, ask(ROCI_OP_SEND_ONLY, 5), 1);
	complete(1, IBV_WC_SEND, 2, IBV_WC_RETRY_EXC_ERR);
	finish();
	assert_int_equal(event(d.l->messages[0].completion)->status, IBV_WC_RETRY_EXC_ERR);
}

/* A long READ is asked for in pieces, and a piece again from its middle. All belong to one post. */
static void test_read_in_pieces(void **state)
{
	begin();
	post_read(1, 10000);
	post_read(2, 500);
	post(IBV_WR_SEND, 3, true);
	ask_read(5, 4096);
	ask_read(9, 4096);
	ask_read(11, 2048); /* the rest of the second piece */
	ask_read(13, 1808);
	ask_read(15, 500);
	see(CAPTURE_OUTBOUND, ask(ROCI_OP_SEND_ONLY, 16), 1);
	complete(1, IBV_WC_RDMA_READ, 1, 0);
	complete(1, IBV_WC_RDMA_READ, 2, 0);
	complete(1, IBV_WC_SEND, 3, 0);
	finish();
	assert_int_equal(d.l->message_count, 5);
	for (unsigned i = 0; i < 5; i++) {
		const struct ladder_message *m = &d.l->messages[i];

		assert_int_equal(event(m->post)->wr_id, i < 3 ? 1 : i - 1);
		assert_int_equal(event(m->completion)->wr_id, i < 3 ? 1 : i - 1);
	}
}

/* The device asks the peer for a sign of life between two READs, and before the first packet: nobody posts that. */
static void test_probes(void **state)
{
	const struct roci_packet probe = {.opcode = ROCI_TRANSPORT_RC | ROCI_OP_WRITE_ONLY,
					  .pkey = 0xffff,
					  .dest_qpn = 0x22,
					  .psn = 4,
					  .ack_req = true};
	struct roci_packet second = probe;

	begin();
	post_read(1, 500);
	see(CAPTURE_OUTBOUND, make_roce(d.packet, 1, 2, &probe), 1);
	ask_read(5, 500);
	complete(1, IBV_WC_RDMA_READ, 1, 0);
	post_read(2, 500);
	second.psn = 5;
	see(CAPTURE_OUTBOUND, make_roce(d.packet, 1, 2, &second), 1);
	ask_read(6, 500);
	complete(1, IBV_WC_RDMA_READ, 2, 0);
	finish();
	assert_int_equal(d.l->message_count, 3); /* the first probe looks like a WRITE of nothing */
	assert_int_equal(d.l->messages[0].post, -1);
	for (unsigned i = 1; i < 3; i++) {
		assert_int_equal(event(d.l->messages[i].post)->wr_id, i);
		assert_int_equal(event(d.l->messages[i].completion)->wr_id, i);
	}
}

/* Kinds that do not agree tell that the two are not in step: then nothing is claimed. */
static void test_out_of_step(void **state)
{
	begin();
	post(IBV_WR_RDMA_READ, 1, true);
	see(CAPTURE_OUTBOUND, ask(ROCI_OP_SEND_ONLY, 5), 1);
	post(IBV_WR_SEND, 2, true);
	see(CAPTURE_OUTBOUND, ask(ROCI_OP_SEND_ONLY, 6), 1);
	finish();
	assert_int_equal(d.l->messages[0].post, -1);
	assert_int_equal(d.l->messages[1].post, -1);
}

/* Of a message the receives that were flushed are none. */
static void test_flushed(void **state)
{
	begin();
	post(IBV_WR_SEND, 1, true);
	complete(2, IBV_WC_RECV, 8, IBV_WC_WR_FLUSH_ERR);
	see(CAPTURE_OUTBOUND, ask(ROCI_OP_SEND_ONLY, 5), 1);
	finish();
	assert_int_equal(d.l->messages[0].receive, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_same_wr_id),  TEST(test_not_signaled), TEST(test_begins_late), TEST(test_read_in_pieces),
		TEST(test_out_of_step), TEST(test_flushed),      TEST(test_probes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
