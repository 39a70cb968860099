/* SPDX-License-Identifier: BSD-2-Clause */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "mover/beneath.h"
#include "mover/walk_internal.h"

#define READ_FLAGS (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

/* The folder of an argument. It belongs to the walk, and stays open until a file of another argument is opened: most
 * files are of the same argument as the one before. */
static int root_of(struct mover_walk *walk, size_t index)
{
	const struct root *root = &walk->roots[index];

	if (walk->open_root_fd >= 0 && walk->open_root == index)
		return walk->open_root_fd;
	if (walk->open_root_fd >= 0)
		close(walk->open_root_fd);
	walk->open_root = index;
	walk->open_root_fd = open(root->path, O_PATH | O_DIRECTORY | O_CLOEXEC | (root->content ? 0 : O_NOFOLLOW));
	return walk->open_root_fd < 0 ? -errno : walk->open_root_fd;
}

static int open_item(struct mover_walk *walk, const struct item *item)
{
	size_t len = item->entry.name_len - item->skip;
	char below[MOVER_PATH_MAX + 1];
	int fd;

	if (len == 0) {
		fd = open(walk->roots[item->root].path, READ_FLAGS);
		return fd < 0 ? -errno : fd;
	}
	memcpy(below, item->entry.name + item->skip, len);
	below[len] = 0;
	fd = root_of(walk, item->root);
	return fd < 0 ? fd : mover_beneath_open(fd, below, READ_FLAGS);
}

int mover_walk_unchanged(const struct mover_walk *walk, size_t index, int fd)
{
	const struct item *item = &walk->items[index];
	struct stat st;

	if (item->entry.kind != MOVER_FILE)
		return 0;
	if (fstat(fd, &st))
		return -errno;
	return S_ISREG(st.st_mode) && st.st_dev == item->dev && st.st_ino == item->ino &&
			       (uint64_t)st.st_size == item->entry.size && st.st_mtim.tv_sec == item->entry.mtime_s &&
			       (uint32_t)st.st_mtim.tv_nsec == item->entry.mtime_ns
		       ? 0
		       : -ESTALE;
}

int mover_walk_open(struct mover_walk *walk, size_t index)
{
	const struct item *item = &walk->items[index];
	int fd, err;

	assert(item->entry.kind == MOVER_FILE || item->entry.kind == MOVER_STREAM);
	if (item->entry.kind == MOVER_STREAM) {
		fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
		return fd < 0 ? -errno : fd;
	}
	fd = open_item(walk, item);
	/* gone, or replaced by a link, a folder or a socket */
	if (fd == -ENOENT || fd == -ELOOP || fd == -ENOTDIR || fd == -ENXIO)
		return -ESTALE;
	if (fd < 0)
		return fd;
	err = mover_walk_unchanged(walk, index, fd);
	if (err) {
		close(fd);
		return err;
	}
	return fd;
}

/* tmpfs(5) looks for a hole page by page, 35 ms for a gigabyte, where other file systems have a list of extents. A file
 * there that has as many blocks as bytes is not asked: it has no hole, or a few that are not worth it. */
static bool is_dense_in_memory(int fd)
{
	struct statfs fs;
	struct stat st;

	return !fstatfs(fd, &fs) && fs.f_type == TMPFS_MAGIC && !fstat(fd, &st) && st.st_blocks >= st.st_size / 512;
}

int mover_walk_data(int fd, uint64_t offset, uint64_t size, uint64_t *begin, uint64_t *end)
{
	off_t at;

	if (offset >= size)
		return 0;
	*begin = offset;
	*end = size;
	if (is_dense_in_memory(fd))
		return 1;
	at = lseek(fd, (off_t)offset, SEEK_DATA);
	if (at < 0)
		return errno != ENXIO; /* ENXIO: no data from here on; else the file system cannot say */
	if ((uint64_t)at >= size)
		return 0;
	*begin = (uint64_t)at;
	at = lseek(fd, at, SEEK_HOLE);
	if (at > (off_t)*begin && (uint64_t)at < size)
		*end = (uint64_t)at;
	return 1;
}
