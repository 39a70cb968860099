/* SPDX-License-Identifier: BSD-2-Clause */
#include "mover/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mover/spelling.h"
#include "mover/temp_file.h"
#include "mover/tree_internal.h"
#include "mover/umask.h"

#define SYMLINK_SUFFIX ".link" MOVER_PART_SUFFIX
#define TRIES          4

int mover_tree_open(const char *dir, struct mover_tree **tree_out)
{
	struct mover_tree *tree;
	int fd, err;

	*tree_out = NULL;
	if (mkdir(dir, 0777) && errno != EEXIST)
		return -errno;
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	tree = calloc(1, sizeof(*tree));
	if (!tree) {
		close(fd);
		return -ENOMEM;
	}
	atomic_init(&tree->kept_budget, KEPT_CHUNKS);
	tree->modes = PEER_MODE & ~mover_umask();
	err = mover_folders_create(&tree->folders, fd);
	if (err) {
		free(tree);
		return err;
	}
	*tree_out = tree;
	return 0;
}

void mover_tree_keep_existing(struct mover_tree *tree)
{
	tree->keep_existing = true;
}

void mover_tree_begin_batch(struct mover_tree *tree)
{
	mover_folders_look_again(&tree->folders);
}

void mover_tree_close(struct mover_tree *tree)
{
	if (!tree)
		return;
	mover_folders_destroy(&tree->folders);
	free(tree);
}

int mover_entry_name(const struct mover_entry *entry, char name[MOVER_PATH_MAX + 1])
{
	if (mover_name_wrong(entry->name, entry->name_len))
		return -EINVAL;
	memcpy(name, entry->name, entry->name_len);
	name[entry->name_len] = 0;
	return 0;
}

struct timespec mover_entry_mtime(const struct mover_entry *entry)
{
	return (struct timespec){.tv_sec = entry->mtime_s, .tv_nsec = entry->mtime_ns};
}

/* Opens the folder `leaf` for fchmod(2), even if it may not be read. Returns the descriptor or -errno. *path_only: it
 * is an O_PATH descriptor. */
static int open_itself(int dir_fd, const char *leaf, bool *path_only)
{
	int fd = openat(dir_fd, leaf, O_RDONLY | O_DIRECTORY | OPEN_AS_IT_IS);

	*path_only = fd < 0 && errno == EACCES;
	if (*path_only)
		fd = openat(dir_fd, leaf, O_PATH | O_DIRECTORY | OPEN_AS_IT_IS);
	if (fd >= 0)
		return fd;
	return errno == ELOOP ? -ENOTDIR : -errno;
}

static int change_mode(int fd, bool path_only, mode_t mode)
{
	char proc[32];

	if (!path_only)
		return fchmod(fd, mode) ? -errno : 0;
	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	return chmod(proc, mode) ? -errno : 0;
}

/* Makes sure that this user can write into a folder that existed. */
static int open_up(int dir_fd, const char *leaf)
{
	bool path_only;
	struct stat st;
	int fd = open_itself(dir_fd, leaf, &path_only), err = 0;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st))
		err = -errno;
	else if ((st.st_mode & 0700) != 0700)
		err = change_mode(fd, path_only, (st.st_mode & 07777) | 0700);
	close(fd);
	return err;
}

int mover_tree_folder(struct mover_tree *tree, const struct mover_entry *entry, uint64_t maker)
{
	char name[MOVER_PATH_MAX + 1];
	struct folder *parent;
	const char *leaf;
	int err = mover_entry_name(entry, name);

	if (err)
		return err;
	err = mover_folder_get(&tree->folders, name, &parent, &leaf);
	if (err)
		return err;
	if (mkdirat(parent->fd, leaf, 0700 | (entry->mode & tree->modes))) {
		err = errno == EEXIST ? open_up(parent->fd, leaf) : -errno;
	} else {
		mover_folder_changed(&tree->folders, parent);
		if (maker)
			mover_folder_made(&tree->folders, name, parent, leaf, maker);
	}
	mover_folder_put(&tree->folders, parent);
	return err;
}

static bool same_symlink(int dir_fd, const char *leaf, const char *target)
{
	char now[MOVER_PATH_MAX + 1];
	ssize_t len = readlinkat(dir_fd, leaf, now, sizeof(now));

	return len > 0 && (size_t)len == strlen(target) && !memcmp(now, target, (size_t)len);
}

static int make_symlink(int dir_fd, const char *leaf, const char *target, const struct timespec times[2])
{
	char temp[TEMP_NAME_BYTES];
	int tries = TRIES, err;

	temp_file_name(leaf, SYMLINK_SUFFIX, temp);
	while (symlinkat(target, dir_fd, temp)) {
		/* a transfer was killed here */
		if (errno != EEXIST || !tries-- || unlinkat(dir_fd, temp, 0))
			return -errno;
	}
	if (!utimensat(dir_fd, temp, times, AT_SYMLINK_NOFOLLOW) && !renameat(dir_fd, temp, dir_fd, leaf))
		return 0;
	err = -errno;
	unlinkat(dir_fd, temp, 0);
	return err;
}

static int place_symlink(struct mover_tree *tree, struct folder *parent, const char *leaf, const char *target,
			 const struct timespec times[2])
{
	struct stat st;
	int err;

	if (!fstatat(parent->fd, leaf, &st, AT_SYMLINK_NOFOLLOW)) {
		if (S_ISDIR(st.st_mode))
			return -EISDIR;
		if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
			return -EEXIST;
		if (S_ISLNK(st.st_mode) && same_symlink(parent->fd, leaf, target)) {
			if (!utimensat(parent->fd, leaf, times, AT_SYMLINK_NOFOLLOW))
				return 1;
			if (errno != EPERM) /* another user's is replaced */
				return -errno;
		}
		if (tree->keep_existing)
			return -EEXIST;
		if (mover_spelled_otherwise(parent->fd, leaf))
			return -ENOTUNIQ;
	}
	err = make_symlink(parent->fd, leaf, target, times);
	if (!err)
		mover_folder_changed(&tree->folders, parent);
	return err;
}

int mover_tree_symlink(struct mover_tree *tree, const struct mover_entry *entry)
{
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, mover_entry_mtime(entry)};
	char name[MOVER_PATH_MAX + 1], target[MOVER_PATH_MAX + 1];
	struct folder *parent;
	const char *leaf;
	int err = mover_entry_name(entry, name);

	if (!err && (!entry->target_len || entry->target_len > MOVER_PATH_MAX ||
		     memchr(entry->target, 0, entry->target_len) || entry->mtime_ns > 999999999))
		err = -EINVAL;
	if (err)
		return err;
	memcpy(target, entry->target, entry->target_len);
	target[entry->target_len] = 0;
	err = mover_folder_get(&tree->folders, name, &parent, &leaf);
	if (err)
		return err;
	err = place_symlink(tree, parent, leaf, target, times);
	mover_folder_put(&tree->folders, parent);
	return err;
}

static int finish_folder(struct mover_tree *tree, const struct mover_entry *entry)
{
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, mover_entry_mtime(entry)};
	char name[MOVER_PATH_MAX + 1];
	struct folder *parent;
	const char *leaf;
	bool path_only;
	struct stat st;
	int fd, err = mover_entry_name(entry, name);

	if (!err && entry->mtime_ns > 999999999)
		err = -EINVAL;
	if (err)
		return err;
	err = mover_folder_get(&tree->folders, name, &parent, &leaf);
	if (err)
		return err;
	fd = open_itself(parent->fd, leaf, &path_only);
	if (fd < 0) {
		err = fd;
		goto out_put;
	}
	/* By name, because an O_PATH descriptor does not take a time. Without following: the name may be a link by now.
	 */
	if (fstat(fd, &st) || utimensat(parent->fd, leaf, times, AT_SYMLINK_NOFOLLOW))
		err = -errno;
	else if ((st.st_mode & PEER_MODE) != (entry->mode & tree->modes))
		err = change_mode(fd, path_only, (st.st_mode & 07000) | (entry->mode & tree->modes));
	close(fd);
out_put:
	mover_folder_put(&tree->folders, parent);
	return err;
}

/* Reverse order of names: what is in a folder has a longer name, and comes before the folder. */
static int backwards(const void *a, const void *b)
{
	const struct mover_entry *x = *(const struct mover_entry *const *)a, *y = *(const struct mover_entry *const *)b;
	size_t shorter = x->name_len < y->name_len ? x->name_len : y->name_len;
	int order = memcmp(y->name, x->name, shorter);

	return order ? order : (int)y->name_len - (int)x->name_len;
}

void mover_tree_finish(struct mover_tree *tree, const struct mover_entry *folders, size_t count, int *results)
{
	const struct mover_entry **order = malloc((count + 1) * sizeof(*order));

	for (size_t i = 0; i < count; i++) {
		results[i] = order ? 0 : -ENOMEM;
		if (order)
			order[i] = &folders[i];
	}
	if (!order)
		return;
	mover_tree_begin_batch(tree);
	qsort(order, count, sizeof(*order), backwards);
	for (size_t i = 0; i < count; i++)
		results[order[i] - folders] = finish_folder(tree, order[i]);
	free(order);
}

int mover_tree_sync(struct mover_tree *tree, unsigned failures_before)
{
	return mover_folders_sync(&tree->folders, failures_before);
}

unsigned mover_tree_sync_failures(struct mover_tree *tree)
{
	return mover_folders_sync_failures(&tree->folders);
}
