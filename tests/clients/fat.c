/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file system like FAT, for LD_PRELOAD. To change a mode fails with EPERM, as Linux's FAT does where the mode is none
 * of those that it can have; times are of two seconds.
 */
#include <errno.h>
#include <fcntl.h>
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
