/* SPDX-License-Identifier: BSD-2-Clause */
#include "mover/window.h"

#include <assert.h>
#include <errno.h>
#include <sys/mman.h>

#define HUGE_BYTES ((size_t)2 << 20)

uint8_t *window_map_memory(size_t bytes)
{
	uint8_t *mapped = mmap(NULL, bytes + HUGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t before;

	if (mapped == MAP_FAILED)
		return NULL;
	before = -(uintptr_t)mapped % HUGE_BYTES;
	if (before)
		munmap(mapped, before);
	munmap(mapped + before + bytes, HUGE_BYTES - before);
	(void)!madvise(mapped + before, bytes, MADV_HUGEPAGE);
	return mapped + before;
}

int window_pool_create(struct window_pool *pool, struct ibv_pd *pd, unsigned count, size_t window_bytes,
		       int local_access)
{
	size_t stride = (window_bytes + 4095) & ~(size_t)4095; /* no two windows share a page */

	assert(count <= sizeof(pool->windows) / sizeof(pool->windows[0]));
	*pool = (struct window_pool){
		.pd = pd,
		.count = count,
		.window_bytes = window_bytes,
		.memory_bytes = stride * count,
		.local_access = local_access,
	};
	pool->memory = window_map_memory(pool->memory_bytes);
	if (!pool->memory)
		return -errno;
	for (unsigned i = 0; i < count; i++)
		pool->windows[i] = (struct window){.index = (uint16_t)i, .bytes = pool->memory + i * stride};
	return 0;
}

void window_pool_destroy(struct window_pool *pool)
{
	for (unsigned i = 0; i < pool->count; i++) {
		window_revoke(&pool->windows[i]);
		if (pool->windows[i].local)
			ibv_dereg_mr(pool->windows[i].local);
	}
	if (pool->memory)
		munmap(pool->memory, pool->memory_bytes);
	*pool = (struct window_pool){0};
}

bool window_is_open(const struct window_pool *pool, const struct window *window)
{
	return pool->local_access < 0 || window->local;
}

struct window *window_not_open(struct window_pool *pool)
{
	for (unsigned i = 0; i < pool->count; i++)
		if (!window_is_open(pool, &pool->windows[i]))
			return &pool->windows[i];
	return NULL;
}

int window_open(struct window_pool *pool, struct window *window)
{
	if (window_is_open(pool, window))
		return 0;
	window->local = ibv_reg_mr(pool->pd, window->bytes, pool->window_bytes, pool->local_access);
	return window->local ? 0 : errno ? -errno : -ENOMEM;
}

int window_grant(struct window_pool *pool, struct window *window, size_t len, int access)
{
	assert(!window->granted && len <= pool->window_bytes);
	window->granted = ibv_reg_mr(pool->pd, window->bytes, len, access);
	return window->granted ? 0 : errno ? -errno : -ENOMEM;
}

void window_revoke(struct window *window)
{
	if (window->granted)
		ibv_dereg_mr(window->granted);
	window->granted = NULL;
}

uint32_t window_lkey(const struct window *window)
{
	return window->granted ? window->granted->lkey : window->local->lkey;
}
