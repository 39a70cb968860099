/* SPDX-License-Identifier: BSD-2-Clause */
/* Windows: the buffers through which content moves, one chunk each. The windows of a session are one mapping.
 *
 * A registration that lasts is for local use only (window_open), and is made when a window is first used: the kernel
 * has to make its pages then, which takes a millisecond or more, so all windows at once would hold up the first
 * content. A key for a peer is made for one use (window_grant) and revoked before anybody reads what came in
 * (window_revoke). */
#ifndef ROCI_MOVER_WINDOW_H
#define ROCI_MOVER_WINDOW_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct window {
	uint16_t index;
	uint8_t *bytes;
	struct ibv_mr *granted; /* the registration for one use, or NULL */
	struct ibv_mr *local;   /* the one that lasts, or NULL */
};

struct window_pool {
	struct ibv_pd *pd;
	uint8_t *memory;
	size_t memory_bytes, window_bytes;
	unsigned count;
	int local_access; /* ibv_access_flags, or -1: each use has its own registration */
	struct window windows[256];
};

/* Maps `bytes` in huge pages where the kernel has them: to register memory costs time per page. To be unmapped with
 * munmap(). NULL with errno. */
uint8_t *window_map_memory(size_t bytes);

/* `local_access`: ibv_access_flags for the registration that lasts, or -1: window_open() makes none. 0 or -errno. */
int window_pool_create(struct window_pool *pool, struct ibv_pd *pd, unsigned count, size_t window_bytes,
		       int local_access);
void window_pool_destroy(struct window_pool *pool);

/* Registers a window for local use, if that is still to be done. 0 or -errno. */
int window_open(struct window_pool *pool, struct window *window);
bool window_is_open(const struct window_pool *pool, const struct window *window);
/* The first that is to be opened still, or NULL. */
struct window *window_not_open(struct window_pool *pool);

/* Registers the first `len` bytes of a window for one use. 0 or -errno. */
int window_grant(struct window_pool *pool, struct window *window, size_t len, int access);
void window_revoke(struct window *window);

/* The lkey of a window that is granted or open: of its grant if there is one. */
uint32_t window_lkey(const struct window *window);

#endif
