/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/stats_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "device/sweep.h"

#define VERSION   2
#define DEAD_MAX  1024 /* that one sweep looks at */
#define OPEN_FILE (O_NOFOLLOW | O_CLOEXEC)

/* Changes when counters come or go. */
static uint64_t layout_now(void)
{
	return (uint64_t)VERSION << 32 | sizeof(struct roci_device_stats) << 16 | sizeof(struct roci_engine_stats);
}

void roci_stats_path(char path[ROCI_STATS_PATH], const char *dir, long pid)
{
	snprintf(path, ROCI_STATS_PATH, "%s/stats-%ld", dir, pid);
}

void roci_watch_path(char path[ROCI_WATCH_PATH], const char *dir, long pid, uint32_t watcher)
{
	snprintf(path, ROCI_WATCH_PATH, "%s/watch-%ld-%" PRIu32, dir, pid, watcher);
}

static bool try_lock(int fd)
{
	struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	return !fcntl(fd, F_OFD_SETLK, &all);
}

static bool is_locked(int fd)
{
	struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	return !fcntl(fd, F_OFD_GETLK, &all) && all.l_type != F_UNLCK;
}

/* ---- sweeping ---- */

struct dead {
	time_t began;
	char name[32];
};

static int newest_first(const void *a, const void *b)
{
	const struct dead *x = a, *y = b;

	return (x->began < y->began) - (x->began > y->began);
}

/* Whether it is the file of a process that has ended. */
static bool find_dead(int dir_fd, const char *name, struct dead *out)
{
	struct stat st;
	int fd, end = 0;
	long pid;
	bool dead;

	if (sscanf(name, "stats-%ld%n", &pid, &end) != 1 || name[end] || strlen(name) >= sizeof(out->name))
		return false;
	fd = openat(dir_fd, name, O_RDWR | OPEN_FILE);
	if (fd < 0)
		return false;
	dead = !fstat(fd, &st) && !is_locked(fd);
	close(fd);
	out->began = st.st_mtime;
	strcpy(out->name, name);
	return dead;
}

/* The file stays where a new process of the same pid has just taken it. */
static void sweep(const char *path)
{
	struct dead *all = malloc(DEAD_MAX * sizeof(*all));
	DIR *dir = all ? opendir(path) : NULL;
	struct dirent *entry;
	size_t count = 0;

	while (dir && count < DEAD_MAX && (entry = readdir(dir)))
		count += find_dead(dirfd(dir), entry->d_name, &all[count]);
	if (count > ROCI_STATS_DEAD_KEPT) {
		qsort(all, count, sizeof(*all), newest_first);
		for (size_t i = ROCI_STATS_DEAD_KEPT; i < count; i++)
			roci_sweep_name(dirfd(dir), all[i].name);
	}
	if (dir)
		closedir(dir);
	free(all);
}

/* ---- writing ---- */

static void fill(struct roci_stats_file *file)
{
	FILE *comm = fopen("/proc/self/comm", "re");

	*file = (struct roci_stats_file){
		.layout = layout_now(), .pid = (uint64_t)getpid(), .began_s = (uint64_t)time(NULL)};
	if (comm) {
		if (fgets(file->program, sizeof(file->program), comm))
			file->program[strcspn(file->program, "\n")] = '\0';
		fclose(comm);
	}
}

/* A locked file with its first content, which takes its room on the disk: a page of a mapping that finds no room there
 * is SIGBUS. -EAGAIN: somebody else has it, or has just removed it. */
static int make_file(const char *path)
{
	struct roci_stats_file content;
	int fd = open(path, O_RDWR | O_CREAT | OPEN_FILE, 0600);
	struct stat st;
	int err = -EAGAIN;

	if (fd < 0)
		return -errno;
	if (!try_lock(fd) || fstat(fd, &st) || !st.st_nlink)
		goto err_close;
	fill(&content);
	if (pwrite(fd, &content, sizeof(content), 0) == sizeof(content))
		return fd;
	err = -ENOSPC;
	unlink(path);
err_close:
	close(fd);
	return err;
}

int roci_stats_map_open(struct roci_stats_map *map, const char *dir)
{
	sweep(dir);
	roci_stats_path(map->path, dir, getpid());
	map->fd = make_file(map->path);
	if (map->fd < 0)
		map->fd = -1;
	map->file = mmap(NULL, sizeof(*map->file), PROT_READ | PROT_WRITE,
			 map->fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, map->fd, 0);
	if (map->file != MAP_FAILED)
		return 0;
	if (map->fd >= 0)
		close(map->fd);
	return -ENOMEM;
}

void roci_stats_map_close(struct roci_stats_map *map)
{
	munmap(map->file, sizeof(*map->file));
	roci_stats_map_unlink(map);
	if (map->fd >= 0)
		close(map->fd);
}

void roci_stats_map_unlink(const struct roci_stats_map *map)
{
	if (map->fd >= 0)
		unlink(map->path);
}

void roci_stats_map_leave(struct roci_stats_map *map)
{
	mmap(map->file, sizeof(*map->file), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	if (map->fd >= 0)
		close(map->fd);
	map->fd = -1;
}

/* ---- reading ---- */

int roci_stats_file_read(const char *dir, long pid, struct roci_stats_file *out, bool *alive)
{
	char path[ROCI_STATS_PATH];
	ssize_t n;
	int fd;

	roci_stats_path(path, dir, pid);
	fd = open(path, O_RDWR | OPEN_FILE);
	if (fd < 0)
		return -errno;
	n = pread(fd, out, sizeof(*out), 0);
	*alive = is_locked(fd);
	close(fd);
	if (n != sizeof(*out) || out->layout != layout_now())
		return -EPROTO;
	out->program[sizeof(out->program) - 1] = '\0';
	return 0;
}
