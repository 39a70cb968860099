/* SPDX-License-Identifier: BSD-2-Clause */
#include "../test.h"

#include "engine/batch.h"

static struct roci_av av;
static uint8_t memory[100];

static void a_packet_has_the_spans_added_since_the_last(void **state)
{
	static struct roci_tx_batch batch;
	struct roci_packet pkt = {.opcode = ROCI_OP_SEND_ONLY, .payload_len = 30};
	struct roci_tx_packet *tx;

	roci_tx_batch_span(&batch, memory, 10);
	roci_tx_batch_span(&batch, memory + 50, 20);
	tx = roci_tx_batch_add(&batch, &av, &pkt);
	assert_ptr_equal(tx, &batch.packets[0]);
	assert_ptr_equal(tx->av, &av);
	assert_int_equal(tx->first_span, 0);
	assert_int_equal(tx->span_count, 2);
	assert_int_equal(tx->payload_len, 30);
	assert_int_equal(tx->header_len, ROCI_BTH_BYTES);

	pkt.payload_len = 0;
	assert_int_equal(roci_tx_batch_add(&batch, &av, &pkt)->span_count, 0);

	pkt.payload_len = 5;
	roci_tx_batch_span(&batch, memory, 5);
	tx = roci_tx_batch_add(&batch, &av, &pkt);
	assert_int_equal(tx->first_span, 2);
	assert_int_equal(tx->span_count, 1);
	assert_int_equal(batch.count, 3);
	assert_int_equal(batch.span_count, 3);
}

static void nothing_of_an_earlier_packet_stays(void **state)
{
	static struct roci_tx_batch batch;
	struct roci_packet pkt = {.opcode = ROCI_OP_FLUSH};
	struct roci_tx_packet *tx = roci_tx_batch_add(&batch, &av, &pkt);

	tx->copy_payload = tx->soft_roce = true;
	batch.count = 0;
	pkt = (struct roci_packet){.opcode = ROCI_OP_ACKNOWLEDGE};
	tx = roci_tx_batch_add(&batch, &av, &pkt);
	assert_false(tx->copy_payload);
	assert_false(tx->soft_roce);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_packet_has_the_spans_added_since_the_last),
		cmocka_unit_test(nothing_of_an_earlier_packet_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
