/* SPDX-License-Identifier: BSD-2-Clause */
/* Registries of other users and containers in one network namespace: who has a port, and who is believed. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cm/types.h"
#include "device/door_trust.h"
#include "device/gsi.h"
#include "device/abstract_name.h"
#include "device/port_holder.h"
#include "device/udp_socket.h"

#define SECOND   1000000000ull
#define STRANGER 20077 /* a user that has nothing to do with this */

static struct roci_datagram in[ROCI_LINK_RECV_BATCH];
static struct outgoing out;

/* Whether the process that has a port forwards: what it says, and how often it was asked. */
static enum { REALLY, NO, YES } answer;
static unsigned inquiries;
bool __real_roci_udp_is_relayed(const struct roci_slot_key *key, const uint8_t gid[16], uint32_t ifindex);
bool __wrap_roci_udp_is_relayed(const struct roci_slot_key *key, const uint8_t gid[16], uint32_t ifindex);

bool __wrap_roci_udp_is_relayed(const struct roci_slot_key *key, const uint8_t gid[16], uint32_t ifindex)
{
	inquiries++;
	return answer == REALLY ? __real_roci_udp_is_relayed(key, gid, ifindex) : answer == YES;
}

/* A station in the registry of another container. */
static void station_open_elsewhere(struct station *s, const char *address)
{
	char mine[200], other[256];

	snprintf(mine, sizeof(mine), "%s", getenv("ROCI_RUNDIR"));
	snprintf(other, sizeof(other), "%s/container", mine);
	setenv("ROCI_RUNDIR", other, 1);
	station_open(s, address);
	setenv("ROCI_RUNDIR", mine, 1);
}

/* What has come, all of it: on the loopback interface that is what was sent. */
static unsigned drain(struct station *s)
{
	unsigned n = 0, more;

	while ((more = roci_link_recv(s->link, in)))
		n += more;
	return n;
}

/* The kernel lets them share, as they are of one user, but each would steer by a list that the other is not on. */
static void two_registries_do_not_share_a_port(void **state)
{
	struct station a, b, foreign;

	station_open(&a, "127.77.0.1");
	station_open(&b, "127.77.0.1");
	station_open_elsewhere(&foreign, "127.77.0.1");
	assert_int_equal(roci_udp_listen(a.udp, 0), 0);
	assert_int_equal(roci_udp_deadline(a.udp), UINT64_MAX);
	assert_int_equal(roci_udp_listen(foreign.udp, 0), -EADDRINUSE); /* `a` does not forward: it is not driven */
	assert_int_equal(roci_udp_listen(b.udp, 0), 0);

	drain(&a); /* what asked whether it forwards */
	outgoing_start(&out, &a, "127.77.0.1");
	for (unsigned i = 0; i < 20; i++)
		outgoing_add(&out, qpn_of(&a, (i % 2 ? a : b).registry.slot, 77), i, 100);
	outgoing_send(&out, a.link);
	assert_int_equal(drain(&a), 10);
	assert_int_equal(drain(&b), 10);
	assert_int_equal(drain(&foreign), 0);
	station_close(&foreign);
	station_close(&b);
	station_close(&a);
}

static void a_port_that_becomes_free_is_taken(void **state)
{
	struct station a, foreign;
	uint64_t now;

	station_open(&a, "127.77.0.1");
	station_open_elsewhere(&foreign, "127.77.0.1");
	assert_int_equal(roci_udp_listen(a.udp, 0), 0);
	assert_int_equal(roci_udp_listen(foreign.udp, 0), -EADDRINUSE);
	now = roci_now();
	assert_in_range(roci_udp_deadline(foreign.udp), now, now + SECOND);
	roci_udp_timers(foreign.udp, now);
	assert_int_equal(roci_udp_listen(foreign.udp, 0), -EADDRINUSE);
	station_close(&a);
	roci_udp_timers(foreign.udp, now);
	assert_int_equal(roci_udp_listen(foreign.udp, 0), 0);
	assert_int_equal(roci_udp_deadline(foreign.udp), UINT64_MAX);
	assert_int_equal(roci_udp_mad_port(foreign.udp, 0), ROCI_UDP_PORT);
	station_close(&foreign);
}

static void a_port_that_cannot_be_waited_on_is_tried_again(void **state)
{
	struct station a, foreign;
	uint64_t now = roci_now();

	station_open(&a, "127.77.0.1");
	station_open_elsewhere(&foreign, "127.77.0.1");
	assert_int_equal(roci_udp_listen(a.udp, 0), 0);
	assert_int_equal(roci_udp_listen(foreign.udp, 0), -EADDRINUSE);
	station_close(&a);
	foreign.udp->config.epoll_fd = -1; /* as with too many watches: epoll_ctl() fails */
	for (unsigned i = 0; i < 2; i++) {
		roci_udp_timers(foreign.udp, now);
		assert_int_equal(roci_udp_listen(foreign.udp, 0), -EADDRINUSE);
		assert_in_range(roci_udp_deadline(foreign.udp), now, now + SECOND);
	}
	foreign.udp->config.epoll_fd = foreign.epoll_fd;
	roci_udp_timers(foreign.udp, now);
	assert_int_equal(roci_udp_listen(foreign.udp, 0), 0);
	assert_int_equal(roci_udp_mad_port(foreign.udp, 0), ROCI_UDP_PORT);
	assert_int_equal(roci_udp_deadline(foreign.udp), UINT64_MAX);
	station_close(&foreign);
}

/* Some program that takes the port, and forwards nothing. */
static int take_port(const char *address)
{
	struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(ROCI_UDP_PORT)};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	uint8_t gid[16];

	gid_of(address, gid);
	memcpy(&name.sin_addr, gid + 12, 4);
	assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof(name)), 0);
	return fd;
}

static void inquire_until(struct station *s, uint64_t *now, uint64_t end)
{
	for (; *now < end; *now += SECOND)
		roci_udp_timers(s->udp, *now);
}

static void a_stranger_who_takes_the_port_later_is_noticed(void **state)
{
	struct station foreign;
	int fd = take_port("127.77.0.1");
	uint64_t now;

	station_open_elsewhere(&foreign, "127.77.0.1");
	answer = YES;
	inquiries = 0;
	assert_int_equal(roci_udp_listen(foreign.udp, 0), 0);
	now = roci_now();
	inquire_until(&foreign, &now, now + 100 * SECOND);
	assert_int_equal(inquiries, 1); /* the same socket has the port */
	close(fd);
	fd = take_port("127.77.0.1");
	answer = NO;
	inquire_until(&foreign, &now, now + 100 * SECOND);
	assert_int_equal(inquiries, 3);
	assert_int_equal(roci_udp_listen(foreign.udp, 0), -EADDRINUSE);
	assert_true(foreign.udp->sockets[0].warned);
	close(fd);
	fd = take_port("127.77.0.1"); /* one of ours again */
	answer = YES;
	inquire_until(&foreign, &now, now + 100 * SECOND);
	assert_int_equal(inquiries, 4);
	assert_int_equal(roci_udp_listen(foreign.udp, 0), 0);
	answer = REALLY;
	close(fd);
	station_close(&foreign);
}

#define ADDRESSES 4

/* A socket in each second at each of several addresses: somebody who wants us to ask all the time. */
static void inquiries_are_bounded(void **state)
{
	struct station foreign;
	int fds[ADDRESSES];
	uint64_t now;

	station_open_elsewhere(&foreign, "127.77.0.1");
	answer = NO;
	inquiries = 0;
	for (int i = 0; i < ADDRESSES; i++) {
		char address[16];

		snprintf(address, sizeof(address), "127.77.0.%d", i + 1);
		gid_of(address, foreign.gids.entries[i].gid);
		foreign.gids.entries[i].state = foreign.gids.entries[0].state;
		foreign.gids.count = i + 1;
		fds[i] = take_port(address);
		assert_int_equal(roci_udp_listen(foreign.udp, i), -EADDRINUSE);
	}
	now = roci_now();
	for (unsigned i = 0; i < 100; i++) {
		for (int k = 0; k < ADDRESSES; k++) {
			int other = socket(AF_INET, SOCK_DGRAM, 0); /* so that the next one has another inode */
			char address[16];

			snprintf(address, sizeof(address), "127.77.0.%d", k + 1);
			close(fds[k]);
			fds[k] = take_port(address);
			close(other);
		}
		roci_udp_timers(foreign.udp, now += SECOND);
	}
	assert_in_range(inquiries, ADDRESSES + 1, ADDRESSES + 11); /* the first ones, and one in ten seconds */
	answer = REALLY;
	for (int i = 0; i < ADDRESSES; i++)
		close(fds[i]);
	station_close(&foreign);
}

/* QPs time out in half a second. */
static void a_missing_port_is_tried_soon_while_packets_are_sent(void **state)
{
	struct station a, foreign;
	uint64_t now;

	station_open(&a, "127.77.0.1");
	station_open_elsewhere(&foreign, "127.77.0.1");
	assert_int_equal(roci_udp_listen(a.udp, 0), 0);
	assert_int_equal(roci_udp_listen(foreign.udp, 0), -EADDRINUSE);
	outgoing_start(&out, &foreign, "127.77.0.2");
	out.av.src_port = roci_udp_source_port(foreign.udp, 0);
	outgoing_add(&out, 0x123456, 0, 100);
	outgoing_send(&out, foreign.link);
	assert_int_equal(foreign.stats.sent_packets, 1);
	now = roci_now();
	assert_in_range(roci_udp_deadline(foreign.udp), now - SECOND, now + SECOND / 10);
	roci_udp_timers(foreign.udp, now);
	assert_in_range(roci_udp_deadline(foreign.udp), now, now + SECOND / 10);
	roci_udp_timers(foreign.udp, now + 10 * SECOND);
	assert_in_range(roci_udp_deadline(foreign.udp), now + 10 * SECOND + SECOND / 2, now + 11 * SECOND);
	station_close(&foreign);
	station_close(&a);
}

/* Others fill the kernel's lists: one reading must do for all addresses that are missing. */
static void a_port_that_the_same_socket_has_is_tried_once_in_a_second(void **state)
{
	struct station a, foreign;
	uint64_t now = roci_now();

	station_open(&a, "127.77.0.1");
	station_open_elsewhere(&foreign, "127.77.0.1");
	assert_int_equal(roci_udp_listen(a.udp, 0), 0);
	assert_int_equal(roci_udp_listen(foreign.udp, 0), -EADDRINUSE);
	roci_udp_timers(foreign.udp, now);
	roci_udp_timers(foreign.udp, now + SECOND / 2);
	assert_int_equal(foreign.udp->sockets[0].tried_at, now);
	now += 2 * SECOND;
	roci_udp_timers(foreign.udp, now);
	assert_int_equal(foreign.udp->sockets[0].tried_at, now);
	station_close(&a);
	roci_udp_timers(foreign.udp, now + 1);
	assert_int_equal(roci_udp_listen(foreign.udp, 0), 0);
	station_close(&foreign);
}

/* Each address would be asked for half a second. */
static void who_has_every_address_is_not_asked(void **state)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(ROCI_UDP_PORT)};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct station a;
	char byte;

	assert_int_equal(bind(fd, (struct sockaddr *)&any, sizeof(any)), 0);
	station_open(&a, "127.77.0.1");
	assert_int_equal(roci_udp_listen(a.udp, 0), -EADDRINUSE);
	assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
	station_close(&a);
	close(fd);
}

/* Takes the names of all side doors but one's. */
static void keep_names(int fds[ROCI_SLOTS], unsigned but)
{
	for (unsigned slot = 1; slot < ROCI_SLOTS; slot++) {
		struct roci_abstract_name name = roci_abstract_name_door(slot);

		fds[slot] = slot == but ? -1 : roci_abstract_name_take(&name);
	}
}

static void give_back_names(int fds[ROCI_SLOTS])
{
	for (unsigned slot = 1; slot < ROCI_SLOTS; slot++)
		if (fds[slot] >= 0)
			close(fds[slot]);
}

/* QPN 1 belongs to no slot, though it tells one as any other does: here, that of the sender. */
static void mads_are_sent_without_the_port(void **state)
{
	static const uint8_t mad[ROCI_CM_MAD_BYTES];
	struct station a, foreign;
	int fds[ROCI_SLOTS];
	unsigned slot;

	station_open(&a, "127.77.0.1");
	assert_int_equal(roci_udp_listen(a.udp, 0), 0);
	slot = roci_slot_of(&a.registry.slot_key, ROCI_QPN_GSI);
	keep_names(fds, slot);
	if (slot && slot != a.registry.slot)
		station_open_elsewhere(&foreign, "127.77.0.1");
	give_back_names(fds);
	if (!slot || slot == a.registry.slot) {
		station_close(&a);
		return; /* one time in 500 */
	}
	assert_int_equal(foreign.registry.slot, slot);
	assert_int_equal(roci_udp_listen(foreign.udp, 0), -EADDRINUSE);
	drain(&a);
	outgoing_start(&out, &foreign, "127.77.0.1");
	out.av.src_port = roci_udp_mad_port(foreign.udp, 0);
	assert_int_not_equal(out.av.src_port, ROCI_UDP_PORT);
	outgoing_add_mad(&out, mad);
	outgoing_send(&out, foreign.link);
	assert_int_equal(foreign.stats.door_sent, 0);
	assert_int_equal(drain(&a), 1);
	station_close(&foreign);
	station_close(&a);
}

/* The first packets of RC QPs make one run, whosever they are. Each process gets its own by its side door. */
static void a_run_for_two_processes_is_cut_at_their_side_doors(void **state)
{
	struct station from, to[2];
	uint64_t malformed = 0;

	station_open(&from, "127.77.0.1");
	for (unsigned i = 0; i < 2; i++)
		station_open(&to[i], "127.77.0.1");
	outgoing_start(&out, &from, "127.77.0.1");
	for (unsigned i = 0; i < 5; i++) {
		outgoing_add(&out, qpn_of(&from, to[i / 3].registry.slot, 5 + i), i, 100);
		out.headers[i][0] = ROCI_TRANSPORT_RC | ROCI_OP_SEND_ONLY;
	}
	outgoing_send(&out, from.link);
	assert_int_equal(from.stats.door_sent, 5);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(roci_side_door_recv(to[i].door, roci_side_door_fd(to[i].door), in, &malformed), 3 - i);
		assert_int_equal(roci_slot_of(&from.registry.slot_key, roci_dest_qpn(in[0].bytes)),
				 to[i].registry.slot);
	}
	assert_int_equal(malformed, 0);
	for (unsigned i = 0; i < 2; i++)
		station_close(&to[i]);
	station_close(&from);
}

/* Another user binds port 4791 of an address, until the pipe is closed. */
static pid_t start_stranger(const char *address, int *hold)
{
	struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(ROCI_UDP_PORT)};
	int up[2], down[2];
	uint8_t gid[16];
	char byte = 0;
	pid_t pid;

	assert_int_equal(pipe(up) | pipe(down), 0);
	gid_of(address, gid);
	memcpy(&name.sin_addr, gid + 12, 4);
	pid = fork();
	if (!pid) {
		close(down[1]);
		if (setuid(STRANGER) || bind(socket(AF_INET, SOCK_DGRAM, 0), (struct sockaddr *)&name, sizeof(name)) ||
		    write(up[1], &byte, 1) < 0)
			_exit(1);
		(void)!read(down[0], &byte, 1);
		_exit(0);
	}
	close(up[1]);
	close(down[0]);
	byte = (char)(read(up[0], &byte, 1) != 1);
	close(up[0]);
	*hold = down[1];
	if (!byte)
		return pid;
	close(*hold);
	waitpid(pid, NULL, 0);
	return 0;
}

static void only_who_has_the_port_may_forward(void **state)
{
	struct roci_gids gids = {.count = 2};
	struct roci_door_trust trust;
	uint64_t now = roci_now();
	uint8_t elsewhere[16];
	pid_t pid;
	int hold;

	roci_door_trust_init(&trust);
	gid_of("127.77.0.1", gids.entries[0].gid);
	gid_of("127.77.0.2", gids.entries[1].gid);
	gids.entries[0].state = gids.entries[1].state = ROCI_GID_READY;
	gid_of("127.77.0.3", elsewhere);
	assert_true(roci_door_trusts(&trust, now, &gids, getuid(), elsewhere));
	assert_false(roci_door_trusts(&trust, now, &gids, STRANGER, gids.entries[0].gid));
	pid = start_stranger("127.77.0.1", &hold);
	if (!pid)
		skip(); /* not root: nobody can be another user */
	assert_false(roci_door_trusts(&trust, now, &gids, STRANGER, gids.entries[0].gid)); /* not read again so soon */
	now += SECOND / 2;
	assert_true(roci_door_trusts(&trust, now, &gids, STRANGER, gids.entries[0].gid));
	now += SECOND / 2;
	assert_false(roci_door_trusts(&trust, now, &gids, STRANGER, gids.entries[1].gid));
	assert_false(roci_door_trusts(&trust, now, &gids, STRANGER, elsewhere));
	assert_false(roci_door_trusts(&trust, now, &gids, STRANGER + 1, gids.entries[0].gid));
	close(hold);
	waitpid(pid, NULL, 0);
	now += SECOND + SECOND / 2;
	assert_false(roci_door_trusts(&trust, now, &gids, STRANGER, gids.entries[0].gid));
}

#define NEIGHBOURS 12

static int send_some(struct station *s, unsigned slot)
{
	static char bytes[60000];
	struct roci_arrival from = {.hop_limit = 64};
	struct iovec iov[2] = {{0}, {bytes, sizeof(bytes)}};

	return roci_side_door_send(s->door, slot, &from, 1000, iov, 2);
}

/* More neighbours than are told apart at a time. The first one's process has been stopped, say. */
static void a_neighbour_that_does_not_read_delays_no_other(void **state)
{
	unsigned slots[NEIGHBOURS];
	int fds[NEIGHBOURS], err = 0;
	struct station a;
	char byte;

	station_open(&a, "127.77.0.1");
	for (unsigned i = 0; i < NEIGHBOURS; i++) {
		struct roci_abstract_name name;

		slots[i] = 1 + (a.registry.slot + i) % (ROCI_SLOTS - 1);
		name = roci_abstract_name_door(slots[i]);
		fds[i] = roci_abstract_name_take(&name);
		assert_true(fds[i] >= 0);
	}
	for (unsigned i = 0; i < 2000 && !err; i++)
		err = send_some(&a, slots[0]);
	assert_int_equal(err, -EAGAIN);
	for (unsigned round = 0; round < 20; round++) {
		for (unsigned i = 1; i < (round < 10 ? 3 : NEIGHBOURS); i++) {
			assert_int_equal(send_some(&a, slots[i]), 0);
			assert_int_equal(recv(fds[i], &byte, 1, 0), 1);
		}
		send_some(&a, slots[0]);
	}
	while (recv(fds[0], &byte, 1, 0) == 1)
		;
	assert_int_equal(send_some(&a, slots[0]), 0);
	for (unsigned i = 0; i < NEIGHBOURS; i++)
		close(fds[i]);
	assert_int_equal(send_some(&a, slots[1]), -ESRCH);
	station_close(&a);
}

/* ---- the kernel's lists as data ---- */

#define LINE(address, uid, inode)                                                                                      \
	"  1: " address ":12B7 00000000:0000 07 00000000:00000000 00:00000000 00000000 " #uid " 0 " #inode " 2 0 0\n"
#define ANY6 "00000000000000000000000000000000"

static void put_file(const char *name, const char *text)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", getenv("ROCI_RUNDIR"), name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

/* Whether 20077 may forward to 127.77.0.1, or to ::1, where the lists say so. */
static bool trusted(const char *udp, const char *udp6, const char *to)
{
	struct roci_door_trust trust = {.tables = getenv("ROCI_RUNDIR"), .unmapped = ROCI_NO_USER};
	struct roci_gids gids = {.count = 2};
	uint8_t gid[16];

	put_file("udp", udp);
	put_file("udp6", udp6);
	gid_of("127.77.0.1", gids.entries[0].gid);
	gid_of("::1", gids.entries[1].gid);
	gids.entries[0].state = gids.entries[1].state = ROCI_GID_READY;
	gid_of(to, gid);
	return roci_door_trusts(&trust, SECOND, &gids, STRANGER, gid);
}

/* One that does not receive IPv4 (IPV6_V6ONLY) is in the list like one that does. */
static void a_socket_of_every_ipv6_address_counts_where_no_other_has_the_port(void **state)
{
	static const char any6[] = LINE(ANY6, 20077, 9);

	assert_true(trusted("", any6, "127.77.0.1"));
	assert_true(trusted("", any6, "::1"));
	assert_true(trusted(LINE("0100007F", 33, 8), any6, "127.77.0.1")); /* it has another address */
	assert_false(trusted(LINE("01004D7F", 33, 8), any6, "127.77.0.1"));
	assert_true(trusted(LINE("01004D7F", 33, 8), any6, "::1"));
	assert_false(trusted(LINE("00000000", 33, 8), any6, "127.77.0.1"));
	assert_false(trusted("", LINE("00000000000000000000000001000000", 33, 8) LINE(ANY6, 20077, 9), "::1"));
	assert_true(trusted(LINE("00000000", 33, 8), LINE("0000000000000000FFFF000001004D7F", 20077, 9), "127.77.0.1"));
	assert_true(trusted(LINE("00000000", 20077, 8), "", "127.77.0.1"));
}

/* The kernel shows all users without a number here as one. */
static void who_has_no_number_is_not_believed(void **state)
{
	struct roci_door_trust trust = {.tables = getenv("ROCI_RUNDIR"), .unmapped = STRANGER};
	struct roci_gids gids = {.count = 1};

	assert_false(trusted(LINE("01004D7F", 65534, 8), "", "127.77.0.1"));
	put_file("udp", LINE("01004D7F", 20077, 8));
	gid_of("127.77.0.1", gids.entries[0].gid);
	gids.entries[0].state = ROCI_GID_READY;
	assert_false(roci_door_trusts(&trust, SECOND, &gids, STRANGER, gids.entries[0].gid));
	trust.unmapped = getuid();
	assert_false(roci_door_trusts(&trust, SECOND, &gids, getuid(), gids.entries[0].gid));
	assert_true(roci_door_trusts(&trust, SECOND, &gids, STRANGER, gids.entries[0].gid));
	assert_false(roci_door_trusts(&trust, SECOND, &gids, ROCI_NO_USER, gids.entries[0].gid));
}

static uint32_t unmapped(const char *map, const char *overflow)
{
	char paths[2][256];

	put_file("uid_map", map);
	put_file("overflowuid", overflow);
	snprintf(paths[0], sizeof(paths[0]), "%s/uid_map", getenv("ROCI_RUNDIR"));
	snprintf(paths[1], sizeof(paths[1]), "%s/overflowuid", getenv("ROCI_RUNDIR"));
	return roci_unmapped_user(paths[0], paths[1]);
}

static void who_has_no_number_is_known_by_the_overflow_uid(void **state)
{
	assert_int_equal(unmapped("         0          0 4294967295\n", "65534\n"), ROCI_NO_USER);
	assert_int_equal(unmapped("         0       1000          1\n", "65534\n"), 65534);
	assert_int_equal(unmapped("0 1000 1\n1 100000 65536\n", "99\n"), 99);
	assert_int_equal(unmapped("", ""), 65534);
	assert_int_equal(roci_unmapped_user("/nowhere", "/nowhere"), 65534);
}

/* Others drive the readings: one serves all addresses, and the next comes a tenth of a second later. */
static void the_lists_are_read_ten_times_a_second_for_all_addresses(void **state)
{
	struct roci_door_trust trust = {.tables = getenv("ROCI_RUNDIR"), .unmapped = ROCI_NO_USER};
	struct roci_gids gids = {.count = 2};

	gid_of("127.77.0.1", gids.entries[0].gid);
	gid_of("127.77.0.2", gids.entries[1].gid);
	gids.entries[0].state = gids.entries[1].state = ROCI_GID_READY;
	put_file("udp6", "");
	put_file("udp", LINE("01004D7F", 20077, 8));
	assert_true(roci_door_trusts(&trust, SECOND, &gids, STRANGER, gids.entries[0].gid));
	put_file("udp", LINE("02004D7F", 20077, 8));
	assert_false(roci_door_trusts(&trust, SECOND + SECOND / 20, &gids, STRANGER, gids.entries[1].gid));
	assert_true(roci_door_trusts(&trust, SECOND + SECOND / 20, &gids, STRANGER, gids.entries[0].gid));
	assert_true(roci_door_trusts(&trust, SECOND + SECOND / 5, &gids, STRANGER, gids.entries[1].gid));
	assert_false(roci_door_trusts(&trust, SECOND + SECOND / 5, &gids, STRANGER, gids.entries[0].gid));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_registries_do_not_share_a_port),
		cmocka_unit_test(a_port_that_becomes_free_is_taken),
		cmocka_unit_test(a_port_that_cannot_be_waited_on_is_tried_again),
		cmocka_unit_test(a_stranger_who_takes_the_port_later_is_noticed),
		cmocka_unit_test(inquiries_are_bounded),
		cmocka_unit_test(a_missing_port_is_tried_soon_while_packets_are_sent),
		cmocka_unit_test(a_port_that_the_same_socket_has_is_tried_once_in_a_second),
		cmocka_unit_test(who_has_every_address_is_not_asked),
		cmocka_unit_test(mads_are_sent_without_the_port),
		cmocka_unit_test(a_run_for_two_processes_is_cut_at_their_side_doors),
		cmocka_unit_test(only_who_has_the_port_may_forward),
		cmocka_unit_test(a_neighbour_that_does_not_read_delays_no_other),
		cmocka_unit_test(a_socket_of_every_ipv6_address_counts_where_no_other_has_the_port),
		cmocka_unit_test(who_has_no_number_is_not_believed),
		cmocka_unit_test(who_has_no_number_is_known_by_the_overflow_uid),
		cmocka_unit_test(the_lists_are_read_ten_times_a_second_for_all_addresses),
	};

	return cmocka_run_group_tests(tests, private_rundir, remove_rundir);
}
