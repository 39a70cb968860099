/* SPDX-License-Identifier: BSD-2-Clause */
#include "../test.h"

#include <errno.h>

#include "engine/psn.h"
#include "engine/response_ring.h"

#define MTU  256
#define VA   0x10000
#define RKEY 0x1234

/* A request as it comes from the parser: READs ask for `packets` full packets. */
static struct roci_packet request(uint8_t opcode, uint32_t psn, uint32_t packets)
{
	return (struct roci_packet){.op = roci_opcode_info(opcode),
				    .opcode = opcode,
				    .psn = psn,
				    .va = VA,
				    .rkey = RKEY,
				    .dma_len = packets * MTU};
}

static struct roci_response *add(struct roci_response_ring *ring, uint8_t opcode, uint32_t psn, uint32_t packets)
{
	struct roci_packet p = request(opcode, psn, packets);

	return roci_response_ring_add(ring, &p, packets, 7);
}

/* The READ at `psn` came again: the last `packets` of its packets, from the one with PSN `from` on. */
static bool read_again(struct roci_response_ring *ring, uint32_t psn, uint32_t from, uint32_t packets)
{
	struct roci_packet p = request(ROCI_OP_READ_REQUEST, from, packets);

	p.va += (uint64_t)roci_psn_diff(from, psn) * MTU;
	return roci_response_ring_again(ring, &p, packets, MTU);
}

/* The next packet must have this PSN; it is sent. */
static void expect_sent(struct roci_response_ring *ring, uint32_t psn)
{
	struct roci_response *x = roci_response_ring_next(ring);

	assert_non_null(x);
	assert_int_equal(roci_psn_add(x->psn, x->next), psn);
	roci_response_ring_sent(ring, x);
}

static struct roci_response_ring with_room(unsigned room)
{
	struct roci_response_ring ring = {0};

	assert_int_equal(roci_response_ring_resize(&ring, room), 0);
	return ring;
}

static void responses_are_sent_in_order(void **state)
{
	struct roci_response_ring ring = with_room(4);

	add(&ring, ROCI_OP_READ_REQUEST, 0xfffffe, 3);
	add(&ring, ROCI_OP_FETCH_ADD, 1, 1)->original = 42;
	for (uint32_t i = 0; i < 3; i++) {
		struct roci_response *x = roci_response_ring_next(&ring);

		assert_int_equal(x->starts, i == 0);
		expect_sent(&ring, roci_psn_add(0xfffffe, i));
	}
	assert_int_equal(roci_response_ring_next(&ring)->original, 42);
	assert_int_equal(roci_response_ring_next(&ring)->msn, 7);
	expect_sent(&ring, 1);
	assert_null(roci_response_ring_next(&ring));
	roci_response_ring_fini(&ring);
}

static void flushes_keep_their_place_in_the_order(void **state)
{
	struct roci_response_ring ring = with_room(2);

	assert_true(roci_response_ring_add_flush(&ring, 9));
	add(&ring, ROCI_OP_READ_REQUEST, 10, 2);
	assert_true(roci_response_ring_add_flush(&ring, 12));
	expect_sent(&ring, 9);
	expect_sent(&ring, 10);
	expect_sent(&ring, 11);
	assert_int_equal(roci_response_ring_next(&ring)->kind, ROCI_KIND_FLUSH);
	expect_sent(&ring, 12);
	assert_null(roci_response_ring_next(&ring));
	roci_response_ring_fini(&ring);
}

static void flushes_take_no_place(void **state)
{
	struct roci_response_ring ring = with_room(1);

	for (uint32_t i = 0; i < ROCI_MAX_FLUSHES; i++)
		assert_true(roci_response_ring_add_flush(&ring, i));
	assert_false(roci_response_ring_add_flush(&ring, ROCI_MAX_FLUSHES));
	assert_non_null(add(&ring, ROCI_OP_READ_REQUEST, 1000, 1));
	for (uint32_t i = 0; i < ROCI_MAX_FLUSHES; i++)
		expect_sent(&ring, i);
	expect_sent(&ring, 1000);
	roci_response_ring_fini(&ring);
}

/* IBTA 9.7.4.1.5 */
static void too_many_outstanding_are_refused(void **state)
{
	struct roci_response_ring ring = with_room(2), none = {0};

	assert_null(add(&none, ROCI_OP_READ_REQUEST, 1, 1));
	assert_non_null(add(&ring, ROCI_OP_READ_REQUEST, 1, 1));
	assert_non_null(add(&ring, ROCI_OP_READ_REQUEST, 2, 1));
	assert_null(add(&ring, ROCI_OP_READ_REQUEST, 3, 1));
	expect_sent(&ring, 1);
	assert_non_null(add(&ring, ROCI_OP_READ_REQUEST, 3, 1));
	roci_response_ring_fini(&ring);
}

/* A peer that sends a new request has the response that it asked for again. */
static void a_repeated_response_makes_room(void **state)
{
	struct roci_response_ring ring = with_room(1);

	add(&ring, ROCI_OP_READ_REQUEST, 1, 2);
	expect_sent(&ring, 1);
	expect_sent(&ring, 2);
	assert_true(read_again(&ring, 1, 1, 2));
	assert_non_null(add(&ring, ROCI_OP_READ_REQUEST, 3, 1));
	expect_sent(&ring, 3);
	assert_null(roci_response_ring_next(&ring));
	roci_response_ring_fini(&ring);
}

/* IBTA 9.7.5.2.1 */
static void a_read_or_its_tail_comes_again(void **state)
{
	struct roci_response_ring ring = with_room(2);

	add(&ring, ROCI_OP_READ_REQUEST, 20, 4);
	for (uint32_t psn = 20; psn < 24; psn++)
		expect_sent(&ring, psn);
	assert_true(read_again(&ring, 20, 22, 2));
	assert_true(roci_response_ring_next(&ring)->starts);
	assert_true(roci_response_ring_next(&ring)->repeated);
	assert_true(roci_response_ring_next(&ring)->copy_payload);
	expect_sent(&ring, 22);
	expect_sent(&ring, 23);
	assert_null(roci_response_ring_next(&ring));
	assert_true(read_again(&ring, 20, 20, 1));
	expect_sent(&ring, 20);
	assert_null(roci_response_ring_next(&ring));
	roci_response_ring_fini(&ring);
}

/* While it is being sent, the response goes back, and is not taken for a late duplicate. */
static void a_read_comes_again_while_it_is_sent(void **state)
{
	struct roci_response_ring ring = with_room(2);

	add(&ring, ROCI_OP_READ_REQUEST, 20, 4);
	expect_sent(&ring, 20);
	expect_sent(&ring, 21);
	assert_true(read_again(&ring, 20, 23, 1)); /* it is still to come */
	assert_int_equal(roci_response_ring_next(&ring)->next, 2);
	assert_true(read_again(&ring, 20, 21, 3));
	assert_true(roci_response_ring_next(&ring)->starts);
	assert_false(roci_response_ring_next(&ring)->repeated);
	for (uint32_t psn = 21; psn < 24; psn++)
		expect_sent(&ring, psn);
	assert_null(roci_response_ring_next(&ring));
	roci_response_ring_fini(&ring);
}

static void another_request_with_the_same_psn_is_unknown(void **state)
{
	struct roci_response_ring ring = with_room(2);
	struct roci_packet p;

	add(&ring, ROCI_OP_READ_REQUEST, 20, 4);
	assert_false(read_again(&ring, 20, 22, 3)); /* beyond the end */
	assert_false(read_again(&ring, 20, 24, 1));
	p = request(ROCI_OP_READ_REQUEST, 20, 4);
	p.rkey++;
	assert_false(roci_response_ring_again(&ring, &p, 4, MTU));
	p = request(ROCI_OP_READ_REQUEST, 21, 3); /* the address of packet 0 */
	assert_false(roci_response_ring_again(&ring, &p, 3, MTU));
	p = request(ROCI_OP_COMPARE_SWAP, 20, 1);
	assert_false(roci_response_ring_again(&ring, &p, 1, MTU));
	roci_response_ring_fini(&ring);
}

/* IBTA 9.7.5.2.2: the value that was saved. */
static void an_atomic_is_answered_again(void **state)
{
	struct roci_response_ring ring = with_room(1);
	struct roci_packet p = request(ROCI_OP_FETCH_ADD, 5, 1);

	add(&ring, ROCI_OP_FETCH_ADD, 5, 1)->original = 99;
	expect_sent(&ring, 5);
	assert_null(roci_response_ring_next(&ring));
	assert_true(roci_response_ring_again(&ring, &p, 1, MTU));
	assert_int_equal(roci_response_ring_next(&ring)->original, 99);
	expect_sent(&ring, 5);
	roci_response_ring_fini(&ring);
}

static void a_smaller_ring_keeps_the_newest(void **state)
{
	struct roci_response_ring ring = with_room(3);

	for (uint32_t psn = 1; psn <= 5; psn++) {
		add(&ring, ROCI_OP_READ_REQUEST, psn, 1);
		expect_sent(&ring, psn);
	}
	assert_false(read_again(&ring, 2, 2, 1)); /* its place was reused */
	assert_true(read_again(&ring, 3, 3, 1));
	assert_int_equal(roci_response_ring_resize(&ring, 2), -EBUSY);
	expect_sent(&ring, 3);
	assert_int_equal(roci_response_ring_resize(&ring, 2), 0);
	assert_false(read_again(&ring, 3, 3, 1));
	assert_true(read_again(&ring, 4, 4, 1));
	assert_true(read_again(&ring, 5, 5, 1));
	assert_int_equal(roci_response_ring_resize(&ring, 0), -EBUSY);
	expect_sent(&ring, 4);
	expect_sent(&ring, 5);
	assert_int_equal(roci_response_ring_resize(&ring, 4), 0);
	add(&ring, ROCI_OP_READ_REQUEST, 6, 1);
	expect_sent(&ring, 6);
	assert_true(read_again(&ring, 4, 4, 1));
	roci_response_ring_fini(&ring);
}

/* A peer that was told so has more outstanding, and gets any part again, once, before what was not sent yet. */
static void parts_are_sent_again(void **state)
{
	struct roci_response_ring ring = with_room(2);

	assert_true(roci_response_ring_extend(&ring));
	for (uint32_t i = 0; i < 100; i++)
		assert_non_null(add(&ring, ROCI_OP_READ_REQUEST, roci_psn_add(0xffff00, 10 * i), 10));
	for (uint32_t i = 0; i < 990; i++)
		expect_sent(&ring, roci_psn_add(0xffff00, i));
	assert_true(read_again(&ring, 0xffff00, 0xffff03, 2));
	assert_true(read_again(&ring, 0xffff0a, 0xffff13, 1));
	assert_true(read_again(&ring, roci_psn_add(0xffff00, 500), roci_psn_add(0xffff00, 505), 5));
	assert_true(read_again(&ring, roci_psn_add(0xffff00, 990), roci_psn_add(0xffff00, 995), 5)); /* not sent yet */
	assert_false(read_again(&ring, 0xffff0a, 0xffff13, 2)); /* more than it had */
	assert_true(roci_response_ring_next(&ring)->starts);
	expect_sent(&ring, 0xffff03);
	assert_false(roci_response_ring_next(&ring)->starts);
	expect_sent(&ring, 0xffff04);
	expect_sent(&ring, 0xffff13);
	for (uint32_t i = 505; i < 510; i++)
		expect_sent(&ring, roci_psn_add(0xffff00, i));
	for (uint32_t i = 990; i < 1000; i++)
		expect_sent(&ring, roci_psn_add(0xffff00, i));
	assert_null(roci_response_ring_next(&ring));
	assert_int_equal(roci_response_ring_resize(&ring, 4), 0); /* it relies on what it was told */
	assert_true(read_again(&ring, 0xffff00, 0xffff00, 10));
	roci_response_ring_fini(&ring);
}

/* More parts at once than there are places: the rest is asked for again. A place that was needed meanwhile is skipped.
 */
static void parts_are_bounded(void **state)
{
	struct roci_response_ring ring = with_room(2);
	unsigned kept = 0;

	assert_true(roci_response_ring_extend(&ring));
	for (uint32_t i = 0; i < ROCI_FAR_READS; i++) {
		assert_non_null(add(&ring, ROCI_OP_READ_REQUEST, 2 * i, 2));
		expect_sent(&ring, 2 * i);
		expect_sent(&ring, 2 * i + 1);
	}
	for (unsigned i = 0; i < 2 * ROCI_FAR_READS; i++)
		kept += read_again(&ring, 0, i & 1, 1);
	assert_int_equal(kept, ROCI_FAR_READS);
	assert_non_null(add(&ring, ROCI_OP_READ_REQUEST, 2 * ROCI_FAR_READS, 2));
	expect_sent(&ring, 2 * ROCI_FAR_READS);
	expect_sent(&ring, 2 * ROCI_FAR_READS + 1);
	assert_null(roci_response_ring_next(&ring));
	roci_response_ring_fini(&ring);
}

static void a_qp_without_room_gets_none(void **state)
{
	struct roci_response_ring ring = {0};

	assert_false(roci_response_ring_extend(&ring));
	assert_int_equal(roci_response_ring_extended(&ring), 0);
	roci_response_ring_fini(&ring);
}

/* Those that are kept have more PSNs than there are: so much is written between READs, or READs are so long. */
static void a_read_is_found_among_those_of_all_psns(void **state)
{
	const uint32_t packets = 6000, all = ROCI_FAR_READS + 100;
	struct roci_response_ring ring = with_room(1);

	assert_true(roci_response_ring_extend(&ring));
	for (uint32_t i = 0; i < all; i++) {
		struct roci_response *x = add(&ring, ROCI_OP_READ_REQUEST, roci_psn_add(0, i * packets), packets);

		assert_non_null(x);
		x->next = x->end;
	}
	for (uint32_t i = all - 1; i >= all - 100; i--) {
		uint32_t psn = roci_psn_add(0, i * packets);

		assert_true(read_again(&ring, psn, psn, 1));
		expect_sent(&ring, psn);
	}
	roci_response_ring_fini(&ring);
}

/* Many READs, then none for all PSNs, and then some again. */
static void reads_of_a_round_before_are_forgotten(void **state)
{
	struct roci_response_ring ring = with_room(1);

	assert_true(roci_response_ring_extend(&ring));
	for (uint32_t i = 0; i < 200; i++) {
		add(&ring, ROCI_OP_READ_REQUEST, 1000 + i, 1);
		expect_sent(&ring, 1000 + i);
	}
	for (uint32_t i = 0; i < 50; i++) {
		add(&ring, ROCI_OP_READ_REQUEST, 1050 + i, 1);
		expect_sent(&ring, 1050 + i);
	}
	for (uint32_t i = 0; i < 50; i++) {
		assert_true(read_again(&ring, 1050 + i, 1050 + i, 1));
		expect_sent(&ring, 1050 + i);
	}
	assert_false(read_again(&ring, 1000, 1000, 1));
	roci_response_ring_fini(&ring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_are_sent_again),
		cmocka_unit_test(parts_are_bounded),
		cmocka_unit_test(a_read_is_found_among_those_of_all_psns),
		cmocka_unit_test(reads_of_a_round_before_are_forgotten),
		cmocka_unit_test(a_qp_without_room_gets_none),
		cmocka_unit_test(responses_are_sent_in_order),
		cmocka_unit_test(flushes_keep_their_place_in_the_order),
		cmocka_unit_test(flushes_take_no_place),
		cmocka_unit_test(too_many_outstanding_are_refused),
		cmocka_unit_test(a_repeated_response_makes_room),
		cmocka_unit_test(a_read_or_its_tail_comes_again),
		cmocka_unit_test(a_read_comes_again_while_it_is_sent),
		cmocka_unit_test(another_request_with_the_same_psn_is_unknown),
		cmocka_unit_test(an_atomic_is_answered_again),
		cmocka_unit_test(a_smaller_ring_keeps_the_newest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
