/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limit_udp -p PORT -t SECONDS                                    the receiver: prints messages and bytes a second
 * limit_udp -p PORT -t SECONDS -l LEN [-r RUN] ADDRESS            the sender
 * limit_udp -p PORT -l LEN -x COUNT [ADDRESS]                     both ends of an exchange: the client prints half of a
 *                                                                 round trip, the median of COUNT
 *
 * What UDP can do without a protocol on it. The sender floods packets of LEN bytes, RUN of them in a message (GSO),
 * many messages in a call. The receiver takes many messages in a call, joined by the kernel (GRO), and reads no byte of
 * them. It counts from its first packet on; what the kernel drops does not count. In an exchange both ends ask for the
 * next packet again and again and never sleep: no program that sends and receives by these system calls is faster.
 */
#include <errno.h>
#include <unistd.h> /* IWYU pragma: keep (getopt) */
#include <netdb.h>
#include <netinet/udp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "clock.h"
#include "pair.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#define UDP_GRO     104
#endif

#define MESSAGES      64
#define MESSAGE_BYTES 65536
#define BUFFER_BYTES  (4 << 20)
#define WAIT_S        10 /* for the first packet */
#define POLLS         100000000L

static struct {
	const char *address, *port;
	unsigned seconds, len, run, exchanges;
} options = {.port = "20998", .seconds = 1, .len = 64, .run = 1};

static uint8_t bytes[MESSAGES][MESSAGE_BYTES];
static struct iovec iov[MESSAGES];
static struct mmsghdr messages[MESSAGES];

static struct addrinfo *resolve(void)
{
	struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_DGRAM, .ai_flags = AI_PASSIVE}, *info;

	if (getaddrinfo(options.address, options.port, &hints, &info))
		die("no such address: %s port %s", options.address, options.port);
	return info;
}

static void prepare(size_t len)
{
	for (int i = 0; i < MESSAGES; i++) {
		iov[i] = (struct iovec){bytes[i], len};
		messages[i].msg_hdr = (struct msghdr){.msg_iov = &iov[i], .msg_iovlen = 1};
	}
}

static void receive(int fd)
{
	struct timeval bound = {.tv_sec = WAIT_S};
	double start = 0, end = 0, now;
	uint64_t total = 0;
	int on = 1, got;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof(bound));
	setsockopt(fd, SOL_UDP, UDP_GRO, &on, sizeof(on));
	prepare(MESSAGE_BYTES);
	do {
		got = recvmmsg(fd, messages, MESSAGES, MSG_WAITFORONE, NULL);
		need(got > 0, "recvmmsg");
		now = clock_seconds();
		if (!start) {
			start = now;
			end = now + options.seconds;
		}
		for (int i = 0; i < got; i++)
			total += messages[i].msg_len;
	} while (now < end);
	printf("%.0f packets/s %.3f Gbit/s\n", (double)total / options.len / (now - start),
	       (double)total * 8 / 1e9 / (now - start));
}

/* Until the receiver has gone, which ICMP tells, but no longer than twice the time. */
static void flood(int fd)
{
	double end = clock_seconds() + 2 * options.seconds + 2;
	int segment = (int)options.len;

	if (options.run > 1)
		need(!setsockopt(fd, SOL_UDP, UDP_SEGMENT, &segment, sizeof(segment)), "UDP_SEGMENT");
	prepare((size_t)options.len * options.run);
	while (clock_seconds() < end)
		if (sendmmsg(fd, messages, MESSAGES, 0) < 0 && errno == ECONNREFUSED)
			return;
}

/* The next packet, without sleeping. Where the peer has gone, nothing: after so many polls there will be none. */
static bool poll_packet(int fd, struct sockaddr_storage *from, socklen_t *len)
{
	for (long i = 0; i < POLLS; i++)
		if (recvfrom(fd, bytes[0], MESSAGE_BYTES, MSG_DONTWAIT, (struct sockaddr *)from, len) >= 0)
			return true;
	return false;
}

static void exchange(int fd, bool client)
{
	double *took = calloc(options.exchanges, sizeof(*took)), start;
	struct sockaddr_storage from;

	need(took, "calloc");
	for (unsigned i = 0; i < options.exchanges; i++) {
		socklen_t len = sizeof(from);

		start = clock_seconds();
		if (client)
			need(send(fd, bytes[0], options.len, 0) >= 0, "send");
		if (!poll_packet(fd, &from, &len))
			die("no packet from the peer");
		if (!client)
			need(sendto(fd, bytes[0], options.len, 0, (struct sockaddr *)&from, len) >= 0, "sendto");
		took[i] = clock_seconds() - start;
	}
	if (client)
		printf("%.3f us\n", clock_median(took, (int)options.exchanges) / 2 * 1e6);
	free(took);
}

int main(int argc, char **argv)
{
	int size = BUFFER_BYTES, fd;
	struct addrinfo *info;

	for (int opt; (opt = getopt(argc, argv, "p:t:l:r:x:")) != -1;) {
		switch (opt) {
		case 'p': options.port = optarg; break;
		case 't': options.seconds = (unsigned)atoi(optarg); break;
		case 'l': options.len = (unsigned)atoi(optarg); break;
		case 'r': options.run = (unsigned)atoi(optarg); break;
		case 'x': options.exchanges = (unsigned)atoi(optarg); break;
		default: return 2;
		}
	}
	if (!options.len || !options.run || options.len * options.run > MESSAGE_BYTES)
		die("-l and -r: at most %d bytes in a message", MESSAGE_BYTES);
	options.address = argv[optind];
	info = resolve();
	fd = socket(info->ai_family, SOCK_DGRAM, 0);
	need(fd >= 0, "socket");
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	if (options.address) {
		need(!connect(fd, info->ai_addr, info->ai_addrlen), "connect");
		if (options.exchanges)
			exchange(fd, true);
		else
			flood(fd);
	} else {
		need(!bind(fd, info->ai_addr, info->ai_addrlen), "bind");
		puts("ready");
		fflush(stdout);
		if (options.exchanges)
			exchange(fd, false);
		else
			receive(fd);
	}
	freeaddrinfo(info);
	return 0;
}
