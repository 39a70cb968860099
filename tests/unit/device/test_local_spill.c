/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets that wait for room in a ring: local_spill.h. */
#include "../test.h"

#include <stdlib.h>
#include <string.h>

#include "device/local/spill.h"

#define LEN 4000

static struct roci_local_ring *ring;
static struct roci_local_writer writer;
static struct roci_local_reader reader;
static struct roci_local_spill spill;
static uint8_t header[12] = {4, 0, 0xff, 0xff, 0, 0, 0x12, 0x34};
static uint32_t payload[LEN / 4];

static int begin(void **state)
{
	ring = aligned_alloc(64, sizeof(*ring));
	memset(ring, 0, sizeof(*ring));
	writer = (struct roci_local_writer){.ring = ring};
	reader = (struct roci_local_reader){.ring = ring};
	return 0;
}

static int end(void **state)
{
	roci_local_spill_free(&spill);
	free(ring);
	return 0;
}

static struct roci_span span_of(uint32_t n, uint32_t len)
{
	payload[0] = n;
	return (struct roci_span){payload, len};
}

/* As the device does: what waits goes first. */
static bool put(uint32_t n)
{
	struct roci_span span = span_of(n, LEN);

	roci_local_spill_pump(&spill, &writer);
	if (roci_local_spill_is_empty(&spill) &&
	    roci_local_ring_put(&writer, header, sizeof(header), &span, 1, LEN, false))
		return true;
	return roci_local_spill_put(&spill, header, sizeof(header), &span, 1, LEN, false);
}

/* Reads what is in the ring. Returns the number of the packet that is expected next. */
static uint32_t drain(uint32_t next)
{
	struct roci_local_packet packet;

	roci_local_ring_publish(&writer);
	while (roci_local_ring_get(&reader, &packet) == 1) {
		uint32_t n;

		assert_int_equal(packet.payload_len, LEN);
		memcpy(&n, roci_local_packet_payload(&packet), sizeof(n));
		assert_int_equal(n, next++);
		roci_local_ring_next(&reader, &packet);
	}
	roci_local_ring_release(&reader);
	return next;
}

static void packets_wait_and_keep_their_order(void **state)
{
	uint32_t sent = 0, got = 0;

	for (unsigned round = 0; round < 20; round++) {
		for (unsigned i = 0; i < 37 * (round % 5); i++)
			assert_true(put(sent++));
		got = drain(got);
	}
	assert_true(sent > 500);
	for (unsigned i = 0; i < 100 && got < sent; i++) {
		roci_local_spill_pump(&spill, &writer);
		got = drain(got);
	}
	assert_int_equal(got, sent);
	roci_local_spill_pump(&spill, &writer);
	assert_true(roci_local_spill_is_empty(&spill));
}

/* A reader that reads nothing does not take all memory. */
static void there_is_an_end(void **state)
{
	unsigned n = 0;

	while (n < 100000 && put(n))
		n++;
	assert_true(n > 1500 && n < 4000);
}

static void what_is_revoked_is_dropped(void **state)
{
	uint8_t other[12], memory[3][100];
	uint32_t fill = 0;
	struct roci_local_packet packet;
	unsigned by_reference = 0;

	while (roci_local_spill_is_empty(&spill))
		assert_true(put(fill++));
	memcpy(other, header, sizeof(other));
	other[7] = 0x35;
	for (unsigned i = 0; i < 3; i++)
		assert_true(roci_local_spill_put(&spill, i == 1 ? other : header, sizeof(header),
						 &(struct roci_span){memory[i], 100}, 1, 100, true));
	roci_local_spill_revoke(&spill, 0, 0, 0x1235);
	roci_local_spill_revoke(&spill, (uintptr_t)memory[2], 1, 0);
	assert_int_equal(drain(0), fill - 1);
	roci_local_spill_pump(&spill, &writer);
	roci_local_ring_publish(&writer);
	for (; roci_local_ring_get(&reader, &packet) == 1; roci_local_ring_next(&reader, &packet)) {
		struct roci_span span;

		if (!packet.span_count)
			continue;
		assert_true(roci_local_packet_spans(&packet, &span));
		assert_ptr_equal(span.base, memory[0]);
		by_reference++;
	}
	assert_int_equal(by_reference, 1);
	assert_true(roci_local_spill_is_empty(&spill));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(packets_wait_and_keep_their_order, begin, end),
		cmocka_unit_test_setup_teardown(there_is_an_end, begin, end),
		cmocka_unit_test_setup_teardown(what_is_revoked_is_dropped, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
