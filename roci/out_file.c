/* SPDX-License-Identifier: BSD-2-Clause */
#include "out_file.h"

#include <errno.h>
#include <libgen.h>
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

	if (stat(path, &st))
		return errno == ENOENT ? check_folder(path) : -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (beside && S_ISREG(st.st_mode))
		return check_folder(path);
	return access(path, W_OK) ? -errno : 0;
}
