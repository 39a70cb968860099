/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/capture_pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "device/held_signal.h"

#define WANTED_BYTES (1 << 20) /* what an unprivileged pipe may have: /proc/sys/fs/pipe-max-size */

bool roci_pipe_is(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISFIFO(st.st_mode);
}

int roci_pipe_open(const char *path)
{
	int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	(void)fcntl(fd, F_SETPIPE_SZ, WANTED_BYTES); /* a smaller one works, too */
	return fd;
}

/* Whether so many bytes fit. An empty pipe takes what fits, and its reader the rest. A page may be less than full. */
static bool has_room(int fd, size_t len)
{
	int capacity = fcntl(fd, F_GETPIPE_SZ), used = 0;

	if (capacity < 0 || ioctl(fd, FIONREAD, &used))
		return true;
	return !used || (size_t)used + len + 2 * 4096 <= (size_t)capacity;
}

static int wait_writable(int fd, int timeout_ms)
{
	struct pollfd ready = {.fd = fd, .events = POLLOUT};
	const struct timespec timeout = {.tv_sec = timeout_ms / 1000, .tv_nsec = timeout_ms % 1000 * 1000000L};
	int n = ppoll(&ready, 1, &timeout, NULL); /* no poll(): see sys.h */

	if (n > 0 && ready.revents & POLLERR)
		return -EPIPE;
	return n > 0 || (n < 0 && errno == EINTR) ? 0 : -EAGAIN;
}

/* Waits in steps, so that a reader that takes a little at a time is seen to read. */
static int wait_for_room(int fd, size_t len)
{
	for (unsigned waited = 0; waited < ROCI_PIPE_WAIT_MS; waited++) {
		int err = wait_writable(fd, 0);

		if (err == -EPIPE)
			return err;
		if (has_room(fd, len))
			return 0;
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	return -EAGAIN;
}

static int write_all(int fd, const char *bytes, size_t len)
{
	while (len) {
		ssize_t n = write(fd, bytes, len);
		int err;

		if (n > 0) {
			bytes += n;
			len -= (size_t)n;
			continue;
		}
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		err = wait_writable(fd, ROCI_PIPE_END_MS);
		if (err)
			return err == -EAGAIN ? -ETIMEDOUT : err;
	}
	return 0;
}

static int write_without_signal(int fd, const char *bytes, size_t len)
{
	struct roci_held_signal held;
	int err;

	roci_signal_hold(&held, SIGPIPE);
	err = write_all(fd, bytes, len);
	roci_signal_release(&held, err == -EPIPE);
	return err;
}

int roci_pipe_write(int fd, const void *bytes, size_t len, bool *stalled)
{
	if (!has_room(fd, len)) {
		int err = *stalled ? -EAGAIN : wait_for_room(fd, len);

		if (err) {
			*stalled = true;
			return err;
		}
	}
	*stalled = false;
	return write_without_signal(fd, bytes, len);
}
