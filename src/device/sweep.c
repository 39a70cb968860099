/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/sweep.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

bool roci_sweep_file(int dir_fd, const char *name, int fd)
{
	struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	struct stat st;

	return !fcntl(fd, F_OFD_SETLK, &all) && !fstat(fd, &st) && st.st_nlink && !unlinkat(dir_fd, name, 0);
}

/* All slots of a registry are locked meanwhile: a new process of its namespace finds no free one. */
bool roci_sweep_name(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	bool removed = fd >= 0 && roci_sweep_file(dir_fd, name, fd);

	if (fd >= 0)
		close(fd);
	return removed;
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
		if (roci_sweep_name(dirfd(dir), entry->d_name))
			rewinddir(dir);
	}
	if (dir)
		closedir(dir);
}
