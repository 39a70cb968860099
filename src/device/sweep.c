/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/sweep.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

static void remove_doors(DIR *dir, unsigned long netns)
{
	struct dirent *entry;
	unsigned long owner;
	unsigned slot;
	int end;

	rewinddir(dir);
	while ((entry = readdir(dir))) {
		end = 0;
		if (sscanf(entry->d_name, "door-%lu-%u%n", &owner, &slot, &end) == 2 && !entry->d_name[end] &&
		    owner == netns)
			unlinkat(dirfd(dir), entry->d_name, 0);
	}
}

/* Returns true where the file is removed, with its side doors. All slots are locked meanwhile, and the file's name goes
 * last: until then a new process of this namespace finds no free slot, and so opens no side door. */
static bool remove_if_dead(DIR *dir, const char *name, unsigned long netns)
{
	struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int fd = openat(dirfd(dir), name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	bool dead = fd >= 0 && !fcntl(fd, F_OFD_SETLK, &all);

	if (dead) {
		remove_doors(dir, netns);
		unlinkat(dirfd(dir), name, 0);
	}
	if (fd >= 0)
		close(fd);
	return dead;
}

void roci_sweep(const char *path, unsigned long netns)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	unsigned long owner;
	int layout, end;

	while (dir && (entry = readdir(dir))) {
		end = 0;
		if (sscanf(entry->d_name, "host-%lu-%d%n", &owner, &layout, &end) != 2 || entry->d_name[end] ||
		    owner == netns)
			continue;
		if (remove_if_dead(dir, entry->d_name, owner))
			rewinddir(dir);
	}
	if (dir)
		closedir(dir);
}
