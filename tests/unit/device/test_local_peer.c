/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/local/peer.h"

static struct roci_registry registry;
static struct roci_local local = {.registry = &registry, .fd = -1};

/* A process with a slot, which it writes to `to`. */
static void be_peer(int to)
{
	struct roci_registry mine;

	prctl(PR_SET_PDEATHSIG, SIGKILL); /* where the test fails */
	if (roci_registry_open(&mine) || write(to, &mine.slot, sizeof(mine.slot)) != sizeof(mine.slot))
		_exit(1);
	for (;;)
		pause();
}

static void make_its_file(const struct roci_local_peer *peer, uint64_t incarnation)
{
	uint64_t head[2] = {ROCI_LOCAL_LAYOUT, incarnation};
	char path[ROCI_LOCAL_PATH];
	int fd;

	roci_local_name_file(path, &registry, peer->slot);
	fd = open(path, O_RDWR | O_CREAT, 0600);
	assert_int_equal(pwrite(fd, head, sizeof(head), 0), sizeof(head));
	close(fd);
}

/* It is taken for dead when it is, and not when this process has no descriptor to look. */
static void a_peer_is_current_as_long_as_it_lives(void **state)
{
	struct roci_local_peer peer = {.incarnation = 7};
	struct rlimit usual, none;
	int ends[2];
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (!pid)
		be_peer(ends[1]);
	assert_int_equal(read(ends[0], &peer.slot, sizeof(peer.slot)), sizeof(peer.slot));
	assert_int_equal(roci_registry_open(&registry), 0);
	assert_false(roci_local_is_current(&local, &peer)); /* it takes no part */
	make_its_file(&peer, 8);
	assert_false(roci_local_is_current(&local, &peer)); /* it is another one */
	make_its_file(&peer, 7);
	assert_true(roci_local_is_current(&local, &peer));
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
	none = (struct rlimit){0, usual.rlim_max};
	setrlimit(RLIMIT_NOFILE, &none);
	assert_true(roci_local_is_current(&local, &peer));
	setrlimit(RLIMIT_NOFILE, &usual);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_false(roci_local_is_current(&local, &peer));
	roci_registry_close(&registry);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(a_peer_is_current_as_long_as_it_lives)};

	return cmocka_run_group_tests(tests, private_rundir, remove_rundir);
}
