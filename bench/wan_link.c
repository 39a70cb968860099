/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wan_link -r BITS -d MICROSECONDS [-q BYTES] [-l PPM] NAMESPACE NAMESPACE: a link of RATE bits per second and a delay
 * one way between two network namespaces (paths as /proc/PID/ns/net), each of which gets a TUN device "wan". In front
 * of each direction is a queue of BYTES that drops its tail; behind it, PPM of a million packets are lost. Without -q
 * the queue holds what the link carries in a round trip. Prints a line when the devices are there, and runs until it is
 * killed.
 *
 * For kernels without netem, and without root: unshare -Urn will do.
 */
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define SLOTS      65536 /* packets on the way in one direction; a power of two */
#define SLOT_BYTES 1536
#define READS      64 /* of one device before the other one's turn */
#define SECOND     UINT64_C(1000000000)

static struct {
	uint64_t rate_bps, delay_ns, queue_bytes;
	uint32_t loss_ppm;
} options;

struct packet {
	uint64_t at; /* ns: when it arrives */
	uint16_t len;
	uint8_t bytes[SLOT_BYTES];
};

struct direction {
	int from, to;
	struct packet *ring;
	uint32_t head, tail;
	uint64_t next_free; /* when the wire has sent all that waits */
};

static void need(bool good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(2);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * SECOND + (uint64_t)ts.tv_nsec;
}

/* The TUN device of a namespace. */
static int open_device(const char *namespace)
{
	struct ifreq ifr = {.ifr_flags = IFF_TUN | IFF_NO_PI};
	int ns = open(namespace, O_RDONLY | O_CLOEXEC), fd;

	need(ns >= 0 && !setns(ns, CLONE_NEWNET), namespace);
	close(ns);
	fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	need(fd >= 0, "/dev/net/tun");
	strcpy(ifr.ifr_name, "wan");
	need(!ioctl(fd, TUNSETIFF, &ifr), "TUNSETIFF");
	return fd;
}

static bool is_lost(void)
{
	return options.loss_ppm && (uint32_t)(random() % 1000000) < options.loss_ppm;
}

/* Puts the packet that was read to the ring's end on its way, or drops it. */
static void send_off(struct direction *d, uint64_t now, uint16_t len)
{
	uint64_t wait = d->next_free > now ? d->next_free - now : 0;
	struct packet *p = &d->ring[d->tail & (SLOTS - 1)];

	if (wait * (options.rate_bps / 8) / SECOND + len > options.queue_bytes || d->tail - d->head == SLOTS - 1)
		return;
	d->next_free = now + wait + len * 8 * SECOND / options.rate_bps;
	if (is_lost())
		return;
	p->at = d->next_free + options.delay_ns;
	p->len = len;
	d->tail++;
}

static void take(struct direction *d, uint64_t now)
{
	for (unsigned i = 0; i < READS; i++) {
		struct packet *p = &d->ring[d->tail & (SLOTS - 1)];
		ssize_t len = read(d->from, p->bytes, sizeof(p->bytes));

		if (len <= 0)
			return;
		send_off(d, now, (uint16_t)len);
	}
}

/* Delivers what has arrived. Returns when the next packet does. */
static uint64_t deliver(struct direction *d, uint64_t now)
{
	for (; d->head != d->tail; d->head++) {
		struct packet *p = &d->ring[d->head & (SLOTS - 1)];

		if (p->at > now)
			return p->at;
		if (write(d->to, p->bytes, p->len) < 0)
			continue; /* as if it was lost */
	}
	return UINT64_MAX;
}

static void run(struct direction d[2])
{
	struct pollfd fds[2] = {{.fd = d[0].from, .events = POLLIN}, {.fd = d[1].from, .events = POLLIN}};

	for (;;) {
		uint64_t now = now_ns(), a = deliver(&d[0], now), b = deliver(&d[1], now), next = a < b ? a : b;
		struct timespec wait = {.tv_sec = 1};

		if (next != UINT64_MAX)
			wait = (struct timespec){.tv_nsec = next > now ? (long)((next - now) % SECOND) : 0};
		if (ppoll(fds, 2, &wait, NULL) <= 0)
			continue;
		now = now_ns();
		for (unsigned i = 0; i < 2; i++)
			if (fds[i].revents & POLLIN)
				take(&d[i], now);
	}
}

int main(int argc, char **argv)
{
	struct direction d[2] = {0};
	int c;

	while ((c = getopt(argc, argv, "r:d:q:l:")) != -1) {
		switch (c) {
		case 'r': options.rate_bps = strtoull(optarg, NULL, 10); break;
		case 'd': options.delay_ns = strtoull(optarg, NULL, 10) * 1000; break;
		case 'q': options.queue_bytes = strtoull(optarg, NULL, 10); break;
		case 'l': options.loss_ppm = (uint32_t)strtoul(optarg, NULL, 10); break;
		default: return 2;
		}
	}
	if (optind + 2 != argc || !options.rate_bps) {
		fprintf(stderr, "usage: wan_link -r BITS -d MICROSECONDS [-q BYTES] [-l PPM] NAMESPACE NAMESPACE\n");
		return 2;
	}
	if (!options.queue_bytes)
		options.queue_bytes = options.rate_bps / 8 * 2 * options.delay_ns / SECOND;
	d[0].from = d[1].to = open_device(argv[optind]);
	d[1].from = d[0].to = open_device(argv[optind + 1]);
	for (unsigned i = 0; i < 2; i++) {
		d[i].ring = calloc(SLOTS, sizeof(*d[i].ring));
		need(d[i].ring != NULL, "memory");
	}
	prctl(PR_SET_TIMERSLACK, 1000ul);
	srandom(1);
	puts("ready");
	fflush(stdout);
	run(d);
}
