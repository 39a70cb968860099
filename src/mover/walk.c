/* SPDX-License-Identifier: BSD-2-Clause */
#include "mover/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "mover/beneath.h"
#include "mover/walk_internal.h"

#define BLOCK_BYTES       (256u << 10) /* more than a name and a link's target take */
#define LIST_FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

/* Names and targets live in blocks, which never move. */
struct block {
	struct block *next;
	size_t used;
	uint8_t bytes[BLOCK_BYTES];
};

/* The walk of one argument. */
struct walker {
	struct mover_walk *walk;
	mover_walk_warn_fn *warn;
	void *context;
	size_t root;
	int root_fd;                     /* of the folder that the argument is */
	size_t skip;                     /* bytes of `name` in front of the path below the root */
	char name[MOVER_PATH_MAX + 1];   /* of the entry or folder where the walk is */
	char target[MOVER_PATH_MAX + 1]; /* of a link, while its folder is read */
};

/* A name in a folder, what lstat(2) said of it, and where it points to if it is a link. */
struct child {
	char *name, *target;
	struct stat st;
};

struct children {
	struct child *list;
	size_t count, room;
};

/* `list`, or a bigger one in its place, with room for one more element; NULL: no memory, `list` is as it was. */
static void *grown(void *list, size_t count, size_t *room, size_t element)
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

/* The path below the root of where the walk is; empty at the root itself. */
static const char *below_root(const struct walker *w)
{
	return strlen(w->name) > w->skip ? w->name + w->skip : "";
}

/* Tells that `leaf` in the folder where the walk is (or the folder, if it is empty) is left out. */
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

/* As warn(), of what would be sent if it could be read. */
static void miss(const struct walker *w, const char *leaf, const char *why)
{
	w->walk->unread++;
	warn(w, leaf, why);
}

/* What is at `name`. Fills child->st and child->target. */
static int look_at(struct walker *w, int dir_fd, const char *name, struct child *child)
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

/* Appends the entry w->name. 0 or -ENOMEM. */
static int append(struct walker *w, enum mover_kind kind, const struct child *child)
{
	struct mover_walk *walk = w->walk;
	struct item *items = grown(walk->items, walk->count, &walk->room, sizeof(*items));
	struct item item = {.root = w->root, .dev = child->st.st_dev, .ino = child->st.st_ino};
	struct mover_entry *entry = &item.entry;

	if (!items)
		return -ENOMEM;
	walk->items = items;
	entry->kind = kind;
	entry->mode = child->st.st_mode & 07777;
	entry->mtime_s = child->st.st_mtim.tv_sec;
	entry->mtime_ns = (uint32_t)child->st.st_mtim.tv_nsec;
	entry->name_len = (uint16_t)strlen(w->name);
	entry->name = keep_bytes(walk, w->name, entry->name_len);
	if (kind == MOVER_SYMLINK) {
		entry->target_len = (uint16_t)strlen(child->target);
		entry->target = keep_bytes(walk, child->target, entry->target_len);
		entry->size = entry->target_len;
	}
	if (!entry->name || (kind == MOVER_SYMLINK && !entry->target))
		return -ENOMEM;
	if (kind == MOVER_FILE) {
		entry->size = (uint64_t)child->st.st_size;
		walk->bytes += entry->size;
	}
	item.skip = (uint16_t)(entry->name_len > w->skip ? w->skip : entry->name_len);
	items[walk->count++] = item;
	return 0;
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
	/* strcmp() compares unsigned bytes, which is the order that is promised. */
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
	int err = look_at(w, fd, name, &child);

	if (err == -ENOENT) /* gone since readdir(3) */
		return 0;
	if (err && err != -ENOMEM) {
		miss(w, name, strerror(-err));
		return 0;
	}
	if (err)
		return err;
	list = grown(children->list, children->count, &children->room, sizeof(child));
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

/* Closes `fd`. 0 or -ENOMEM; whatever else goes wrong is told. */
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

static int walk_folder(struct walker *w, int fd);

/* `child` is in the folder where the walk is, and w->name is its name already. 0 or -ENOMEM. */
static int visit(struct walker *w, const struct child *child)
{
	int fd, err;

	if (S_ISREG(child->st.st_mode))
		return append(w, MOVER_FILE, child);
	if (S_ISLNK(child->st.st_mode))
		return append(w, MOVER_SYMLINK, child);
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
	err = append(w, MOVER_FOLDER, child);
	if (err) {
		close(fd);
		return err;
	}
	return walk_folder(w, fd);
}

/* Appends all that is in the folder w->name, which is open as `fd`; closes `fd`, before it goes deeper, so that depth
 * costs no descriptors. */
static int walk_folder(struct walker *w, int fd)
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

/* Whether the path means what is in a folder: it ends in '/', or its last component is "." or "..". */
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
	err = look_at(w, AT_FDCWD, path, &child);
	if (err)
		return err;
	strcpy(w->name, leaf);
	w->skip = strlen(leaf) + 1;
	if (S_ISLNK(child.st.st_mode)) {
		err = append(w, MOVER_SYMLINK, &child);
	} else if (S_ISREG(child.st.st_mode)) {
		fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
		if (fd < 0)
			return -errno;
		close(fd);
		err = append(w, MOVER_FILE, &child);
	} else if (S_ISDIR(child.st.st_mode)) {
		w->root_fd = open(path, LIST_FOLDER_FLAGS | O_NOFOLLOW);
		err = w->root_fd < 0 ? -errno : append(w, MOVER_FOLDER, &child);
	} else {
		err = -EOPNOTSUPP;
	}
	free(child.target);
	return err;
}

/* What a file that this process made would have: umask(2) tells its mask only by setting another, for all threads. */
static mode_t stream_mode(void)
{
	FILE *status = fopen("/proc/self/status", "re");
	unsigned mask = 077;
	char line[256];

	while (status && fgets(line, sizeof(line), status))
		if (sscanf(line, "Umask: %o", &mask) == 1)
			break;
	if (status)
		fclose(status);
	return 0666 & ~mask;
}

static int walk_stdin(struct walker *w, const char *name)
{
	struct child child = {.st.st_mode = stream_mode()};

	if (mover_name_wrong((const uint8_t *)name, strlen(name)))
		return -EINVAL;
	strcpy(w->name, name);
	w->skip = strlen(name);
	clock_gettime(CLOCK_REALTIME, &child.st.st_mtim);
	return append(w, MOVER_STREAM, &child);
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
		err = fd < 0 ? -errno : walk_folder(w, fd);
	}
	close(w->root_fd);
	return err;
}

static int by_entry_name(const void *a, const void *b)
{
	const struct mover_entry *x = &(*(struct item *const *)a)->entry, *y = &(*(struct item *const *)b)->entry;
	size_t shorter = x->name_len < y->name_len ? x->name_len : y->name_len;
	int order = memcmp(x->name, y->name, shorter);

	return order ? order : (int)x->name_len - (int)y->name_len;
}

/* Two arguments give one name only if they give one first component. */
static int check_twice(const struct mover_walk *walk, size_t *bad)
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
	err = check_twice(walk, bad);
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
