/* SPDX-License-Identifier: BSD-2-Clause */
/* The chunks that the receiver has from an earlier transfer, by index: those that the journal names, and which of them
 * are right. The memory depends on how many are kept, not on the size that the peer claims; and a budget bounds it. */
#ifndef ROCI_MOVER_KEPT_H
#define ROCI_MOVER_KEPT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mover/entry.h"

struct kept_chunk {
	uint64_t index;
	struct mover_digest digest;
	size_t order; /* of adding, set by mover_kept_add() */
	bool good;    /* has been read and is right */
	bool in_old;  /* in the file that has the name now, not in the temporary file */
};

struct kept {
	struct kept_chunk *chunks; /* sorted by index after mover_kept_sort() */
	size_t count, room;
	atomic_size_t *budget; /* for how many more chunks there may be room; shared by several files. NULL: no limit */
};

/* Appends. 0, -ENOBUFS if the budget is used up, or -ENOMEM. */
int mover_kept_add(struct kept *kept, const struct kept_chunk *chunk);

/* Sorts by index. Of several with one index, the last added stays. */
void mover_kept_sort(struct kept *kept);

/* Chunk `index`, good or not, or NULL. */
struct kept_chunk *mover_kept_find(const struct kept *kept, uint64_t index);

/* The position of the first chunk at or after `index`; kept->count if there is none. */
size_t mover_kept_from(const struct kept *kept, uint64_t index);

/* Frees the chunks, and gives their room back to the budget. */
void mover_kept_clear(struct kept *kept);

#endif
