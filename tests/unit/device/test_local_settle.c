/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory is taken back while a peer is between its check and its copy: the owner does not wait for a peer that is
 * stopped or dead, and what such a peer does later fails.
 */
#include "bench.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "device/local/settle.h"
#include "device/local/copy.h"

#define BYTES 100000
#define VALUE UINT64_C(0x1122334455667788)

enum step { NOT_YET, ATTACHED, ANNOUNCED, GO_ON, COPIED };

/* What owner and copier share: the owner's table, and how far they are. */
static struct shared {
	struct roci_local_shared own;
	_Atomic unsigned slot;
	_Atomic enum step step;
	_Atomic int result; /* of the copy */
} * shared;

static uint8_t *memory; /* the owner's */
static pid_t owner, copier;
static struct roci_registry registry;
static struct roci_local local;
static struct roci_local_peer peer;

static void await(enum step step)
{
	while (atomic_load(&shared->step) < step)
		usleep(100);
}

/* A process with a slot, that announces a hazard, looks at its guard, and then copies: when it is told to, or after
 * `pause_us`. Or it has copied one piece of many then. */
static void be_copier(unsigned pause_us, bool piece)
{
	struct roci_local_pair *pair;
	struct roci_local_memory m;
	struct roci_span mine = {calloc(1, BYTES), BYTES}, theirs = {memory, BYTES};
	struct roci_registry mine_too;

	prctl(PR_SET_PDEATHSIG, SIGKILL); /* where the test fails */
	if (roci_registry_open(&mine_too))
		_exit(1);
	atomic_store(&shared->slot, mine_too.slot);
	pair = &shared->own.pairs[mine_too.slot];
	atomic_store(&shared->step, ATTACHED);
	while (!atomic_load(&pair->token))
		usleep(100);
	memset(mine.base, 0xc5, BYTES);
	atomic_store(&pair->hazard, (uint32_t)gettid());
	m = (struct roci_local_memory){
		.pid = owner, .token = atomic_load(&pair->token), .token_value = pair->token_value};
	atomic_store(&shared->step, ANNOUNCED);
	if (pause_us)
		usleep(pause_us);
	else
		await(GO_ON);
	if (piece)
		atomic_fetch_add(&pair->pieces, 1);
	while (piece)
		pause();
	atomic_store(&shared->result, roci_local_copy(&m, false, &mine, 1, &theirs, 1, true));
	atomic_store(&pair->hazard, 0);
	atomic_store(&shared->step, COPIED);
	for (;;)
		pause();
}

static void begin_with(unsigned pause_us, bool piece)
{
	struct roci_local_pair *pair;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	memory = calloc(1, BYTES);
	owner = getpid();
	copier = fork();
	if (!copier)
		be_copier(pause_us, piece);
	assert_int_equal(roci_registry_open(&registry), 0);
	await(ATTACHED);
	local = (struct roci_local){.own = &shared->own, .registry = &registry, .fd = -1};
	peer = (struct roci_local_peer){.slot = shared->slot, .pid = copier, .token = roci_local_guard_make(VALUE)};
	pair = &shared->own.pairs[peer.slot];
	pair->token_value = VALUE;
	atomic_store(&pair->token, peer.token);
	await(ANNOUNCED);
}

static void begin(unsigned pause_us)
{
	begin_with(pause_us, false);
}

static void end(void)
{
	kill(copier, SIGKILL);
	waitpid(copier, NULL, 0);
	roci_registry_close(&registry);
	munmap(shared, sizeof(*shared));
	free(memory);
}

static void assert_untouched(void)
{
	for (unsigned i = 0; i < BYTES; i++)
		assert_int_equal(memory[i], 0);
}

static void a_stopped_copier_is_not_waited_for_and_copies_nothing(void **state)
{
	uint64_t before;
	int status;

	begin(0);
	before = peer.token;
	kill(copier, SIGSTOP);
	waitpid(copier, &status, WUNTRACED);
	roci_local_settle(&local, &peer);
	atomic_store(&shared->step, GO_ON);
	kill(copier, SIGCONT);
	await(COPIED);
	assert_int_not_equal(shared->result, 0);
	assert_untouched();
	/* It has another guard for what comes. */
	assert_int_not_equal(peer.token, before);
	assert_int_not_equal(peer.token, 0);
	assert_int_equal(shared->own.pairs[peer.slot].token, peer.token);
	end();
}

static void a_dead_copier_is_not_waited_for(void **state)
{
	begin(0);
	kill(copier, SIGKILL);
	waitpid(copier, NULL, 0);
	roci_local_settle(&local, &peer);
	assert_int_equal(shared->own.pairs[peer.slot].hazard, 0);
	end();
}

/* It copies a little later, and that is waited for: nothing is written after the return. */
static void a_copier_that_runs_is_waited_for(void **state)
{
	begin(100000);
	roci_local_settle(&local, &peer);
	assert_int_equal(shared->own.pairs[peer.slot].hazard, 0);
	assert_int_equal(shared->result, 0);
	assert_int_equal(memory[0], 0xc5);
	assert_int_equal(memory[BYTES - 1], 0xc5);
	end();
}

/* It looks again before the next one. */
static void a_long_copy_is_waited_for_until_a_piece_has_ended(void **state)
{
	begin_with(100000, true);
	roci_local_settle(&local, &peer);
	assert_int_equal(shared->own.pairs[peer.slot].pieces, 1);
	assert_int_equal(shared->own.pairs[peer.slot].hazard, copier);
	assert_int_not_equal(peer.token, 0);
	end();
}

static void who_copies_nothing_is_not_waited_for(void **state)
{
	begin(0);
	atomic_store(&shared->step, GO_ON);
	await(COPIED);
	kill(copier, SIGSTOP);
	roci_local_settle(&local, &peer);
	assert_int_equal(shared->result, 0);
	kill(copier, SIGCONT);
	end();
}

static void *end_at_once(void *tid)
{
	*(uint32_t *)tid = (uint32_t)gettid();
	return NULL;
}

/* The copier was killed, and another process has its slot and does not attach: here, the process that runs. */
static void a_dead_copier_whose_slot_is_taken_is_not_waited_for(void **state)
{
	struct roci_local_pair *pair;
	pthread_t thread;
	uint32_t tid;
	pid_t dead;

	begin(0);
	pair = &shared->own.pairs[peer.slot];
	dead = fork();
	if (!dead)
		_exit(0);
	waitid(P_PID, (id_t)dead, &(siginfo_t){0}, WEXITED | WNOWAIT);
	peer.pid = dead;
	atomic_store(&pair->hazard, (uint32_t)dead); /* a zombie */
	roci_local_settle(&local, &peer);
	waitpid(dead, NULL, 0);
	roci_local_settle(&local, &peer);     /* not even that */
	assert_int_equal(pair->hazard, dead); /* it may be the other process's: not ours to take away */
	peer.pid = getpid();
	pthread_create(&thread, NULL, end_at_once, &tid);
	pthread_join(thread, NULL);
	atomic_store(&pair->hazard, tid);
	roci_local_settle(&local, &peer); /* the thread alone has ended */
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stopped_copier_is_not_waited_for_and_copies_nothing),
		cmocka_unit_test(a_dead_copier_is_not_waited_for),
		cmocka_unit_test(a_dead_copier_whose_slot_is_taken_is_not_waited_for),
		cmocka_unit_test(a_copier_that_runs_is_waited_for),
		cmocka_unit_test(a_long_copy_is_waited_for_until_a_piece_has_ended),
		cmocka_unit_test(who_copies_nothing_is_not_waited_for),
	};

	return cmocka_run_group_tests(tests, private_rundir, remove_rundir);
}
