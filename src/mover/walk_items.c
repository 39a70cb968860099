/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mover/walk_internal.h"

#define BLOCK_BYTES (256u << 10) /* more than a name and a target take */

/* Names and targets live in blocks, which never move. */
struct block {
	struct block *next;
	size_t used;
	uint8_t bytes[BLOCK_BYTES];
};

void *walk_items_grow(void *list, size_t count, size_t *room, size_t element)
{
	size_t more = *room ? *room * 2 : 16;

	if (count < *room)
		return list;
	list = reallocarray(list, more, element);
	if (list)
		*room = more;
	return list;
}

static const uint8_t *keep_bytes(struct mover_walk *walk, const void *bytes, size_t len)
{
	struct block *block = walk->blocks;
	uint8_t *to;

	if (!block || BLOCK_BYTES - block->used < len) {
		block = malloc(sizeof(*block));
		if (!block)
			return NULL;
		block->next = walk->blocks;
		block->used = 0;
		walk->blocks = block;
	}
	to = block->bytes + block->used;
	memcpy(to, bytes, len);
	block->used += len;
	return to;
}

int walk_items_add(struct walker *w, enum mover_kind kind, const struct stat *st, const char *target)
{
	struct mover_walk *walk = w->walk;
	struct item *items = walk_items_grow(walk->items, walk->count, &walk->room, sizeof(*items));
	struct item item = {.root = w->root, .dev = st->st_dev, .ino = st->st_ino};
	struct mover_entry *entry = &item.entry;

	if (!items)
		return -ENOMEM;
	walk->items = items;
	entry->kind = kind;
	entry->mode = st->st_mode & 07777;
	entry->mtime_s = st->st_mtim.tv_sec;
	entry->mtime_ns = (uint32_t)st->st_mtim.tv_nsec;
	entry->name_len = (uint16_t)strlen(w->name);
	entry->name = keep_bytes(walk, w->name, entry->name_len);
	if (kind == MOVER_SYMLINK) {
		entry->target_len = (uint16_t)strlen(target);
		entry->target = keep_bytes(walk, target, entry->target_len);
		entry->size = entry->target_len;
	}
	if (!entry->name || (kind == MOVER_SYMLINK && !entry->target))
		return -ENOMEM;
	if (kind == MOVER_FILE) {
		entry->size = (uint64_t)st->st_size;
		walk->bytes += entry->size;
	}
	item.skip = (uint16_t)(entry->name_len > w->skip ? w->skip : entry->name_len);
	items[walk->count++] = item;
	return 0;
}

static int by_entry_name(const void *a, const void *b)
{
	const struct mover_entry *x = &(*(struct item *const *)a)->entry, *y = &(*(struct item *const *)b)->entry;
	size_t shorter = x->name_len < y->name_len ? x->name_len : y->name_len;
	int order = memcmp(x->name, y->name, shorter);

	return order ? order : (int)x->name_len - (int)y->name_len;
}

/* Two arguments give the same name only if they give the same first component. */
int walk_items_check_names(const struct mover_walk *walk, size_t *bad)
{
	const struct item **tops = malloc((walk->count + 1) * sizeof(*tops));
	size_t count = 0;
	int err = 0;

	if (!tops)
		return -ENOMEM;
	for (size_t i = 0; i < walk->count; i++)
		if (!memchr(walk->items[i].entry.name, '/', walk->items[i].entry.name_len))
			tops[count++] = &walk->items[i];
	qsort(tops, count, sizeof(*tops), by_entry_name);
	for (size_t i = 1; i < count && !err; i++)
		if (!by_entry_name(&tops[i - 1], &tops[i])) {
			*bad = tops[i]->root > tops[i - 1]->root ? tops[i]->root : tops[i - 1]->root;
			err = -EEXIST;
		}
	free(tops);
	return err;
}

void mover_walk_destroy(struct mover_walk *walk)
{
	if (!walk)
		return;
	for (size_t i = 0; i < walk->root_count; i++)
		free(walk->roots[i].path);
	for (struct block *block = walk->blocks, *next; block; block = next) {
		next = block->next;
		free(block);
	}
	if (walk->open_root_fd >= 0)
		close(walk->open_root_fd);
	free(walk->roots);
	free(walk->items);
	free(walk);
}

size_t mover_walk_count(const struct mover_walk *walk)
{
	return walk->count;
}

size_t mover_walk_unread(const struct mover_walk *walk)
{
	return walk->unread;
}

uint64_t mover_walk_bytes(const struct mover_walk *walk)
{
	return walk->bytes;
}

const struct mover_entry *mover_walk_entry(const struct mover_walk *walk, size_t index)
{
	return &walk->items[index].entry;
}
