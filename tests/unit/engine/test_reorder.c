/* SPDX-License-Identifier: BSD-2-Clause */
#include "../test.h"

#include <stdlib.h>

#include "engine/reorder.h"

static const uint32_t all = ROCI_REORDER_ROOM;

static struct roci_rx packet(uint32_t psn, const uint8_t *payload)
{
	return (struct roci_rx){.pkt = {.psn = psn & ROCI_PSN_MASK, .payload = payload, .payload_len = 1}};
}

static void gives_back_in_order_across_the_wrap(void **state)
{
	static const uint32_t order[] = {5, 2, 9, 2, 3, 7, 4, 8, 6};
	struct roci_reorder_store store = {0};
	struct roci_reorder r = {0};
	uint32_t base = 0xfffffb;

	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		uint8_t byte = (uint8_t)order[i];
		struct roci_rx rx = packet(base + order[i], &byte);

		roci_reorder_keep(&store, &r, &rx, base & ROCI_PSN_MASK, ROCI_REORDER_WINDOW);
	}
	assert_null(roci_reorder_take(&store, &r, (base + 1) & ROCI_PSN_MASK));
	for (uint32_t n = 2; n < 10; n++) {
		struct roci_reorder_slot *s = roci_reorder_take(&store, &r, (base + n) & ROCI_PSN_MASK);

		assert_non_null(s);
		assert_int_equal(s->rx.pkt.payload[0], n);
		roci_reorder_release(&store, s);
	}
	assert_int_equal(r.count, 0);
	roci_reorder_fini(&store, &r);
	roci_reorder_store_fini(&store);
}

/* Tries to keep twice as many packets as the store has. */
static unsigned greedy(struct roci_reorder_store *store, struct roci_reorder *r)
{
	uint8_t byte = 0;

	for (uint32_t psn = 1; psn <= 2 * all; psn++) {
		struct roci_rx rx = packet(psn, &byte);

		roci_reorder_keep(store, r, &rx, psn - 1, ROCI_REORDER_WINDOW);
	}
	return r->count;
}

static void forgets_old_ones(void **state)
{
	struct roci_reorder_store store = {0};
	struct roci_reorder r = {0};

	assert_int_equal(greedy(&store, &r), all / 2);
	assert_null(roci_reorder_take(&store, &r, all + 1));
	assert_int_equal(r.count, 0);
	assert_int_equal(roci_reorder_room(&store), all);
	roci_reorder_fini(&store, &r);
	roci_reorder_store_fini(&store);
}

/* The window starts at the expected PSN, also across the wrap. */
static void keeps_only_what_lies_in_the_window(void **state)
{
	static const uint32_t expected[] = {0, 77, ROCI_PSN_MASK - 1, ROCI_PSN_MASK - ROCI_REORDER_WINDOW + 1};
	static const uint32_t behind[] = {0, 1, 5000, (1u << 23) - 1 - ROCI_REORDER_WINDOW};
	struct roci_reorder_store store = {0};
	struct roci_reorder r = {0};
	uint8_t byte = 0;

	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		struct roci_rx rx = packet(expected[i] + ROCI_REORDER_WINDOW - 1, &byte);

		roci_reorder_keep(&store, &r, &rx, expected[i], ROCI_REORDER_WINDOW);
		assert_int_equal(r.count, 1);
		for (size_t j = 0; j < sizeof(behind) / sizeof(behind[0]); j++) {
			rx = packet(expected[i] + ROCI_REORDER_WINDOW + behind[j], &byte);
			roci_reorder_keep(&store, &r, &rx, expected[i], ROCI_REORDER_WINDOW);
			assert_int_equal(r.count, 1);
		}
		roci_reorder_clear(&store, &r);
	}
	roci_reorder_fini(&store, &r);
	roci_reorder_store_fini(&store);
}

/* Each user leaves as many as it takes, however many users there are. What one gives back, the next may have. */
static void leaves_room_for_others(void **state)
{
	struct roci_reorder_store store = {0};
	struct roci_reorder r[4] = {0};

	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(greedy(&store, &r[i]), all >> (i + 1));
	assert_int_equal(roci_reorder_room(&store), all / 16);
	roci_reorder_clear(&store, &r[0]);
	assert_int_equal(roci_reorder_room(&store), all / 2 + all / 16);
	assert_int_equal(greedy(&store, &r[0]), all * 9 / 32);
	for (unsigned i = 0; i < 4; i++)
		roci_reorder_fini(&store, &r[i]);
	roci_reorder_store_fini(&store);
}

/* Packets of all lengths, up to the longest between two Rocinantes: each comes back whole, and what it took is free
 * again. A longer one is not kept. */
static void keeps_packets_of_any_length(void **state)
{
	static const struct {
		uint32_t len, units;
	} rows[] = {{1, 1}, {1408, 1}, {1409, 3}, {ROCI_MAX_MTU, 3}, {ROCI_MAX_MTU + 1, 6}, {ROCI_MAX_PAYLOAD, 6}};
	static uint8_t bytes[ROCI_MAX_PAYLOAD + 1];
	struct roci_reorder_store store = {0};
	struct roci_reorder r = {0};
	struct roci_rx rx;

	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7 + i / 251);
	for (uint32_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint32_t room = roci_reorder_room(&store);

		rx = packet(i + 1, bytes);
		rx.pkt.payload_len = rows[i].len;
		assert_true(roci_reorder_keep(&store, &r, &rx, 0, ROCI_REORDER_WINDOW));
		assert_int_equal(room - roci_reorder_room(&store), rows[i].units);
		assert_int_equal(roci_reorder_units(rows[i].len), rows[i].units);
	}
	assert_int_equal(roci_reorder_units(ROCI_MAX_MESSAGE_BYTES), 6); /* the local path */
	rx = packet(50, bytes);
	rx.pkt.payload_len = ROCI_MAX_PAYLOAD + 1;
	assert_false(roci_reorder_keep(&store, &r, &rx, 0, ROCI_REORDER_WINDOW));
	for (uint32_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct roci_reorder_slot *s = roci_reorder_take(&store, &r, i + 1);

		assert_non_null(s);
		assert_memory_equal(s->rx.pkt.payload, bytes, rows[i].len);
		roci_reorder_release(&store, s);
	}
	assert_int_equal(roci_reorder_room(&store), all);
	roci_reorder_fini(&store, &r);
	roci_reorder_store_fini(&store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gives_back_in_order_across_the_wrap), cmocka_unit_test(forgets_old_ones),
		cmocka_unit_test(keeps_only_what_lies_in_the_window),  cmocka_unit_test(leaves_room_for_others),
		cmocka_unit_test(keeps_packets_of_any_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
