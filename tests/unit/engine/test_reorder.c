#include "../test.h"

#include <stdlib.h>

#include "engine/reorder.h"

static struct roci_rx packet(uint32_t psn, const uint8_t *payload)
{
	return (struct roci_rx){.pkt = {.psn = psn & ROCI_PSN_MASK, .payload = payload, .payload_len = 1}};
}

static void gives_back_in_order_across_the_wrap(void **state)
{
	static const uint32_t order[] = {5, 2, 9, 2, 3, 7, 4, 8, 6};
	struct roci_reorder_store store = {0};
	struct roci_reorder r;
	uint32_t base = 0xfffffb;

	roci_reorder_init(&r);
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		uint8_t byte = (uint8_t)order[i];
		struct roci_rx rx = packet(base + order[i], &byte);

		roci_reorder_keep(&store, &r, &rx);
	}
	assert_null(roci_reorder_take(&store, &r, (base + 1) & ROCI_PSN_MASK));
	for (uint32_t n = 2; n < 10; n++) {
		struct roci_reorder_slot *s = roci_reorder_take(&store, &r, (base + n) & ROCI_PSN_MASK);

		assert_non_null(s);
		assert_int_equal(s->rx.pkt.payload[0], n);
		roci_reorder_release(&store, s);
	}
	assert_true(roci_list_empty(&r.kept));
	free(store.slots);
}

static void is_bounded_and_forgets_old_ones(void **state)
{
	struct roci_reorder_store store = {0};
	struct roci_reorder r;
	uint8_t byte = 0;

	roci_reorder_init(&r);
	for (uint32_t psn = 1; psn <= 2 * ROCI_REORDER_PACKETS; psn++) {
		struct roci_rx rx = packet(psn, &byte);

		roci_reorder_keep(&store, &r, &rx);
	}
	assert_true(roci_list_empty(&store.free));
	assert_null(roci_reorder_take(&store, &r, ROCI_REORDER_PACKETS + 1));
	assert_true(roci_list_empty(&r.kept));
	assert_false(roci_list_empty(&store.free));
	roci_reorder_clear(&store, &r);
	free(store.slots);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gives_back_in_order_across_the_wrap),
		cmocka_unit_test(is_bounded_and_forgets_old_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
