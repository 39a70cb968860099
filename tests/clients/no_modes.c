/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file system that takes no modes, for LD_PRELOAD: to change one fails with EPERM, as Linux's FAT does where the mode
 * is none of those that it can have.
 */
#include <errno.h>
#include <sys/stat.h>

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
