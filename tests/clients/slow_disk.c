/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A slow disk, for LD_PRELOAD: syncs wait while the file exists whose path is in SLOW_DISK. With SLOW_FOLDERS only
 * syncs of folders wait. A sync that waits creates a file of that path with ".waiting" after it.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

static void wait_for_disk(int fd)
{
	const char *gate = getenv("SLOW_DISK");
	char waiting[4096];
	struct stat st;

	if (!gate || access(gate, F_OK))
		return;
	if (getenv("SLOW_FOLDERS") && !fstat(fd, &st) && !S_ISDIR(st.st_mode))
		return;
	snprintf(waiting, sizeof(waiting), "%s.waiting", gate);
	close(open(waiting, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	while (!access(gate, F_OK))
		usleep(10000);
}

EXPORTED int fsync(int fd)
{
	wait_for_disk(fd);
	return (int)syscall(SYS_fsync, fd);
}

EXPORTED int fdatasync(int fd)
{
	wait_for_disk(fd);
	return (int)syscall(SYS_fdatasync, fd);
}

EXPORTED int syncfs(int fd)
{
	wait_for_disk(fd);
	return (int)syscall(SYS_syncfs, fd);
}
