/* SPDX-License-Identifier: BSD-2-Clause */
#include "../test.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "engine/idmap.h"

#define IDS 512

/* Against a plain table, with ids that collide. */
static void finds_what_was_put_in(void **state)
{
	static char object[IDS];
	bool in[IDS] = {false};
	struct roci_idmap map = {0};

	srand(2);
	for (int i = 0; i < 20000; i++) {
		uint32_t k = (uint32_t)rand() % IDS, id = (k % 8) * 1024 + k / 8;

		if (in[k]) {
			assert_int_equal(roci_idmap_insert(&map, id, &object[k]), -EEXIST);
			roci_idmap_remove(&map, id);
		} else {
			assert_int_equal(roci_idmap_insert(&map, id, &object[k]), 0);
		}
		in[k] = !in[k];
		for (uint32_t j = 0; i % 100 == 0 && j < IDS; j++)
			assert_ptr_equal(roci_idmap_find(&map, (j % 8) * 1024 + j / 8), in[j] ? &object[j] : NULL);
	}
	roci_idmap_free(&map);
}

static void empty_map_finds_nothing(void **state)
{
	struct roci_idmap map = {0};

	assert_null(roci_idmap_find(&map, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_what_was_put_in),
		cmocka_unit_test(empty_map_finds_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
