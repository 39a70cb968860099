/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Map from a 32-bit number (QPN, memory key) to an object. Open addressing; the numbers are random, so no hash is
 * computed.
 */
#ifndef ROCI_ENGINE_IDMAP_H
#define ROCI_ENGINE_IDMAP_H

#include <stddef.h>
#include <stdint.h>

struct roci_idmap_slot {
	uint32_t id;
	void *object; /* NULL: free */
};

struct roci_idmap {
	struct roci_idmap_slot *slots; /* owned */
	uint32_t mask, count;          /* mask 0: nothing allocated yet */
};

void roci_idmap_free(struct roci_idmap *map);
/* object must not be NULL. -EEXIST, -ENOMEM. */
int roci_idmap_insert(struct roci_idmap *map, uint32_t id, void *object);
/* The id must be there. */
void roci_idmap_remove(struct roci_idmap *map, uint32_t id);

static inline void *roci_idmap_find(const struct roci_idmap *map, uint32_t id)
{
	if (!map->slots)
		return NULL;
	for (uint32_t i = id & map->mask; map->slots[i].object; i = (i + 1) & map->mask)
		if (map->slots[i].id == id)
			return map->slots[i].object;
	return NULL;
}

#endif
