/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/local/copy.h"
#include "device/local/pairing.h"
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

/* The room of the ring to a peer, after it has been detached from; `attached`: what is in the pair then. */
static bool has_room_after_detach(uint64_t attached)
{
	struct roci_local l = {.registry = &registry, .fd = memfd_create("local", MFD_CLOEXEC)};
	struct roci_local_peer *p = calloc(1, sizeof(*p));
	struct stat st;

	assert_true(l.fd >= 0 && p);
	assert_int_equal(ftruncate(l.fd, (off_t)ROCI_LOCAL_FILE_BYTES), 0);
	l.own = mmap(NULL, sizeof(*l.own), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(l.own, MAP_FAILED);
	p->slot = 5;
	p->incarnation = 8;
	p->token = roci_local_guard_make(1);
	assert_true(p->token);
	l.own->pairs[5].token = p->token;
	l.own->pairs[5].attached = attached;
	assert_int_equal(roci_local_reserve(l.fd, 5), 0);
	roci_local_detach(&l, p);
	assert_int_equal(l.own->pairs[5].token, 0);
	assert_int_equal(fstat(l.fd, &st), 0);
	munmap(l.own, sizeof(*l.own));
	close(l.fd);
	return st.st_blocks > 0;
}

/* Another process has the slot now, and has attached: the room that it has reserved is its own. */
static void the_room_of_the_next_peer_stays(void **state)
{
	assert_false(has_room_after_detach(8));
	assert_false(has_room_after_detach(0)); /* it had not attached */
	assert_true(has_room_after_detach(12));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_peer_is_current_as_long_as_it_lives),
		cmocka_unit_test(the_room_of_the_next_peer_stays),
	};

	return cmocka_run_group_tests(tests, private_rundir, remove_rundir);
}
