/* SPDX-License-Identifier: BSD-2-Clause */
/* The counters of a process in a file: read while it runs, and after it was killed. */
#include "../test.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/stats_file.h"

static char dir[] = "/tmp/test_stats_file.XXXXXX";

static int setup(void **state)
{
	return mkdtemp(dir) ? 0 : -1;
}

static unsigned files(void)
{
	DIR *d = opendir(dir);
	struct dirent *entry;
	unsigned count = 0;

	assert_non_null(d);
	while ((entry = readdir(d)))
		count += entry->d_name[0] != '.';
	closedir(d);
	return count;
}

static int teardown(void **state)
{
	char command[80];

	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

static void a_living_process(void **state)
{
	struct roci_stats_map map;
	struct roci_stats_file seen;
	bool alive;

	assert_int_equal(roci_stats_file_read(dir, getpid(), &seen, &alive), -ENOENT);
	assert_int_equal(roci_stats_map_open(&map, dir), 0);
	map.file->device.sent_packets = 7;
	map.file->engine.peers_lost = 9;
	assert_int_equal(roci_stats_file_read(dir, getpid(), &seen, &alive), 0);
	assert_true(alive);
	assert_int_equal(seen.pid, getpid());
	assert_string_equal(seen.program, "test_device_sta"); /* comm has 15 characters */
	assert_int_equal(seen.device.sent_packets, 7);
	assert_int_equal(seen.engine.peers_lost, 9);
	roci_stats_map_close(&map);
	assert_int_equal(roci_stats_file_read(dir, getpid(), &seen, &alive), -ENOENT);
}

/* Ends as a killed process does. */
static pid_t killed(uint64_t count)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		struct roci_stats_map map;

		if (!roci_stats_map_open(&map, dir))
			map.file->device.sent_packets = count;
		kill(getpid(), SIGKILL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	return pid;
}

static void a_killed_process(void **state)
{
	struct roci_stats_file seen;
	pid_t pid = killed(5);
	bool alive;

	assert_int_equal(roci_stats_file_read(dir, pid, &seen, &alive), 0);
	assert_false(alive);
	assert_int_equal(seen.device.sent_packets, 5);
}

/* Not more than a few files are left behind. */
static void many_killed_processes(void **state)
{
	struct roci_stats_map map;

	for (unsigned i = 0; i < 2 * ROCI_STATS_DEAD_KEPT; i++)
		killed(i);
	assert_int_equal(roci_stats_map_open(&map, dir), 0);
	assert_int_equal(files(), ROCI_STATS_DEAD_KEPT + 1);
	roci_stats_map_close(&map);
}

static void a_forked_child(void **state)
{
	struct roci_stats_map map;
	struct roci_stats_file seen;
	bool alive;
	int status;
	pid_t pid;

	assert_int_equal(roci_stats_map_open(&map, dir), 0);
	map.file->device.sent_packets = 1;
	pid = fork();
	if (!pid) {
		roci_stats_map_leave(&map);
		map.file->device.sent_packets += 100; /* no fault, and not in the file */
		_exit(map.file->device.sent_packets == 100 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(roci_stats_file_read(dir, getpid(), &seen, &alive), 0);
	assert_true(alive);
	assert_int_equal(seen.device.sent_packets, 1);
	roci_stats_map_close(&map);
}

/* Without a file a process counts all the same. */
static void no_folder(void **state)
{
	struct roci_stats_map map;

	assert_int_equal(roci_stats_map_open(&map, "/nonexistent"), 0);
	map.file->device.sent_packets++;
	roci_stats_map_close(&map);
}

static void another_version(void **state)
{
	struct roci_stats_map map;
	struct roci_stats_file seen;
	bool alive;

	assert_int_equal(roci_stats_map_open(&map, dir), 0);
	map.file->layout++;
	assert_int_equal(roci_stats_file_read(dir, getpid(), &seen, &alive), -EPROTO);
	roci_stats_map_close(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_living_process),
		cmocka_unit_test(a_killed_process),
		cmocka_unit_test(many_killed_processes),
		cmocka_unit_test(a_forked_child),
		cmocka_unit_test(no_folder),
		cmocka_unit_test(another_version),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
