/* SPDX-License-Identifier: BSD-2-Clause */
#include "ud.h"

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "wire/mtu.h"
#include "wire/piece.h"

#define ROUNDS   100
#define NAPS_MAX 4 /* of the thread until a packet has arrived, on average */

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

static bool defer_posts(void *arg)
{
	struct roci_device *dev = arg;

	while (roci_turns_send_after_post(&dev->turns, roci_now(), true))
		roci_turns_sent(&dev->turns, roci_now());
	return true;
}

/* The device's thread sleeps meanwhile, and knows nothing of what is to be done soon. */
static void a_thread_that_waited_leaves_no_deadline_behind(void **state)
{
	struct roci_device *dev = open_device();
	int fd = eventfd(0, 0);
	bool sleeps = false;

	for (unsigned i = 0; !sleeps; i++) {
		assert_true(i < 10000); /* ten seconds */
		usleep(1000);
		roci_lock_take(&dev->lock);
		sleeps = dev->turns.wake_at;
		roci_lock_release(&dev->lock);
	}
	assert_int_equal(roci_device_wait(dev, fd, defer_posts, dev), 0);
	roci_lock_take(&dev->lock);
	assert_true(dev->turns.wake_at <= roci_progress_deadline(dev)); /* 0: it does not sleep any more */
	roci_lock_release(&dev->lock);
	close(fd);
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

/* An RC QP whose peer has this address, in RTR. Returns its QPN. */
static uint32_t qp_with_peer(struct roci_device *dev, struct roci_cq *cq, const char *peer, struct roci_qp **qp)
{
	struct roci_engine *e = roci_device_lock(dev);
	struct roci_qp_init init = {.type = ROCI_QPT_RC, .pd = 1, .send_cq = cq, .recv_cq = cq, .cap = {1, 1, 1, 1, 0}};
	struct roci_qp_attr attr = {.state = ROCI_QPS_INIT, .port_num = 1, .path_mtu = ROCI_MTU_CODE_MAX};
	struct roci_ah_params ah = {.sgid_index = loopback_index(dev), .hop_limit = 64};

	gid_of(peer, ah.dgid);
	assert_int_equal(roci_device_listen(dev, ah.sgid_index), 0);
	assert_int_equal(roci_device_make_av(dev, &ah, &attr.av), 0);
	assert_int_equal(roci_device_alloc_qpn(dev, &init.qpn), 0);
	assert_int_equal(roci_qp_create(e, &init, qp), 0);
	assert_int_equal(roci_qp_modify(*qp, roci_now(), &attr,
					ROCI_QP_STATE | ROCI_QP_PKEY_INDEX | ROCI_QP_PORT | ROCI_QP_ACCESS_FLAGS),
			 0);
	attr.state = ROCI_QPS_RTR;
	assert_int_equal(roci_qp_modify(*qp, roci_now(), &attr,
					ROCI_QP_STATE | ROCI_QP_AV | ROCI_QP_PATH_MTU | ROCI_QP_DEST_QPN |
						ROCI_QP_RQ_PSN | ROCI_QP_MAX_DEST_RD_ATOMIC | ROCI_QP_MIN_RNR_TIMER),
			 0);
	roci_device_unlock(dev);
	return init.qpn;
}

/* The first piece of two arrives from `address`. */
static void send_piece(struct roci_device *dev, const char *address, uint32_t qpn)
{
	static const struct roci_piece piece = {.number = 1, .total = 2000};
	static uint8_t payload[ROCI_PIECE_HEAD + ROCI_PIECE_BYTES];
	struct roci_packet packet = {.opcode = ROCI_OPCODE_PIECE,
				     .pkey = ROCI_PKEY_DEFAULT,
				     .dest_qpn = qpn,
				     .payload_len = sizeof(payload)};
	uint64_t before = dev->stats->received_packets, end = roci_now() + 5000000000u;
	struct station from;
	struct outgoing o;

	station_open(&from, address);
	assert_int_equal(roci_udp_listen(from.udp, 0), 0);
	outgoing_start(&o, &from, "127.0.0.1");
	roci_piece_build(&piece, payload);
	o.spans[0][0] = (struct roci_span){payload, sizeof(payload)};
	o.frames[0] = roci_frame(&o.av, o.headers[0], roci_packet_build(&packet, o.headers[0]), o.spans[0], 1);
	o.count = 1;
	outgoing_send(&o, from.link);
	while (dev->stats->received_packets == before) {
		assert_true(roci_now() < end);
		roci_device_poll(dev);
	}
	roci_device_lock(dev); /* where the thread has received it, it has looked at it by now */
	roci_device_unlock(dev);
	station_close(&from);
}

/* They are kept until the others come, so a stranger could fill the room with them. */
static void pieces_of_strangers_take_no_room(void **state)
{
	struct roci_device *dev = open_device();
	struct roci_qp *qp;
	struct roci_cq *cq;
	uint32_t qpn;

	assert_int_equal(roci_cq_create(roci_device_lock(dev), 4, NULL, &cq), 0);
	roci_device_unlock(dev);
	qpn = qp_with_peer(dev, cq, "127.77.0.2", &qp);
	send_piece(dev, "127.77.0.3", qpn);
	assert_int_equal(dev->stats->pieces_refused, 1);
	assert_null(dev->receive.pieces.places);
	send_piece(dev, "127.77.0.2", qpn);
	assert_int_equal(dev->stats->pieces_refused, 1);
	assert_non_null(dev->receive.pieces.places);
	roci_device_lock(dev);
	roci_qp_destroy(qp);
	roci_device_free_qpn(dev, qpn);
	roci_cq_destroy(cq);
	roci_device_unlock(dev);
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
	setenv("ROCI_PATH", "wires", 1);
	assert_int_equal(roci_device_get(on_event, &dev), -EINVAL);
	unsetenv("ROCI_PATH");
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
		cmocka_unit_test(a_thread_that_waited_leaves_no_deadline_behind),
		cmocka_unit_test(threads_that_wait_hold_nothing_up),
		cmocka_unit_test(the_thread_takes_over_from_polls),
		cmocka_unit_test(calls_that_are_no_polls_leave_it_to_the_thread),
		cmocka_unit_test(threads_share_it),
		cmocka_unit_test(a_wakeup_that_a_poll_takes_wakes_the_thread),
		cmocka_unit_test(pieces_of_strangers_take_no_room),
		cmocka_unit_test(a_bad_wish_is_refused),
	};

	return cmocka_run_group_tests(tests, private_rundir, remove_rundir);
}
