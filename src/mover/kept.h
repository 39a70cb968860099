/* SPDX-License-Identifier: BSD-2-Clause */
/* Chunks that the receiver has from before, by index: what the journal told, and what of it has proved right. As much
 * memory as there are chunks kept, not as the peer says the file has. */
#ifndef ROCI_MOVER_KEPT_H
#define ROCI_MOVER_KEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mover/entry.h"

struct kept_chunk {
	uint64_t index;
	struct mover_digest digest;
	size_t order; /* of adding, set by mover_kept_add() */
	bool good;    /* read and found right; not forgotten since */
	bool in_old;  /* is in the file that has the name now, not in the temporary one */
};

struct kept {
	struct kept_chunk *chunks; /* sorted by index after mover_kept_sort() */
	size_t count, room;
};

/* Appends. 0 or -ENOMEM. */
int mover_kept_add(struct kept *kept, const struct kept_chunk *chunk);

/* Sorts; of equal indexes the one added last stays. */
void mover_kept_sort(struct kept *kept);

/* Chunk `index`, good or not, or NULL. */
struct kept_chunk *mover_kept_find(const struct kept *kept, uint64_t index);

/* The place of the first chunk whose index is not below `index`; kept->count if there is none. */
size_t mover_kept_from(const struct kept *kept, uint64_t index);

void mover_kept_clear(struct kept *kept);

#endif
