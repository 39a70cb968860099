/* SPDX-License-Identifier: BSD-2-Clause */
#include "mover/spelling.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mover/entry.h"
#include "mover/temp_file.h"

/* Each ASCII letter in the other case. False: there is none, or the name is too long. */
static bool swap_case(const char *leaf, char swapped[MOVER_COMPONENT_MAX + 1])
{
	size_t len = strlen(leaf);
	bool any = false;

	if (len > MOVER_COMPONENT_MAX)
		return false;
	for (size_t i = 0; i <= len; i++) {
		char lower = (char)(leaf[i] | 0x20);
		bool letter = lower >= 'a' && lower <= 'z';

		swapped[i] = letter ? (char)(leaf[i] ^ 0x20) : leaf[i];
		any |= letter;
	}
	return any;
}

static bool is_listed(DIR *dir, const char *leaf)
{
	const struct dirent *entry;

	while ((entry = readdir(dir)))
		if (!strcmp(entry->d_name, leaf))
			return true;
	return false;
}

bool mover_spelled_otherwise(int dir_fd, const char *leaf)
{
	char swapped[MOVER_COMPONENT_MAX + 1];
	struct stat st;
	bool listed;
	DIR *dir;
	int fd;

	if (fstatat(dir_fd, leaf, &st, AT_SYMLINK_NOFOLLOW) || !swap_case(leaf, swapped) ||
	    !mover_file_is_at(dir_fd, swapped, &st))
		return false;
	fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	listed = is_listed(dir, leaf);
	closedir(dir);
	return !listed;
}
