/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagram rsockets, and what strangers can do to them who send to their UDP port, under any address.
 *
 *     rsocket_datagrams ADDRESS
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <rdma/rsocket.h>

#include "checks.h"
#include "rsocket_peer.h"

#define TIMEOUT_S 60
#define PORT      7472

static unsigned failures;

static struct sockaddr_in storage;
static struct sockaddr *const address = (struct sockaddr *)&storage;

#define HEADER_BYTES 16
#define WRONG_QPN    0x123456u

enum { UDP_DATA = 0, UDP_CTRL = OP_CTRL };

/* Sends a message of librdmacm's protocol over UDP: only a header, which claims that the sender has this QPN. */
static void send_header(int fd, uint8_t op, uint32_t qpn, const struct sockaddr_in *to)
{
	uint8_t header[HEADER_BYTES] = {0x55, 0x55, 0x55, 0x55, 4, op, HEADER_BYTES};

	header[8] = (uint8_t)(qpn >> 16);
	header[9] = (uint8_t)(qpn >> 8);
	header[10] = (uint8_t)qpn;
	MUST(sendto(fd, header, sizeof(header), 0, (const struct sockaddr *)to, sizeof(*to)) != sizeof(header));
}

static struct sockaddr_in name_of(int fd)
{
	struct sockaddr_in name;

	MUST(rgetsockname(fd, (struct sockaddr *)&name, &(socklen_t){sizeof(name)}));
	name.sin_addr = storage.sin_addr;
	return name;
}

/* False: nothing came. */
static bool receives(int fd, char expected)
{
	struct pollfd readable = {.fd = fd, .events = POLLIN};
	char into[8];

	return rpoll(&readable, 1, TIMEOUT_S / 6 * 1000) == 1 && rrecv(fd, into, sizeof(into), MSG_DONTWAIT) == 1 &&
	       into[0] == expected;
}

static void close_pair(int ends[2])
{
	MUST(rclose(ends[0]));
	MUST(rclose(ends[1]));
}

/* ---- who a peer is ---- */

/* A rsocket's descriptor is its UDP socket. So these messages have the peer's address, as a stranger's may. */
static void forged_qpn(uint8_t op)
{
	int ends[2];

	datagram_pair(address, ends);
	struct sockaddr_in to = name_of(ends[0]);
	for (unsigned i = 0; i < 3; i++) {
		send_header(ends[1], op, WRONG_QPN, &to);
		CHECK(rsend(ends[0], "abc" + i, 1, 0) == 1);
		CHECK(receives(ends[1], "abc"[i]));
	}
	close_pair(ends);
}

/* Before the first message to the peer, too. */
static void forged_first(uint8_t op)
{
	int ends[2];
	struct sockaddr_in to;

	for (int i = 0; i < 2; i++) {
		ends[i] = rsocket(AF_INET, SOCK_DGRAM, 0);
		MUST(ends[i] < 0);
	}
	MUST(rbind(ends[1], address, sizeof(storage)));
	storage.sin_port = htons(PORT + 1);
	MUST(rbind(ends[0], address, sizeof(storage)));
	storage.sin_port = htons(PORT);
	to = name_of(ends[0]);
	send_header(ends[1], op, WRONG_QPN, &to);
	for (unsigned i = 0; i < 3; i++) {
		CHECK(rsendto(ends[0], "abc" + i, 1, 0, address, sizeof(storage)) == 1);
		CHECK(receives(ends[1], "abc"[i]));
	}
	close_pair(ends);
}

/* The peer ends and starts again, at the same port and with another QPN. */
static void restarted_peer(void)
{
	int ends[2];

	datagram_pair(address, ends);
	struct sockaddr_in to = name_of(ends[0]);
	MUST(rclose(ends[1]));
	ends[1] = rsocket(AF_INET, SOCK_DGRAM, 0);
	MUST(rbind(ends[1], address, sizeof(storage)));
	CHECK(rsendto(ends[1], "a", 1, 0, (struct sockaddr *)&to, sizeof(to)) == 1);
	CHECK(receives(ends[0], 'a'));
	for (unsigned i = 0; i < 3; i++) {
		CHECK(rsend(ends[0], "abc" + i, 1, 0) == 1);
		CHECK(receives(ends[1], "abc"[i]));
	}
	close_pair(ends);
}

/* ---- names ---- */

/* As with UDP: connecting gives both sides' names, before the first message. */
static void names(void)
{
	struct sockaddr_in to = storage, peer = {0}, name = {0};
	socklen_t len = sizeof(peer);
	int fd = rsocket(AF_INET, SOCK_DGRAM, 0);

	MUST(fd < 0);
	FAILS(rgetpeername(fd, (struct sockaddr *)&peer, &len), ENOTCONN);
	MUST(rconnect(fd, (struct sockaddr *)&to, sizeof(to)));
	CHECK(!rgetpeername(fd, (struct sockaddr *)&peer, &len) && len == sizeof(peer));
	CHECK(peer.sin_family == AF_INET && peer.sin_port == to.sin_port && peer.sin_addr.s_addr == to.sin_addr.s_addr);
	MUST(rgetsockname(fd, (struct sockaddr *)&name, &len));
	CHECK(name.sin_port && name.sin_addr.s_addr == to.sin_addr.s_addr); /* the local address towards itself */
	MUST(rclose(fd));
}

/* ---- no descriptors ---- */

static int first_free_fd(void)
{
	int fd = dup(0);

	MUST(fd < 0);
	close(fd);
	return fd;
}

/* The first message makes the QP, for which descriptors are missing: what was made until then goes again. */
static void few_descriptors(void)
{
	struct rlimit limit, low;
	int ends[2];

	for (int i = 0; i < 2; i++) {
		ends[i] = rsocket(AF_INET, SOCK_DGRAM, 0);
		MUST(ends[i] < 0);
	}
	MUST(rbind(ends[1], address, sizeof(storage)));
	MUST(getrlimit(RLIMIT_NOFILE, &limit));
	low = limit;
	int first = first_free_fd();
	for (rlim_t left = 0; left < 2; left++) {
		low.rlim_cur = (rlim_t)first + left;
		MUST(setrlimit(RLIMIT_NOFILE, &low));
		for (int i = 0; i < 3; i++)
			FAILS(rsendto(ends[0], "a", 1, 0, address, sizeof(storage)), EMFILE);
		MUST(setrlimit(RLIMIT_NOFILE, &limit));
		CHECK(first_free_fd() == first);
	}
	CHECK(rsendto(ends[0], "b", 1, 0, address, sizeof(storage)) == 1);
	CHECK(receives(ends[1], 'b'));
	close_pair(ends);
}

/* ---- floods ---- */

#define FLOOD 200 /* fits into the socket's buffer */

static bool udp_is_empty(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0;
}

/* A call reads a bounded number of datagrams, or a flood would keep it, and the lock, for ever. */
static void flood(void)
{
	int ends[2], stranger = socket(AF_INET, SOCK_DGRAM, 0);
	char into[8];
	unsigned calls = 0;

	datagram_pair(address, ends);
	for (unsigned i = 0; i < FLOOD; i++)
		MUST(sendto(stranger, "?", 1, 0, address, sizeof(storage)) != 1);
	FAILS(rrecv(ends[1], into, sizeof(into), MSG_DONTWAIT), EAGAIN);
	CHECK(!udp_is_empty(ends[1]));
	while (!udp_is_empty(ends[1]) && calls++ < FLOOD)
		FAILS(rrecv(ends[1], into, sizeof(into), MSG_DONTWAIT), EAGAIN);
	CHECK(udp_is_empty(ends[1]));
	CHECK(rsend(ends[0], "a", 1, 0) == 1);
	CHECK(receives(ends[1], 'a'));
	close(stranger);
	close_pair(ends);
}

/* ---- unknown peers ---- */

#define UNKNOWN_PEERS 3000

static int live_handles;

#define EXPORT __attribute__((visibility("default")))

/* librdmacm calls these instead of the ones of libibverbs. */
EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct ibv_ah *(*create)(struct ibv_pd *, struct ibv_ah_attr *);

	*(void **)&create = dlsym(RTLD_NEXT, "ibv_create_ah");
	live_handles++;
	return create(pd, attr);
}

EXPORT int ibv_destroy_ah(struct ibv_ah *ah)
{
	int (*destroy)(struct ibv_ah *);

	*(void **)&destroy = dlsym(RTLD_NEXT, "ibv_destroy_ah");
	live_handles--;
	return destroy(ah);
}

/* Sends a message from a new UDP port. */
static void unknown_peer(uint8_t op)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	MUST(fd < 0);
	send_header(fd, op, 0, &storage);
	close(fd);
}

/* Strangers use up no address handles. */
static void unknown_peers(void)
{
	int ends[2];
	char into[8];

	datagram_pair(address, ends);
	int handles = live_handles;
	CHECK(handles > 0);
	for (unsigned i = 0; i < UNKNOWN_PEERS; i++) {
		bool data = i % 2;
		unknown_peer(data ? UDP_DATA : UDP_CTRL);
		if (data)
			CHECK(rrecv(ends[1], into, sizeof(into), MSG_DONTWAIT) == 0);
		else
			FAILS(rrecv(ends[1], into, sizeof(into), MSG_DONTWAIT), EAGAIN);
	}
	CHECK(live_handles == handles);
	CHECK(rsend(ends[1], "c", 1, 0) == 1);
	CHECK(receives(ends[0], 'c'));
	close_pair(ends);
	CHECK(live_handles == 0);
}

/* Sends a message to a new UDP port, which answers with a QPN. */
static void new_destination(int fd)
{
	int peer = socket(AF_INET, SOCK_DGRAM, 0);
	struct sockaddr_in at = storage;
	char into[8];

	MUST(peer < 0);
	at.sin_port = 0;
	MUST(bind(peer, (struct sockaddr *)&at, sizeof(at)));
	MUST(getsockname(peer, (struct sockaddr *)&at, &(socklen_t){sizeof(at)}));
	CHECK(rsendto(fd, "x", 1, 0, (struct sockaddr *)&at, sizeof(at)) == 1);
	send_header(peer, UDP_CTRL, WRONG_QPN, &storage);
	FAILS(rrecv(fd, into, sizeof(into), MSG_DONTWAIT), EAGAIN);
	close(peer);
}

/* A server that answers very many clients uses a limited number of address handles, and finds those again that it has
 * forgotten. */
static void many_destinations(void)
{
	int ends[2], other = rsocket(AF_INET, SOCK_DGRAM, 0);
	struct sockaddr_in from;
	socklen_t len = sizeof(from);
	char into[8];

	MUST(other < 0);
	datagram_pair(address, ends);
	MUST(rsendto(other, "a", 1, 0, address, sizeof(storage)) != 1);
	MUST(rrecvfrom(ends[1], into, sizeof(into), 0, (struct sockaddr *)&from, &len) != 1);
	for (unsigned i = 0; i < UNKNOWN_PEERS; i++)
		new_destination(ends[1]);
	CHECK(live_handles > 100 && live_handles < UNKNOWN_PEERS / 2);
	for (unsigned i = 0; i < 2; i++) { /* over UDP, then over UD again */
		CHECK(rsendto(ends[1], "b", 1, 0, (struct sockaddr *)&from, len) == 1);
		CHECK(receives(other, 'b'));
		FAILS(rrecv(ends[1], into, sizeof(into), MSG_DONTWAIT), EAGAIN);
	}
	CHECK(rsend(ends[1], "c", 1, 0) == 1);
	CHECK(receives(ends[0], 'c'));
	close_pair(ends);
	MUST(rclose(other));
	CHECK(live_handles == 0);
}

int main(int argc, char **argv)
{
	if (argc != 2 || inet_pton(AF_INET, argv[1], &storage.sin_addr) != 1)
		return 2;
	storage.sin_family = AF_INET;
	storage.sin_port = htons(PORT);
	setvbuf(stdout, NULL, _IOLBF, 0);
	alarm(3 * TIMEOUT_S);
	forged_qpn(UDP_CTRL);
	forged_qpn(UDP_DATA);
	forged_first(UDP_CTRL);
	forged_first(UDP_DATA);
	restarted_peer();
	names();
	few_descriptors();
	flood();
	unknown_peers();
	many_destinations();
	printf("%u failures\n", failures);
	return failures != 0;
}
