/* SPDX-License-Identifier: BSD-2-Clause */
#include "mover/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "mover/umask.h"
#include "mover/walk_internal.h"

/* Whether the path means the content of a folder: it ends in '/', or its last component is "." or "..". */
static bool means_content(const char *path)
{
	const char *slash = strrchr(path, '/'), *last = slash ? slash + 1 : path;

	return !*last || !strcmp(last, ".") || !strcmp(last, "..");
}

static int walk_content(struct walker *w, const char *path)
{
	w->name[0] = 0;
	w->skip = 0;
	w->root_fd = open(path, LIST_FOLDER_FLAGS);
	if (w->root_fd < 0)
		return -errno;
	return 0;
}

/* An argument that is a file, a link or a folder with its name. */
static int walk_named(struct walker *w, const char *path)
{
	const char *slash = strrchr(path, '/'), *leaf = slash ? slash + 1 : path;
	struct child child = {0};
	int fd, err;

	if (mover_name_wrong((const uint8_t *)leaf, strlen(leaf)))
		return -EINVAL;
	err = walk_folder_probe(w, AT_FDCWD, path, &child);
	if (err)
		return err;
	strcpy(w->name, leaf);
	w->skip = strlen(leaf) + 1;
	if (S_ISLNK(child.st.st_mode)) {
		err = walk_items_add(w, MOVER_SYMLINK, &child.st, child.target);
	} else if (S_ISREG(child.st.st_mode)) {
		fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
		if (fd < 0)
			return -errno;
		close(fd);
		err = walk_items_add(w, MOVER_FILE, &child.st, NULL);
	} else if (S_ISDIR(child.st.st_mode)) {
		w->root_fd = open(path, LIST_FOLDER_FLAGS | O_NOFOLLOW);
		err = w->root_fd < 0 ? -errno : walk_items_add(w, MOVER_FOLDER, &child.st, NULL);
	} else {
		err = -EOPNOTSUPP;
	}
	free(child.target);
	return err;
}

static int walk_stdin(struct walker *w, const char *name)
{
	struct stat st = {.st_mode = 0666 & ~mover_umask()};

	if (mover_name_wrong((const uint8_t *)name, strlen(name)))
		return -EINVAL;
	strcpy(w->name, name);
	w->skip = strlen(name);
	clock_gettime(CLOCK_REALTIME, &st.st_mtim);
	return walk_items_add(w, MOVER_STREAM, &st, NULL);
}

static int walk_argument(struct walker *w, const char *path, const char *stdin_name)
{
	struct root *root = &w->walk->roots[w->root];
	int fd, err;

	w->root_fd = -1;
	root->path = strdup(path);
	if (!root->path)
		return -ENOMEM;
	w->walk->root_count = w->root + 1;
	if (!strcmp(path, "-"))
		return walk_stdin(w, stdin_name);
	if (!*path)
		return -ENOENT;
	root->content = means_content(path);
	err = root->content ? walk_content(w, path) : walk_named(w, path);
	if (w->root_fd < 0)
		return err;
	if (!err) {
		fd = openat(w->root_fd, ".", LIST_FOLDER_FLAGS);
		err = fd < 0 ? -errno : walk_folder_add(w, fd);
	}
	close(w->root_fd);
	return err;
}

int mover_walk_create(const char *const *paths, size_t count, const char *stdin_name, mover_walk_warn_fn *warn_fn,
		      void *context, struct mover_walk **walk_out, size_t *bad)
{
	struct mover_walk *walk = calloc(1, sizeof(*walk));
	struct walker *w = calloc(1, sizeof(*w));
	int err = -ENOMEM;

	*walk_out = NULL;
	*bad = 0;
	if (!walk || !w)
		goto err_destroy;
	walk->open_root_fd = -1;
	walk->roots = calloc(count ? count : 1, sizeof(*walk->roots));
	if (!walk->roots)
		goto err_destroy;
	*w = (struct walker){.walk = walk, .warn = warn_fn, .context = context};
	for (w->root = 0; w->root < count; w->root++) {
		*bad = w->root;
		err = walk_argument(w, paths[w->root], stdin_name ? stdin_name : "stdin");
		if (err)
			goto err_destroy;
	}
	err = walk_items_check_names(walk, bad);
	if (err)
		goto err_destroy;
	free(w);
	*walk_out = walk;
	return 0;
err_destroy:
	free(w);
	mover_walk_destroy(walk);
	return err;
}
