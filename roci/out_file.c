/* SPDX-License-Identifier: BSD-2-Clause */
#include "out_file.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int check_folder(const char *path)
{
	char *copy = strdup(path);
	int err;

	if (!copy)
		return -ENOMEM;
	err = access(dirname(copy), W_OK | X_OK) ? -errno : 0;
	free(copy);
	return err;
}

int out_file_check(const char *path, bool beside)
{
	struct stat st;

	if (!*path || path[strlen(path) - 1] == '/')
		return *path ? -EISDIR : -ENOENT;
	if (stat(path, &st))
		return errno == ENOENT ? check_folder(path) : -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (beside && S_ISREG(st.st_mode))
		return check_folder(path);
	return access(path, W_OK) ? -errno : 0;
}

int out_file_ours(const char *path, const char *const beginnings[], size_t count)
{
	char head[128] = "";
	struct stat st;
	bool ours = false;
	FILE *file;

	if (stat(path, &st) || !S_ISREG(st.st_mode) || !st.st_size)
		return 0;
	file = fopen(path, "re");
	if (!file)
		return -errno;
	if (fread(head, 1, sizeof(head) - 1, file) > 0)
		for (size_t i = 0; i < count; i++)
			ours = ours || !strncmp(head, beginnings[i], strlen(beginnings[i]));
	fclose(file);
	return ours ? 0 : -EEXIST;
}
