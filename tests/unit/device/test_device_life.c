/* SPDX-License-Identifier: BSD-2-Clause */
/* What a program may do with a device of which it says nothing: fork, and end. */
#include "ud.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

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

static struct roci_device *left;

/* Runs after the device's destructor. Exit status 3: the side door stays readable, so the device's thread never sleeps.
 */
static __attribute__((destructor(101))) void after_the_device(void)
{
	struct epoll_event events[16];
	int n = left ? epoll_wait(left->progress.epoll_fd, events, 16, 0) : 0;
	struct pollfd door = {.fd = left ? roci_side_door_fd(left->links.door) : -1, .events = POLLRDHUP};

	if (left && poll(&door, 1, 0) != 1)
		_exit(4); /* it is not shut: the device did not leave the host */
	for (int i = 0; i < n; i++)
		if (events[i].data.u64 == ROCI_PROGRESS_DOOR)
			_exit(3);
}

static void the_side_door_wakes_no_device_that_was_left(void **state)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		left = open_device();
		exit(0);
	}
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
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

/* Two packets come by the side door. Its sender has delayed the one, so only the other one waits. */
static void what_was_delayed_before_is_not_again(void **state)
{
	struct roci_arrival from = {.flow.src_port = 1};
	uint8_t packet[ROCI_MIN_PACKET_BYTES] = {0};
	struct iovec iov[2] = {{0}, {packet, sizeof(packet)}};
	uint64_t end = roci_now() + 5000000000u;
	struct roci_device *dev;

	setenv("ROCI_FAULT", "delay=10s", 1);
	dev = open_device();
	unsetenv("ROCI_FAULT");
	roci_device_lock(dev);
	for (unsigned i = 0; i < 2; i++) {
		from.delayed = i;
		assert_int_equal(
			roci_side_door_send(dev->links.door, dev->registry.slot, &from, sizeof(packet), iov, 2), 0);
	}
	roci_device_unlock(dev);
	while (dev->stats->door_received < 2) {
		assert_true(roci_now() < end);
		roci_device_poll(dev);
	}
	assert_int_equal(dev->stats->fault_receive_delayed, 1);
	roci_device_put(dev);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_forked_child_starts_afresh),
		cmocka_unit_test(a_child_inherits_no_locks),
		cmocka_unit_test(a_program_that_ends_leaves_the_host),
		cmocka_unit_test(the_side_door_wakes_no_device_that_was_left),
		cmocka_unit_test(a_program_that_ends_forwards_what_came),
		cmocka_unit_test(what_was_delayed_before_is_not_again),
	};

	return cmocka_run_group_tests(tests, private_rundir, remove_rundir);
}
