/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The counters of a process, where others can read them: in the file stats-PID of the run directory (rundir.h).
 *
 * The process counts in a mapping of the file, so that nothing is copied, and the last counts are there even after a
 * SIGKILL. It holds a lock on the file while it lives, and removes the file when the device closes. A process that
 * opens the device removes the files of dead ones, but for the last few.
 */
#ifndef ROCI_DEVICE_STATS_FILE_H
#define ROCI_DEVICE_STATS_FILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "device/rundir.h"
#include "device/stats.h"
#include "engine/engine.h"

#define ROCI_STATS_DEAD_KEPT 16 /* files of dead processes */
#define ROCI_STATS_PATH      (ROCI_RUNDIR_MAX + 32)
#define ROCI_WATCH_PATH      (ROCI_RUNDIR_MAX + 48)

struct roci_stats_file {
	_Atomic uint32_t watcher; /* no counter: the pid of who wants to see the packets; 0: nobody. See watch.h */
	uint64_t layout;          /* of this struct: changes with the counters */
	uint64_t pid;
	uint64_t began_s; /* seconds since 1970 */
	char program[16]; /* as in /proc/PID/comm */
	struct roci_device_stats device;
	struct roci_engine_stats engine;
};

/* Where a process counts. `file` is never NULL after opening: without a file it is memory of the process alone. */
struct roci_stats_map {
	struct roci_stats_file *file;
	int fd; /* -1: no file */
	char path[ROCI_STATS_PATH];
};

/* Makes the file in `dir`. If that fails, the process counts in memory of its own: counters are no reason to fail.
 * -ENOMEM: no memory either. */
int roci_stats_map_open(struct roci_stats_map *map, const char *dir);
/* Removes the file. Nobody may count any more. */
void roci_stats_map_close(struct roci_stats_map *map);
/* Removes the file, and nothing else: other threads may count still. For a process that ends. */
void roci_stats_map_unlink(const struct roci_stats_map *map);
/* In a forked child: it counts in memory of its own, at the same address, and leaves the file to its parent. */
void roci_stats_map_leave(struct roci_stats_map *map);

/* Writes the path of the file, and of the named pipe by which `watcher` reads the packets of a process (watch.h). */
void roci_stats_path(char path[ROCI_STATS_PATH], const char *dir, long pid);
void roci_watch_path(char path[ROCI_WATCH_PATH], const char *dir, long pid, uint32_t watcher);

/* Reads DIR/stats-PID. *alive: its process lives. Returns 0; -ENOENT: there is none; -EPROTO: it is of another version;
 * or another negative errno. */
int roci_stats_file_read(const char *dir, long pid, struct roci_stats_file *out, bool *alive);

#endif
