/* SPDX-License-Identifier: BSD-2-Clause */
#include "room.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void room_open(struct room *room)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(room->path, sizeof(room->path), "%s/roci-mover-XXXXXX", tmp && strlen(tmp) < 40 ? tmp : "/tmp");
	umask(0); /* the tests compare whole modes */
	assert_non_null(mkdtemp(room->path));
	room->fd = open(room->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(room->fd >= 0);
}

static int open_up(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return type == FTW_D || type == FTW_DNR ? chmod(path, 0700) : 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

void room_close(struct room *room)
{
	close(room->fd);
	nftw(room->path, open_up, 32, FTW_PHYS);
	assert_int_equal(nftw(room->path, remove_one, 32, FTW_PHYS | FTW_DEPTH), 0);
}

const char *room_path(const struct room *room, const char *name)
{
	static char paths[4][8192];
	static unsigned next;
	char *path = paths[next++ % 4];

	assert_true(snprintf(path, sizeof(paths[0]), "%s/%s", room->path, name) < (int)sizeof(paths[0]));
	return path;
}

void room_write(const struct room *room, const char *name, const void *bytes, size_t len)
{
	int fd = openat(room->fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, len), len);
	close(fd);
}

void room_mkdir(const struct room *room, const char *name)
{
	assert_int_equal(mkdirat(room->fd, name, 0755), 0);
}

struct stat room_stat(const struct room *room, const char *name)
{
	struct stat st;

	assert_int_equal(fstatat(room->fd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	return st;
}

bool room_has(const struct room *room, const char *name)
{
	struct stat st;

	return !fstatat(room->fd, name, &st, AT_SYMLINK_NOFOLLOW);
}

bool room_holds(const struct room *room, const char *name, const void *bytes, size_t len)
{
	int fd = openat(room->fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	char *have = malloc(len + 1);
	bool same;

	assert_true(fd >= 0 && have);
	same = read(fd, have, len + 1) == (ssize_t)len && !memcmp(have, bytes, len);
	close(fd);
	free(have);
	return same;
}

size_t room_count(const struct room *room, const char *name)
{
	DIR *dir = opendir(room_path(room, name));
	size_t count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count - 2;
}

static struct mover_entry entry_of(enum mover_kind kind, const char *name, uint32_t mode)
{
	return (struct mover_entry){
		.kind = kind,
		.mode = mode,
		.mtime_s = 1234567890,
		.mtime_ns = 123456789,
		.name = (const uint8_t *)name,
		.name_len = (uint16_t)strlen(name),
	};
}

struct mover_entry entry_file(const char *name, uint64_t size)
{
	struct mover_entry entry = entry_of(MOVER_FILE, name, 0640);

	entry.size = size;
	return entry;
}

struct mover_entry entry_folder(const char *name, uint32_t mode)
{
	return entry_of(MOVER_FOLDER, name, mode);
}

struct mover_entry entry_link(const char *name, const char *target)
{
	struct mover_entry entry = entry_of(MOVER_SYMLINK, name, 0777);

	entry.target = (const uint8_t *)target;
	entry.target_len = (uint16_t)strlen(target);
	entry.size = entry.target_len;
	return entry;
}
