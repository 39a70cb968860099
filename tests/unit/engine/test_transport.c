/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules of the reliable connection, one test each. */
#include "pair.h"

#include <errno.h>
#include <string.h>

#include "engine/qp.h"

#define MS UINT64_C(1000000)

static struct pair *make(void)
{
	struct pair_options o = pair_defaults();

	return pair_create(&o);
}

static void pattern(struct pair *p, int s, uint32_t offset, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		p->side[s].memory[offset + i] = (uint8_t)(i * 7 + 1);
}

static void write_and_read_move_bytes(void **state)
{
	struct pair *p = make();

	pattern(p, 0, 0, 5000);
	assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_WRITE, 1, 0, 5000, 8000), 0);
	assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_READ, 2, 20000, 5000, 8000), 0);
	pair_run(p);
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	pair_expect(p, 0, 2, ROCI_WC_SUCCESS);
	assert_memory_equal(p->side[1].memory + 8000, p->side[0].memory, 5000);
	assert_memory_equal(p->side[0].memory + 20000, p->side[0].memory, 5000);
	assert_int_equal(roci_engine_deadline(p->side[0].e), ROCI_NEVER);
	pair_free(p);
}

static void send_of_every_length_arrives(void **state)
{
	struct pair *p = make();

	for (uint32_t len = 0; len < 3 * PAIR_MTU + 2; len += 51) {
		pattern(p, 0, 0, len);
		pair_recv(p, 1, len, 30000, 4000);
		pair_send(p, 0, ROCI_WR_SEND_WITH_IMM, len, 0, len, 0);
		pair_run(p);
		pair_expect(p, 0, len, ROCI_WC_SUCCESS);
		pair_expect(p, 1, len, ROCI_WC_SUCCESS);
		assert_memory_equal(p->side[1].memory + 30000, p->side[0].memory, len);
	}
	pair_free(p);
}

static bool drop_all(struct pair *p, int from, const struct roci_packet *pkt)
{
	return false;
}

/* IBTA 9.9.2.1.1: retry_cnt n means n more sends; the wait is 4.096 us * 2^timeout each time, and 200 ms of grace. */
static void retries_are_counted(void **state)
{
	struct pair_options o = pair_defaults();
	const uint64_t wait = 67108864 + 200000000;
	uint64_t start;
	struct pair *p;

	o.retry_cnt = 2;
	p = pair_create(&o);
	p->filter = drop_all;
	pair_send(p, 0, ROCI_WR_SEND, 1, 0, 10, 0);
	pair_send(p, 0, ROCI_WR_SEND, 2, 0, 10, 0);
	start = p->now;
	pair_run_until(p, start + 3 * wait - 1);
	pair_expect_nothing(p, 0);
	pair_run_until(p, start + 3 * wait);
	pair_expect(p, 0, 1, ROCI_WC_RETRY_EXC_ERR);
	pair_expect(p, 0, 2, ROCI_WC_WR_FLUSH_ERR);
	assert_int_equal(roci_qp_state(p->side[0].qp), ROCI_QPS_ERR);
	assert_int_equal(p->sent[0], 12); /* both, and again between the timeouts */
	assert_int_equal(roci_engine_deadline(p->side[0].e), ROCI_NEVER);
	pair_free(p);
}

static bool drop_first(struct pair *p, int from, const struct roci_packet *pkt)
{
	return p->count++ > 0;
}

static bool drop_first_response(struct pair *p, int from, const struct roci_packet *pkt)
{
	return from != 1 || ++p->count != 1;
}

/* The payload of a packet that was lost once, or whose loss only a timeout would repair, is copied before it is sealed.
 */
static void what_is_sent_again_is_copied(void **state)
{
	struct pair *p = make();

	pair_send(p, 0, ROCI_WR_RDMA_READ, 1, 0, PAIR_MTU, 8000);
	pair_run(p);
	assert_int_equal(p->copied[1], 1);
	pair_send(p, 0, ROCI_WR_RDMA_READ, 2, 0, 3 * PAIR_MTU, 8000);
	pair_send(p, 0, ROCI_WR_RDMA_WRITE, 3, 0, 3 * PAIR_MTU, 8000);
	pair_run(p);
	assert_int_equal(p->copied[0] + p->copied[1], 1);

	p->filter = drop_first;
	pair_send(p, 0, ROCI_WR_RDMA_WRITE, 4, 0, PAIR_MTU, 8000);
	pair_run_until(p, p->now + 100 * MS);
	assert_int_equal(p->dropped, 1);
	assert_int_equal(p->copied[0], 1);
	p->count = 0;
	p->filter = drop_first_response;
	pair_send(p, 0, ROCI_WR_RDMA_READ, 5, 0, 2 * PAIR_MTU, 8000);
	pair_run_until(p, p->now + 100 * MS);
	assert_int_equal(p->dropped, 2);
	assert_int_equal(p->copied[1], 1 + 2);
	for (uint64_t id = 1; id <= 5; id++)
		pair_expect(p, 0, id, ROCI_WC_SUCCESS);
	pair_free(p);
}

/* The first packet is lost, no round trip is known, and the QP's timeout is hours or never: a probe is sent. */
static void first_packet_is_probed(void **state)
{
	static const unsigned timeouts[] = {0, 31};

	for (size_t i = 0; i < sizeof(timeouts) / sizeof(timeouts[0]); i++) {
		struct pair_options o = pair_defaults();
		struct pair *p;
		uint64_t start;

		o.timeout = timeouts[i];
		o.retry_cnt = 0;
		p = pair_create(&o);
		p->filter = drop_first;
		start = p->now;
		pair_send(p, 0, ROCI_WR_RDMA_WRITE, 1, 0, 10, 0);
		pair_run_until(p, start + 99 * MS);
		pair_expect_nothing(p, 0);
		pair_run_until(p, start + 101 * MS);
		pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
		pair_free(p);
	}
}

/* IBTA 9.7.5.2.8 */
static void rnr_retries_are_counted(void **state)
{
	struct pair_options o = pair_defaults();
	struct pair *p;

	o.rnr_retry = 3;
	o.min_rnr_timer = 14; /* 1.28 ms */
	p = pair_create(&o);
	pair_send(p, 0, ROCI_WR_SEND, 1, 0, 700, 0);
	pair_run_until(p, p->now + 3 * 1280000 - 1);
	pair_expect_nothing(p, 0);
	assert_int_equal(p->sent[1], 3);
	pair_run_until(p, p->now + 1280000);
	pair_expect(p, 0, 1, ROCI_WC_RNR_RETRY_EXC_ERR);
	assert_int_equal(roci_qp_state(p->side[1].qp), ROCI_QPS_RTS);
	pair_free(p);
}

static void rnr_ends_when_a_receive_is_posted(void **state)
{
	struct pair *p = make();

	pattern(p, 0, 0, 700);
	pair_send(p, 0, ROCI_WR_SEND, 1, 0, 700, 0);
	pair_run(p);
	pair_recv(p, 1, 9, 40000, 700);
	pair_run_until(p, p->now + 10 * MS);
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	pair_expect(p, 1, 9, ROCI_WC_SUCCESS);
	assert_memory_equal(p->side[1].memory + 40000, p->side[0].memory, 700);
	pair_free(p);
}

static bool drop_third_from_0(struct pair *p, int from, const struct roci_packet *pkt)
{
	return from != 0 || ++p->count != 3;
}

/* The receiver keeps the packets that came early, so one packet repairs the loss. */
static void one_lost_packet_costs_few(void **state)
{
	struct pair *p = make();

	pattern(p, 0, 0, 40 * PAIR_MTU);
	p->filter = drop_third_from_0;
	pair_send(p, 0, ROCI_WR_RDMA_WRITE, 1, 0, 40 * PAIR_MTU, 20000);
	pair_run(p);
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	assert_memory_equal(p->side[1].memory + 20000, p->side[0].memory, 40 * PAIR_MTU);
	assert_true(p->sent[0] <= 40 + 8);
	pair_free(p);
}

static bool drop_fifth_response(struct pair *p, int from, const struct roci_packet *pkt)
{
	return from != 1 || ++p->count != 5;
}

static void lost_read_response_is_asked_for_again(void **state)
{
	struct pair *p = make();

	pattern(p, 1, 0, 40 * PAIR_MTU);
	p->filter = drop_fifth_response;
	pair_send(p, 0, ROCI_WR_RDMA_READ, 1, 20000, 40 * PAIR_MTU, 0);
	pair_run_until(p, p->now + 1000 * MS);
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	assert_memory_equal(p->side[0].memory + 20000, p->side[1].memory, 40 * PAIR_MTU);
	pair_free(p);
}

/* IBTA 9.7.5.2.2: a repeated atomic is answered with the saved value. */
static void repeated_atomic_executes_once(void **state)
{
	struct pair *p = make();
	uint64_t value = 100;

	memcpy(p->side[1].memory + 64, &value, 8);
	p->filter = drop_first_response;
	pair_send(p, 0, ROCI_WR_ATOMIC_FETCH_AND_ADD, 1, 128, 8, 64);
	pair_run_until(p, p->now + 1000 * MS);
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	memcpy(&value, p->side[1].memory + 64, 8);
	assert_int_equal(value, 105);
	memcpy(&value, p->side[0].memory + 128, 8);
	assert_int_equal(value, 100);
	pair_free(p);
}

struct access_case {
	enum roci_wr_opcode op;
	uint32_t qp_access, mr_access, remote;
	enum roci_wc_status status;
};

/* IBTA 9.9.3: the status of each kind of refusal. */
static void access_errors_have_their_names(void **state)
{
	uint32_t all = pair_defaults().access, mr = pair_defaults().mr_access;
	const struct access_case cases[] = {
		{ROCI_WR_RDMA_WRITE, all, mr, PAIR_MEMORY - 4, ROCI_WC_REM_ACCESS_ERR},
		{ROCI_WR_RDMA_READ, all, mr, PAIR_MEMORY - 4, ROCI_WC_REM_ACCESS_ERR},
		{ROCI_WR_RDMA_WRITE, all & ~(uint32_t)ROCI_ACCESS_REMOTE_WRITE, mr, 0, ROCI_WC_REM_INV_REQ_ERR},
		{ROCI_WR_RDMA_READ, all, mr & ~(uint32_t)ROCI_ACCESS_REMOTE_READ, 0, ROCI_WC_REM_ACCESS_ERR},
		{ROCI_WR_ATOMIC_FETCH_AND_ADD, all & ~(uint32_t)ROCI_ACCESS_REMOTE_ATOMIC, mr, 0,
		 ROCI_WC_REM_INV_REQ_ERR},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pair_options o = pair_defaults();
		struct pair *p;

		o.access = cases[i].qp_access;
		o.mr_access = cases[i].mr_access;
		p = pair_create(&o);
		pair_recv(p, 1, 77, 0, 100);
		pair_send(p, 0, cases[i].op, 1, 0, 8, cases[i].remote);
		pair_send(p, 0, ROCI_WR_SEND, 2, 0, 8, 0);
		pair_run(p);
		pair_expect(p, 0, 1, cases[i].status);
		pair_expect(p, 0, 2, ROCI_WC_WR_FLUSH_ERR);
		pair_expect(p, 1, 77, ROCI_WC_WR_FLUSH_ERR);
		assert_int_equal(roci_qp_state(p->side[1].qp), ROCI_QPS_ERR);
		pair_free(p);
	}
}

/* IBTA 9.9.3 class C: local length error, NAK invalid request. */
static void long_send_fails_on_both_sides(void **state)
{
	struct pair *p = make();

	pair_recv(p, 1, 9, 0, 300);
	pair_send(p, 0, ROCI_WR_SEND, 1, 0, 301, 0);
	pair_run(p);
	pair_expect(p, 0, 1, ROCI_WC_REM_INV_REQ_ERR);
	pair_expect(p, 1, 9, ROCI_WC_LOC_LEN_ERR);
	pair_free(p);
}

/* The requests before the one that failed are still answered. */
static void read_before_a_bad_write_completes(void **state)
{
	struct pair *p = make();

	pattern(p, 1, 0, 3000);
	pair_send(p, 0, ROCI_WR_RDMA_READ, 1, 20000, 3000, 0);
	pair_send(p, 0, ROCI_WR_RDMA_WRITE, 2, 0, 8, PAIR_MEMORY);
	pair_run(p);
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	pair_expect(p, 0, 2, ROCI_WC_REM_ACCESS_ERR);
	assert_memory_equal(p->side[0].memory + 20000, p->side[1].memory, 3000);
	pair_free(p);
}

/* The SEND with Invalidate of a key that is none is acknowledged, and so is the READ before it, which needs its data.
 */
static void read_before_a_bad_invalidate_completes(void **state)
{
	struct pair *p = make();

	pattern(p, 1, 0, 3000);
	pair_recv(p, 1, 5, 30000, 100);
	pair_send(p, 0, ROCI_WR_RDMA_READ, 1, 20000, 3000, 0);
	pair_send(p, 0, ROCI_WR_ATOMIC_FETCH_AND_ADD, 2, 24000, 8, 8000);
	pair_send(p, 0, ROCI_WR_SEND_WITH_INV, 3, 0, 8, 0);
	pair_run(p);
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	pair_expect(p, 0, 2, ROCI_WC_SUCCESS);
	pair_expect(p, 0, 3, ROCI_WC_SUCCESS);
	pair_expect(p, 1, 5, ROCI_WC_REM_INV_REQ_ERR);
	assert_int_equal(roci_qp_state(p->side[1].qp), ROCI_QPS_ERR);
	assert_memory_equal(p->side[0].memory + 20000, p->side[1].memory, 3000);
	pair_free(p);
}

static void full_queue_refuses_and_loses_nothing(void **state)
{
	struct pair *p = make();

	for (uint64_t i = 0; i < 64; i++)
		assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_WRITE, i, 0, 4, 0), 0);
	assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_WRITE, 64, 0, 4, 0), -ENOMEM);
	pair_run(p);
	for (uint64_t i = 0; i < 64; i++)
		pair_expect(p, 0, i, ROCI_WC_SUCCESS);
	pair_expect_nothing(p, 0);
	pair_free(p);
}

/* A message that grows beyond the limit. */
static bool at_the_limit(struct pair *p, int from, const struct roci_packet *pkt)
{
	if (from == 0 && !pkt->op->first)
		p->side[1].qp->resp.message.offset = ROCI_MAX_MESSAGE_BYTES;
	return true;
}

static void endless_send_is_refused(void **state)
{
	struct pair *p = make();
	struct roci_mr_attr all = {.pd = 1,
				   .key = 0x777700,
				   .base = p->side[1].memory,
				   .iova = (uintptr_t)p->side[1].memory,
				   .len = UINT32_MAX, /* more than there is: none of it is accessed */
				   .access = ROCI_ACCESS_LOCAL_WRITE};
	struct roci_sge sge = {all.iova, UINT32_MAX, all.key};
	struct roci_recv_wr recv = {.wr_id = 9, .sges = &sge, .num_sge = 1};
	struct roci_mr *mr;

	assert_int_equal(roci_mr_create(p->side[1].e, &all, &mr), 0);
	assert_int_equal(roci_qp_post_recv(p->side[1].qp, &recv), 0);
	p->filter = at_the_limit;
	pair_send(p, 0, ROCI_WR_SEND, 1, 0, 2 * PAIR_MTU, 0);
	pair_run(p);
	pair_expect(p, 0, 1, ROCI_WC_REM_INV_REQ_ERR);
	pair_expect(p, 1, 9, ROCI_WC_WR_FLUSH_ERR);
	pair_free(p);
}

/* IBTA 11.6.3: a full CQ is an error of the CQ, and its QPs fail; nothing is overwritten. */
static void cq_overrun_is_told(void **state)
{
	struct pair *p = make();
	bool cq_err = false, fatal = false;
	struct roci_event ev;

	assert_int_equal(roci_cq_resize(p->side[0].cq, 32), 0);
	for (uint64_t i = 0; i < 64; i++)
		assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_WRITE, i, 0, 4, 0), 0);
	pair_run(p);
	while (roci_engine_next_event(p->side[0].e, &ev)) {
		cq_err |= ev.kind == ROCI_EV_ASYNC && ev.type == ROCI_EVENT_CQ_ERR;
		fatal |= ev.kind == ROCI_EV_ASYNC && ev.type == ROCI_EVENT_QP_FATAL;
	}
	assert_true(cq_err && fatal);
	assert_true(roci_cq_overrun(p->side[0].cq));
	assert_int_equal(roci_qp_state(p->side[0].qp), ROCI_QPS_ERR);
	for (uint64_t i = 0; i < 32; i++)
		pair_expect(p, 0, i, ROCI_WC_SUCCESS);
	pair_free(p);
}

static bool most_outstanding(struct pair *p, int from, const struct roci_packet *pkt)
{
	if (from == 0 && pkt->op->kind == ROCI_KIND_READ_REQUEST)
		p->count++;
	return true;
}

static void unsignaled_sends_are_silent(void **state)
{
	struct pair_options o = pair_defaults();
	struct pair *p;

	o.sig_all = false;
	p = pair_create(&o);
	p->filter = most_outstanding;
	for (uint64_t i = 0; i < 10; i++)
		pair_send(p, 0, ROCI_WR_RDMA_READ, i, 0, 100, 0);
	pair_run(p);
	pair_expect_nothing(p, 0);
	assert_int_equal(p->count, 10);
	pair_free(p);
}

static void datagram_carries_40_bytes_of_header(void **state)
{
	struct pair_options o = pair_defaults();
	struct roci_cqe cqe;
	struct pair *p;

	o.type = ROCI_QPT_UD;
	p = pair_create(&o);
	pattern(p, 0, 0, 99);
	pair_recv(p, 1, 5, 1000, 200);
	pair_send(p, 0, ROCI_WR_SEND_WITH_IMM, 1, 0, 99, 0);
	pair_run(p);
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	assert_int_equal(roci_cq_poll(p->side[1].cq, &cqe, 1), 1);
	assert_int_equal(cqe.byte_len, 139);
	assert_int_equal(cqe.flags, ROCI_WC_GRH | ROCI_WC_WITH_IMM);
	assert_int_equal(cqe.src_qpn, 100);
	assert_int_equal(p->side[1].memory[1020], 0x45);
	assert_memory_equal(p->side[1].memory + 1040, p->side[0].memory, 99);
	pair_free(p);
}

/* An acknowledgement is handed in with a time that was read before that of the post: its round trip took no centuries,
 * of which the mean would never recover, and a peer that is silent is asked now and then, not without end. */
static void time_only_goes_forward(void **state)
{
	struct pair *p = make();

	pair_send(p, 0, ROCI_WR_RDMA_WRITE, 1, 0, 10, 0);
	pair_turn(p, 0);
	p->now -= 1000;
	pair_run(p);
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	p->now += 2000;
	p->filter = drop_all;
	pair_send(p, 0, ROCI_WR_RDMA_WRITE, 2, 0, 10, 0);
	pair_run_until(p, p->now + 200 * MS);
	assert_in_range(p->sent[0], 3, 10);
	p->filter = NULL;
	pair_run_until(p, p->now + 500 * MS);
	pair_expect(p, 0, 2, ROCI_WC_SUCCESS);
	pair_free(p);
}

/* A peer that asks for a long message at once, as other implementations do, does not get it in one burst. */
static void long_read_responses_are_paced(void **state)
{
	struct pair *p = make();
	unsigned packets = 60000 / PAIR_MTU + 1;
	struct roci_rx rx = {.pkt = {.op = roci_opcode_info(ROCI_OP_READ_REQUEST),
				     .opcode = ROCI_OP_READ_REQUEST,
				     .pkey = 0xffff,
				     .dest_qpn = 101,
				     .psn = pair_defaults().psn,
				     .dma_len = 60000,
				     .va = (uintptr_t)p->side[1].memory,
				     .rkey = p->side[1].key}};
	struct roci_qp_attr a;
	struct roci_qp_cap cap;

	roci_qp_query(p->side[0].qp, &a, &cap);
	memcpy(rx.sgid, a.av.sgid, 16);
	memcpy(rx.dgid, a.av.dgid, 16);
	for (int i = 0; i < 4; i++) {
		roci_engine_rx(p->side[1].e, p->now, &rx);
		rx.pkt.psn = (rx.pkt.psn + packets) & ROCI_PSN_MASK;
	}
	pair_run(p);
	assert_in_range(p->sent[1], packets, 3 * packets);
	pair_run_until(p, p->now + 1000 * MS);
	assert_int_equal(p->sent[1], 4 * packets);
	assert_int_equal(roci_engine_deadline(p->side[1].e), ROCI_NEVER);
	pair_free(p);
}

static void silent_peer_is_found_out(void **state)
{
	struct pair *p = make();
	struct roci_event ev;

	pair_send(p, 0, ROCI_WR_RDMA_WRITE, 1, 0, 10, 0);
	pair_run(p);
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	pair_recv(p, 0, 7, 0, 10);
	roci_qp_keepalive(p->side[0].qp, p->now, 2000 * MS);
	pair_run_until(p, p->now + 20000 * MS);
	assert_in_range(p->sent[0], 8, 11);
	pair_expect_nothing(p, 1); /* a probe is no message */
	assert_int_equal(roci_qp_state(p->side[0].qp), ROCI_QPS_RTS);
	assert_false(roci_engine_peer_lost(p->side[0].e, 100));
	p->filter = drop_all;
	pair_run_until(p, p->now + 8000 * MS);
	assert_int_equal(roci_qp_state(p->side[0].qp), ROCI_QPS_ERR);
	assert_true(roci_engine_peer_lost(p->side[0].e, 100));
	pair_expect(p, 0, 7, ROCI_WC_WR_FLUSH_ERR);
	assert_true(roci_engine_next_event(p->side[0].e, &ev) && ev.type == ROCI_EVENT_QP_FATAL);
	assert_int_equal(roci_engine_deadline(p->side[0].e), ROCI_NEVER);
	pair_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(write_and_read_move_bytes),
		cmocka_unit_test(send_of_every_length_arrives),
		cmocka_unit_test(retries_are_counted),
		cmocka_unit_test(what_is_sent_again_is_copied),
		cmocka_unit_test(first_packet_is_probed),
		cmocka_unit_test(rnr_retries_are_counted),
		cmocka_unit_test(rnr_ends_when_a_receive_is_posted),
		cmocka_unit_test(one_lost_packet_costs_few),
		cmocka_unit_test(lost_read_response_is_asked_for_again),
		cmocka_unit_test(repeated_atomic_executes_once),
		cmocka_unit_test(access_errors_have_their_names),
		cmocka_unit_test(long_send_fails_on_both_sides),
		cmocka_unit_test(read_before_a_bad_write_completes),
		cmocka_unit_test(read_before_a_bad_invalidate_completes),
		cmocka_unit_test(full_queue_refuses_and_loses_nothing),
		cmocka_unit_test(endless_send_is_refused),
		cmocka_unit_test(cq_overrun_is_told),
		cmocka_unit_test(unsignaled_sends_are_silent),
		cmocka_unit_test(datagram_carries_40_bytes_of_header),
		cmocka_unit_test(time_only_goes_forward),
		cmocka_unit_test(long_read_responses_are_paced),
		cmocka_unit_test(silent_peer_is_found_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
