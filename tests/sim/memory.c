/* SPDX-License-Identifier: BSD-2-Clause */
/* The memory of the hosts: arenas filled with noise, and memory regions in them. There are two copies: what is, and
 * what must be. */
#include <stdlib.h>
#include <sys/mman.h>

#include "sim.h"

#define SCRATCH_BYTES (32u << 20)

void *sim_own_pages(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		abort();
	return p;
}

void *sim_alloc(struct sim *sim, size_t len)
{
	void *p = sim->scratch + sim->scratch_used;

	sim->scratch_used += (len + 15) & ~(size_t)15;
	sim_check(sim, sim->scratch_used <= SCRATCH_BYTES, "simulator: scratch memory is used up");
	return memset(p, 0, len);
}

void sim_memory_reset(struct sim *sim)
{
	if (!sim->scratch)
		sim->scratch = sim_own_pages(SCRATCH_BYTES);
	sim->scratch_used = 0;
	sim->num_mrs = 0;
	for (unsigned i = 0; i < SIM_MAX_HOSTS; i++) {
		struct sim_host *host = &sim->hosts[i];

		if (!host->mem) {
			host->mem = sim_own_pages(SIM_ARENA_BYTES);
			host->shadow = sim_own_pages(SIM_ARENA_BYTES);
		}
		host->used = 0;
	}
}

/* A few bytes between allocations must never be written. */
static uint32_t arena_take(struct sim *sim, struct sim_host *host, uint32_t len)
{
	uint32_t gap = rng_range(&sim->plan, 1, 24), off = host->used + gap;

	off = (off + 7) & ~7u;
	if (rng_once_in(&sim->plan, 4))
		off = (off + 4095) & ~4095u;
	sim_check(sim, off + len + 64 <= SIM_ARENA_BYTES, "simulator: the arena is used up");
	rng_fill(&sim->plan, host->mem + host->used, off + len + 32 - host->used);
	memcpy(host->shadow + host->used, host->mem + host->used, off + len + 32 - host->used);
	host->used = off + len;
	return off;
}

uint32_t sim_new_key(struct sim *sim, struct sim_host *host)
{
	uint32_t key;

again:
	key = rng_next(&sim->plan);
	for (unsigned i = 0; i < sim->num_mrs; i++)
		if (sim->mrs[i].host == host && sim->mrs[i].key >> 8 == key >> 8)
			goto again;
	return key;
}

struct sim_mr *sim_mr_new(struct sim *sim, struct sim_host *host, uint32_t pd, uint32_t len, uint32_t access)
{
	struct sim_mr *mr;
	uint32_t off = arena_take(sim, host, len);

	sim_check(sim, sim->num_mrs < SIM_MAX_MRS, "simulator: too many MRs");
	mr = &sim->mrs[sim->num_mrs];
	*mr = (struct sim_mr){.host = host, .off = off, .len = len, .pd = pd, .access = access};
	mr->key = sim_new_key(sim, host);
	switch (rng_below(&sim->plan, 4)) {
	case 0: mr->iova = 0; break;
	case 1: mr->iova = 0xffffffffffffe000ull - ((len + 4095ull) & ~4095ull); break;
	default: mr->iova = (rng_next(&sim->plan) >> 8) & ~7ull; break;
	}
	sim->num_mrs++;
	return mr;
}

uint64_t sim_mr_addr(const struct sim_mr *mr, uint32_t off)
{
	return mr->iova + (off - mr->off);
}

struct sim_piece sim_pool_take(struct sim *sim, struct sim_pool *pool, uint32_t len)
{
	struct sim_mr *mr = pool->cur;
	uint32_t skew = rng_once_in(&sim->plan, 2) ? 0 : rng_below(&sim->plan, 8);

	if (!mr || mr->used + skew + len + 8 > mr->len) {
		uint32_t chunk = rng_once_in(&sim->plan, 3) ? len + 64 : 4096u << rng_below(&sim->plan, 4);

		if (chunk < len + 64)
			chunk = len + 64;
		mr = pool->cur = sim_mr_new(sim, pool->host, pool->pd, chunk, pool->access);
	}
	struct sim_piece piece = {.mr = mr, .off = mr->off + mr->used + skew, .len = len};

	mr->used += skew + len + rng_below(&sim->plan, 4);
	return piece;
}

unsigned sim_pool_take_list(struct sim *sim, struct sim_pool *pool, uint32_t len, unsigned max_sge,
			    struct sim_piece *pieces)
{
	unsigned n = 0, want = max_sge ? rng_range(&sim->plan, 1, max_sge) : 0;

	if (!len && (!want || rng_once_in(&sim->plan, 2)))
		return 0;
	if (rng_once_in(&sim->plan, 2))
		want = 1;
	while (n + 1 < want && len) {
		uint32_t part = rng_once_in(&sim->plan, 8) ? 0 : rng_below(&sim->plan, len + 1);

		if (rng_once_in(&sim->plan, 3) && len > 16)
			part = rng_below(&sim->plan, 16);
		pieces[n++] = sim_pool_take(sim, pool, part);
		len -= part;
	}
	pieces[n++] = sim_pool_take(sim, pool, len);
	return n;
}

void sim_gather(const uint8_t *arena, const struct sim_piece *pieces, unsigned n, uint32_t len, uint8_t *out)
{
	for (unsigned i = 0; i < n && len; i++) {
		uint32_t part = pieces[i].len < len ? pieces[i].len : len;

		memcpy(out, arena + pieces[i].off, part);
		out += part;
		len -= part;
	}
}

void sim_scatter(uint8_t *arena, const struct sim_piece *pieces, unsigned n, uint32_t len, const uint8_t *in)
{
	for (unsigned i = 0; i < n && len; i++) {
		uint32_t part = pieces[i].len < len ? pieces[i].len : len;

		memcpy(arena + pieces[i].off, in, part);
		in += part;
		len -= part;
	}
}
