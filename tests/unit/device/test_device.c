/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench.h"

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "device/device_state.h"

#define QKEY     0x11111111u
#define ROUNDS   100
#define NAPS_MAX 4 /* of the thread until a packet has arrived, on average */

static atomic_uint completions; /* completion events that the device reported */

/* Stands for the locks of channels and events in src/verbs, which the device's thread takes. */
static pthread_mutex_t listeners = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool in_event, dawdle;

static void on_event(const struct roci_event *ev)
{
	pthread_mutex_lock(&listeners);
	atomic_store(&in_event, true);
	if (atomic_load(&dawdle))
		nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
	pthread_mutex_unlock(&listeners);
	if (ev->kind == ROCI_EV_COMPLETION)
		atomic_fetch_add(&completions, 1);
}

static struct roci_device *open_device(void)
{
	struct roci_device *dev;

	assert_int_equal(roci_device_get(on_event, &dev), 0);
	return dev;
}

static uint8_t loopback_index(struct roci_device *dev)
{
	uint8_t gid[16];
	int index;

	gid_of("127.0.0.1", gid);
	index = roci_device_find_gid(dev, gid, 0);
	assert_true(index >= 0);
	return (uint8_t)index;
}

/* A UD QP with 64 bytes of memory: the first half to send, the other to receive, behind a GRH. */
struct ud {
	struct roci_device *dev;
	struct roci_cq *cq;
	struct roci_qp *qp;
	struct roci_mr *mr;
	struct roci_av self;
	uint32_t qpn, key;
	uint8_t memory[128];
};

static void change(struct ud *u, enum roci_qp_state state, unsigned mask)
{
	struct roci_qp_attr attr = {.state = state, .qkey = QKEY, .port_num = 1};

	assert_int_equal(roci_qp_modify(u->qp, roci_now(), &attr, ROCI_QP_STATE | mask), 0);
}

static void ud_open(struct ud *u, struct roci_device *dev)
{
	struct roci_engine *e = roci_device_lock(dev);
	struct roci_mr_attr mr = {
		.pd = 1, .base = u->memory, .len = sizeof(u->memory), .access = ROCI_ACCESS_LOCAL_WRITE};
	struct roci_qp_init init = {.type = ROCI_QPT_UD, .pd = 1, .cap = {16, 16, 1, 1, 0}};
	struct roci_ah_params ah = {.sgid_index = loopback_index(dev), .hop_limit = 64};

	u->dev = dev;
	gid_of("127.0.0.1", ah.dgid);
	assert_int_equal(roci_device_listen(dev, ah.sgid_index), 0);
	assert_int_equal(roci_device_make_av(dev, &ah, &u->self), 0);
	assert_int_equal(roci_cq_create(e, 64, u, &u->cq), 0);
	mr.iova = (uintptr_t)u->memory;
	do
		mr.key = roci_random32();
	while (roci_mr_create(e, &mr, &u->mr));
	u->key = mr.key;
	assert_int_equal(roci_device_alloc_qpn(dev, &u->qpn), 0);
	init.qpn = u->qpn;
	init.send_cq = init.recv_cq = u->cq;
	assert_int_equal(roci_qp_create(e, &init, &u->qp), 0);
	change(u, ROCI_QPS_INIT, ROCI_QP_PKEY_INDEX | ROCI_QP_PORT | ROCI_QP_QKEY);
	change(u, ROCI_QPS_RTR, 0);
	change(u, ROCI_QPS_RTS, ROCI_QP_SQ_PSN);
	roci_device_unlock(dev);
}

static void ud_close(struct ud *u)
{
	roci_device_lock(u->dev);
	roci_qp_destroy(u->qp);
	roci_device_free_qpn(u->dev, u->qpn);
	roci_mr_destroy(u->mr);
	roci_cq_destroy(u->cq);
	roci_device_unlock(u->dev);
}

/* Posts a receive, and a message of one byte to `qpn` of this address. */
static void ud_post(struct ud *u, uint32_t qpn, uint8_t byte, bool receive)
{
	struct roci_sge in = {(uintptr_t)u->memory + 32, 96, u->key}, out = {(uintptr_t)u->memory, 1, u->key};
	struct roci_recv_wr recv = {.wr_id = 2, .sges = &in, .num_sge = 1};
	struct roci_send_wr send = {
		.wr_id = 1,
		.opcode = ROCI_WR_SEND,
		.flags = ROCI_SEND_SIGNALED,
		.sges = &out,
		.num_sge = 1,
		.av = &u->self,
		.remote_qpn = qpn,
		.remote_qkey = QKEY,
	};

	roci_device_lock_post(u->dev);
	if (receive)
		assert_int_equal(roci_qp_post_recv(u->qp, &recv), 0);
	u->memory[0] = byte;
	if (qpn)
		assert_int_equal(roci_qp_post_send(u->qp, &send), 0);
	roci_device_unlock(u->dev);
}

/* Waits for `want` completions, all good. */
static void ud_wait(struct ud *u, unsigned want, bool polling)
{
	uint64_t end = roci_now() + 5000000000u;
	struct roci_cqe cqe;

	while (want) {
		assert_true(roci_now() < end);
		if (polling)
			roci_device_poll(u->dev);
		if (!roci_cq_poll(u->cq, &cqe, 1))
			continue;
		assert_int_equal(cqe.status, ROCI_WC_SUCCESS);
		want--;
	}
}

/* How often the thread has napped. This is a call of the program too, but no poll. */
static unsigned naps_of(struct roci_device *dev)
{
	unsigned naps;

	roci_device_lock(dev);
	naps = (unsigned)dev->stats->thread_naps;
	roci_device_unlock(dev);
	return naps;
}

static unsigned open_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static long resident_kib(void)
{
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	assert_int_equal(fscanf(f, "%*d %ld", &pages), 1);
	fclose(f);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void opens_fast_and_small(void **state)
{
	long before = resident_kib();
	clock_t start = clock(); /* processor time, since others may be busy */
	struct roci_device *dev = open_device();

	roci_device_lock(dev);
	roci_device_listen(dev, -1);
	roci_device_unlock(dev);
	assert_true(clock() - start < CLOCKS_PER_SEC / 20);
	assert_true(resident_kib() - before < 16 * 1024);
	roci_device_put(dev);
}

static void one_in_a_process_until_the_last_put(void **state)
{
	unsigned files = open_files();
	struct roci_device *a = open_device(), *b = open_device();

	assert_ptr_equal(a, b);
	roci_device_put(a);
	assert_true(open_files() > files);
	roci_device_put(b);
	assert_int_equal(open_files(), files);
	roci_device_put(open_device());
	assert_int_equal(open_files(), files);
}

static void an_idle_device_uses_no_cpu(void **state)
{
	struct roci_device *dev = open_device();
	struct timespec half = {.tv_nsec = 500000000};
	struct rusage before, after;
	struct ud u;

	ud_open(&u, dev);
	ud_post(&u, u.qpn, 1, true);
	ud_wait(&u, 2, true);
	nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	getrusage(RUSAGE_SELF, &before);
	nanosleep(&half, NULL);
	getrusage(RUSAGE_SELF, &after);
	assert_true(after.ru_nvcsw - before.ru_nvcsw < 10);
	ud_close(&u);
	roci_device_put(dev);
}

static void address_vectors_are_checked(void **state)
{
	struct roci_device *dev = open_device();
	struct roci_ah_params ah = {.sgid_index = loopback_index(dev)};
	struct roci_av av;

	roci_device_lock(dev);
	assert_int_equal(roci_device_make_av(dev, &ah, &av), -EINVAL); /* nowhere */
	gid_of("0.0.0.0", ah.dgid);
	assert_int_equal(roci_device_make_av(dev, &ah, &av), -EINVAL);
	gid_of("fe80::1", ah.dgid);
	assert_int_equal(roci_device_make_av(dev, &ah, &av), -EINVAL); /* another family */
	gid_of("127.0.0.1", ah.dgid);
	ah.sgid_index = ROCI_MAX_GIDS;
	assert_int_equal(roci_device_make_av(dev, &ah, &av), -EINVAL);
	ah.sgid_index = loopback_index(dev);
	gid_of("192.0.2.200", ah.dgid);
	assert_int_equal(roci_device_make_av(dev, &ah, &av), -ENETUNREACH);
	gid_of("127.0.0.1", ah.dgid);
	assert_int_equal(roci_device_make_av(dev, &ah, &av), 0);
	assert_int_equal(av.mtu, 4096);
	assert_memory_equal(av.dgid, ah.dgid, 16);
	assert_int_not_equal(av.src_port, ROCI_UDP_PORT);
	assert_int_equal(av.mad_port, ROCI_UDP_PORT);
	ah.datagram = true; /* firewalls let answers to port 4791 in, and nobody judges the port */
	assert_int_equal(roci_device_make_av(dev, &ah, &av), 0);
	assert_int_equal(av.src_port, ROCI_UDP_PORT);
	roci_device_unlock(dev);
	roci_device_put(dev);
}

/* Nobody polls the device: the thread receives. */
static void the_thread_makes_progress(void **state)
{
	struct roci_device *dev = open_device();
	struct ud u;

	ud_open(&u, dev);
	for (unsigned i = 0; i < 20; i++) {
		atomic_store(&completions, 0);
		ud_post(&u, 0, 0, true);
		roci_device_lock(dev);
		roci_cq_arm(u.cq, false);
		roci_device_unlock(dev);
		ud_post(&u, u.qpn, (uint8_t)i, false);
		ud_wait(&u, 2, false);
		roci_device_lock(dev); /* the thread that filled the CQ has reported it by now */
		roci_device_unlock(dev);
		assert_int_equal(atomic_load(&completions), 1);
		assert_int_equal(u.memory[32 + 40], i);
	}
	ud_close(&u);
	roci_device_put(dev);
}

static bool completed(void *arg)
{
	return atomic_load(&completions);
}

/* Waits for the event of a completion, on a descriptor that nobody makes readable: only a thread that drives itself, or
 * that the device wakes, gets it. */
static void *wait_for_completion(void *arg)
{
	int fd = eventfd(0, 0), err = 0;

	while (!completed(NULL) && !err)
		err = roci_device_wait(arg, fd, completed, NULL);
	close(fd);
	return NULL;
}

static void a_thread_that_waits_drives(void **state)
{
	struct roci_device *dev = open_device();
	struct ud u;

	ud_open(&u, dev);
	for (unsigned i = 0; i < 20; i++) {
		atomic_store(&completions, 0);
		ud_post(&u, 0, 0, true);
		roci_device_lock(dev);
		roci_cq_arm(u.cq, false);
		roci_device_unlock(dev);
		ud_post(&u, u.qpn, (uint8_t)i, false);
		wait_for_completion(dev);
		ud_wait(&u, 2, false);
		assert_int_equal(u.memory[32 + 40], i);
	}
	ud_close(&u);
	roci_device_put(dev);
}

/* Until so many threads are in roci_device_wait(). */
static void wait_for_waiters(struct roci_device *dev, unsigned count)
{
	unsigned waiting = 0;

	for (unsigned i = 0; waiting != count; i++) {
		assert_true(i < 10000); /* ten seconds */
		usleep(1000);
		roci_device_lock(dev);
		waiting = dev->turns.waiting;
		roci_device_unlock(dev);
	}
}

/* Threads wait for an event that does not come. One is cancelled; the device is closed under the others. */
static void threads_that_wait_hold_nothing_up(void **state)
{
	struct roci_device *dev = open_device();
	pthread_t threads[3];
	struct ud u;

	atomic_store(&completions, 0);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, wait_for_completion, dev), 0);
	wait_for_waiters(dev, 3); /* none comes to a device that is closed */
	assert_int_equal(pthread_cancel(threads[0]), 0);
	assert_int_equal(pthread_join(threads[0], NULL), 0);
	ud_open(&u, dev);
	ud_post(&u, 0, 0, true);
	ud_post(&u, u.qpn, 7, false);
	ud_wait(&u, 2, false); /* not armed: they go on waiting */
	ud_close(&u);
	roci_device_put(dev);
	for (unsigned i = 1; i < 3; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
}

/* The program polls for a while, then stops and spins on memory: the thread receives for it. */
static void the_thread_takes_over_from_polls(void **state)
{
	struct roci_device *dev = open_device();
	uint64_t end;
	struct ud u;

	ud_open(&u, dev);
	for (unsigned i = 0; i < 3; i++) {
		ud_post(&u, 0, 0, true);
		for (end = roci_now() + 30000000; roci_now() < end;)
			roci_device_poll(dev);
		ud_post(&u, u.qpn, (uint8_t)(i + 1), false);
		ud_wait(&u, 2, false);
		ud_post(&u, u.qpn, (uint8_t)(i + 1), true);
		ud_wait(&u, 2, true);
	}
	ud_close(&u);
	roci_device_put(dev);
}

/* The thread receives for a program that calls without end but never polls. The program may wait for what a peer's
 * message makes free, or serve one-sided requests. */
static void calls_that_are_no_polls_leave_it_to_the_thread(void **state)
{
	struct roci_device *dev = open_device();
	unsigned slept_through = 0;
	struct ud u;

	ud_open(&u, dev);
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t end = roci_now() + 20000000000u;
		unsigned before = naps_of(dev);
		struct roci_cqe cqe;

		for (unsigned calls = 0; calls < 10000 && naps_of(dev) < before + 2; calls++)
			;
		before = naps_of(dev);
		ud_post(&u, u.qpn, (uint8_t)i, true);
		for (unsigned got = 0; got < 2; got += roci_cq_poll(u.cq, &cqe, 1))
			assert_true(naps_of(dev) >= before && roci_now() < end);
		slept_through += naps_of(dev) - before;
	}
	assert_true(slept_through < NAPS_MAX * ROUNDS);
	ud_close(&u);
	roci_device_put(dev);
}

/* A child opens a device of its own, with another slot. Parent and child send to each other. */
static void a_forked_child_starts_afresh(void **state)
{
	struct roci_device *dev = open_device();
	int to_parent[2], to_child[2], status;
	uint32_t child_qpn;
	struct ud u;
	pid_t pid;

	assert_int_equal(pipe(to_parent) | pipe(to_child), 0);
	ud_open(&u, dev);
	pid = fork();
	if (!pid) {
		struct roci_device *own = open_device();
		static struct ud c;
		char byte;

		roci_device_lock(dev); /* the inherited one does no harm */
		roci_device_unlock(dev);
		roci_device_poll(dev);
		roci_device_put(dev);
		ud_open(&c, own);
		ud_post(&c, 0, 0, true);
		if (own == dev || write(to_parent[1], &c.qpn, sizeof(c.qpn)) < 0)
			_exit(1);
		ud_wait(&c, 1, false);
		(void)!read(to_child[0], &byte, 1);
		_exit(c.memory[32 + 40] != 77);
	}
	close(to_parent[1]);
	assert_int_equal(read(to_parent[0], &child_qpn, sizeof(child_qpn)), sizeof(child_qpn));
	assert_int_not_equal(child_qpn >> 14, u.qpn >> 14);
	ud_post(&u, child_qpn, 77, false);
	ud_wait(&u, 1, true);
	ud_post(&u, u.qpn, 5, true);
	ud_wait(&u, 2, true);
	assert_int_equal(write(to_child[1], "x", 1), 1);
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	ud_post(&u, u.qpn, 6, true);
	ud_wait(&u, 2, true);
	ud_close(&u);
	roci_device_put(dev);
	close(to_parent[0]);
	close(to_child[0]);
	close(to_child[1]);
}

static void *send_to_itself(void *arg)
{
	struct ud *u = arg;

	ud_post(u, u->qpn, 1, true);
	return NULL;
}

/* A program that forks does not know what the device's thread does at that moment. Locks that the thread holds are free
 * in the child. (Here a thread of the test is in the middle of an event.) */
static void a_child_inherits_no_locks(void **state)
{
	struct roci_device *dev = open_device();
	uint64_t end = roci_now() + 5000000000u;
	pthread_t sender;
	int status;
	struct ud u;
	pid_t pid;

	ud_open(&u, dev);
	roci_device_lock(dev);
	roci_cq_arm(u.cq, false);
	roci_device_unlock(dev);
	atomic_store(&in_event, false);
	atomic_store(&dawdle, true);
	assert_int_equal(pthread_create(&sender, NULL, send_to_itself, &u), 0);
	while (!atomic_load(&in_event))
		assert_true(roci_now() < end);
	pid = fork();
	if (!pid)
		_exit(pthread_mutex_trylock(&listeners) != 0);
	atomic_store(&dawdle, false);
	pthread_join(sender, NULL);
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	ud_wait(&u, 2, false);
	ud_close(&u);
	roci_device_put(dev);
}

static bool steered(const struct roci_registry *reg, unsigned slot)
{
	for (unsigned i = 0; i < ROCI_STEERED_GROUPS; i++) {
		const struct roci_steered_group *group = &reg->file->groups[i];

		for (unsigned k = 0; k < group->count; k++)
			if (group->members[k] == slot)
				return true;
	}
	return false;
}

/* A program that ends without closing leaves the host, whatever the device's thread does at that moment. */
static void a_program_that_ends_leaves_the_host(void **state)
{
	struct roci_registry reg;
	int up[2], status;
	unsigned slot;
	pid_t pid;

	assert_int_equal(pipe(up), 0);
	pid = fork();

	if (!pid) {
		static struct ud u;
		pthread_t sender;

		ud_open(&u, open_device());
		roci_device_lock(u.dev);
		roci_cq_arm(u.cq, false);
		roci_device_unlock(u.dev);
		atomic_store(&in_event, false);
		atomic_store(&dawdle, true);
		slot = u.dev->registry.slot;
		if (!steered(&u.dev->registry, slot) || write(up[1], &slot, sizeof(slot)) < 0 ||
		    pthread_create(&sender, NULL, send_to_itself, &u) || pthread_detach(sender))
			_exit(1);
		while (!atomic_load(&in_event))
			;
		exit(0);
	}
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	assert_int_equal(read(up[0], &slot, sizeof(slot)), sizeof(slot));
	assert_int_equal(roci_registry_open(&reg), 0);
	assert_false(steered(&reg, slot));
	roci_registry_close(&reg);
	close(up[0]);
	close(up[1]);
}

/* A process that has port 4791, and ends with a packet for another process in its socket: the other gets it. The kernel
 * would drop it, and a peer that has ended by then does not send it again. */
static void a_program_that_ends_forwards_what_came(void **state)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_port = htons(ROCI_UDP_PORT), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	uint8_t packet[ROCI_MIN_PACKET_BYTES] = {0};
	int ready[2], go[2], status, fd;
	struct roci_device *dev;
	char byte = 0, other[256];
	uint64_t end, received;
	uint32_t qpn;
	pid_t pid;

	assert_int_equal(pipe(ready) | pipe(go), 0);
	snprintf(other, sizeof(other), "%s/other", getenv("ROCI_RUNDIR"));
	pid = fork();
	if (!pid) {
		setenv("ROCI_RUNDIR", other, 1);
		dev = open_device();
		if (roci_device_listen(dev, loopback_index(dev)))
			_exit(1);
		roci_progress_stop(dev);
		if (write(ready[1], &byte, 1) != 1 || read(go[0], &byte, 1) != 1)
			_exit(2);
		exit(0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	dev = open_device();
	assert_int_equal(roci_device_alloc_qpn(dev, &qpn), 0);
	packet[5] = (uint8_t)(qpn >> 16);
	packet[6] = (uint8_t)(qpn >> 8);
	packet[7] = (uint8_t)qpn;
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	assert_int_equal(sendto(fd, packet, sizeof(packet), 0, (struct sockaddr *)&to, sizeof(to)), sizeof(packet));
	close(fd);
	assert_int_equal(write(go[1], &byte, 1), 1);
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	end = roci_now() + 5000000000u;
	do {
		assert_true(roci_now() < end);
		roci_device_poll(dev);
		received = dev->stats->door_received;
	} while (!received);
	roci_device_free_qpn(dev, qpn);
	roci_device_put(dev);
	for (unsigned i = 0; i < 2; i++) {
		close(ready[i]);
		close(go[i]);
	}
}

/* The thread sanitizer would end the forked child. */
const char *__tsan_default_options(void);
__attribute__((visibility("default"))) const char *__tsan_default_options(void)
{
	return "die_after_fork=0";
}

static void *worker(void *arg)
{
	struct roci_device *dev = open_device();
	struct ud *u = calloc(1, sizeof(*u));

	ud_open(u, dev);
	for (unsigned i = 0; i < 300; i++) {
		ud_post(u, u->qpn, (uint8_t)i, true);
		ud_wait(u, 2, i & 1);
		assert_int_equal(u->memory[32 + 40], (uint8_t)i);
	}
	ud_close(u);
	free(u);
	roci_device_put(dev);
	return NULL;
}

static void threads_share_it(void **state)
{
	pthread_t threads[4];

	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, worker, NULL), 0);
	for (unsigned i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

/* A peer of the local path sends one wake-up through the side door to a thread that sleeps. Where a poll takes it, the
 * thread must wake all the same: the program may never poll again. */
static void a_wakeup_that_a_poll_takes_wakes_the_thread(void **state)
{
	struct roci_device *dev = open_device();
	bool again = false;

	(void)state;
	if (!dev->local.own) {
		roci_device_put(dev);
		skip();
	}
	roci_lock_take(&dev->lock);
	for (unsigned i = 0; i < 2000 && !dev->local.asleep; i++) {
		roci_lock_release(&dev->lock);
		nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
		roci_lock_take(&dev->lock);
	}
	assert_true(dev->local.asleep);
	atomic_store(&dev->local.own->sleeping, 0); /* the peer sent a wake-up, and it is taken */
	roci_receive_door_ready(&dev->receive);
	roci_drive(dev, roci_now());
	for (unsigned i = 0; i < 2000 && !again; i++) {
		again = dev->local.asleep && atomic_load(&dev->local.own->sleeping);
		roci_lock_release(&dev->lock);
		nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
		roci_lock_take(&dev->lock);
	}
	roci_lock_release(&dev->lock);
	assert_true(again);
	roci_device_put(dev);
}

/* What the user asks for and cannot have is refused, not left out. */
static void a_bad_wish_is_refused(void **state)
{
	struct roci_device *dev;
	unsigned files = open_files();

	setenv("ROCI_FAULT", "loss=2", 1);
	assert_int_equal(roci_device_get(on_event, &dev), -EINVAL);
	unsetenv("ROCI_FAULT");
	setenv("ROCI_CAPTURE", "/nonexistent/file", 1);
	assert_int_equal(roci_device_get(on_event, &dev), -ENOENT);
	unsetenv("ROCI_CAPTURE");
	assert_int_equal(open_files(), files);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(opens_fast_and_small),
		cmocka_unit_test(one_in_a_process_until_the_last_put),
		cmocka_unit_test(an_idle_device_uses_no_cpu),
		cmocka_unit_test(address_vectors_are_checked),
		cmocka_unit_test(the_thread_makes_progress),
		cmocka_unit_test(a_thread_that_waits_drives),
		cmocka_unit_test(threads_that_wait_hold_nothing_up),
		cmocka_unit_test(the_thread_takes_over_from_polls),
		cmocka_unit_test(calls_that_are_no_polls_leave_it_to_the_thread),
		cmocka_unit_test(a_forked_child_starts_afresh),
		cmocka_unit_test(threads_share_it),
		cmocka_unit_test(a_child_inherits_no_locks),
		cmocka_unit_test(a_program_that_ends_leaves_the_host),
		cmocka_unit_test(a_program_that_ends_forwards_what_came),
		cmocka_unit_test(a_wakeup_that_a_poll_takes_wakes_the_thread),
		cmocka_unit_test(a_bad_wish_is_refused),
	};

	return cmocka_run_group_tests(tests, private_rundir, remove_rundir);
}
