/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/idmap.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define IDMAP_MIN_SLOTS 64

static void put(struct roci_idmap *map, uint32_t id, void *object)
{
	uint32_t i = id & map->mask;

	while (map->slots[i].object)
		i = (i + 1) & map->mask;
	map->slots[i] = (struct roci_idmap_slot){id, object};
}

/* Keeps at least half of the slots free, so that probes stay short. */
static int grow(struct roci_idmap *map)
{
	struct roci_idmap old = *map;
	uint32_t slots = old.slots ? 2 * (old.mask + 1) : IDMAP_MIN_SLOTS;

	map->slots = calloc(slots, sizeof(*map->slots));
	if (!map->slots) {
		*map = old;
		return -ENOMEM;
	}
	map->mask = slots - 1;
	for (uint32_t i = 0; old.slots && i <= old.mask; i++)
		if (old.slots[i].object)
			put(map, old.slots[i].id, old.slots[i].object);
	free(old.slots);
	return 0;
}

void roci_idmap_free(struct roci_idmap *map)
{
	free(map->slots);
	*map = (struct roci_idmap){0};
}

int roci_idmap_insert(struct roci_idmap *map, uint32_t id, void *object)
{
	assert(object);
	if (roci_idmap_find(map, id))
		return -EEXIST;
	if (!map->slots || 2 * (map->count + 1) > map->mask + 1) {
		int err = grow(map);

		if (err)
			return err;
	}
	put(map, id, object);
	map->count++;
	return 0;
}

void roci_idmap_remove(struct roci_idmap *map, uint32_t id)
{
	uint32_t i = id & map->mask, j;

	while (map->slots[i].id != id || !map->slots[i].object) {
		assert(map->slots[i].object);
		i = (i + 1) & map->mask;
	}
	/* Close the gap: move back each entry behind it whose home slot is not between the gap and the entry. */
	for (j = (i + 1) & map->mask; map->slots[j].object; j = (j + 1) & map->mask) {
		uint32_t home = map->slots[j].id & map->mask;

		if (((j - home) & map->mask) >= ((j - i) & map->mask)) {
			map->slots[i] = map->slots[j];
			i = j;
		}
	}
	map->slots[i].object = NULL;
	map->count--;
}
