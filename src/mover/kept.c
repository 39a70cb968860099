/* SPDX-License-Identifier: BSD-2-Clause */
#include "mover/kept.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool take_room(struct kept *kept, size_t more)
{
	size_t left = kept->budget ? atomic_load(kept->budget) : more;

	if (!kept->budget)
		return true;
	while (left >= more)
		if (atomic_compare_exchange_weak(kept->budget, &left, left - more))
			return true;
	return false;
}

static void give_back(struct kept *kept, size_t room)
{
	if (kept->budget)
		atomic_fetch_add(kept->budget, room);
}

int mover_kept_add(struct kept *kept, const struct kept_chunk *chunk)
{
	if (kept->count == kept->room) {
		size_t room = kept->room ? kept->room * 2 : 64;
		struct kept_chunk *chunks;

		if (!take_room(kept, room - kept->room))
			return -ENOBUFS;
		chunks = reallocarray(kept->chunks, room, sizeof(*chunks));
		if (!chunks) {
			give_back(kept, room - kept->room);
			return -ENOMEM;
		}
		kept->chunks = chunks;
		kept->room = room;
	}
	kept->chunks[kept->count] = *chunk;
	kept->chunks[kept->count].order = kept->count;
	kept->count++;
	return 0;
}

static bool sorted(const struct kept *kept)
{
	for (size_t i = 1; i < kept->count; i++)
		if (kept->chunks[i - 1].index >= kept->chunks[i].index)
			return false;
	return true;
}

static int by_index_and_order(const void *a, const void *b)
{
	const struct kept_chunk *x = a, *y = b;

	if (x->index != y->index)
		return x->index < y->index ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

void mover_kept_sort(struct kept *kept)
{
	size_t n = 0;

	if (sorted(kept)) /* the usual case: chunks come in order */
		return;
	qsort(kept->chunks, kept->count, sizeof(*kept->chunks), by_index_and_order);
	for (size_t i = 0; i < kept->count; i++) {
		if (n && kept->chunks[n - 1].index == kept->chunks[i].index)
			n--;
		kept->chunks[n++] = kept->chunks[i];
	}
	kept->count = n;
}

size_t mover_kept_from(const struct kept *kept, uint64_t index)
{
	size_t low = 0, high = kept->count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (kept->chunks[mid].index < index)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

struct kept_chunk *mover_kept_find(const struct kept *kept, uint64_t index)
{
	size_t at = mover_kept_from(kept, index);

	return at < kept->count && kept->chunks[at].index == index ? &kept->chunks[at] : NULL;
}

void mover_kept_clear(struct kept *kept)
{
	free(kept->chunks);
	give_back(kept, kept->room);
	*kept = (struct kept){.budget = kept->budget};
}
