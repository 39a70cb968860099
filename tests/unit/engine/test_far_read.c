/* SPDX-License-Identifier: BSD-2-Clause */
/* READs between two engines whose round trip takes 20 ms. */
#include "pair.h"

#include <string.h>

#include "engine/qp.h"

#define MS      1000000ull
#define SECRET  0x0123456789abcdefull
#define LEN     60000u
#define PACKETS ((LEN + PAIR_MTU - 1) / PAIR_MTU)

static struct {
	bool sent[1 << 24];                         /* responses, by PSN */
	unsigned requests, copies, responses, late; /* responses that were sent more than once */
	uint32_t psn;                               /* of the request that is lost */
} seen;

static void count(const struct roci_packet *pkt)
{
	if (pkt->op->kind == ROCI_KIND_READ_REQUEST) {
		seen.requests++;
		seen.copies += pkt->solicited;
	}
	if (pkt->op->kind != ROCI_KIND_READ_RESPONSE)
		return;
	seen.responses++;
	seen.late += seen.sent[pkt->psn];
	seen.sent[pkt->psn] = true;
}

static bool lose_nothing(struct pair *p, int from, const struct roci_packet *pkt)
{
	count(pkt);
	return true;
}

/* Every seventh response, the first time. */
static bool lose_some(struct pair *p, int from, const struct roci_packet *pkt)
{
	bool first = pkt->op->kind == ROCI_KIND_READ_RESPONSE && !seen.sent[pkt->psn];

	count(pkt);
	return !first || pkt->psn % 7;
}

/* The last ten responses, the first time. */
static bool lose_tail(struct pair *p, int from, const struct roci_packet *pkt)
{
	bool first = pkt->op->kind == ROCI_KIND_READ_RESPONSE && !seen.sent[pkt->psn];

	count(pkt);
	return !first || p->count++ < PACKETS - 10;
}

/* The second READ request. */
static bool lose_request(struct pair *p, int from, const struct roci_packet *pkt)
{
	count(pkt);
	return pkt->op->kind != ROCI_KIND_READ_REQUEST || seen.requests != 2;
}

static void forget(struct pair *p)
{
	memset(&seen, 0, sizeof(seen));
	memset(p->side[0].memory, 0, PAIR_MEMORY);
	p->dropped = p->count = 0;
}

static void transfer(struct pair *p, unsigned rounds)
{
	assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_READ, 1, 0, LEN, 0), 0);
	for (unsigned i = 0; i < rounds; i++)
		pair_round_trip(p);
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	assert_memory_equal(p->side[0].memory, p->side[1].memory, LEN);
}

static struct pair *make(uint64_t secret, unsigned max_rd_atomic)
{
	struct pair_options o = pair_defaults();
	struct pair *p;

	o.secret = secret;
	o.max_rd_atomic = max_rd_atomic;
	p = pair_create(&o);
	p->filter = lose_nothing;
	for (unsigned i = 0; i < PAIR_MEMORY; i++)
		p->side[1].memory[i] = (uint8_t)(i * 7 + i / 251);
	return p;
}

/* Two that have agreed, and know how long a round trip takes. */
static struct pair *make_far(void)
{
	struct pair *p = make(SECRET, 4);

	for (unsigned i = 0; i < 4; i++)
		transfer(p, 12);
	assert_true(p->side[0].qp->req.far_read);
	forget(p);
	return p;
}

static void more_are_outstanding_than_max_rd_atomic(void **state)
{
	struct pair *p = make(SECRET, 1);

	for (unsigned i = 0; i < 4; i++)
		transfer(p, 40);
	assert_true(p->side[0].qp->req.far_read);
	forget(p);
	transfer(p, 1);
	assert_true(seen.requests > 1);
	assert_int_equal(seen.responses, PACKETS);
	pair_free(p);
}

/* No secret, no offer: as many as the standard allows, and the tail again after a loss. */
static void others_see_nothing_of_it(void **state)
{
	struct pair *p = make(0, 1);

	transfer(p, 40);
	assert_false(p->side[0].qp->req.far_read);
	forget(p);
	p->filter = lose_tail;
	transfer(p, 60);
	assert_true(seen.late > 0);
	pair_free(p);
}

/* WRITEs alone make a peer offer RANGES, and remember no more READs than max_dest_rd_atomic. The first READs ask for
 * it. */
static void a_peer_remembers_more_reads_once_there_are_some(void **state)
{
	struct pair *p = make(SECRET, 1);

	for (unsigned i = 0; i < 40; i++) {
		assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_WRITE, 1, 0, LEN, 0), 0);
		pair_round_trip(p);
	}
	for (unsigned i = 0; i < 40; i++)
		pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	assert_true(p->side[0].qp->req.selective.agreed);
	assert_int_equal(p->side[0].qp->req.selective.reads, 0);
	assert_int_equal(p->side[1].qp->resp.responses.room, 1);
	assert_false(p->side[0].qp->req.far_read);
	memcpy(p->side[1].memory, p->side[0].memory, PAIR_MEMORY);
	transfer(p, 40);
	assert_true(p->side[0].qp->req.far_read);
	pair_free(p);
}

/* A round trip after the loss, all of it has come, and nothing else came again. */
static void all_holes_are_repaired_in_one_round_trip(void **state)
{
	struct pair *p = make_far();

	p->filter = lose_some;
	transfer(p, 2); /* one to ask and answer, one to repair */
	assert_in_range(p->dropped, 30, 40);
	assert_int_equal(seen.late, p->dropped);
	assert_int_equal(seen.responses, PACKETS + p->dropped);
	assert_int_equal(roci_engine_stats(p->side[0].e)->timeouts, 0);
	pair_free(p);
}

/* No response behind it tells of a lost tail. A probe does. */
static void a_lost_tail_is_found_by_a_probe(void **state)
{
	struct pair *p = make_far();

	p->filter = lose_tail;
	transfer(p, 7);
	assert_int_equal(p->dropped, 10);
	assert_int_equal(seen.late, 10);
	assert_int_equal(roci_engine_stats(p->side[0].e)->timeouts, 0);
	pair_free(p);
}

/* Then requests go twice, and each is answered once. */
static void a_lost_request_is_sent_again_and_later_ones_twice(void **state)
{
	struct pair *p = make_far();

	p->filter = lose_request;
	transfer(p, 5);
	assert_int_equal(p->dropped, 1);
	assert_int_equal(seen.late, 0);
	forget(p);
	p->filter = lose_request;
	transfer(p, 2);
	assert_int_equal(p->dropped, 1);
	assert_true(seen.copies > 0);
	assert_int_equal(seen.late, 0);
	assert_int_equal(roci_engine_stats(p->side[0].e)->timeouts, 0);
	pair_free(p);
}

/* The second READ request, and its first two copies. */
static bool lose_request_and_two_copies(struct pair *p, int from, const struct roci_packet *pkt)
{
	count(pkt);
	if (pkt->op->kind != ROCI_KIND_READ_REQUEST)
		return true;
	if (!seen.psn && seen.requests - seen.copies == 2)
		seen.psn = pkt->psn;
	return !seen.psn || pkt->psn != seen.psn || p->count++ > 2;
}

/* The third copy arrives: nothing is held up, and nothing is answered twice. */
static void a_request_may_be_lost_with_two_copies(void **state)
{
	struct pair *p = make_far();
	struct roci_far_read *f = p->side[0].qp->req.far_read;

	f->copies.until = p->now + 1000 * MS;
	f->path->bbr.rate = 20000000; /* 32 packets a request */
	f->path->bbr.window = UINT64_C(1) << 20;
	p->filter = lose_request_and_two_copies;
	transfer(p, 1);
	assert_int_equal(p->dropped, 3);
	assert_int_equal(seen.responses, PACKETS);
	assert_int_equal(seen.late, 0);
	pair_free(p);
}

/* What is placed early is not completed early, and a request that others wait for is not passed. */
static void completions_keep_their_order(void **state)
{
	struct pair *p = make_far();

	p->filter = lose_some;
	assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_WRITE, 1, 60000, 1000, 60000), 0);
	assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_READ, 2, 0, 30000, 0), 0);
	assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_WRITE, 3, 61000, 1000, 61000), 0);
	assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_READ, 4, 30000, 30000, 30000), 0);
	pair_round_trip(p);
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	pair_expect_nothing(p, 0);
	for (unsigned i = 0; i < 4; i++)
		pair_round_trip(p);
	for (uint64_t i = 2; i <= 4; i++)
		pair_expect(p, 0, i, ROCI_WC_SUCCESS);
	assert_memory_equal(p->side[0].memory, p->side[1].memory, 62000);
	assert_int_equal(p->side[0].qp->req.far_read->asked, 0);
	assert_int_equal(p->side[0].qp->req.far_read->requests, 0);
	assert_int_equal(p->side[0].qp->req.far_read->flight, 0);
	pair_free(p);
}

/* A fence waits for READs that were asked for like this, too (IBTA 10.8.3.3). */
static void a_fence_waits(void **state)
{
	struct pair *p = make_far();
	struct roci_sge sge = {(uintptr_t)p->side[0].memory, 8, p->side[0].key};
	struct roci_send_wr wr = {.wr_id = 9,
				  .opcode = ROCI_WR_RDMA_WRITE,
				  .flags = ROCI_SEND_FENCE | ROCI_SEND_SIGNALED,
				  .sges = &sge,
				  .num_sge = 1,
				  .remote_addr = (uintptr_t)p->side[1].memory + 64000,
				  .rkey = p->side[1].key};

	assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_READ, 1, 0, LEN, 0), 0);
	assert_int_equal(roci_qp_post_send(p->side[0].qp, &wr), 0);
	pair_drain(p, 0);
	p->now += 10 * MS;
	pair_drain(p, 0);
	assert_int_equal(p->side[0].qp->sq.started - p->side[0].qp->sq.head, 1);
	for (unsigned i = 0; i < 4; i++)
		pair_round_trip(p);
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	pair_expect(p, 0, 9, ROCI_WC_SUCCESS);
	pair_free(p);
}

static bool lose_first_response(struct pair *p, int from, const struct roci_packet *pkt)
{
	return pkt->op->kind != ROCI_KIND_READ_RESPONSE || p->count++;
}

/* A program may set IBV_SEND_SOLICITED, which means nothing in a READ: its request is no copy. */
static void a_solicited_read_is_answered_again(void **state)
{
	struct pair *p = make(0, 1);
	struct roci_sge sge = {(uintptr_t)p->side[0].memory, 8, p->side[0].key};
	struct roci_send_wr wr = {.wr_id = 9,
				  .opcode = ROCI_WR_RDMA_READ,
				  .flags = ROCI_SEND_SOLICITED | ROCI_SEND_SIGNALED,
				  .sges = &sge,
				  .num_sge = 1,
				  .remote_addr = (uintptr_t)p->side[1].memory,
				  .rkey = p->side[1].key};

	p->filter = lose_first_response;
	assert_int_equal(roci_qp_post_send(p->side[0].qp, &wr), 0);
	pair_run_until(p, p->now + 60000 * MS);
	pair_expect(p, 0, 9, ROCI_WC_SUCCESS);
	pair_free(p);
}

/* The same bit from a peer that never asked for more READs, as the standard lets it send. */
static void a_solicited_duplicate_of_another_peer_is_answered(void **state)
{
	struct pair *p = make(0, 1);
	struct roci_packet again = {.opcode = ROCI_OP_READ_REQUEST, .solicited = true, .dma_len = 8};

	assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_READ, 1, 0, 8, 0), 0);
	again.psn = p->side[1].qp->resp.epsn;
	again.va = (uintptr_t)p->side[1].memory;
	again.rkey = p->side[1].key;
	pair_run(p);
	pair_expect(p, 0, 1, ROCI_WC_SUCCESS);
	forget(p);
	p->filter = lose_nothing;
	pair_inject(p, 1, again);
	pair_run(p);
	assert_int_equal(seen.responses, 1);
	pair_free(p);
}

/* With copies, a batch is not filled beyond its end. */
static void copies_do_not_overfill_a_batch(void **state)
{
	struct pair *p = make_far();
	struct roci_far_read *f = p->side[0].qp->req.far_read;

	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(pair_send(p, 0, ROCI_WR_RDMA_READ, i, 8 * i, 8, 8 * i), 0);
	f->copies.until = p->now + 1000 * MS;
	f->path->bbr.rate = f->path->bbr.window = UINT64_C(1) << 30;
	for (unsigned i = 0; i < 12; i++)
		pair_round_trip(p);
	for (unsigned i = 0; i < 64; i++)
		pair_expect(p, 0, i, ROCI_WC_SUCCESS);
	assert_true(seen.copies > 0);
	assert_memory_equal(p->side[0].memory, p->side[1].memory, 512);
	pair_free(p);
}

/* A RANGES from before the peer made room for more READs comes late. */
static void a_late_ranges_takes_no_reads_back(void **state)
{
	struct pair *p = make_far();
	struct roci_qp *qp = p->side[0].qp;
	struct roci_ranges old = {.secret = qp->secret, .room = 512};
	uint8_t payload[ROCI_RANGES_MAX_BYTES];
	struct roci_packet pkt = {.opcode = ROCI_OPCODE_RANGES, .psn = qp->req.window.una - 2, .payload = payload};

	pkt.payload_len = roci_ranges_build(&old, payload);
	pair_inject(p, 0, pkt);
	transfer(p, 12);
	pair_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(more_are_outstanding_than_max_rd_atomic),
		cmocka_unit_test(others_see_nothing_of_it),
		cmocka_unit_test(a_peer_remembers_more_reads_once_there_are_some),
		cmocka_unit_test(all_holes_are_repaired_in_one_round_trip),
		cmocka_unit_test(a_lost_tail_is_found_by_a_probe),
		cmocka_unit_test(a_lost_request_is_sent_again_and_later_ones_twice),
		cmocka_unit_test(a_request_may_be_lost_with_two_copies),
		cmocka_unit_test(completions_keep_their_order),
		cmocka_unit_test(a_fence_waits),
		cmocka_unit_test(a_solicited_read_is_answered_again),
		cmocka_unit_test(a_solicited_duplicate_of_another_peer_is_answered),
		cmocka_unit_test(copies_do_not_overfill_a_batch),
		cmocka_unit_test(a_late_ranges_takes_no_reads_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
