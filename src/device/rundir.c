/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/rundir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

int roci_rundir_name(unsigned i, char *path, size_t size)
{
	const char *wish = getenv("ROCI_RUNDIR"), *login = getenv("XDG_RUNTIME_DIR");
	unsigned uid = geteuid();
	int len;

	if (wish && *wish)
		len = i ? -ERANGE : snprintf(path, size, "%s", wish);
	else if (i == 0)
		len = snprintf(path, size, "/dev/shm/roci-%u", uid);
	else if (i == 1)
		len = snprintf(path, size, "/tmp/roci-%u", uid);
	else if (i > 2)
		len = -ERANGE;
	else if (login && *login == '/')
		len = snprintf(path, size, "%s/roci-%u", login, uid);
	else
		len = snprintf(path, size, "/run/user/%u/roci-%u", uid, uid);
	if (len < 0)
		return len;
	return (size_t)len >= size || len > ROCI_RUNDIR_MAX ? -ENAMETOOLONG : 0;
}

/* O_PATH: another user's directory opens too, so that the owner, not the mode, is what is wrong with it. */
int roci_rundir_take(const char *path)
{
	struct stat st;
	int fd, err = 0;

	if (mkdir(path, 0700) && errno != EEXIST)
		return -errno;
	fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		err = -errno;
	else if (!S_ISDIR(st.st_mode))
		err = -ENOTDIR;
	else if (st.st_uid != geteuid() || (st.st_mode & 077))
		err = -EPERM;
	else if (faccessat(fd, ".", R_OK | W_OK | X_OK, AT_EACCESS))
		err = -errno;
	close(fd);
	return err;
}

bool roci_rundir_may_hold(uint64_t bytes)
{
	struct rlimit limit; /* RLIM_INFINITY is larger than any size */

	return !getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur >= bytes;
}

const char *roci_rundir_reason(int err)
{
	return err == -EPERM   ? "it is not a directory of yours alone, of mode 0700"
	       : err == -EFBIG ? "this process may make no file so large (see `ulimit -f`)"
			       : strerror(-err);
}
