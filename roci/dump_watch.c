/* SPDX-License-Identifier: BSD-2-Clause */
/* The packets of a program that runs already: device/watch.h is its side. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dump.h"
#include "stats_find.h"
#include "text.h"

#define LOOK_MS 200 /* how often we look whether the program lives */

/* Tells the device who watches. */
static int ask(const char *dir, long pid)
{
	char path[ROCI_STATS_PATH];
	struct roci_stats_file *file;
	int fd;

	roci_stats_path(path, dir, pid);
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	file = mmap(NULL, sizeof(*file), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (file == MAP_FAILED)
		return -errno;
	atomic_store(&file->watcher, (uint32_t)getpid());
	munmap(file, sizeof(*file));
	return 0;
}

/* Waits until the device has opened the pipe and written to it. Returns false if its process ends first. */
static bool wait_for_packets(int fd, long pid)
{
	struct pollfd ready = {.fd = fd, .events = POLLIN};
	char why[STATS_WHY_CHARS];
	struct roci_stats_file file;
	bool alive = true;

	while (alive) {
		if (poll(&ready, 1, LOOK_MS) > 0)
			return true;
		alive = !stats_find(pid, &file, &alive, why) && alive;
	}
	return false;
}

static int open_pipe(const char *path)
{
	unlink(path); /* of a process that had our pid */
	if (mkfifo(path, 0600))
		return -errno;
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? -errno : fd;
}

static int failed(const struct command *self, long pid, const char *path, int err)
{
	unlink(path);
	return complain(self, "--pid %ld: %s", pid, strerror(-err));
}

int dump_watch(const struct command *self, long pid, FILE **file)
{
	char dir[ROCI_RUNDIR_MAX + 1], path[ROCI_WATCH_PATH], why[STATS_WHY_CHARS];
	struct roci_stats_file found;
	bool alive;
	int fd, err;

	if (stats_find_in(pid, &found, &alive, dir, why))
		return complain(self, "--pid: %s", why);
	if (!alive)
		return complain(self, "--pid: process %ld has ended", pid);
	roci_watch_path(path, dir, pid, (uint32_t)getpid());
	fd = open_pipe(path);
	if (fd < 0)
		return failed(self, pid, path, fd);
	err = ask(dir, pid);
	if (err)
		return failed(self, pid, path, err);
	fprintf(stderr, "roci dump: waiting for packets of process %ld (", pid);
	text_print(stderr, found.program, strlen(found.program));
	fputs(")\n", stderr);
	if (found.device.local_qps)
		fprintf(stderr,
			"roci dump: it exchanges no packets with other processes of this host (the local path), so "
			"those are made up; payload of more than 4096 bytes is not in them. "
			"`roci run --path wire` keeps a program on the wire\n");
	alive = wait_for_packets(fd, pid);
	unlink(path);
	if (!alive) {
		close(fd);
		return complain(self, "--pid: process %ld ended, or closed roci0, without a packet", pid);
	}
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	*file = fdopen(fd, "r");
	return *file ? 0 : complain(self, "out of memory");
}
