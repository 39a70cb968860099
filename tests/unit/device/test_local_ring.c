/* SPDX-License-Identifier: BSD-2-Clause */
#include "../test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "device/local/ring.h"
#include "engine/limits.h"

static struct roci_local_ring *ring;
static uint8_t memory[8192];
static const uint8_t header[12] = {4, 0, 0xff, 0xff, 0, 0, 0x12, 0x34};

static int make(void **state)
{
	ring = aligned_alloc(64, sizeof(*ring));
	memset(ring, 0, sizeof(*ring));
	for (unsigned i = 0; i < sizeof(memory); i++)
		memory[i] = (uint8_t)(i * 13);
	return 0;
}

static int drop(void **state)
{
	free(ring);
	return 0;
}

static bool put(struct roci_local_writer *w, uint32_t len, bool by_reference)
{
	struct roci_span span = {memory, len};

	return roci_local_ring_put(w, header, sizeof(header), &span, len ? 1 : 0, len, by_reference);
}

/* Of many lengths, several times around: each comes whole, in order, and only when it is published. */
static void packets_come_whole_and_in_order(void **state)
{
	struct roci_local_writer w = {.ring = ring};
	struct roci_local_reader r = {.ring = ring};
	struct roci_local_packet packet;

	for (uint32_t i = 0; i < 3000; i++) {
		uint32_t len = i * 37 % 4097;

		assert_true(put(&w, len, false));
		assert_int_equal(roci_local_ring_get(&r, &packet), 0);
		assert_true(roci_local_ring_publish(&w));
		assert_true(roci_local_ring_waits(&r));
		assert_int_equal(roci_local_ring_get(&r, &packet), 1);
		assert_int_equal(packet.payload_len, len);
		assert_memory_equal(packet.header, header, sizeof(header));
		assert_memory_equal(roci_local_packet_payload(&packet), memory, len);
		roci_local_ring_next(&r, &packet);
		roci_local_ring_release(&r);
	}
	assert_false(roci_local_ring_publish(&w));
	assert_true(atomic_load(&ring->tail) > 2 * sizeof(ring->bytes));
}

static void a_full_ring_takes_no_more(void **state)
{
	struct roci_local_writer w = {.ring = ring};
	struct roci_local_reader r = {.ring = ring};
	struct roci_local_packet packet;
	unsigned n = 0, got = 0;

	while (put(&w, 1000, false) && n < 10000)
		n++;
	assert_in_range(n, 100, 130);
	roci_local_ring_publish(&w);
	while (roci_local_ring_get(&r, &packet) == 1) {
		roci_local_ring_next(&r, &packet);
		got++;
	}
	assert_int_equal(got, n);
	assert_false(put(&w, 1000, false)); /* what is read is free when it is released */
	roci_local_ring_release(&r);
	assert_true(put(&w, 1000, false));
}

static void spans_name_memory(void **state)
{
	struct roci_local_writer w = {.ring = ring};
	struct roci_local_reader r = {.ring = ring};
	struct roci_local_packet packet;
	struct roci_span spans[ROCI_MAX_SGE];

	assert_true(put(&w, 8000, true));
	roci_local_ring_publish(&w);
	assert_int_equal(roci_local_ring_get(&r, &packet), 1);
	assert_int_equal(packet.span_count, 1);
	assert_true(roci_local_packet_spans(&packet, spans));
	assert_ptr_equal(spans[0].base, memory);
	assert_int_equal(spans[0].len, 8000);
	packet.payload_len = 8001;
	assert_false(roci_local_packet_spans(&packet, spans));
}

/* Two short packets have room in a cache line. The line at which a reader looks that waits is written when it is shown,
 * and not before. */
static void short_packets_share_a_line(void **state)
{
	static const uint8_t ack[16] = {17, 0, 0xff, 0xff, 0, 0, 0x12, 0x34};
	struct roci_local_writer w = {.ring = ring};
	struct roci_local_reader r = {.ring = ring};
	struct roci_local_packet packet;

	for (unsigned i = 0; i < 5000; i++) {
		uint8_t before[ROCI_LOCAL_LINE], *line = ring->bytes + w.tail % sizeof(ring->bytes);

		assert_int_equal(w.tail % ROCI_LOCAL_LINE, 0);
		memcpy(before, line, sizeof(before));
		assert_true(roci_local_ring_put(&w, ack, sizeof(ack), NULL, 0, 0, false));
		assert_true(put(&w, 8, false));
		assert_memory_equal(line, before, sizeof(before));
		roci_local_ring_publish(&w);
		assert_int_equal(roci_local_ring_get(&r, &packet), 1);
		assert_memory_equal(packet.header, ack, sizeof(ack));
		roci_local_ring_next(&r, &packet);
		assert_int_equal(roci_local_ring_get(&r, &packet), 1);
		assert_memory_equal(packet.header, header, sizeof(header));
		assert_memory_equal(roci_local_packet_payload(&packet), memory, 8);
		roci_local_ring_next(&r, &packet);
		roci_local_ring_release(&r);
		assert_int_equal(roci_local_ring_get(&r, &packet), 0);
	}
}

/* Batches of short and long packets, which begin in the middle of a line or at its beginning. */
static void batches_come_whole_and_in_order(void **state)
{
	static const uint16_t lengths[] = {8, 0, 100, 8, 8, 3, 40, 8, 2000, 1};
	const unsigned count = sizeof(lengths) / sizeof(lengths[0]);
	struct roci_local_writer w = {.ring = ring};
	struct roci_local_reader r = {.ring = ring};
	struct roci_local_packet packet;
	unsigned wrote = 0, read = 0;

	for (unsigned i = 0; i < 3000; i++) {
		for (unsigned n = i % 7; n; n--)
			assert_true(put(&w, lengths[wrote++ % count], false));
		if (i % 5 == 0)
			roci_local_ring_revoke(&w, 0, 0, 0x1234); /* it looks at what is not published, too */
		assert_int_equal(roci_local_ring_get(&r, &packet), 0);
		roci_local_ring_publish(&w);
		while (roci_local_ring_get(&r, &packet) == 1) {
			assert_int_equal(packet.payload_len, lengths[read++ % count]);
			assert_memory_equal(packet.header, header, sizeof(header));
			assert_memory_equal(roci_local_packet_payload(&packet), memory, packet.payload_len);
			roci_local_ring_next(&r, &packet);
		}
		roci_local_ring_release(&r);
		assert_int_equal(read, wrote);
	}
}

static unsigned revoked(struct roci_local_reader *r)
{
	struct roci_local_packet packet;
	unsigned bits = 0;

	for (unsigned i = 0; roci_local_ring_get(r, &packet) == 1; i++) {
		bits |= (unsigned)roci_local_packet_is_revoked(&packet) << i;
		roci_local_ring_next(r, &packet);
	}
	r->head = 0;
	return bits;
}

/* The owner takes back memory, or a QP: what names it is marked, and nothing else. */
static void records_are_revoked_by_memory_and_by_qp(void **state)
{
	struct roci_local_writer w = {.ring = ring};
	struct roci_local_reader r = {.ring = ring};
	uint8_t other[12];

	memcpy(other, header, sizeof(other));
	other[7] = 0x35;
	assert_true(put(&w, 8000, true));
	assert_true(put(&w, 100, false)); /* its payload is in the ring */
	assert_true(roci_local_ring_put(&w, other, sizeof(other), &(struct roci_span){memory + 100, 50}, 1, 50, true));
	roci_local_ring_publish(&w);
	roci_local_ring_revoke(&w, (uintptr_t)memory + 8000, 10, 0);
	assert_int_equal(revoked(&r), 0);
	roci_local_ring_revoke(&w, 0, 0, 0x1235);
	assert_int_equal(revoked(&r), 4);
	roci_local_ring_revoke(&w, (uintptr_t)memory + 149, 1, 0);
	assert_int_equal(revoked(&r), 5);
}

/* The first one, which is not in the ring before it is published. */
static void what_is_not_published_is_revoked(void **state)
{
	struct roci_local_writer w = {.ring = ring};
	struct roci_local_reader r = {.ring = ring};

	assert_true(put(&w, 8, false));
	assert_true(put(&w, 8, false));
	roci_local_ring_publish(&w);
	assert_true(put(&w, 8000, true));
	roci_local_ring_publish(&w);
	assert_int_equal(w.tail % ROCI_LOCAL_LINE, 0);
	assert_true(put(&w, 8000, true));
	assert_true(put(&w, 8, false));
	roci_local_ring_revoke(&w, (uintptr_t)memory + 10, 10, 0);
	roci_local_ring_publish(&w);
	assert_int_equal(revoked(&r), 12);
}

/* A memory window ends: requests from the same memory go on. */
static void responses_are_revoked_alone(void **state)
{
	struct roci_local_writer w = {.ring = ring};
	struct roci_local_reader r = {.ring = ring};
	uint8_t response[12];

	memcpy(response, header, sizeof(response));
	response[0] = ROCI_OP_READ_RESPONSE_ONLY;
	assert_true(put(&w, 8000, true));
	for (unsigned i = 0; i < 2; i++)
		assert_true(roci_local_ring_put(&w, response, sizeof(response),
						&(struct roci_span){memory + 1000 * i, 1000}, 1, 1000, true));
	roci_local_ring_publish(&w);
	roci_local_ring_revoke_responses(&w, (uintptr_t)memory + 1999, 1);
	assert_int_equal(revoked(&r), 4);
	roci_local_ring_revoke_responses(&w, (uintptr_t)memory, 8000);
	assert_int_equal(revoked(&r), 6);
}

/* A writer that has gone mad: nothing outside of the ring is read. */
static void nonsense_is_refused(void **state)
{
	struct roci_local_reader r = {.ring = ring};
	struct roci_local_packet packet;
	struct roci_local_record *first = (struct roci_local_record *)(void *)ring->bytes;

	assert_int_equal(roci_local_ring_get(&r, &packet), 0); /* nothing is there yet */
	*first = (struct roci_local_record){.size = sizeof(ring->bytes) + 64, .header_len = 12};
	assert_int_equal(roci_local_ring_get(&r, &packet), -EBADMSG); /* beyond the end */
	*first = (struct roci_local_record){.size = 64, .header_len = 12, .payload_len = 1000};
	assert_int_equal(roci_local_ring_get(&r, &packet), -EBADMSG);
	*first = (struct roci_local_record){.size = 64, .header_len = 12, .span_count = 200};
	assert_int_equal(roci_local_ring_get(&r, &packet), -EBADMSG);
	*first = (struct roci_local_record){.size = 64, .header_len = 200};
	assert_int_equal(roci_local_ring_get(&r, &packet), -EBADMSG);
	*first = (struct roci_local_record){.size = 65, .header_len = 12};
	assert_int_equal(roci_local_ring_get(&r, &packet), -EBADMSG);
	*first = (struct roci_local_record){.size = 64, .header_len = 12, .payload_len = 8};
	assert_int_equal(roci_local_ring_get(&r, &packet), 1);
}

/* One that shows the same records again and again, or an end that is none: the reader comes to an end in half a ring.
 */
static void a_ring_without_end_is_refused(void **state)
{
	static const uint64_t ends[] = {0, 64, UINT64_C(1) << 40, UINT64_MAX};

	for (unsigned i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		struct roci_local_reader r = {.ring = ring};
		struct roci_local_packet packet;
		unsigned n = 0;

		for (size_t at = 0; at < sizeof(ring->bytes); at += 64)
			*(struct roci_local_record *)(void *)(ring->bytes + at) =
				(struct roci_local_record){.size = 64, .header_len = 12};
		atomic_store(&ring->tail, ends[i]);
		while (n < 100000 && roci_local_ring_get(&r, &packet) == 1) {
			roci_local_ring_next(&r, &packet);
			n++;
		}
		assert_in_range(n, 0, sizeof(ring->bytes) / 64);
		assert_int_equal(roci_local_ring_get(&r, &packet), -EBADMSG);
	}
}

/* The writer changes a record while the reader has it: what was checked is what counts. */
static void what_was_read_does_not_change(void **state)
{
	struct roci_local_writer w = {.ring = ring};
	struct roci_local_reader r = {.ring = ring};
	struct roci_local_record *shared = (struct roci_local_record *)(void *)ring->bytes;
	struct roci_span spans[ROCI_MAX_SGE];
	struct roci_local_packet packet;

	assert_true(put(&w, 8000, true));
	roci_local_ring_publish(&w);
	assert_int_equal(roci_local_ring_get(&r, &packet), 1);
	memset(shared->bytes, 0xff, sizeof(header));
	*shared = (struct roci_local_record){.size = 1, .payload_len = 1, .header_len = 200, .span_count = 255};
	assert_memory_equal(packet.header, header, sizeof(header));
	assert_int_equal(packet.span_count, 1);
	assert_true(roci_local_packet_spans(&packet, spans));
	assert_int_equal(spans[0].len, 8000);
	roci_local_ring_next(&r, &packet);
	assert_int_equal(r.head, atomic_load(&ring->tail));
	assert_int_equal(r.head, w.tail);
}

/* A reader that has gone mad: its end is no record's, or not even in the ring. Nothing behind the ring is read, what
 * is there stays, and the next sensible end counts. */
static void a_reader_that_has_gone_mad_is_not_believed(void **state)
{
	static const int64_t wrong[] = {-1, 1, 64, -63, INT64_C(1) << 40, -(INT64_C(1) << 40), INT64_MIN};
	struct roci_local_writer w = {.ring = ring};
	struct roci_local_reader r = {.ring = ring};
	struct roci_local_packet packet;
	unsigned n = 0;

	while (put(&w, 1000, false))
		n++;
	roci_local_ring_publish(&w);
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		atomic_store(&ring->head, w.tail + (uint64_t)wrong[i]);
		roci_local_ring_revoke(&w, (uintptr_t)memory, sizeof(memory), 0x1234);
		assert_false(put(&w, 1000, false));
		assert_int_equal(w.head, 0);
	}
	assert_int_equal(roci_local_ring_get(&r, &packet), 1);
	roci_local_ring_next(&r, &packet);
	roci_local_ring_release(&r);
	assert_true(put(&w, 100, false));
}

static uint32_t draw(uint32_t below)
{
	static uint64_t state = 1;

	state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(state >> 33) % below;
}

/* The writer is killed at any instant: between two publications, and in the middle of a record. What it published is
 * whole and in order, and there is no more. */
static void who_is_killed_leaves_whole_packets(void **state)
{
	for (unsigned round = 0; round < 500; round++) {
		struct roci_local_writer w = {.ring = ring};
		struct roci_local_reader r = {.ring = ring};
		struct roci_local_packet packet;
		uint32_t lens[64], published = 0, count = 0, got = 0;
		uint64_t start = draw(8192) * UINT64_C(64);

		memset(ring, 0, sizeof(*ring));
		atomic_store(&ring->head, start);
		atomic_store(&ring->tail, start);
		w.head = w.tail = w.shown = r.head = r.tail = start;
		while (count < 64 && draw(30)) {
			lens[count] = draw(1500);
			assert_true(put(&w, lens[count++], false));
			if (draw(3))
				continue;
			roci_local_ring_publish(&w);
			published = count;
		}
		/* The rest of its stores were not seen; but the size of the first is as it was published. */
		for (uint64_t i = w.shown + sizeof(uint32_t); i < w.tail; i++)
			if (!draw(3))
				ring->bytes[i % sizeof(ring->bytes)] = (uint8_t)draw(256);
		for (; roci_local_ring_get(&r, &packet) == 1; roci_local_ring_next(&r, &packet), got++) {
			assert_int_equal(packet.payload_len, lens[got]);
			assert_memory_equal(roci_local_packet_payload(&packet), memory, lens[got]);
		}
		assert_int_equal(got, published);
	}
}

/* A reader or writer that has gone mad changes anything at any time. The other side stays within the ring, and comes to
 * an end. */
static void damage_stays_in_the_ring(void **state)
{
	struct roci_local_ring *two = aligned_alloc(64, 2 * sizeof(*two));
	const uint8_t *end = two->bytes + sizeof(two->bytes);

	for (unsigned round = 0; round < 2000; round++) {
		struct roci_local_writer w = {.ring = two};
		struct roci_local_reader r = {.ring = two};
		struct roci_local_packet packet;
		struct roci_span spans[ROCI_MAX_SGE];
		unsigned n = 0;

		memset(two, 0, sizeof(*two));
		memset(two + 1, 0xee, sizeof(*two));
		for (unsigned i = draw(40); i; i--)
			roci_local_ring_put(&w, header, sizeof(header), &(struct roci_span){memory, 1000}, 1, 1000,
					    draw(2));
		roci_local_ring_publish(&w);
		for (unsigned i = draw(20); i; i--)
			((uint8_t *)two)[draw(draw(2) ? 160 : 40000)] ^= (uint8_t)(1u << draw(8));
		while (n++ < 4096 && roci_local_ring_get(&r, &packet) == 1) {
			assert_true(packet.header_len <= ROCI_MAX_HEADER_BYTES && packet.span_count <= ROCI_MAX_SGE);
			if (packet.span_count)
				roci_local_packet_spans(&packet, spans);
			else
				assert_true(roci_local_packet_payload(&packet) + packet.payload_len <= end);
			roci_local_ring_next(&r, &packet);
			if (!draw(8))
				((uint8_t *)two)[draw(40000)] ^= (uint8_t)(1u << draw(8));
		}
		assert_true(n < 4096);
		roci_local_ring_revoke(&w, (uintptr_t)memory, 100, 7);
		for (unsigned i = 0; i < 200; i++)
			put(&w, 4000, false);
		for (size_t i = 0; i < sizeof(*two); i += 512)
			assert_int_equal(((uint8_t *)(two + 1))[i], 0xee);
	}
	free(two);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(packets_come_whole_and_in_order, make, drop),
		cmocka_unit_test_setup_teardown(a_full_ring_takes_no_more, make, drop),
		cmocka_unit_test_setup_teardown(spans_name_memory, make, drop),
		cmocka_unit_test_setup_teardown(records_are_revoked_by_memory_and_by_qp, make, drop),
		cmocka_unit_test_setup_teardown(short_packets_share_a_line, make, drop),
		cmocka_unit_test_setup_teardown(batches_come_whole_and_in_order, make, drop),
		cmocka_unit_test_setup_teardown(what_is_not_published_is_revoked, make, drop),
		cmocka_unit_test_setup_teardown(responses_are_revoked_alone, make, drop),
		cmocka_unit_test_setup_teardown(nonsense_is_refused, make, drop),
		cmocka_unit_test_setup_teardown(a_ring_without_end_is_refused, make, drop),
		cmocka_unit_test_setup_teardown(what_was_read_does_not_change, make, drop),
		cmocka_unit_test_setup_teardown(a_reader_that_has_gone_mad_is_not_believed, make, drop),
		cmocka_unit_test_setup_teardown(who_is_killed_leaves_whole_packets, make, drop),
		cmocka_unit_test_setup_teardown(damage_stays_in_the_ring, make, drop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
