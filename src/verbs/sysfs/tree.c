/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Trees in the runtime directory. The name of a tree has a hash of its text, so the files of a tree never change:
 * processes that number the GIDs differently have different trees. A process holds a shared lock (flock) on the
 * directory of its tree. A tree without a lock is removed: the next process will write it again.
 *
 * The file `stamp` is written last, so a tree with a stamp is complete.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <sodium/crypto_shorthash.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device/device.h"
#include "device/rundir.h"
#include "verbs/sysfs/tree.h"

#define PREFIX  "sysfs-"
#define EARLIER "sys-" /* of earlier versions, where some names were of other kinds */

/* The tree of this process: its directory stays open, and locked. So do those before it, for programs that keep a path.
 */
static int tree_fd = -1, former_fds[VB_TREE_FORMER] = {[0 ... VB_TREE_FORMER - 1] = -1};
static unsigned former_next;
static char tree_path[VB_TREE_PATH_MAX];

/* ---- directories ---- */

/* Opens and locks a directory. -1: it failed, with *gone if another process has removed the directory. */
static int open_locked(const char *path, int how, bool *gone)
{
	struct stat mine, named;
	*gone = false;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		*gone = errno == ENOENT;
		return -1;
	}
	if (flock(fd, how)) {
		close(fd);
		return -1;
	}
	if (fstat(fd, &mine) || stat(path, &named) || mine.st_ino != named.st_ino) {
		*gone = true;
		close(fd);
		return -1;
	}
	return fd;
}

static uint64_t hash_of(const char *text, size_t len)
{
	static const unsigned char key[crypto_shorthash_KEYBYTES];
	unsigned char hash[crypto_shorthash_BYTES];
	uint64_t number;

	_Static_assert(sizeof(hash) == sizeof(number), "the hash is a number of 64 bits");
	crypto_shorthash(hash, (const unsigned char *)text, len, key);
	memcpy(&number, hash, sizeof(number));
	return number;
}

/* The oldest one goes. */
static void keep_former(void)
{
	int *place = &former_fds[former_next % VB_TREE_FORMER];

	if (tree_fd < 0) /* the first; or the last one could not be written */
		return;
	former_next++;
	if (*place >= 0)
		close(*place);
	*place = tree_fd;
}

/* Opens and locks the tree of this text, and makes its directory if needed. */
static int open_tree(const char *rundir, uint64_t hash)
{
	char path[VB_TREE_PATH_MAX];
	snprintf(path, sizeof(path), "%s/" PREFIX "%016" PRIx64, rundir, hash);
	if (tree_fd >= 0 && !strcmp(path, tree_path) && !access(path, R_OK))
		return 0;

	bool gone = true;
	int fd = -1;
	for (int tries = 0; gone && fd < 0 && tries < 10; tries++) {
		if (mkdir(path, 0700) && errno != EEXIST)
			return -errno;
		fd = open_locked(path, LOCK_SH, &gone);
	}
	if (fd < 0)
		return -EAGAIN;
	keep_former();
	tree_fd = fd;
	memcpy(tree_path, path, sizeof(tree_path));
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

/* Removes trees without a lock. Other users cannot write to the runtime directory, so its paths can be trusted. */
static void remove_unused(const char *rundir)
{
	char path[VB_TREE_PATH_MAX];
	bool gone;
	DIR *dir = opendir(rundir);
	if (!dir)
		return;
	for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
		if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) && strncmp(entry->d_name, EARLIER, strlen(EARLIER)))
			continue;
		int n = snprintf(path, sizeof(path), "%s/%s", rundir, entry->d_name);
		if (n >= (int)sizeof(path) || !strcmp(path, tree_path))
			continue;
		int fd = open_locked(path, LOCK_EX | LOCK_NB, &gone);
		if (fd < 0)
			continue;
		nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
		close(fd);
	}
	closedir(dir);
}

/* ---- files ---- */

/* Made under another name, and renamed when complete, so that nobody reads half a file. Another process may write the
 * same file at the same time, so the temporary name is random. `rename_to` gives `temporary`, if there is no error, its
 * name. */
static void temporary_name(char temporary[32])
{
	snprintf(temporary, 32, ".new-%08x", roci_random32());
}

static int rename_to(const char *path, const char *temporary, int err)
{
	if (!err && renameat(tree_fd, temporary, tree_fd, path))
		err = -errno;
	if (err)
		unlinkat(tree_fd, temporary, 0);
	return err;
}

static int write_file(const char *path, const char *content, size_t len)
{
	char temporary[32];
	temporary_name(temporary);
	int fd = openat(tree_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	int err = write(fd, content, len) == (ssize_t)len ? 0 : -EIO;
	close(fd);
	return rename_to(path, temporary, err);
}

static int write_link(const char *path, const char *target)
{
	char temporary[32];
	temporary_name(temporary);
	if (symlinkat(target, tree_fd, temporary))
		return -errno;
	return rename_to(path, temporary, 0);
}

static int make_parents(const char *path)
{
	char partial[160];
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(partial, sizeof(partial), "%.*s", (int)(slash - path), path);
		if (mkdirat(tree_fd, partial, 0700) && errno != EEXIST)
			return -errno;
	}
	return 0;
}

/* Splits a record: copies its path, returns its content. */
static const char *record(const char *p, char path[160])
{
	const char *end = strchr(p, '\n');
	if (!end)
		end = p + strlen(p);
	snprintf(path, 160, "%.*s", (int)(end - p), p);
	return *end ? end + 1 : end;
}

static int write_all(const char *text, size_t len)
{
	char path[160];
	for (const char *p = text; p < text + len; p += strlen(p) + 1) {
		const char *content = record(p, path);
		int err = make_parents(path);
		char *last = path + strlen(path) - 1;
		if (!err && *last == '@') {
			*last = '\0';
			err = write_link(path, content);
		} else if (!err && *last != '/') {
			err = write_file(path, content, strlen(content));
		}
		if (err)
			return err;
	}
	return 0;
}

/* Writes the files of the open tree, unless they are there. */
static int fill_tree(const char *rundir, const char *text, size_t len)
{
	int err;

	if (!faccessat(tree_fd, "stamp", F_OK, 0))
		return 0;
	remove_unused(rundir);
	err = write_all(text, len);
	return err ? err : write_file("stamp", "", 0);
}

/* Half a tree would keep what room there is, so it goes, unless another process uses it. */
static void give_up(void)
{
	if (!flock(tree_fd, LOCK_EX | LOCK_NB))
		nftw(tree_path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	close(tree_fd);
	tree_fd = -1;
}

int vb_tree_write(const char *text, size_t len, char root[VB_TREE_PATH_MAX])
{
	static unsigned at; /* the directory that could hold it last time */
	char rundir[ROCI_RUNDIR_MAX + 1];
	uint64_t hash = hash_of(text, len);
	int err, last = -ENOENT;
	/* The reason is that of the first directory which is there. */
	for (unsigned i = at; (err = roci_rundir_name(i, rundir, sizeof(rundir))) != -ERANGE;
	     i++, last = last == -ENOENT ? err : last) {
		if (!err)
			err = roci_rundir_take(rundir);
		if (!err)
			err = open_tree(rundir, hash);
		if (err)
			continue;
		err = fill_tree(rundir, text, len);
		if (!err) {
			at = i;
			memcpy(root, tree_path, sizeof(tree_path));
			return 0;
		}
		give_up();
	}
	at = 0;
	return last;
}
