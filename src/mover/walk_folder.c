/* SPDX-License-Identifier: BSD-2-Clause */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mover/beneath.h"
#include "mover/walk_internal.h"

struct children {
	struct child *list;
	size_t count, room;
};

/* The current path below the root; empty at the root itself. */
static const char *below_root(const struct walker *w)
{
	return strlen(w->name) > w->skip ? w->name + w->skip : "";
}

/* Warns that `leaf` in the current folder is left out, or the current entry itself if `leaf` is empty. */
static void warn(const struct walker *w, const char *leaf, const char *why)
{
	const char *root = w->walk->roots[w->root].path, *below = below_root(w);
	const char *first = *root && root[strlen(root) - 1] != '/' && (*below || *leaf) ? "/" : "";
	char *path;

	if (!w->warn)
		return;
	if (asprintf(&path, "%s%s%s%s%s", root, first, below, *below && *leaf ? "/" : "", leaf) < 0)
		path = NULL;
	w->warn(w->context, path ? path : root, why);
	free(path);
}

/* As warn(), for something that would be sent if it could be read. */
static void miss(const struct walker *w, const char *leaf, const char *why)
{
	w->walk->unread++;
	warn(w, leaf, why);
}

int walk_folder_probe(struct walker *w, int dir_fd, const char *name, struct child *child)
{
	ssize_t len;

	if (fstatat(dir_fd, name, &child->st, AT_SYMLINK_NOFOLLOW))
		return -errno;
	if (!S_ISLNK(child->st.st_mode))
		return 0;
	len = readlinkat(dir_fd, name, w->target, sizeof(w->target));
	if (len < 0)
		return -errno;
	if (len == 0 || len > MOVER_PATH_MAX)
		return -ENAMETOOLONG;
	w->target[len] = 0;
	child->target = strdup(w->target);
	return child->target ? 0 : -ENOMEM;
}

static const char *why_left_out(mode_t mode)
{
	if (S_ISFIFO(mode))
		return "a FIFO";
	if (S_ISSOCK(mode))
		return "a socket";
	return "a device";
}

static int by_name(const void *a, const void *b)
{
	/* strcmp() compares unsigned bytes: the order that walk.h promises */
	return strcmp(((const struct child *)a)->name, ((const struct child *)b)->name);
}

static void free_children(struct children *children)
{
	for (size_t i = 0; i < children->count; i++) {
		free(children->list[i].name);
		free(children->list[i].target);
	}
	free(children->list);
}

static int add_child(struct walker *w, int fd, const char *name, struct children *children)
{
	struct child child = {0}, *list;
	int err = walk_folder_probe(w, fd, name, &child);

	if (err == -ENOENT) /* gone since readdir(3) */
		return 0;
	if (err && err != -ENOMEM) {
		miss(w, name, strerror(-err));
		return 0;
	}
	if (err)
		return err;
	list = walk_items_grow(children->list, children->count, &children->room, sizeof(child));
	if (list)
		children->list = list;
	child.name = strdup(name);
	if (!list || !child.name) {
		free(child.name);
		free(child.target);
		return -ENOMEM;
	}
	list[children->count++] = child;
	return 0;
}

/* Closes `fd`. 0 or -ENOMEM; other errors become warnings. */
static int read_children(struct walker *w, int fd, struct children *children)
{
	DIR *dir = fdopendir(fd);
	int err = 0;

	if (!dir) {
		err = -errno;
		close(fd);
		return err;
	}
	for (;;) {
		struct dirent *d;

		errno = 0;
		d = readdir(dir);
		if (!d)
			break;
		if (!strcmp(d->d_name, ".") || !strcmp(d->d_name, ".."))
			continue;
		err = add_child(w, fd, d->d_name, children);
		if (err)
			goto out;
	}
	if (errno)
		miss(w, "", strerror(errno));
	if (children->count)
		qsort(children->list, children->count, sizeof(*children->list), by_name);
out:
	closedir(dir);
	return err;
}

/* Adds `child`, whose name is in w->name. 0 or -ENOMEM. */
static int visit(struct walker *w, const struct child *child)
{
	int fd, err;

	if (S_ISREG(child->st.st_mode))
		return walk_items_add(w, MOVER_FILE, &child->st, NULL);
	if (S_ISLNK(child->st.st_mode))
		return walk_items_add(w, MOVER_SYMLINK, &child->st, child->target);
	if (!S_ISDIR(child->st.st_mode)) {
		warn(w, "", why_left_out(child->st.st_mode));
		return 0;
	}
	fd = mover_beneath_open(w->root_fd, below_root(w), LIST_FOLDER_FLAGS);
	if (fd == -ENOENT) /* gone since lstat(2) */
		return 0;
	if (fd < 0) {
		miss(w, "", strerror(-fd));
		return 0;
	}
	err = walk_items_add(w, MOVER_FOLDER, &child->st, NULL);
	if (err) {
		close(fd);
		return err;
	}
	return walk_folder_add(w, fd);
}

int walk_folder_add(struct walker *w, int fd)
{
	struct children children = {0};
	size_t len = strlen(w->name), slash = len > 0;
	int err = read_children(w, fd, &children);

	for (size_t i = 0; !err && i < children.count; i++) {
		const struct child *child = &children.list[i];
		size_t child_len = strlen(child->name);
		const char *wrong;

		if (len + slash + child_len > MOVER_PATH_MAX) {
			miss(w, child->name, "its path is too long");
			continue;
		}
		wrong = mover_name_wrong((const uint8_t *)child->name, child_len);
		if (wrong) {
			warn(w, child->name, wrong);
			continue;
		}
		if (slash)
			w->name[len] = '/';
		memcpy(w->name + len + slash, child->name, child_len + 1);
		err = visit(w, child);
		w->name[len] = 0;
	}
	free_children(&children);
	return err;
}
