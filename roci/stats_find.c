/* SPDX-License-Identifier: BSD-2-Clause */
#include "stats_find.h"

#include <dirent.h>
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The value of ROCI_RUNDIR in the process's environment, as it began. False: it has none, or may not be read. */
static bool rundir_of(long pid, char dir[ROCI_RUNDIR_MAX + 1])
{
	static const char name[] = "ROCI_RUNDIR=";
	char path[64], *entry = NULL;
	size_t room = 0;
	bool found = false;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%ld/environ", pid);
	file = fopen(path, "re");
	while (file && !found && getdelim(&entry, &room, '\0', file) > 0) {
		found = !strncmp(entry, name, sizeof(name) - 1) && entry[sizeof(name) - 1] &&
			strlen(entry) - (sizeof(name) - 1) <= ROCI_RUNDIR_MAX;
		if (found)
			strcpy(dir, entry + sizeof(name) - 1);
	}
	free(entry);
	if (file)
		fclose(file);
	return found;
}

static int read_anywhere(long pid, struct roci_stats_file *out, bool *alive, char dir[ROCI_RUNDIR_MAX + 1])
{
	int err = -ENOENT, found;

	if (rundir_of(pid, dir))
		err = roci_stats_file_read(dir, pid, out, alive);
	for (unsigned i = 0; err == -ENOENT && (found = roci_rundir_name(i, dir, ROCI_RUNDIR_MAX + 1)) != -ERANGE;
	     i++) {
		if (!found)
			err = roci_stats_file_read(dir, pid, out, alive);
	}
	return err;
}

static void no_file(long pid, char why[STATS_WHY_CHARS])
{
	char path[64];
	struct stat st;
	const struct passwd *owner;

	snprintf(path, sizeof(path), "/proc/%ld", pid);
	if (stat(path, &st)) {
		snprintf(why, STATS_WHY_CHARS,
			 "there is no process %ld, and none has left counters; `roci stats` lists the processes that "
			 "have",
			 pid);
	} else if (st.st_uid != geteuid()) {
		owner = getpwuid(st.st_uid);
		snprintf(why, STATS_WHY_CHARS,
			 "process %ld belongs to %s (user %u): only that user can read its counters, with `roci stats "
			 "%ld`",
			 pid, owner ? owner->pw_name : "another user", (unsigned)st.st_uid, pid);
	} else {
		snprintf(why, STATS_WHY_CHARS,
			 "process %ld has not opened roci0; `roci run -- PROGRAM` gives it to a program, and `roci "
			 "stats` "
			 "lists those that have",
			 pid);
	}
}

int stats_find(long pid, struct roci_stats_file *out, bool *alive, char why[STATS_WHY_CHARS])
{
	char dir[ROCI_RUNDIR_MAX + 1];

	return stats_find_in(pid, out, alive, dir, why);
}

int stats_find_in(long pid, struct roci_stats_file *out, bool *alive, char dir[ROCI_RUNDIR_MAX + 1],
		  char why[STATS_WHY_CHARS])
{
	int err = read_anywhere(pid, out, alive, dir);

	if (err == -ENOENT)
		no_file(pid, why);
	else if (err == -EPROTO)
		snprintf(why, STATS_WHY_CHARS,
			 "the counters of process %ld are of another version of Rocinante; use the roci that is "
			 "installed "
			 "with it",
			 pid);
	else if (err)
		snprintf(why, STATS_WHY_CHARS, "the counters of process %ld cannot be read: %s", pid, strerror(-err));
	return err;
}

static int compare(const void *a, const void *b)
{
	long x = *(const long *)a, y = *(const long *)b;

	return (x > y) - (x < y);
}

bool stats_own_local_path(void)
{
	char why[STATS_WHY_CHARS];
	struct roci_stats_file file;
	bool alive;

	return !stats_find(getpid(), &file, &alive, why) && file.device.local_qps;
}

size_t stats_list(long *pids, size_t max)
{
	char path[ROCI_RUNDIR_MAX + 1];
	size_t count = 0;
	int err;

	for (unsigned i = 0; (err = roci_rundir_name(i, path, sizeof(path))) != -ERANGE; i++) {
		DIR *dir = err ? NULL : opendir(path);
		struct dirent *entry;

		while (dir && count < max && (entry = readdir(dir)))
			count += sscanf(entry->d_name, "stats-%ld", &pids[count]) == 1;
		if (dir)
			closedir(dir);
	}
	qsort(pids, count, sizeof(*pids), compare);
	return count;
}
