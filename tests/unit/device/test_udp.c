/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench.h"
#include "device/udp_socket.h"

#include <dlfcn.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool asks_for_gso(struct msghdr *msg)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c))
		if (c->cmsg_level == IPPROTO_UDP)
			return true;
	return false;
}

static long asked; /* messages, of the last recvmmsg() */

/* The error with which the kernel refuses messages that ask for GSO; 0: what the kernel does by itself. */
static int gso_error;

static long next_syscall(long number, const long *a)
{
	static long (*next)(long, ...);

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "syscall");
	return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* sendmmsg() and recvmmsg() of the device, which calls the kernel (sys.h), come by here. */
long syscall(long number, ...)
{
	struct mmsghdr *msgs;
	va_list list;
	long a[6], n = 0;

	va_start(list, number);
	for (unsigned i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	if (number == SYS_sendmmsg && gso_error) {
		msgs = (struct mmsghdr *)a[1];
		while (n < (unsigned)a[2] && !asks_for_gso(&msgs[n].msg_hdr))
			n++;
		if (!n) {
			errno = gso_error;
			return -1;
		}
		a[2] = n;
	}
	if (number == SYS_recvmmsg)
		asked = a[2];
	return next_syscall(number, a);
}

static struct roci_datagram in[ROCI_LINK_RECV_BATCH];
static struct outgoing out;

/* Sends what is in `out` from a to b. `count` packets arrive, in order, their PSNs from 0 on. */
static void exchange(struct station *a, struct station *b, unsigned count)
{
	unsigned got = 0;

	outgoing_send(&out, a->link);
	while (got < count) {
		unsigned n = station_wait(b, in);

		assert_true(n > 0);
		for (unsigned i = 0; i < n; i++)
			assert_int_equal(check_datagram(&in[i]), got++);
	}
	assert_int_equal(got, count);
}

static void open_pair(struct station *a, const char *a_addr, struct station *b, const char *b_addr)
{
	station_open(a, a_addr);
	station_open(b, b_addr);
	assert_int_equal(roci_udp_listen(a->udp, 0), 0);
	assert_int_equal(roci_udp_listen(b->udp, 0), 0);
}

static void close_pair(struct station *a, struct station *b)
{
	station_close(a);
	station_close(b);
}

/* Sends a packet, so that the socket knows whether GSO works. */
static void try_gso(struct station *a, struct station *b, const char *to)
{
	outgoing_start(&out, a, to);
	outgoing_add(&out, 0x12345, 0, 10);
	exchange(a, b, 1);
}

static void a_batch_goes_in_few_messages(void **state)
{
	struct station a, b;

	open_pair(&a, "127.77.0.1", &b, "127.77.0.2");
	try_gso(&a, &b, "127.77.0.2");
	outgoing_start(&out, &a, "127.77.0.2");
	for (unsigned i = 0; i < ROCI_LINK_SEND_BATCH; i++)
		outgoing_add(&out, 0x12345, i, 1024);
	exchange(&a, &b, ROCI_LINK_SEND_BATCH);
	/* 64 packets of 1,040 bytes: 62 fit in 65,000. */
	assert_int_equal(a.stats.sent_messages, 1 + 2);
	assert_int_equal(a.stats.sent_packets, 1 + ROCI_LINK_SEND_BATCH);
	assert_int_equal(b.stats.received_packets, 1 + ROCI_LINK_SEND_BATCH);
	assert_int_equal(a.stats.send_dropped, 0);
	close_pair(&a, &b);
}

/* The sender puts an acknowledgement behind the packet that follows it, so that both go in one message. */
static void an_acknowledgement_in_a_run_is_taken_first(void **state)
{
	struct roci_packet ack = {.opcode = ROCI_OP_ACKNOWLEDGE, .dest_qpn = 0x12345};
	struct station a, b;

	open_pair(&a, "127.77.0.1", &b, "127.77.0.2");
	try_gso(&a, &b, "127.77.0.2");
	outgoing_start(&out, &a, "127.77.0.2");
	outgoing_add(&out, 0x12345, 0, 0);
	out.frames[0] = roci_frame(&out.av, out.headers[0], roci_packet_build(&ack, out.headers[0]), out.spans[0], 0);
	outgoing_add(&out, 0x12345, 1, 64);
	outgoing_send(&out, a.link);
	assert_int_equal(station_wait(&b, in), 2);
	assert_int_equal(a.stats.sent_messages, 1 + 1);
	assert_int_equal(in[0].bytes[0], ROCI_OP_ACKNOWLEDGE);
	assert_true(icrc_is_right(&in[0]));
	assert_int_equal(check_datagram(&in[1]), 1);
	close_pair(&a, &b);
}

/* They are of equal length: the sender did not turn them round. */
static void two_acknowledgements_in_a_run_stay_in_order(void **state)
{
	struct station a, b;

	open_pair(&a, "127.77.0.1", &b, "127.77.0.2");
	try_gso(&a, &b, "127.77.0.2");
	outgoing_start(&out, &a, "127.77.0.2");
	for (unsigned i = 0; i < 2; i++) {
		struct roci_packet ack = {.opcode = ROCI_OP_ACKNOWLEDGE, .dest_qpn = 0x12345, .psn = i};

		outgoing_add(&out, 0x12345, i, 0);
		out.frames[i] =
			roci_frame(&out.av, out.headers[i], roci_packet_build(&ack, out.headers[i]), out.spans[i], 0);
	}
	outgoing_send(&out, a.link);
	assert_int_equal(station_wait(&b, in), 2);
	assert_int_equal(a.stats.sent_messages, 1 + 1);
	for (unsigned i = 0; i < 2; i++) {
		struct roci_packet pkt;

		assert_int_equal(roci_packet_parse(&pkt, in[i].bytes, in[i].len), ROCI_PARSE_OK);
		assert_int_equal(pkt.psn, i);
	}
	close_pair(&a, &b);
}

/* Segment i of a GSO send has identification i, a datagram of its own 0. */
static void identification_is_the_place_in_the_run(void **state)
{
	static const unsigned sizes[] = {4096, 4096, 4096, 100, 200, 200, 0, 4096};
	static const unsigned ids[] = {0, 1, 2, 3, 0, 1, 2, 0};
	struct station a, b;

	open_pair(&a, "127.77.0.1", &b, "127.77.0.2");
	try_gso(&a, &b, "127.77.0.2");
	outgoing_start(&out, &a, "127.77.0.2");
	for (unsigned i = 0; i < 8; i++)
		outgoing_add(&out, 0x12345, i, sizes[i]);
	exchange(&a, &b, 8);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(out.sent[i].ip_id, ids[i]);
	assert_int_equal(a.stats.sent_messages, 1 + 3);
	close_pair(&a, &b);
}

/* An interface that computes no checksums: packets go singly, and none is lost. */
static void without_gso_packets_go_singly(void **state)
{
	struct station a, b;

	open_pair(&a, "127.77.0.1", &b, "127.77.0.2");
	gso_error = EIO;
	for (unsigned round = 0; round < 2; round++) {
		outgoing_start(&out, &a, "127.77.0.2");
		for (unsigned i = 0; i < 8; i++)
			outgoing_add(&out, 0x12345, i, 1024);
		exchange(&a, &b, 8);
		for (unsigned i = 0; i < 8; i++)
			assert_int_equal(out.sent[i].ip_id, 0);
	}
	gso_error = 0;
	assert_int_equal(a.stats.sent_messages, 16);
	assert_int_equal(a.stats.send_dropped, 0);
	close_pair(&a, &b);
}

/* GSO worked, but another interface refuses it: a run is lost, and counted; then packets go singly. */
static void gso_that_stops_working_costs_a_run(void **state)
{
	struct station a, b;

	open_pair(&a, "127.77.0.1", &b, "127.77.0.2");
	try_gso(&a, &b, "127.77.0.2");
	gso_error = EIO;
	outgoing_start(&out, &a, "127.77.0.2");
	for (unsigned i = 0; i < 8; i++)
		outgoing_add(&out, 0x12345, i, 1024);
	outgoing_send(&out, a.link);
	assert_int_equal(a.stats.send_dropped, 8);
	exchange(&a, &b, 8);
	gso_error = 0;
	assert_int_equal(a.stats.send_dropped, 8);
	close_pair(&a, &b);
}

/* Packets that are too long for the path go singly, in fragments. They say nothing about GSO. */
static void too_long_packets_are_no_reason_to_go_singly(void **state)
{
	struct station a, b;

	open_pair(&a, "127.77.0.1", &b, "127.77.0.2");
	try_gso(&a, &b, "127.77.0.2");
	gso_error = EINVAL;
	outgoing_start(&out, &a, "127.77.0.2");
	for (unsigned i = 0; i < 8; i++)
		outgoing_add(&out, 0x12345, i, 1024);
	exchange(&a, &b, 8);
	gso_error = 0;
	assert_int_equal(a.stats.sent_messages, 1 + 8);
	exchange(&a, &b, 8);
	assert_int_equal(a.stats.sent_messages, 1 + 8 + 1);
	assert_int_equal(a.stats.send_dropped, 0);
	close_pair(&a, &b);
}

/* Short packets between long ones are as always. */
static void what_does_not_fit_goes_alone(void **state)
{
	static const unsigned sizes[] = {1024, 1024, 4096, 4096, 4096, 1024, 1024, 1024};
	static const unsigned ids[] = {0, 1, 0, 0, 0, 0, 1, 2};
	struct station a, b;

	open_pair(&a, "127.77.0.1", &b, "127.77.0.2");
	try_gso(&a, &b, "127.77.0.2");
	outgoing_start(&out, &a, "127.77.0.2");
	out.av.max_datagram = 1472;
	for (unsigned i = 0; i < 8; i++)
		outgoing_add(&out, 0x12345, i, sizes[i]);
	exchange(&a, &b, 8);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(out.sent[i].ip_id, ids[i]);
	assert_int_equal(a.stats.sent_messages, 1 + 1 + 3 + 1);
	assert_int_equal(a.stats.sent_fragmented, 3);
	close_pair(&a, &b);
}

static void every_length_arrives(void **state)
{
	struct station a, b;

	open_pair(&a, "127.77.0.1", &b, "127.77.0.2");
	for (unsigned len = 0; len < 4096; len += ROCI_LINK_SEND_BATCH) {
		outgoing_start(&out, &a, "127.77.0.2");
		for (unsigned i = 0; i < ROCI_LINK_SEND_BATCH; i++)
			outgoing_add(&out, 0x12345, i, len + i);
		exchange(&a, &b, ROCI_LINK_SEND_BATCH);
	}
	close_pair(&a, &b);
}

/* Messages that come one at a time: no second one is looked for. */
static void a_socket_that_had_nothing_is_asked_for_one_message(void **state)
{
	struct station a, b;

	open_pair(&a, "127.77.0.1", &b, "127.77.0.2");
	for (unsigned i = 0; i < 2; i++) {
		outgoing_start(&out, &a, "127.77.0.2");
		outgoing_add(&out, 0x12345, 0, 64);
		exchange(&a, &b, 1);
		assert_int_equal(asked == 1, i > 0); /* they are short, as it knows now */
		assert_int_equal(roci_link_recv(b.link, in), 0);
	}
	outgoing_start(&out, &a, "127.77.0.2");
	outgoing_add(&out, 0x12345, 0, 64);
	exchange(&a, &b, 1);
	assert_int_equal(asked, 1);
	assert_int_equal(roci_link_recv(b.link, in), 0); /* a stream may have begun */
	assert_true(asked > 1);
	assert_int_equal(roci_link_recv(b.link, in), 0);
	assert_int_equal(asked, 1);
	close_pair(&a, &b);
}

static void ipv6_too(void **state)
{
	struct station a;

	station_open(&a, "::1");
	if (roci_udp_listen(a.udp, 0)) {
		station_close(&a);
		skip();
	}
	outgoing_start(&out, &a, "::1");
	for (unsigned i = 0; i < ROCI_LINK_SEND_BATCH; i++)
		outgoing_add(&out, qpn_of(&a, a.registry.slot, 0), i, 2048);
	exchange(&a, &a, ROCI_LINK_SEND_BATCH);
	station_close(&a);
}

static void traffic_class_and_hops_are_seen(void **state)
{
	struct station a, b;

	open_pair(&a, "127.77.0.1", &b, "127.77.0.2");
	outgoing_start(&out, &a, "127.77.0.2");
	out.av.traffic_class = 0x6a;
	out.av.hop_limit = 17;
	outgoing_add(&out, 0x12345, 0, 10);
	exchange(&a, &b, 1);
	assert_int_equal(in[0].from->traffic_class, 0x6a);
	assert_int_equal(in[0].from->hop_limit, 17);
	assert_int_equal(in[0].from->flow.src_port, ROCI_UDP_PORT);
	assert_memory_equal(in[0].from->flow.src, a.gids.entries[0].gid, 16);
	assert_memory_equal(in[0].from->flow.dst, b.gids.entries[0].gid, 16);

	/* A program that leaves it at 1 does not mean it. */
	outgoing_start(&out, &a, "127.77.0.2");
	out.av.hop_limit = 1;
	outgoing_add(&out, 0x12345, 0, 10);
	exchange(&a, &b, 1);
	assert_int_equal(in[0].from->hop_limit, 64);
	close_pair(&a, &b);
}

/* Sends a packet from the source port of `a`. Returns that port. */
static uint16_t send_from_source(struct station *a, struct station *b)
{
	outgoing_start(&out, a, "127.77.0.2");
	out.av.src_port = roci_udp_source_port(a->udp, 0);
	outgoing_add(&out, 0x12345, 0, 10);
	exchange(a, b, 1);
	assert_int_equal(in[0].from->flow.src_port, out.av.src_port);
	return out.av.src_port;
}

/* Above 4791, and not one of those that Wireshark's UDP dissector takes for traceroute's (32768 + 666 + 1 to 30). Each
 * as often. */
static void wireshark_knows_no_source_port(void **state)
{
	enum {
		FIRST = ROCI_UDP_PORT + 1,
		TRACEROUTE = 32768 + 666 + 1,
		ATTEMPTS = 30,
		PORTS = 65536 - FIRST - ATTEMPTS
	};
	static unsigned drawn[65536];

	for (uint32_t random = 0; random < PORTS; random++)
		drawn[roci_udp_port_for(random)]++;
	for (unsigned port = 0; port < 65536; port++)
		assert_int_equal(drawn[port], port >= FIRST && (port < TRACEROUTE || port >= TRACEROUTE + ATTEMPTS));
	assert_int_equal(roci_udp_port_for(UINT32_MAX), roci_udp_port_for(UINT32_MAX % PORTS));
}

/* All have the same port one time in 10^14. */
static void the_source_port_is_random_and_stays(void **state)
{
	enum { OPENED = 4 };
	uint16_t ports[OPENED];
	unsigned equal = 0;

	for (unsigned i = 0; i < OPENED; i++) {
		struct station a, b;

		open_pair(&a, "127.77.0.1", &b, "127.77.0.2");
		ports[i] = send_from_source(&a, &b);
		assert_int_equal(send_from_source(&a, &b), ports[i]);
		assert_in_range(ports[i], ROCI_UDP_PORT + 1, 65535);
		equal += ports[i] == ports[0];
		close_pair(&a, &b);
	}
	assert_true(equal < OPENED);
}

/* Both sockets of an address find out for themselves whether GSO works, and runs leave by both. */
static void runs_leave_from_the_source_port(void **state)
{
	struct station a, b;

	open_pair(&a, "127.77.0.1", &b, "127.77.0.2");
	send_from_source(&a, &b);
	outgoing_start(&out, &a, "127.77.0.2");
	out.av.src_port = roci_udp_source_port(a.udp, 0);
	for (unsigned i = 0; i < 8; i++)
		outgoing_add(&out, 0x12345, i, 1024);
	exchange(&a, &b, 8);
	assert_int_equal(a.stats.sent_messages, 1 + 1);
	try_gso(&a, &b, "127.77.0.2");
	assert_int_equal(in[0].from->flow.src_port, ROCI_UDP_PORT);
	close_pair(&a, &b);
}

/* Nobody reads there, so nothing may be kept: a message to the port would stay in the kernel's memory. */
static void nothing_is_received_at_the_source_port(void **state)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f4d0001)};
	struct station a;
	char line[512];
	unsigned long queued;
	bool found = false;
	FILE *f;
	int fd;

	station_open(&a, "127.77.0.1");
	to.sin_port = htons(roci_udp_source_port(a.udp, 0));
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(sendto(fd, "x", 1, 0, (struct sockaddr *)&to, sizeof(to)), 1);
	close(fd);
	f = fopen("/proc/self/net/udp", "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		unsigned port;

		if (sscanf(line, "%*d: %*x:%x %*x:%*x %*x %*x:%lx", &port, &queued) == 2 &&
		    port == ntohs(to.sin_port)) {
			found = true;
			assert_int_equal(queued, 0);
		}
	}
	fclose(f);
	assert_true(found);
	station_close(&a);
}

static void a_group_reaches_all_its_members(void **state)
{
	struct station a, b;
	uint8_t group[16], other[16];

	gid_of("239.77.1.2", group);
	gid_of("10.0.0.1", other);
	open_pair(&a, "127.77.0.1", &b, "127.77.0.2");
	assert_int_equal(roci_udp_join(a.udp, other), -EINVAL);
	assert_int_equal(roci_udp_leave(a.udp, group), -EINVAL);
	assert_int_equal(roci_udp_join(a.udp, group), 0);
	assert_int_equal(roci_udp_join(b.udp, group), 0);
	assert_int_equal(roci_udp_join(b.udp, group), 0);
	outgoing_start(&out, &a, "239.77.1.2");
	outgoing_add(&out, ROCI_QPN_MULTICAST, 0, 100);
	exchange(&a, &a, 1);
	assert_memory_equal(in[0].from->flow.dst, group, 16);
	assert_int_equal(station_wait(&b, in), 1);

	assert_int_equal(roci_udp_leave(b.udp, group), 0);
	exchange(&a, &b, 1);
	assert_int_equal(station_wait(&a, in), 1);
	assert_int_equal(roci_udp_leave(b.udp, group), 0);
	exchange(&a, &a, 1);
	assert_int_equal(station_wait(&b, in), 0);
	close_pair(&a, &b);
}

/* Two interfaces with a cable between them, which stay. The kernel adds the route for multicast a while after both are
 * up. */
static bool has_cable(void)
{
	static int err = -1;

	if (err >= 0)
		return !err;
	err = system("(ip link add roci-a type veth peer name roci-b && for i in a b; do"
		     " ip link set roci-$i addrgenmode none && ip link set roci-$i up &&"
		     " ip addr add fe80::77:$i/64 dev roci-$i nodad || exit 1; done &&"
		     " for i in a b; do timeout 20 sh -c"
		     " 'until ip -6 route show table local dev roci-'$i' | grep -q ff00::/8; do sleep 0.01; done'"
		     " || exit 1; done) 2>/dev/null") != 0;
	return !err;
}

/* A udp link with a GID at each end of the cable. */
static void open_at_both_ends(struct station *a, struct roci_gids *gids)
{
	struct roci_udp_config config = {.gids = gids, .registry = &a->registry, .stats = &a->stats};

	station_open(a, "fe80::77:a");
	roci_link_close(a->link);
	gids->count = 2;
	for (int i = 0; i < 2; i++) {
		gid_of(i ? "fe80::77:b" : "fe80::77:a", gids->entries[i].gid);
		gids->entries[i].ifindex = if_nametoindex(i ? "roci-b" : "roci-a");
		gids->entries[i].state = ROCI_GID_READY;
	}
	config.door = a->door_queue;
	config.epoll_fd = a->epoll_fd;
	assert_int_equal(roci_udp_open(&config, &a->udp), 0);
	assert_int_equal(roci_seal_open(roci_udp_link(a->udp), &a->link), 0);
}

/* What leaves by one interface comes back there, and arrives by the other. */
static void send_by_each(struct station *a, const struct roci_gids *gids, const char *group)
{
	for (uint8_t i = 0; i < 2; i++) {
		unsigned got = 0;

		outgoing_start(&out, a, group);
		memcpy(out.av.sgid, gids->entries[i].gid, 16);
		out.av.sgid_index = i;
		out.av.ifindex = gids->entries[i].ifindex;
		outgoing_add(&out, ROCI_QPN_MULTICAST, 0, 100);
		outgoing_send(&out, a->link);
		while (got < 2) {
			unsigned n = station_wait(a, in);

			assert_true(n > 0);
			for (unsigned k = 0; k < n; k++)
				check_datagram(&in[k]);
			got += n;
		}
		assert_memory_equal(in[0].from->flow.src, gids->entries[i].gid, 16);
	}
}

/* Packets of a group are received on each interface, not only on the first: also on one that is there only after the
 * group was joined (`late`). */
static void receive_everywhere(const char *text, bool late)
{
	uint64_t end = roci_now() + 20000000000u;
	struct roci_gids gids = {0};
	struct station a;
	uint8_t group[16];

	open_at_both_ends(&a, &gids);
	if (late)
		gids.entries[1].state = ROCI_GID_GONE;
	gid_of(text, group);
	assert_int_equal(roci_udp_join(a.udp, group), 0);
	assert_int_equal(roci_udp_join(a.udp, group), 0);
	gids.entries[1].state = ROCI_GID_READY;
	if (late)
		roci_udp_follow(a.udp, &(struct roci_gid_change){.ready = 1u << 1});
	assert_int_equal(roci_udp_leave(a.udp, group), 0);
	for (int i = 0; i < 2; i++)
		while (roci_udp_listen(a.udp, i))
			assert_true(roci_now() < end);
	send_by_each(&a, &gids, text);
	assert_int_equal(roci_udp_leave(a.udp, group), 0);
	assert_int_equal(roci_udp_leave(a.udp, group), -EINVAL);
	station_close(&a);
}

static void a_group_is_received_everywhere(void **state)
{
	if (!has_cable())
		skip();
	for (unsigned late = 0; late < 2; late++) {
		receive_everywhere("ff02::77", late);
		receive_everywhere("ff05::77", late);
	}
}

/* As many groups as the device announces, though each of link-local scope takes a socket on each interface. */
static void there_is_room_for_all_groups(void **state)
{
	struct rlimit files;
	struct roci_gids gids = {0};
	uint8_t group[16];
	struct station a;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	if (files.rlim_cur < 3 * ROCI_MAX_MCAST_GROUPS || !has_cable())
		skip();
	open_at_both_ends(&a, &gids);
	gid_of("ff02::100", group);
	for (unsigned i = 0; i < ROCI_MAX_MCAST_GROUPS; i++, group[15]++)
		assert_int_equal(roci_udp_join(a.udp, group), 0);
	for (unsigned i = 0; i < ROCI_MAX_MCAST_GROUPS; i++, group[15]++)
		assert_int_equal(roci_udp_leave(a.udp, group), 0);
	station_close(&a);
}

/* The address goes and comes back: so do both of its sockets, and packets leave from the same port as before. */
static void sockets_follow_their_address(void **state)
{
	struct station a, b;
	uint16_t port;

	open_pair(&a, "127.77.0.1", &b, "127.77.0.2");
	port = roci_udp_source_port(b.udp, 0);
	outgoing_start(&out, &a, "127.77.0.2");
	outgoing_add(&out, 77, 0, 100);
	exchange(&a, &b, 1);

	b.gids.entries[0].state = ROCI_GID_GONE;
	roci_udp_follow(b.udp, &(struct roci_gid_change){.unready = 1});
	assert_int_equal(roci_udp_listen(b.udp, 0), -EINVAL);
	outgoing_send(&out, a.link);
	assert_int_equal(station_wait(&b, in), 0);

	b.gids.entries[0].state = ROCI_GID_TENTATIVE;
	roci_udp_follow(b.udp, &(struct roci_gid_change){0});
	assert_int_equal(roci_udp_listen(b.udp, 0), -EADDRNOTAVAIL);
	b.gids.entries[0].state = ROCI_GID_READY;
	roci_udp_follow(b.udp, &(struct roci_gid_change){.ready = 1});
	exchange(&a, &b, 1);
	assert_int_equal(roci_udp_source_port(b.udp, 0), port);
	close_pair(&a, &b);
}

/* A socket that was asked for at every address is opened where a new address is; one of its predecessor is not. */
static void a_new_address_has_a_socket_only_where_all_have(void **state)
{
	const struct roci_gid_change changed = {.unready = 1, .ready = 1, .renewed = 1};
	struct station a, b;

	open_pair(&a, "127.77.0.1", &b, "127.77.0.2");
	gid_of("127.77.0.3", b.gids.entries[0].gid);
	roci_udp_follow(b.udp, &changed);
	outgoing_start(&out, &a, "127.77.0.3");
	outgoing_add(&out, 77, 0, 100);
	outgoing_send(&out, a.link);
	assert_int_equal(station_wait(&b, in), 0);

	assert_int_equal(roci_udp_listen_everywhere(b.udp), 0);
	exchange(&a, &b, 1);
	gid_of("127.77.0.4", b.gids.entries[0].gid);
	roci_udp_follow(b.udp, &changed);
	outgoing_start(&out, &a, "127.77.0.4");
	outgoing_add(&out, 77, 0, 100);
	exchange(&a, &b, 1);
	close_pair(&a, &b);
}

static void what_cannot_be_sent_is_counted(void **state)
{
	struct station a;

	station_open(&a, "127.77.0.1");
	assert_int_equal(roci_udp_listen(a.udp, 0), 0);
	outgoing_start(&out, &a, "192.0.2.77"); /* no route from a loopback address */
	for (unsigned i = 0; i < 5; i++)
		outgoing_add(&out, 0x12345, i, 100);
	outgoing_send(&out, a.link);
	assert_int_equal(a.stats.send_dropped, 5);
	station_close(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_batch_goes_in_few_messages),
		cmocka_unit_test(an_acknowledgement_in_a_run_is_taken_first),
		cmocka_unit_test(two_acknowledgements_in_a_run_stay_in_order),
		cmocka_unit_test(a_socket_that_had_nothing_is_asked_for_one_message),
		cmocka_unit_test(identification_is_the_place_in_the_run),
		cmocka_unit_test(without_gso_packets_go_singly),
		cmocka_unit_test(gso_that_stops_working_costs_a_run),
		cmocka_unit_test(too_long_packets_are_no_reason_to_go_singly),
		cmocka_unit_test(what_does_not_fit_goes_alone),
		cmocka_unit_test(every_length_arrives),
		cmocka_unit_test(ipv6_too),
		cmocka_unit_test(traffic_class_and_hops_are_seen),
		cmocka_unit_test(wireshark_knows_no_source_port),
		cmocka_unit_test(the_source_port_is_random_and_stays),
		cmocka_unit_test(runs_leave_from_the_source_port),
		cmocka_unit_test(nothing_is_received_at_the_source_port),
		cmocka_unit_test(a_group_reaches_all_its_members),
		cmocka_unit_test(a_group_is_received_everywhere),
		cmocka_unit_test(there_is_room_for_all_groups),
		cmocka_unit_test(what_cannot_be_sent_is_counted),
		cmocka_unit_test(sockets_follow_their_address),
		cmocka_unit_test(a_new_address_has_a_socket_only_where_all_have),
	};

	return cmocka_run_group_tests(tests, private_rundir, remove_rundir);
}
