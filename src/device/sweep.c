/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/sweep.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

/* Returns true where the file is removed. All slots are locked meanwhile: a new process of this namespace finds no free
 * one. */
static bool remove_if_dead(DIR *dir, const char *name)
{
	struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int fd = openat(dirfd(dir), name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	bool dead = fd >= 0 && !fcntl(fd, F_OFD_SETLK, &all);

	if (dead)
		unlinkat(dirfd(dir), name, 0);
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
		if (remove_if_dead(dir, entry->d_name))
			rewinddir(dir);
	}
	if (dir)
		closedir(dir);
}
