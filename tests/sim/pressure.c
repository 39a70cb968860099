/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory pressure: `sim --memory`. The linker leads the engine's calls of malloc() and its like here (--wrap). While
 * objects are created or changed, each allocation of each call fails once, and the call must leave nothing behind.
 * While the program runs, each place that allocates fails at first and then by chance; the engine may do without what
 * it did not get, as if a packet was lost. At the end all memory must have been given back.
 */
#include <errno.h>
#include <stdlib.h>

#include "sim.h"

#define MAX_PLACES 64

static struct {
	struct sim *sim;  /* NULL: nothing fails */
	unsigned fail_in; /* the allocation that fails, counted from 1 */
	bool by_count, by_chance, refused;
	unsigned rate; /* in 1/1000 */
	const void *places[MAX_PLACES];
	unsigned num_places;
	int64_t held; /* allocations of the engines */
} pressure;

/* What the linker makes of the names. */
void *__real_malloc(size_t len);
void *__real_calloc(size_t count, size_t len);
void *__real_realloc(void *old, size_t len);
void *__real_aligned_alloc(size_t alignment, size_t len);
void __real_free(void *p);
void *__wrap_malloc(size_t len);
void *__wrap_calloc(size_t count, size_t len);
void *__wrap_realloc(void *old, size_t len);
void *__wrap_aligned_alloc(size_t alignment, size_t len);
void __wrap_free(void *p);

static bool is_new(const void *place)
{
	for (unsigned i = 0; i < pressure.num_places; i++)
		if (pressure.places[i] == place)
			return false;
	if (pressure.num_places < MAX_PLACES)
		pressure.places[pressure.num_places++] = place;
	return true;
}

static bool refuses(const void *place)
{
	struct sim *sim = pressure.sim;

	if (!sim)
		return false;
	if (pressure.by_count) {
		pressure.refused |= pressure.fail_in == 1;
		return pressure.fail_in && --pressure.fail_in == 0;
	}
	if (!pressure.by_chance || (!is_new(place) && rng_below(&sim->memory_rng, 1000) >= pressure.rate))
		return false;
	/* As good as a packet that is lost. */
	for (unsigned i = 0; i < sim->num_qps; i++)
		sim->qps[i].lost++;
	sim->stats.refused++;
	return true;
}

static void *hold(void *p)
{
	pressure.held += p != NULL;
	return p;
}

void *__wrap_malloc(size_t len)
{
	return refuses(__builtin_return_address(0)) ? NULL : hold(__real_malloc(len));
}

void *__wrap_calloc(size_t count, size_t len)
{
	return refuses(__builtin_return_address(0)) ? NULL : hold(__real_calloc(count, len));
}

void *__wrap_realloc(void *old, size_t len)
{
	void *p = refuses(__builtin_return_address(0)) ? NULL : __real_realloc(old, len);

	pressure.held += p && !old;
	return p;
}

void *__wrap_aligned_alloc(size_t alignment, size_t len)
{
	return refuses(__builtin_return_address(0)) ? NULL : hold(__real_aligned_alloc(alignment, len));
}

void __wrap_free(void *p)
{
	pressure.held -= p != NULL;
	__real_free(p);
}

void *sim_own_memory(void *old, size_t len)
{
	void *p = __real_realloc(old, len);

	if (!p)
		abort();
	return p;
}

void sim_pressure_reset(struct sim *sim)
{
	pressure.sim = sim->memory ? sim : NULL;
	pressure.fail_in = pressure.num_places = 0;
	pressure.by_count = pressure.by_chance = pressure.refused = false;
	pressure.held = 0;
	pressure.rate = (unsigned)rng_below(&sim->memory_rng, 400);
}

void sim_pressure_by_chance(bool on)
{
	pressure.by_chance = on;
}

void sim_pressure_begin(unsigned fail_in)
{
	pressure.by_count = true;
	pressure.fail_in = fail_in;
	pressure.refused = false;
}

bool sim_pressure_end(struct sim *sim, int err)
{
	pressure.by_count = false;
	if (!pressure.refused)
		return false;
	sim->stats.refused++;
	sim_check(sim, err == -ENOMEM, "an allocation failed, and the call returned %d", err);
	return true;
}

void sim_pressure_check(struct sim *sim)
{
	sim_check(sim, !pressure.held, "%lld allocations were not given back", (long long)pressure.held);
}
