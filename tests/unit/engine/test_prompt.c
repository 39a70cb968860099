/* SPDX-License-Identifier: BSD-2-Clause */
/* Short SENDs to a peer of this host that go when they are posted (prompt.c). */
#include <string.h>

#include "pair.h"

static struct pair_options local(void)
{
	struct pair_options o = pair_defaults();

	o.local = true;
	return o;
}

static struct roci_send_wr send_of(struct pair *p, int s, struct roci_sge *sge, uint64_t wr_id)
{
	*sge = (struct roci_sge){(uintptr_t)p->side[s].memory, 8, p->side[s].key};
	return (struct roci_send_wr){.wr_id = wr_id,
				     .opcode = ROCI_WR_SEND,
				     .flags = ROCI_SEND_SIGNALED,
				     .imm = 0x01020304,
				     .sges = sge,
				     .num_sge = 1};
}

static bool promptly(struct pair *p, int s, const struct roci_send_wr *wr, struct roci_tx_batch *batch)
{
	assert_int_equal(roci_qp_check_send(p->side[s].qp, wr), 0);
	return roci_qp_send_promptly(p->side[s].qp, p->now, wr, batch);
}

/* Posts it, and takes its packets to the other side. Returns how many they are; 0: it may not go. */
static unsigned send_now(struct pair *p, int s, const struct roci_send_wr *wr)
{
	static struct roci_tx_batch batch;

	if (!promptly(p, s, wr, &batch))
		return 0;
	pair_carry(p, s, &batch);
	return batch.count;
}

static void a_send_goes_when_it_is_posted(void **state)
{
	struct pair_options o = local();
	struct pair *p = pair_create(&o);
	struct roci_sge sge;
	struct roci_send_wr wr = send_of(p, 0, &sge, 1);

	memset(p->side[0].memory, 0x5a, 8);
	pair_recv(p, 1, 7, 100, 64);
	assert_int_equal(send_now(p, 0, &wr), 1);
	assert_memory_equal(p->side[1].memory + 100, p->side[0].memory, 8);
	pair_expect(p, 1, 7, ROCI_WC_SUCCESS);
	pair_expect_nothing(p, 0);
	assert_false(pair_turn(p, 0));
	assert_true(pair_turn(p, 1)); /* the acknowledgement */
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	pair_free(p);
}

/* The same packets as by the queues, and the same afterwards. */
static void it_is_as_by_the_queues(void **state)
{
	static struct roci_tx_batch batch, queued;
	struct pair_options o = local();
	struct pair *p = pair_create(&o), *q = pair_create(&o);
	uint8_t bytes[40] = {1, 2, 3};
	struct roci_sge sge = {(uintptr_t)bytes, sizeof(bytes), 0};
	struct roci_send_wr wr = {.sges = &sge, .flags = ROCI_SEND_INLINE};

	for (unsigned i = 0; i < 40; i++) {
		struct pair_side *a = &p->side[0], *b = &q->side[0];

		wr.wr_id = i;
		wr.opcode = i % 3 ? ROCI_WR_SEND : ROCI_WR_SEND_WITH_IMM;
		wr.imm = i;
		wr.flags = ROCI_SEND_INLINE | (i % 2 ? ROCI_SEND_SIGNALED : 0) | (i % 5 ? 0 : ROCI_SEND_SOLICITED);
		wr.num_sge = i % 4 ? 1 : 0;
		pair_recv(p, 1, i, 0, 64);
		pair_recv(q, 1, i, 0, 64);
		assert_true(promptly(p, 0, &wr, &batch));
		assert_int_equal(roci_qp_post_send(b->qp, &wr), 0);
		assert_int_equal(roci_engine_tx(b->e, q->now, &queued), batch.count);
		assert_int_equal(batch.count, 1);
		assert_int_equal(batch.span_count, queued.span_count);
		assert_int_equal(batch.packets[0].payload_len, queued.packets[0].payload_len);
		assert_int_equal(batch.packets[0].header_len, queued.packets[0].header_len);
		assert_memory_equal(batch.packets[0].header, queued.packets[0].header, batch.packets[0].header_len);
		for (unsigned n = 0; n < batch.span_count; n++)
			assert_memory_equal(batch.spans[n].base, queued.spans[n].base, batch.spans[n].len);
		assert_true(roci_engine_deadline(a->e) == roci_engine_deadline(b->e));
		pair_carry(p, 0, &batch);
		pair_carry(q, 0, &queued);
		if (i % 7 == 0) {
			pair_run(p);
			pair_run(q);
			assert_true(roci_engine_deadline(a->e) == roci_engine_deadline(b->e));
		}
		p->now += 1000;
		q->now += 1000;
	}
	assert_memory_equal(roci_engine_stats(p->side[0].e), roci_engine_stats(q->side[0].e),
			    sizeof(struct roci_engine_stats));
	pair_free(p);
	pair_free(q);
}

/* An acknowledgement that is due goes before the answer, and then nothing is left to send. */
static void an_acknowledgement_goes_first(void **state)
{
	static struct roci_tx_batch batch;
	struct pair_options o = local();
	struct pair *p = pair_create(&o);
	struct roci_sge sge[2];
	struct roci_send_wr there = send_of(p, 0, &sge[0], 1), back = send_of(p, 1, &sge[1], 2);

	pair_recv(p, 0, 6, 0, 64);
	pair_recv(p, 1, 7, 0, 64);
	assert_int_equal(send_now(p, 0, &there), 1);
	assert_true(promptly(p, 1, &back, &batch));
	assert_int_equal(batch.count, 2);
	assert_int_equal(batch.packets[0].header[0], ROCI_OP_ACKNOWLEDGE);
	assert_int_equal(batch.packets[1].header[0], ROCI_OP_SEND_ONLY);
	assert_false(pair_turn(p, 1));
	pair_carry(p, 1, &batch);
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	pair_expect(p, 0, 6, ROCI_WC_SUCCESS);
	pair_free(p);
}

/* Order: what was posted before goes before. */
static void what_waits_goes_first(void **state)
{
	struct pair_options o = local();
	struct pair *p = pair_create(&o);
	struct roci_sge sge;
	struct roci_send_wr wr = send_of(p, 0, &sge, 9);

	pair_recv(p, 1, 7, 0, 64);
	pair_send(p, 0, ROCI_WR_SEND, 1, 0, 20, 0);
	assert_int_equal(send_now(p, 0, &wr), 0);
	pair_turn(p, 0);
	assert_int_equal(send_now(p, 0, &wr), 1); /* and is refused: there is no receive */
	pair_run(p);
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	assert_int_equal(send_now(p, 0, &wr), 0); /* while the peer is not ready */
	pair_recv(p, 1, 8, 0, 64);
	pair_run_until(p, p->now + UINT64_C(1000000000));
	pair_expect(p, 1, 7, ROCI_WC_SUCCESS);
	pair_expect(p, 1, 8, ROCI_WC_SUCCESS);
	pair_expect(p, 0, 9, ROCI_WC_SUCCESS);
	pair_free(p);
}

/* As many as the ring has room for; the others wait for acknowledgements. */
static void the_window_holds_them_back(void **state)
{
	struct pair_options o = local();
	struct pair *p = pair_create(&o);
	struct roci_sge sge;
	struct roci_send_wr wr = send_of(p, 0, &sge, 1);
	unsigned n = 0;

	sge.len = 4096;
	while (n < 64 && send_now(p, 0, &wr))
		n++;
	assert_in_range(n, 8, 16);
	assert_int_equal(roci_qp_post_send(p->side[0].qp, &wr), 0);
	assert_false(pair_turn(p, 0));
	pair_free(p);
}

static void others_take_the_queues(void **state)
{
	static struct roci_tx_batch batch;
	struct pair_options o = local();
	struct pair *p = pair_create(&o);
	struct roci_sge sge;
	struct roci_send_wr wr = send_of(p, 0, &sge, 1);

	wr.opcode = ROCI_WR_SEND_WITH_INV;
	assert_false(promptly(p, 0, &wr, &batch));
	wr.opcode = ROCI_WR_RDMA_WRITE;
	assert_false(promptly(p, 0, &wr, &batch));
	wr.opcode = ROCI_WR_SEND;
	wr.flags |= ROCI_SEND_FENCE;
	assert_false(promptly(p, 0, &wr, &batch));
	wr.flags = 0;
	sge.len = ROCI_LOCAL_INLINE + 1;
	assert_false(promptly(p, 0, &wr, &batch));
	sge.len = 8;
	sge.lkey ^= 0x100; /* the requester says what is wrong */
	assert_false(promptly(p, 0, &wr, &batch));
	assert_int_equal(roci_qp_post_send(p->side[0].qp, &wr), 0);
	pair_run(p);
	pair_expect(p, 0, 1, ROCI_WC_LOC_PROT_ERR);
	sge.lkey ^= 0x100;
	assert_false(promptly(p, 0, &wr, &batch)); /* the QP has failed */
	pair_free(p);
	o.local = false;
	p = pair_create(&o);
	wr = send_of(p, 0, &sge, 1);
	assert_false(promptly(p, 0, &wr, &batch));
	pair_free(p);
}

/* ---- receiving ---- */

static const uint8_t payload[64] = {1, 2, 3, 4, 5, 6, 7, 8, 9};

/* A SEND of `len` bytes comes to side 1 from process 1 of the host. */
static bool comes(struct pair *p, struct roci_packet pkt, uint32_t len)
{
	uint8_t header[ROCI_MAX_HEADER_BYTES];

	pkt.payload_len = len;
	return roci_engine_rx_promptly(p->side[1].e, p->now, 1, header, roci_packet_build(&pkt, header), payload, len);
}

/* Two QPs that have heard of each other, and the packet that side 1 expects next. */
static struct pair *heard(struct roci_packet *next)
{
	struct pair_options o = local();
	struct pair *p = pair_create(&o);

	*next = (struct roci_packet){
		.opcode = ROCI_OP_SEND_ONLY, .pkey = ROCI_PKEY_DEFAULT, .dest_qpn = 101, .psn = o.psn, .ack_req = true};
	pair_recv(p, 1, 6, 0, 64);
	assert_false(comes(p, *next, 8)); /* the first packet establishes the QP */
	pair_send(p, 0, ROCI_WR_SEND, 1, 0, 8, 0);
	pair_run(p);
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	pair_expect(p, 1, 6, ROCI_WC_SUCCESS);
	next->psn = (o.psn + 1) & ROCI_PSN_MASK;
	return p;
}

static void what_is_expected_is_executed(void **state)
{
	struct roci_packet next;
	struct pair *p = heard(&next);
	struct roci_cqe cqe;

	for (unsigned i = 0; i < 3; i++) {
		uint32_t len = 9 + 10 * i;

		pair_recv(p, 1, 70 + i, 100, 64);
		assert_true(comes(p, next, len));
		assert_memory_equal(p->side[1].memory + 100, payload, len);
		assert_int_equal(roci_cq_poll(p->side[1].cq, &cqe, 1), 1);
		assert_int_equal(cqe.wr_id, 70 + i);
		assert_int_equal(cqe.status, ROCI_WC_SUCCESS);
		assert_int_equal(cqe.opcode, ROCI_WC_RECV);
		assert_int_equal(cqe.byte_len, len);
		assert_int_equal(cqe.qpn, 101);
		assert_int_equal(cqe.src_qpn, 100);
		assert_int_equal(cqe.flags, 0);
		next.psn = (next.psn + 1) & ROCI_PSN_MASK;
	}
	assert_true(pair_turn(p, 1)); /* one acknowledgement for all */
	assert_int_equal(p->tx->header[0], ROCI_OP_ACKNOWLEDGE);
	assert_false(pair_turn(p, 1));
	next.ack_req = false;
	pair_recv(p, 1, 80, 100, 64);
	assert_true(comes(p, next, 0));
	pair_expect(p, 1, 80, ROCI_WC_SUCCESS);
	assert_false(pair_turn(p, 1));
	pair_free(p);
}

/* Everything else is the responder's, and nothing has changed for it. */
static void others_are_the_responders(void **state)
{
	struct roci_packet next, pkt;
	struct pair *p = heard(&next);
	struct roci_sge two[2];
	struct roci_recv_wr wr = {.wr_id = 8, .sges = two, .num_sge = 2};

	assert_false(comes(p, next, 8)); /* no receive */
	pair_recv(p, 1, 7, 100, 64);
	assert_false(comes(p, next, 65)); /* too long */
	pkt = next;
	pkt.psn = (next.psn + 1) & ROCI_PSN_MASK;
	assert_false(comes(p, pkt, 8));
	pkt.psn = (next.psn + ROCI_PSN_MASK) & ROCI_PSN_MASK;
	assert_false(comes(p, pkt, 8));
	pkt = next;
	pkt.opcode = ROCI_OP_SEND_ONLY_IMM;
	assert_false(comes(p, pkt, 8));
	pkt.opcode = ROCI_OP_SEND_FIRST;
	assert_false(comes(p, pkt, 8));
	pkt.opcode = ROCI_TRANSPORT_UC | ROCI_OP_SEND_ONLY;
	assert_false(comes(p, pkt, 8));
	pkt = next;
	pkt.pkey = 0x1234;
	assert_false(comes(p, pkt, 8));
	pkt = next;
	pkt.dest_qpn = 77;
	assert_false(comes(p, pkt, 8));
	pair_expect_nothing(p, 1);
	assert_true(comes(p, next, 8));
	pair_expect(p, 1, 7, ROCI_WC_SUCCESS);
	next.psn = (next.psn + 1) & ROCI_PSN_MASK;
	two[0] = (struct roci_sge){(uintptr_t)p->side[1].memory, 4, p->side[1].recv_key};
	two[1] = (struct roci_sge){(uintptr_t)p->side[1].memory + 50, 4, p->side[1].recv_key};
	assert_int_equal(roci_qp_post_recv(p->side[1].qp, &wr), 0);
	assert_false(comes(p, next, 8));
	pair_free(p);
}

/* Of a process of the host that is not the peer, and on the wire. */
static void strangers_are_the_responders(void **state)
{
	struct roci_packet next;
	struct pair *p = heard(&next);
	uint8_t header[ROCI_MAX_HEADER_BYTES];

	pair_recv(p, 1, 7, 100, 64);
	next.payload_len = 8;
	assert_false(
		roci_engine_rx_promptly(p->side[1].e, p->now, 2, header, roci_packet_build(&next, header), payload, 8));
	pair_expect_nothing(p, 1);
	pair_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_send_goes_when_it_is_posted), cmocka_unit_test(it_is_as_by_the_queues),
		cmocka_unit_test(an_acknowledgement_goes_first), cmocka_unit_test(what_waits_goes_first),
		cmocka_unit_test(the_window_holds_them_back),    cmocka_unit_test(others_take_the_queues),
		cmocka_unit_test(what_is_expected_is_executed),  cmocka_unit_test(others_are_the_responders),
		cmocka_unit_test(strangers_are_the_responders),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
