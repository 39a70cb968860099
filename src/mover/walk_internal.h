/* SPDX-License-Identifier: BSD-2-Clause */
/* What the parts of a walk share: walk.c takes the arguments, walk_folder.c reads folders, walk_items.c keeps the
 * entries, and walk_file.c opens the files. */
#ifndef ROCI_MOVER_WALK_INTERNAL_H
#define ROCI_MOVER_WALK_INTERNAL_H

#include <sys/stat.h>

#include "mover/walk.h"

/* An entry, and what is needed to open its file and to recognise it. */
struct item {
	struct mover_entry entry;
	size_t root;
	uint16_t skip; /* bytes of the name before its path below the root; all of them for the root itself */
	dev_t dev;
	ino_t ino;
};

/* An argument. */
struct root {
	char *path;
	bool content; /* what is in the folder `path`, which may be a link to one; without its name */
};

struct mover_walk {
	struct root *roots;
	size_t root_count;
	struct item *items;
	size_t count, room, unread;
	uint64_t bytes;
	struct block *blocks;
	size_t open_root; /* the argument whose folder was used last; it stays open as `open_root_fd` */
	int open_root_fd; /* -1: none */
};

/* The walk of one argument. */
struct walker {
	struct mover_walk *walk;
	mover_walk_warn_fn *warn;
	void *context;
	size_t root;
	int root_fd;                     /* of the folder, if the argument is one */
	size_t skip;                     /* bytes of `name` before the path below the root */
	char name[MOVER_PATH_MAX + 1];   /* of the current entry or folder */
	char target[MOVER_PATH_MAX + 1]; /* a buffer for readlink(2) */
};

/* A name in a folder, its lstat(2), and its target if it is a symbolic link. */
struct child {
	char *name, *target;
	struct stat st;
};

/* walk_items.c: adds the entry w->name. `target` only for symbolic links. 0 or -ENOMEM. */
int walk_items_add(struct walker *w, enum mover_kind kind, const struct stat *st, const char *target);
/* -EEXIST, with *bad set to the later argument, if two arguments give the same name; 0 or -ENOMEM. */
int walk_items_check_names(const struct mover_walk *walk, size_t *bad);
/* `list`, or a bigger copy of it, with room for one more element. NULL: no memory; `list` is as it was. */
void *walk_items_grow(void *list, size_t count, size_t *room, size_t element);

/* walk_folder.c: reads what is at `name`: child->st and child->target, which the caller frees. 0 or -errno. */
int walk_folder_probe(struct walker *w, int dir_fd, const char *name, struct child *child);
/* Adds everything in the folder w->name, which is open as `fd`. Closes `fd`, and does so before it goes deeper: depth
 * costs no descriptors. 0 or -ENOMEM; other errors become warnings. */
int walk_folder_add(struct walker *w, int fd);

#define LIST_FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

#endif
