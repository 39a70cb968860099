/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/abstract_name.h"
#include "device/sweep.h"

/* A process that holds a slot until it is asked to end. */
static pid_t start_holder(unsigned *slot, int *hold)
{
	int up[2], down[2];
	pid_t pid;

	assert_int_equal(pipe(up) | pipe(down), 0);
	pid = fork();
	if (!pid) {
		struct roci_registry reg;
		char byte;

		close(down[1]);
		if (roci_registry_open(&reg) || write(up[1], &reg.slot, sizeof(reg.slot)) < 0)
			_exit(1);
		(void)!read(down[0], &byte, 1);
		_exit(0);
	}
	close(up[1]);
	close(down[0]);
	assert_int_equal(read(up[0], slot, sizeof(*slot)), sizeof(*slot));
	close(up[0]);
	*hold = down[1];
	return pid;
}

static void slots_are_distinct_and_alive_until_the_kill(void **state)
{
	enum { N = 8 };
	struct roci_registry reg;
	unsigned slots[N];
	pid_t pids[N];
	int hold[N];

	assert_int_equal(roci_registry_open(&reg), 0);
	for (int i = 0; i < N; i++)
		pids[i] = start_holder(&slots[i], &hold[i]);
	for (int i = 0; i < N; i++) {
		assert_in_range(slots[i], 1, ROCI_SLOTS - 1);
		assert_int_not_equal(slots[i], reg.slot);
		assert_true(roci_registry_alive(&reg, slots[i]));
		for (int k = 0; k < i; k++)
			assert_int_not_equal(slots[i], slots[k]);
	}
	for (int i = 0; i < N; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
		close(hold[i]);
		assert_false(roci_registry_alive(&reg, slots[i]));
	}
	assert_true(roci_registry_alive(&reg, reg.slot));
	assert_false(roci_registry_alive(&reg, 0));
	assert_false(roci_registry_alive(&reg, ROCI_SLOTS));
	roci_registry_close(&reg);
}

/* The lock belongs to the open file, which a forked child shares: it must not keep the slot when it closes, nor lose
 * the parent's. */
static void a_forked_child_lets_go(void **state)
{
	struct roci_registry reg, other;
	pid_t pid;

	assert_int_equal(roci_registry_open(&reg), 0);
	assert_int_equal(roci_registry_open(&other), 0);
	pid = fork();
	if (!pid) {
		roci_registry_close(&reg);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	assert_true(roci_registry_alive(&other, reg.slot));
	roci_registry_close(&reg);
	roci_registry_close(&other);
}

static void all_slots_can_be_taken_and_no_more(void **state)
{
	static struct roci_registry regs[ROCI_SLOTS];
	static bool seen[ROCI_SLOTS];

	for (int i = 0; i < ROCI_SLOTS - 1; i++) {
		assert_int_equal(roci_registry_open(&regs[i]), 0);
		assert_false(seen[regs[i].slot]);
		seen[regs[i].slot] = true;
	}
	assert_int_equal(roci_registry_open(&regs[ROCI_SLOTS - 1]), -EUSERS);
	for (int i = 0; i < ROCI_SLOTS - 1; i++)
		roci_registry_close(&regs[i]);
}

/* Other users and containers have registries of their own, in this network namespace. */
static void no_slot_is_in_two_registries(void **state)
{
	static struct roci_registry regs[ROCI_SLOTS];
	static bool seen[ROCI_SLOTS];
	char mine[200], other[256];

	snprintf(mine, sizeof(mine), "%s", getenv("ROCI_RUNDIR"));
	snprintf(other, sizeof(other), "%s/other", mine);
	for (int i = 0; i < ROCI_SLOTS - 1; i++) {
		setenv("ROCI_RUNDIR", i % 2 ? other : mine, 1);
		assert_int_equal(roci_registry_open(&regs[i]), 0);
		assert_string_equal(regs[i].dir, i % 2 ? other : mine);
		assert_false(seen[regs[i].slot]);
		seen[regs[i].slot] = true;
	}
	for (int i = 0; i < 2; i++) {
		setenv("ROCI_RUNDIR", i ? other : mine, 1);
		assert_int_equal(roci_registry_open(&regs[ROCI_SLOTS - 1]), -EUSERS);
	}
	for (int i = 0; i < ROCI_SLOTS - 1; i++)
		roci_registry_close(&regs[i]);
	setenv("ROCI_RUNDIR", mine, 1);
}

/* Somebody has the names of all side doors but one. */
static void squatters_leave_the_slots_that_they_do_not_have(void **state)
{
	int fds[ROCI_SLOTS], asker = -1;
	struct roci_registry reg;

	for (unsigned slot = 1; slot < ROCI_SLOTS; slot++) {
		struct roci_abstract_name name = roci_abstract_name_door(slot);

		fds[slot] = roci_abstract_name_take(&name);
		assert_true(fds[slot] >= 0);
		assert_true(roci_abstract_name_taken(&asker, &name));
	}
	assert_int_equal(roci_registry_open(&reg), -EUSERS);
	close(fds[321]);
	assert_int_equal(roci_registry_open(&reg), 0);
	assert_int_equal(reg.slot, 321);
	roci_registry_close(&reg);
	for (unsigned slot = 1; slot < ROCI_SLOTS; slot++)
		if (slot != 321)
			close(fds[slot]);
}

static void make(const char *dir, const char *name)
{
	char path[300];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fclose(f);
}

static bool is_there(const char *dir, const char *name)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return !access(path, F_OK);
}

/* Nobody lives in namespaces 1 and 3; somebody does in 2. */
static void what_dead_namespaces_left_is_swept(void **state)
{
	const char *dir = getenv("ROCI_RUNDIR");
	struct flock slot = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 77, .l_len = 1};
	static const char *const names[] = {"host-1-2", "host-2-2", "host-3-1", "door-1-5", "host-x", "host-1-2x"};
	static const bool stays[] = {false, true, false, true, true, true};
	struct roci_registry reg, other;
	char path[300];
	int fd;

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		make(dir, names[i]);
	snprintf(path, sizeof(path), "%s/host-2-2", dir);
	fd = open(path, O_RDWR);
	assert_int_equal(fcntl(fd, F_OFD_SETLK, &slot), 0);
	assert_int_equal(roci_registry_open(&reg), 0);
	assert_int_equal(roci_registry_open(&other), 0);
	assert_true(roci_registry_alive(&reg, other.slot));
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(is_there(dir, names[i]), stays[i]);
	close(fd);
	roci_registry_close(&reg);
	roci_registry_close(&other);
}

/* Owner and type are checked, and what the user asked for is not replaced silently by something else. */
static void a_directory_that_others_can_use_is_refused(void **state)
{
	char path[256], mine[256], moved[300];
	struct stat st;

	snprintf(mine, sizeof(mine), "%s/sub", getenv("ROCI_RUNDIR"));
	snprintf(moved, sizeof(moved), "%s-moved", mine);
	setenv("ROCI_RUNDIR", mine, 1);
	assert_int_equal(roci_rundir_name(0, path, sizeof(path)), 0);
	assert_string_equal(path, mine);
	assert_int_equal(roci_rundir_name(1, path, sizeof(path)), -ERANGE);
	assert_int_equal(roci_rundir_take(mine), 0);
	assert_int_equal(stat(mine, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);

	assert_int_equal(chmod(mine, 0750), 0);
	assert_int_equal(roci_rundir_take(mine), -EPERM);
	assert_int_equal(chmod(mine, 0700), 0);

	assert_int_equal(rename(mine, moved), 0);
	assert_int_equal(symlink(moved, mine), 0);
	assert_int_equal(roci_rundir_take(mine), -ENOTDIR);
	assert_int_equal(roci_rundir_name(0, path, 5), -ENAMETOOLONG);
	unlink(mine);
	fclose(fopen(mine, "w"));
	assert_int_equal(roci_rundir_take(mine), -ENOTDIR);

	unsetenv("ROCI_RUNDIR");
	assert_int_equal(roci_rundir_name(0, path, sizeof(path)), 0);
	assert_int_equal(strncmp(path, "/dev/shm/roci-", 14), 0);
	assert_int_equal(roci_rundir_name(2, path, sizeof(path)), 0);
	assert_int_equal(roci_rundir_name(3, path, sizeof(path)), -ERANGE);
}

/* A stopped process must not stop the others. */
static void a_stopped_holder_of_the_lock_is_not_waited_for(void **state)
{
	struct roci_cm_bind ask = {.ps = ROCI_PS_TCP, .port = 4242};
	struct roci_registry reg, other;
	uint64_t start;
	unsigned index;
	uint16_t port;
	char byte = 0;
	int up[2];
	pid_t pid;

	assert_int_equal(pipe(up), 0);
	pid = fork();
	if (!pid) {
		if (roci_registry_open(&other) || roci_registry_lock(&other) || write(up[1], &byte, 1) < 0)
			_exit(1);
		raise(SIGSTOP);
		_exit(0);
	}
	assert_int_equal(read(up[0], &byte, 1), 1);
	assert_int_equal(waitpid(pid, NULL, WUNTRACED), pid);

	assert_int_equal(roci_registry_open(&reg), 0);
	start = roci_now();
	assert_int_equal(roci_ports_bind(&reg, &ask, &index, &port), -ETIMEDOUT);
	assert_in_range(roci_now() - start, 900000000, 20000000000);
	start = roci_now();
	for (int i = 0; i < 100; i++) { /* it has been waited for once */
		assert_int_equal(roci_ports_bind(&reg, &ask, &index, &port), -ETIMEDOUT);
		assert_int_equal(roci_registry_try_lock(&reg), -EAGAIN);
	}
	assert_true(roci_now() - start < 900000000);

	kill(pid, SIGCONT);
	waitpid(pid, NULL, 0);
	assert_int_equal(roci_ports_bind(&reg, &ask, &index, &port), 0);
	assert_int_equal(roci_ports_listen(&reg, index), 0);
	roci_ports_release(&reg, index);
	assert_int_equal(roci_ports_bind(&reg, &ask, &index, &port), 0);
	roci_registry_close(&reg);
	close(up[0]);
	close(up[1]);
}

/* Holds all slots as roci_sweep() does, but for a fifth of a second: a busy machine has taken the processor from it. */
static pid_t start_slow_sweeper(const char *path)
{
	struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int up[2];
	char byte = 0;
	pid_t pid;

	assert_int_equal(pipe(up), 0);
	pid = fork();
	if (!pid) {
		int fd = open(path, O_RDWR | O_CREAT, 0600);

		if (fcntl(fd, F_OFD_SETLK, &all) || write(up[1], &byte, 1) != 1)
			_exit(1);
		usleep(200000);
		_exit(unlink(path));
	}
	assert_int_equal(read(up[0], &byte, 1), 1);
	close(up[0]);
	close(up[1]);
	return pid;
}

static void a_slow_sweeper_is_waited_for(void **state)
{
	struct roci_registry reg;
	char self[64], path[ROCI_RUNDIR_MAX + 64] = "";
	int status;
	pid_t pid;

	assert_int_equal(roci_registry_open(&reg), 0);
	snprintf(self, sizeof(self), "/proc/self/fd/%d", reg.fd);
	assert_true(readlink(self, path, sizeof(path) - 1) > 0);
	roci_registry_close(&reg);
	pid = start_slow_sweeper(path);
	assert_int_equal(roci_registry_open(&reg), 0);
	roci_registry_close(&reg);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static int make_file(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);

	assert_true(fd >= 0);
	return fd;
}

/* One who sweeps has opened the file of a dead process. Before he locks it, a new process has put its own in its place.
 */
static void what_has_a_new_owner_is_not_swept(void **state)
{
	char path[ROCI_RUNDIR_MAX + 64];
	struct roci_registry reg;
	int old, new;

	assert_int_equal(roci_registry_open(&reg), 0);
	snprintf(path, sizeof(path), "%s/swept", reg.dir);
	old = make_file(path);
	assert_int_equal(unlink(path), 0);
	new = make_file(path);
	assert_false(roci_sweep_file(AT_FDCWD, path, old));
	assert_int_equal(access(path, F_OK), 0);
	assert_true(roci_sweep_file(AT_FDCWD, path, new));
	assert_int_not_equal(access(path, F_OK), 0);
	close(old);
	close(new);
	old = make_file(path);
	assert_true(roci_sweep_name(AT_FDCWD, path));
	assert_false(roci_sweep_name(AT_FDCWD, path));
	close(old);
	roci_registry_close(&reg);
}

int main(void)
{
	struct rlimit files; /* 1023 slots take two each */

	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slots_are_distinct_and_alive_until_the_kill),
		cmocka_unit_test(a_forked_child_lets_go),
		cmocka_unit_test(all_slots_can_be_taken_and_no_more),
		cmocka_unit_test(no_slot_is_in_two_registries),
		cmocka_unit_test(squatters_leave_the_slots_that_they_do_not_have),
		cmocka_unit_test(what_dead_namespaces_left_is_swept),
		cmocka_unit_test(what_has_a_new_owner_is_not_swept),
		cmocka_unit_test(a_slow_sweeper_is_waited_for),
		cmocka_unit_test(a_stopped_holder_of_the_lock_is_not_waited_for),
		cmocka_unit_test(a_directory_that_others_can_use_is_refused),
	};

	assert(!getrlimit(RLIMIT_NOFILE, &files));
	files.rlim_cur = files.rlim_max;
	assert(!setrlimit(RLIMIT_NOFILE, &files));
	return cmocka_run_group_tests(tests, private_rundir, remove_rundir);
}
