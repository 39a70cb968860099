/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/rundir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* `len` is what snprintf returned for `path`. A directory that others could have planted or can write to is refused,
 * never repaired. */
static int take_dir(const char *path, int len, size_t size)
{
	struct stat st;
	int fd, err = 0;

	if (len < 0 || (size_t)len >= size || len > ROCI_RUNDIR_MAX)
		return -ENAMETOOLONG;
	if (mkdir(path, 0700) && errno != EEXIST)
		return -errno;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		err = -errno;
	else if (st.st_uid != geteuid() || (st.st_mode & 077))
		err = -EPERM;
	else if (faccessat(fd, ".", R_OK | W_OK | X_OK, AT_EACCESS))
		err = -errno;
	close(fd);
	return err;
}

int roci_rundir(char *path, size_t size)
{
	const char *wish = getenv("ROCI_RUNDIR");
	unsigned uid = geteuid();

	if (wish && *wish)
		return take_dir(path, snprintf(path, size, "%s", wish), size);
	if (!take_dir(path, snprintf(path, size, "/dev/shm/roci-%u", uid), size))
		return 0;
	return take_dir(path, snprintf(path, size, "/tmp/roci-%u", uid), size);
}
