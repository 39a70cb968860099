/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "device/abstract_name.h"
#include "device/door_queue.h"
#include "device/udp_socket.h"

static struct roci_datagram in[ROCI_LINK_RECV_BATCH];
static struct outgoing out;

/* Each is a system call. */
static unsigned looks;
bool __real_roci_registry_alive(const struct roci_registry *reg, unsigned slot);
bool __wrap_roci_registry_alive(const struct roci_registry *reg, unsigned slot);

bool __wrap_roci_registry_alive(const struct roci_registry *reg, unsigned slot)
{
	looks++;
	return __real_roci_registry_alive(reg, slot);
}

/* Another program has port 4791 of the address: here a socket without SO_REUSEPORT. */
static int occupy(const char *address)
{
	struct station s;
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
	} name = {.v4 = {.sin_family = AF_INET, .sin_port = htons(ROCI_UDP_PORT)}};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	gid_of(address, s.gids.entries[0].gid);
	memcpy(&name.v4.sin_addr, s.gids.entries[0].gid + 12, 4);
	assert_int_equal(bind(fd, &name.any, sizeof(name.v4)), 0);
	return fd;
}

static void peers_on_the_host_are_reached_without_the_port(void **state)
{
	int occupant = occupy("127.77.0.9");
	struct station a, b;
	unsigned n;

	station_open(&a, "127.77.0.9");
	station_open(&b, "127.77.0.9");
	assert_int_equal(roci_udp_listen(a.udp, 0), -EADDRINUSE);
	outgoing_start(&out, &a, "127.77.0.9");
	for (unsigned i = 0; i < 20; i++)
		outgoing_add(&out, qpn_of(&b, b.registry.slot, 77), i, 1000);
	outgoing_send(&out, a.link);
	assert_int_equal(a.stats.door_sent, 20);
	n = roci_side_door_recv(b.door, b.registry.door_fd, in, &b.stats.door_malformed);
	assert_int_equal(n, 20);
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(check_datagram(&in[i]), i);
		assert_true(in[i].from->forwarded);
		assert_memory_equal(in[i].from->flow.src, a.gids.entries[0].gid, 16);
	}
	station_close(&b);
	outgoing_send(&out, a.link);
	assert_int_equal(a.stats.send_dropped, 20);
	station_close(&a);
	close(occupant);
}

static void nobody_there(void **state)
{
	struct roci_arrival from = {.hop_limit = 64};
	char bytes[100] = {0};
	struct iovec iov[2] = {{0}, {bytes, sizeof(bytes)}};
	struct station a;

	station_open(&a, "127.77.0.1");
	assert_int_equal(roci_side_door_send(a.door, a.registry.slot % 1000 + 1, &from, 100, iov, 2), -ESRCH);
	assert_int_equal(roci_side_door_recv(a.door, a.registry.door_fd, in, &a.stats.door_malformed), 0);
	station_close(&a);
}

static void rubbish_is_counted(void **state)
{
	struct roci_abstract_name name;
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	struct station a;
	char bytes[300];

	station_open(&a, "127.77.0.1");
	name = roci_abstract_name_door(a.registry.slot);
	memset(bytes, 0x5a, sizeof(bytes));
	for (unsigned len = 0; len < 8; len++)
		assert_int_equal(sendto(fd, bytes, len * 40, 0, (struct sockaddr *)&name.addr, name.len), len * 40);
	assert_int_equal(roci_side_door_recv(a.door, a.registry.door_fd, in, &a.stats.door_malformed), 0);
	assert_int_equal(a.stats.door_malformed, 8);
	close(fd);
	station_close(&a);
}

/* A message of very many short packets would take the room of those that are read with it. */
static void more_packets_than_a_message_may_have_are_refused(void **state)
{
	static uint8_t bytes[ROCI_SIDE_DOOR_BYTES];
	struct roci_arrival from = {.flow = {.src_port = 1}};
	struct iovec many[2] = {{0}, {bytes, sizeof(bytes)}}, one[2] = {{0}, {bytes, ROCI_MIN_PACKET_BYTES}};
	struct station a, b;

	station_open(&a, "127.77.0.1");
	station_open(&b, "127.77.0.2");
	assert_int_equal(roci_side_door_send(a.door, b.registry.slot, &from, ROCI_MIN_PACKET_BYTES, many, 2), 0);
	assert_int_equal(roci_side_door_send(a.door, b.registry.slot, &from, ROCI_MIN_PACKET_BYTES, one, 2), 0);
	assert_int_equal(roci_side_door_recv(b.door, b.registry.door_fd, in, &b.stats.door_malformed), 1);
	assert_int_equal(b.stats.door_malformed, 1);
	many[1].iov_len = ROCI_SIDE_DOOR_PACKETS * ROCI_MIN_PACKET_BYTES;
	assert_int_equal(roci_side_door_send(a.door, b.registry.slot, &from, ROCI_MIN_PACKET_BYTES, many, 2), 0);
	assert_int_equal(roci_side_door_recv(b.door, b.registry.door_fd, in, &b.stats.door_malformed),
			 ROCI_SIDE_DOOR_PACKETS);
	station_close(&a);
	station_close(&b);
}

/* As many messages as there is room for, and one more. */
static void fill_up(struct station *from, unsigned slot)
{
	outgoing_start(&out, from, "127.77.0.9");
	for (unsigned i = 0; i < 60; i++)
		outgoing_add(&out, qpn_of(from, slot, 77), i, 1000);
	for (unsigned i = 0; i < 10000 && !from->stats.send_dropped; i++)
		outgoing_send(&out, from->link);
	assert_true(from->stats.send_dropped > 0);
}

/* A stopped process of the same user. */
static void one_that_does_not_read_leaves_room_for_others(void **state)
{
	int occupant = occupy("127.77.0.9");
	struct station a, stopped, b;

	station_open(&a, "127.77.0.9");
	station_open(&stopped, "127.77.0.9");
	station_open(&b, "127.77.0.9");
	assert_int_equal(roci_udp_listen(a.udp, 0), -EADDRINUSE);
	fill_up(&a, stopped.registry.slot);
	a.stats.send_dropped = 0;
	outgoing_start(&out, &a, "127.77.0.9");
	for (unsigned i = 0; i < 20; i++)
		outgoing_add(&out, qpn_of(&b, b.registry.slot, 77), i, 1000);
	outgoing_send(&out, a.link);
	assert_int_equal(a.stats.send_dropped, 0);
	assert_int_equal(roci_side_door_recv(b.door, b.registry.door_fd, in, &b.stats.door_malformed), 20);
	station_close(&b);
	station_close(&stopped);
	station_close(&a);
	close(occupant);
}

/* A process that was away for a moment finds them all, in order: what a door holds is as much as its reader leaves. */
static void datagrams_wait_for_a_full_door(void **state)
{
	int occupant = occupy("127.77.0.9");
	unsigned sent, came = 0, n;
	struct station a, b;

	station_open(&a, "127.77.0.9");
	station_open(&b, "127.77.0.9");
	assert_int_equal(roci_udp_listen(a.udp, 0), -EADDRINUSE);
	for (sent = 0; sent < 600; sent++) {
		outgoing_start(&out, &a, "127.77.0.9");
		outgoing_add(&out, qpn_of(&b, b.registry.slot, 77), sent, sent < 300 ? 500 : 100);
		outgoing_send(&out, a.link);
	}
	assert_int_equal(a.stats.send_dropped, 0);
	assert_true(roci_door_queue_deadline(a.door_queue) < UINT64_MAX);
	while (roci_door_queue_retry(a.door_queue),
	       (n = roci_side_door_recv(b.door, b.registry.door_fd, in, &b.stats.door_malformed)))
		for (unsigned i = 0; i < n; i++)
			assert_int_equal(check_datagram(&in[i]), came++);
	assert_int_equal(came, sent);
	assert_true(roci_door_queue_deadline(a.door_queue) == UINT64_MAX);
	assert_int_equal(a.stats.send_dropped, 0);
	station_close(&b);
	station_close(&a);
	close(occupant);
}

static unsigned long address_space(void)
{
	FILE *statm = fopen("/proc/self/statm", "re");
	unsigned long pages = 0;

	assert_non_null(statm);
	assert_int_equal(fscanf(statm, "%lu", &pages), 1);
	fclose(statm);
	return pages * (unsigned long)sysconf(_SC_PAGESIZE);
}

/* Two megabytes, which most processes never need. */
static void a_queue_takes_room_when_something_waits(void **state)
{
	struct roci_door_queue *queues[64];
	unsigned long before = address_space();
	uint64_t lost = 0;

	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(roci_door_queue_open(NULL, &lost, &queues[i]), 0);
	assert_true(address_space() - before < 64 * ROCI_SIDE_DOOR_BYTES);
	for (unsigned i = 0; i < 64; i++)
		roci_door_queue_close(queues[i]);
}

/* They are lost when their reader has ended. */
static void nothing_waits_for_the_dead(void **state)
{
	int occupant = occupy("127.77.0.9");
	struct station a, b;

	station_open(&a, "127.77.0.9");
	station_open(&b, "127.77.0.9");
	assert_int_equal(roci_udp_listen(a.udp, 0), -EADDRINUSE);
	fill_up(&a, b.registry.slot);
	a.stats.send_dropped = 0;
	station_close(&b);
	roci_door_queue_retry(a.door_queue);
	assert_true(roci_door_queue_deadline(a.door_queue) == UINT64_MAX);
	assert_true(a.stats.send_dropped > 0);
	station_close(&a);
	close(occupant);
}

/* More of them than there are sockets for. */
static void many_are_reached(void **state)
{
	struct roci_arrival from = {.hop_limit = 64};
	char bytes[100] = {0};
	struct iovec iov[2] = {{0}, {bytes, sizeof(bytes)}};
	static struct station others[40];
	struct station a;

	station_open(&a, "127.77.0.1");
	gid_of("127.77.0.1", from.flow.src);
	gid_of("127.77.0.1", from.flow.dst);
	for (unsigned i = 0; i < 40; i++)
		station_open(&others[i], "127.77.0.1");
	looks = 0;
	for (unsigned round = 0; round < 3; round++)
		for (unsigned i = 0; i < 40; i++) {
			struct station *to = &others[i];

			assert_int_equal(roci_side_door_send(a.door, to->registry.slot, &from, 100, iov, 2), 0);
			assert_int_equal(
				roci_side_door_recv(to->door, to->registry.door_fd, in, &to->stats.door_malformed), 1);
		}
	assert_int_equal(looks, 0);
	for (unsigned i = 0; i < 40; i++)
		station_close(&others[i]);
	station_close(&a);
}

/* Who sends to a process of the registry knows for a while that it is there. */
static void the_registry_is_seldom_asked(void **state)
{
	int occupant = occupy("127.77.0.9");
	struct station a, b;
	uint64_t start;

	station_open(&a, "127.77.0.9");
	station_open(&b, "127.77.0.9");
	assert_int_equal(roci_udp_listen(a.udp, 0), -EADDRINUSE);
	outgoing_start(&out, &a, "127.77.0.9");
	outgoing_add(&out, qpn_of(&b, b.registry.slot, 77), 0, 1000);
	start = roci_now();
	looks = 0;
	for (unsigned i = 0; i < 200; i++) {
		outgoing_send(&out, a.link);
		assert_int_equal(roci_side_door_recv(b.door, b.registry.door_fd, in, &b.stats.door_malformed), 1);
	}
	assert_in_range(looks, 1, 1 + (roci_now() - start) / 100000000);
	station_close(&b);
	outgoing_send(&out, a.link);
	outgoing_send(&out, a.link);
	assert_int_equal(a.stats.door_sent, 200);
	station_close(&a);
	close(occupant);
}

#define DRIPS 160 /* at 50 a second; half a second takes 25 of them */

static atomic_bool answered;

/* Sends a byte to every door, again and again, until the question has been answered. Returns how often. */
static void *drip(void *none)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	uintptr_t n = 0;

	for (; n < DRIPS && !atomic_load(&answered); n++) {
		for (unsigned slot = 1; slot < ROCI_SLOTS; slot++) {
			struct roci_abstract_name name = roci_abstract_name_door(slot);

			sendto(fd, "x", 1, 0, (struct sockaddr *)&name.addr, name.len);
		}
		usleep(20000);
	}
	close(fd);
	return (void *)n;
}

/* Whether the process that has the port forwards is asked under the device's lock. */
static void messages_that_drip_in_do_not_prolong_the_question(void **state)
{
	int occupant = occupy("127.77.0.9");
	struct roci_slot_key key = {0};
	uint8_t gid[16];
	pthread_t thread;
	void *drips;

	gid_of("127.77.0.9", gid);
	atomic_store(&answered, false);
	assert_int_equal(pthread_create(&thread, NULL, drip, NULL), 0);
	assert_false(roci_udp_is_relayed(&key, gid, 0));
	atomic_store(&answered, true);
	assert_int_equal(pthread_join(thread, &drips), 0);
	assert_in_range((uintptr_t)drips, 1, DRIPS - 1);
	close(occupant);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(peers_on_the_host_are_reached_without_the_port),
		cmocka_unit_test(nobody_there),
		cmocka_unit_test(one_that_does_not_read_leaves_room_for_others),
		cmocka_unit_test(datagrams_wait_for_a_full_door),
		cmocka_unit_test(a_queue_takes_room_when_something_waits),
		cmocka_unit_test(nothing_waits_for_the_dead),
		cmocka_unit_test(many_are_reached),
		cmocka_unit_test(the_registry_is_seldom_asked),
		cmocka_unit_test(rubbish_is_counted),
		cmocka_unit_test(more_packets_than_a_message_may_have_are_refused),
		cmocka_unit_test(messages_that_drip_in_do_not_prolong_the_question),
	};

	return cmocka_run_group_tests(tests, private_rundir, remove_rundir);
}
