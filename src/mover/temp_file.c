/* SPDX-License-Identifier: BSD-2-Clause */
#include "mover/temp_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRIES      8
#define NEW_SUFFIX ".new" MOVER_PART_SUFFIX /* between link and rename */
#define TEMP_FLAGS (O_RDWR | OPEN_AS_IT_IS)

struct mover_digest temp_file_name(const char *leaf, const char *suffix, char name[TEMP_NAME_BYTES])
{
	struct mover_digest hash = mover_digest_of(leaf, strlen(leaf));
	size_t at = strlen(MOVER_RESERVED_PREFIX);

	memcpy(name, MOVER_RESERVED_PREFIX, at);
	for (size_t i = 0; i < sizeof(hash.bytes); i++) {
		name[at++] = "0123456789abcdef"[hash.bytes[i] >> 4];
		name[at++] = "0123456789abcdef"[hash.bytes[i] & 15];
	}
	memcpy(name + at, suffix, strlen(suffix) + 1);
	return hash;
}

int temp_file_unnamed(int dir_fd, mode_t mode)
{
	int fd = openat(dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode);

	return fd < 0 ? -errno : fd;
}

/* Before Linux 6.10 AT_EMPTY_PATH takes a capability, and ENOENT says that it is missing. */
int temp_file_link(int fd, int dir_fd, const char *name)
{
	char proc[32];

	if (!linkat(fd, "", dir_fd, name, AT_EMPTY_PATH))
		return 0;
	if (errno != ENOENT)
		return -errno;
	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, proc, dir_fd, name, AT_SYMLINK_FOLLOW) ? -errno : 0;
}

int temp_file_replace(int fd, int dir_fd, const char *name)
{
	char temp[TEMP_NAME_BYTES];
	int err;

	temp_file_name(name, NEW_SUFFIX, temp);
	err = temp_file_link(fd, dir_fd, temp);
	if (err == -EEXIST && !unlinkat(dir_fd, temp, 0)) /* a transfer was killed here */
		err = temp_file_link(fd, dir_fd, temp);
	if (err || !renameat(dir_fd, temp, dir_fd, name))
		return err;
	err = -errno;
	unlinkat(dir_fd, temp, 0);
	return err;
}

bool temp_file_can_link(int dir_fd)
{
	int fd = temp_file_unnamed(dir_fd, 0600);
	char name[TEMP_NAME_BYTES];
	bool can;

	if (fd < 0)
		return false;
	temp_file_name("", NEW_SUFFIX, name);
	can = !temp_file_link(fd, dir_fd, name) && !unlinkat(dir_fd, name, 0);
	close(fd);
	return can;
}

/* A regular file of this user, with no other name. */
static bool is_ours(const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_nlink == 1 && st->st_uid == geteuid();
}

/* For a temporary file of ours that may not be opened: we were killed after it got its final mode. */
static void make_writable(int dir_fd, const char *name)
{
	struct stat st;

	if (!fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) && is_ours(&st))
		(void)!fchmodat(dir_fd, name, 0600, AT_SYMLINK_NOFOLLOW);
}

/* Opens a temporary file that exists. -EAGAIN: try again; it was gone, or was not ours and was removed. */
static int open_existing(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, TEMP_FLAGS);

	if (fd < 0 && errno == EACCES) {
		make_writable(dir_fd, name);
		fd = openat(dir_fd, name, TEMP_FLAGS);
	}
	if (fd >= 0)
		return fd;
	if (errno == ENOENT)
		return -EAGAIN;
	if (errno != EACCES && errno != ELOOP && errno != ENXIO)
		return -errno;
	return unlinkat(dir_fd, name, 0) ? -errno : -EAGAIN;
}

bool mover_file_is_at(int dir_fd, const char *name, const struct stat *st)
{
	struct stat now;

	return !fstatat(dir_fd, name, &now, AT_SYMLINK_NOFOLLOW) && now.st_dev == st->st_dev &&
	       now.st_ino == st->st_ino;
}

/* Locks the file. -EAGAIN: try again; the name no longer leads to this file, because the one who had the lock renamed
 * or removed it, or the file was not ours and was removed. */
static int lock_temp(int dir_fd, const char *name, int fd, bool fresh)
{
	struct stat st;

	if (flock(fd, LOCK_EX | LOCK_NB))
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	if (fstat(fd, &st))
		return -errno;
	if (!mover_file_is_at(dir_fd, name, &st))
		return -EAGAIN;
	if (fresh || is_ours(&st))
		return 0;
	return unlinkat(dir_fd, name, 0) ? -errno : -EAGAIN;
}

int temp_file_open(int dir_fd, const char *name, bool *fresh)
{
	for (int tries = TRIES; tries; tries--) {
		int fd = openat(dir_fd, name, TEMP_FLAGS | O_CREAT | O_EXCL, 0600), err;

		*fresh = fd >= 0;
		if (fd < 0 && errno != EEXIST)
			return -errno;
		if (fd < 0)
			fd = open_existing(dir_fd, name);
		if (fd == -EAGAIN)
			continue;
		if (fd < 0)
			return fd;
		err = lock_temp(dir_fd, name, fd, *fresh);
		if (!err)
			return fd;
		close(fd);
		if (err != -EAGAIN)
			return err;
	}
	return -EBUSY;
}
