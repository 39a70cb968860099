/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include <stdlib.h>

#include "cm/peers.h"
#include "random.h"

#define NODES 5000

static void finds_what_was_inserted(void **state)
{
	static struct roci_peer_node nodes[NODES];
	static uint8_t gids[4][16];
	struct roci_peer_table table;
	uint64_t seed = 5;

	for (unsigned i = 0; i < 4; i++)
		gids[i][15] = (uint8_t)i;
	assert_int_equal(roci_peer_table_init(&table, 77), 0);
	for (unsigned i = 0; i < NODES; i++)
		roci_peer_insert(&table, &nodes[i], gids[i % 4], i / 4);
	for (unsigned round = 0; round < 50000; round++) {
		unsigned i = (unsigned)random_below(&seed, NODES);

		if (random_below(&seed, 2))
			roci_peer_remove(&table, &nodes[i]);
		else if (!nodes[i].in)
			roci_peer_insert(&table, &nodes[i], gids[i % 4], i / 4);
		assert_ptr_equal(roci_peer_find(&table, gids[i % 4], i / 4), nodes[i].in ? &nodes[i] : NULL);
	}
	for (unsigned i = 0; i < NODES; i++)
		roci_peer_remove(&table, &nodes[i]);
	assert_int_equal(table.count, 0);
	assert_null(roci_peer_find(&table, gids[0], 1));
	roci_peer_table_free(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_what_was_inserted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
