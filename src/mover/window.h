/* SPDX-License-Identifier: BSD-2-Clause */
/* Windows: the registered buffers through which content moves, one chunk each. All of a session's are one mapping.
 *
 * What stays registered is for local use only. A key that a peer may use is made for one use (window_grant) and is dead
 * before anybody looks at what it let in (window_revoke). */
#ifndef ROCI_MOVER_WINDOW_H
#define ROCI_MOVER_WINDOW_H

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

struct window {
	uint16_t index;
	uint8_t *bytes;
	struct ibv_mr *granted; /* NULL: no key is out */
};

struct window_pool {
	struct ibv_pd *pd;
	uint8_t *memory;
	size_t memory_bytes, window_bytes;
	unsigned count;
	struct ibv_mr *local; /* NULL where each use is registered by itself */
	struct window windows[256];
};

/* `local_access` are ibv_access_flags of a registration of all windows, -1 for none. 0 or -errno. */
int window_pool_create(struct window_pool *pool, struct ibv_pd *pd, unsigned count, size_t window_bytes,
		       int local_access);
void window_pool_destroy(struct window_pool *pool);

/* Registers the first `len` bytes of a window for one use. 0 or -errno. */
int window_grant(struct window_pool *pool, struct window *window, size_t len, int access);
void window_revoke(struct window *window);

/* The lkey for a window's bytes: of its grant, else of the pool. */
uint32_t window_lkey(const struct window_pool *pool, const struct window *window);

#endif
