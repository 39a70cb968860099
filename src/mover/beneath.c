/* SPDX-License-Identifier: BSD-2-Clause */
#include "mover/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mover/entry.h"

#define TRIES 8 /* when a concurrent rename disturbs the call */

static atomic_bool no_openat2;

void mover_beneath_without_openat2(bool without)
{
	atomic_store(&no_openat2, without);
}

static int by_openat2(int dir_fd, const char *path, int flags)
{
	struct open_how how = {
		.flags = (unsigned)flags,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	long fd;
	int tries = TRIES;

	do
		fd = syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));
	while (fd < 0 && (errno == EINTR || (errno == EAGAIN && --tries)));
	return fd < 0 ? -errno : (int)fd;
}

static int by_components(int dir_fd, const char *path, int flags)
{
	char component[MOVER_COMPONENT_MAX + 1];
	int at = dir_fd, next;

	for (;;) {
		size_t len = strcspn(path, "/");
		bool last = !path[len];

		if (len > MOVER_COMPONENT_MAX) {
			errno = ENAMETOOLONG;
			next = -1;
		} else if (len == 0 || (len == 2 && !memcmp(path, "..", 2))) {
			errno = EXDEV;
			next = -1;
		} else {
			memcpy(component, path, len);
			component[len] = 0;
			next = openat(at, component, last ? flags : O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		}
		if (at != dir_fd) {
			int saved = errno;

			close(at);
			errno = saved;
		}
		if (next < 0)
			return -errno;
		if (last)
			return next;
		at = next;
		path += len + 1;
	}
}

int mover_beneath_open(int dir_fd, const char *path, int flags)
{
	flags |= O_CLOEXEC | O_NOFOLLOW;
	if (!atomic_load_explicit(&no_openat2, memory_order_relaxed)) {
		int fd = by_openat2(dir_fd, path, flags);

		if (fd == -ENOSYS)
			mover_beneath_without_openat2(true);
		else if (fd != -EPERM) /* EPERM comes from a filter or from the file: the other way finds out */
			return fd;
	}
	return by_components(dir_fd, path, flags);
}
