/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file system like FAT, for LD_PRELOAD. To change a mode fails with EPERM, as Linux's FAT does where the mode is none
 * of those that it can have; times are of two seconds; and names are found whatever the case of their letters.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int fchmod(int fd, mode_t mode)
{
	errno = EPERM;
	return -1;
}

EXPORTED int fchmodat(int dir_fd, const char *path, mode_t mode, int flags)
{
	errno = EPERM;
	return -1;
}

static struct timespec cut(struct timespec time)
{
	if (time.tv_nsec != UTIME_OMIT)
		time = (struct timespec){.tv_sec = time.tv_sec & ~(time_t)1};
	return time;
}

EXPORTED int futimens(int fd, const struct timespec times[2])
{
	const struct timespec stored[2] = {cut(times[0]), cut(times[1])};

	return (int)syscall(SYS_utimensat, fd, NULL, stored, 0);
}

struct spelling {
	char name[256];
};

/* The name as the folder has it, or as it is. Only of names without a slash. */
static const char *find(int dir_fd, const char *name, struct spelling *found)
{
	int fd = strchr(name, '/') ? -1 : openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (!strcasecmp(entry->d_name, name)) {
			snprintf(found->name, sizeof(found->name), "%s", entry->d_name);
			name = found->name;
			break;
		}
	if (dir)
		closedir(dir);
	return name;
}

EXPORTED int fstatat(int dir_fd, const char *path, struct stat *st, int flags)
{
	struct spelling found;

	return (int)syscall(SYS_newfstatat, dir_fd, find(dir_fd, path, &found), st, flags);
}

EXPORTED int renameat(int old_dir_fd, const char *old_path, int new_dir_fd, const char *new_path)
{
	struct spelling found;

	return (int)syscall(SYS_renameat, old_dir_fd, old_path, new_dir_fd, find(new_dir_fd, new_path, &found));
}

EXPORTED int linkat(int old_dir_fd, const char *old_path, int new_dir_fd, const char *new_path, int flags)
{
	struct spelling found;

	return (int)syscall(SYS_linkat, old_dir_fd, old_path, new_dir_fd, find(new_dir_fd, new_path, &found), flags);
}
