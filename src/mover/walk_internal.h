/* SPDX-License-Identifier: BSD-2-Clause */
/* What a walk remembers, shared by walk.c, which finds, and walk_file.c, which opens what was found. */
#ifndef ROCI_MOVER_WALK_INTERNAL_H
#define ROCI_MOVER_WALK_INTERNAL_H

#include <sys/types.h>

#include "mover/walk.h"

/* An entry and what it takes to open it and to know it again. */
struct item {
	struct mover_entry entry;
	size_t root;
	uint16_t
		skip; /* bytes of the name in front of its path below the root; the name's length for the root itself */
	dev_t dev;
	ino_t ino;
};

/* An argument. */
struct root {
	char *path;
	bool content; /* of the folder `path`, which may be a link to one; without its name */
};

struct mover_walk {
	struct root *roots;
	size_t root_count;
	struct item *items;
	size_t count, room, unread;
	uint64_t bytes;
	struct block *blocks;
};

#endif
