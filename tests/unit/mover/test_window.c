/* SPDX-License-Identifier: BSD-2-Clause */
/* When windows are registered. The two verbs are counted here, in the place of a device's. */
#include "../test.h"

#include <infiniband/verbs.h>
#include <stdlib.h>

#include "mover/window.h"

#define WINDOWS 16
#define BYTES   ((size_t)100000)

static unsigned made, there;
static size_t longest;
static bool full;

static struct ibv_mr *make(void *addr, size_t length)
{
	struct ibv_mr *mr = full ? NULL : calloc(1, sizeof(*mr));

	errno = ENOMEM;
	if (!mr)
		return NULL;
	mr->addr = addr;
	mr->length = length;
	mr->lkey = mr->rkey = ++made;
	there++;
	longest = length > longest ? length : longest;
	return mr;
}

/* What the macro ibv_reg_mr() calls where the rights are a constant, and where they are not. */
#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return make(addr, length);
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	return make(addr, length);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	there--;
	free(mr);
	return 0;
}

static int set_up(void **state)
{
	made = there = 0;
	longest = 0;
	full = false;
	return 0;
}

/* A sender with many windows can send the first one while the others have no memory yet. */
static void a_window_is_registered_when_it_is_first_used(void **state)
{
	struct window_pool pool;

	assert_int_equal(window_pool_create(&pool, NULL, WINDOWS, BYTES, 0), 0);
	assert_int_equal(made, 0);
	assert_false(window_is_open(&pool, &pool.windows[3]));
	assert_int_equal(window_open(&pool, &pool.windows[3]), 0);
	assert_true(window_is_open(&pool, &pool.windows[3]));
	assert_false(window_is_open(&pool, &pool.windows[4]));
	assert_int_equal(made, 1);
	assert_int_equal(longest, BYTES);
	assert_int_equal(window_lkey(&pool.windows[3]), pool.windows[3].local->lkey);
	window_pool_destroy(&pool);
	assert_int_equal(there, 0);
}

static void it_is_registered_once(void **state)
{
	struct window_pool pool;

	assert_int_equal(window_pool_create(&pool, NULL, WINDOWS, BYTES, IBV_ACCESS_LOCAL_WRITE), 0);
	for (unsigned i = 0; i < 3 * WINDOWS; i += 2)
		assert_int_equal(window_open(&pool, &pool.windows[i % WINDOWS]), 0);
	assert_int_equal(made, WINDOWS / 2);
	for (unsigned i = 1; i < WINDOWS; i += 2) {
		assert_ptr_equal(window_not_open(&pool), &pool.windows[i]);
		assert_int_equal(window_open(&pool, window_not_open(&pool)), 0);
	}
	assert_null(window_not_open(&pool));
	assert_int_equal(made, WINDOWS);
	window_pool_destroy(&pool);
	assert_int_equal(there, 0);
}

/* The key for one use is the one that counts while there is one. */
static void a_grant_is_for_one_use(void **state)
{
	struct window_pool pool;
	struct window *w;
	uint32_t lasting;

	assert_int_equal(window_pool_create(&pool, NULL, WINDOWS, BYTES, 0), 0);
	w = &pool.windows[0];
	assert_int_equal(window_open(&pool, w), 0);
	lasting = window_lkey(w);
	assert_int_equal(window_grant(&pool, w, 10, IBV_ACCESS_REMOTE_READ), 0);
	assert_int_not_equal(window_lkey(w), lasting);
	window_revoke(w);
	assert_int_equal(window_lkey(w), lasting);
	assert_int_equal(there, 1);
	window_pool_destroy(&pool);
	assert_int_equal(there, 0);
}

static void without_local_access_only_grants_are_registered(void **state)
{
	struct window_pool pool;

	assert_int_equal(window_pool_create(&pool, NULL, WINDOWS, BYTES, -1), 0);
	assert_true(window_is_open(&pool, &pool.windows[0]));
	assert_null(window_not_open(&pool));
	assert_int_equal(window_open(&pool, &pool.windows[0]), 0);
	assert_int_equal(made, 0);
	assert_int_equal(window_grant(&pool, &pool.windows[0], BYTES, IBV_ACCESS_REMOTE_WRITE), 0);
	assert_int_equal(made, 1);
	window_pool_destroy(&pool);
	assert_int_equal(there, 0);
}

static void what_cannot_be_registered_is_told(void **state)
{
	struct window_pool pool;

	assert_int_equal(window_pool_create(&pool, NULL, WINDOWS, BYTES, 0), 0);
	full = true;
	assert_int_equal(window_open(&pool, &pool.windows[0]), -ENOMEM);
	assert_int_equal(window_grant(&pool, &pool.windows[0], 1, 0), -ENOMEM);
	full = false;
	assert_int_equal(window_open(&pool, &pool.windows[0]), 0);
	window_pool_destroy(&pool);
	assert_int_equal(there, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_window_is_registered_when_it_is_first_used, set_up),
		cmocka_unit_test_setup(it_is_registered_once, set_up),
		cmocka_unit_test_setup(a_grant_is_for_one_use, set_up),
		cmocka_unit_test_setup(without_local_access_only_grants_are_registered, set_up),
		cmocka_unit_test_setup(what_cannot_be_registered_is_told, set_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
